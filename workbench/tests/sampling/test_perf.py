"""Beliefs about reading perf: real records by the clock, waits, preemption; a short live run."""

from pathlib import Path

import pytest
from toy_projects import CLASSIFIER

from rlox_opt.sampling import perf
from rlox_opt.sampling.samples import MAIN_THREAD, Samples
from rlox_opt.sampling.spans import SpanLog

SCRIPT = (Path(__file__).parent / "data" / "perf_script.txt").read_text()
PID = 31226
START = 3_968_306_000_000  # shortly before the first record


def spans(*named: tuple[str, int, int]) -> SpanLog:
    """A log of the recorded process from (path, start, end), in milliseconds after START."""
    log = SpanLog()
    log.paths = [path for path, _, _ in named]
    data = log.open_thread("MainThread", PID).data
    for index, (_, start, end) in enumerate(named):
        data.extend((index, START + start * 1_000_000, START + end * 1_000_000))
    return log


def read(text: str = SCRIPT, log: SpanLog | None = None) -> Samples:
    return perf.read(text.splitlines(keepends=True), PID, CLASSIFIER, log, rate=1000)


def test_each_record_has_the_phase_of_its_time_and_the_layer_of_its_leaf() -> None:
    log = spans(
        ("env_step", 0, 10),
        ("gradient_update/backward", 14, 30),
        ("gradient_update/optimizer", 30, 40),
        ("gradient_update", 12, 100),
    )
    samples = read(log=log).samples
    assert [(s.phase, s.layer) for s in samples] == [
        ("env_step", "numpy"),
        ("env_step", "rust"),
        ("env_step", "boundary"),
        ("gradient_update/backward", "idle"),
        ("gradient_update/backward", "torch_backward"),
        ("gradient_update/optimizer", "torch_optimizer"),
        ("gradient_update/optimizer", "torch_optimizer"),  # one frame of MKL, without a stack
        ("gradient_update", "python"),
        ("", "kernel"),
    ]


def test_a_wait_weighs_what_it_lasted_and_a_sample_its_period() -> None:
    weights = {s.layer: s.weight for s in read().samples}
    assert weights["idle"] == pytest.approx(0.001575957)
    assert weights["rust"] == pytest.approx(0.001)


def test_time_off_the_cpu_by_preemption_is_nobodys() -> None:
    assert "PERF_RECORD_SWITCH OUT preempt" in SCRIPT
    waits = [s for s in read().samples if s.layer == "idle"]
    assert len(waits) == 1


def test_a_wait_without_a_stack_is_like_the_last_one_of_its_phase() -> None:
    wait = (
        "python 31226 {t0}.000000000: context-switches/freq=99/: \n"
        "\tffffffff821f94c3 futex_wait ([kernel.kallsyms])\n"
        "\t 1 rayon_core::registry::in_worker_cold (/src/toy/_core.cpython-311.so)\n"
        "\t 2 _PyEval_EvalFrameDefault (/python/lib/libpython3.11.so.1.0)\n\n"
        "python 31226 {t0}.000000001: PERF_RECORD_SWITCH OUT\n"
        "python 31226 {t0}.001000000: PERF_RECORD_SWITCH IN\n"
        "python 31226 {t0}.002000000: PERF_RECORD_SWITCH OUT\n"
        "python 31226 {t0}.003000000: PERF_RECORD_SWITCH IN\n"
    )
    samples = read(wait.format(t0=1)).samples
    assert [s.layer for s in samples] == ["rust", "rust"]  # its workers hold the time
    assert [s.layer for s in read(wait.format(t0=1).partition("\n\n")[2]).samples] == ["idle"] * 2


def test_other_threads_are_named_by_the_spans_or_by_the_kernel() -> None:
    text = SCRIPT.replace("python 31226 ", "python 31227 ", 1).replace(
        "python 31226  3968.307", "rayon worker 31228  3968.307"
    )
    log = spans()
    log.open_thread("collector", 31227)
    names = {s.thread for s in read(text, log).samples}
    assert names == {MAIN_THREAD, "collector", "rayon worker 31228"}


def test_lost_records_are_counted_as_errors() -> None:
    lost = "python 31226  3968.306: PERF_RECORD_LOST lost 3\n"
    assert read(lost + SCRIPT).errors == 1
    assert read().errors == 0


def test_frames_are_outermost_first_without_versions_and_paths() -> None:
    kernel = read().samples[-1].frames
    assert [kernel[0].name, kernel[1].name, kernel[-1].name] == [
        "_start",
        "__libc_start_main",
        "iov_iter_zero",
    ]
    assert not any(f.module.startswith("/") for s in read().samples for f in s.frames)


def test_a_run_that_left_nothing_says_what_the_tool_said(tmp_path: Path) -> None:
    (tmp_path / "perf.log").write_text("No permission to enable cpu-clock event.\n")
    with pytest.raises(ValueError, match="No permission"):
        perf.load(tmp_path, CLASSIFIER)


def test_processes_of_one_recording_are_told_apart() -> None:
    text = SCRIPT.replace("python 31226 ", "python 31000/31226 ", 5)
    events, lost = perf.collect(text.splitlines(keepends=True), 1000)
    assert lost == 0
    assert events.keys() == {31000, 0}
    assert {event.tid for found in events.values() for event in found} == {PID}
    assert sum(map(len, events.values())) == len(read().samples)


def test_a_wait_that_does_not_end_lasts_to_the_end_of_the_recording() -> None:
    text = (
        "python 31226 1.000000000: PERF_RECORD_SWITCH OUT\n"
        "python 31227 4.500000000: PERF_RECORD_SWITCH OUT preempt\n"
    )
    (wait,) = read(text).samples
    assert (wait.layer, wait.weight) == ("idle", pytest.approx(3.5))


BEFORE = (
    "python 7/9 1.000000000: PERF_RECORD_SWITCH OUT preempt\n"
    "python 7/7 1.500000000: PERF_RECORD_FORK(7:8):(7:7)\n"
    "python 7/8 2.000000000: PERF_RECORD_SWITCH IN\n"
    "python 7/9 2.500000000: PERF_RECORD_SWITCH IN\n"
    "python 7/7 4.000000000: PERF_RECORD_SWITCH IN\n"
    "python 7/7 4.500000000: PERF_RECORD_SWITCH OUT preempt\n"
    "python 7/7 5.000000000: PERF_RECORD_SWITCH IN\n"
)


@pytest.mark.parametrize(("on_ns", "waited_s"), [(0, 3.0), (500_000_000, 3.5)])
def test_a_wait_that_had_begun_before_sampling_lasts_from_when_that_was_switched_on(
    on_ns: int, waited_s: float
) -> None:
    events, _ = perf.collect(BEFORE.splitlines(keepends=True), 1000, on_ns)
    (wait,) = events[7]  # none of a thread that was preempted, or that began only then
    assert (wait.what, wait.tid, wait.weight) == ("off", 7, pytest.approx(waited_s))
    assert wait.time_ns + wait.waited_ns == 4_000_000_000


def test_threads_of_which_perf_says_that_they_were_there_have_not_begun() -> None:
    there = "python 7/7 0.000000000: PERF_RECORD_FORK(7:7):(1:1)\n"
    events, _ = perf.collect((there + BEFORE).splitlines(keepends=True), 1000)
    (wait,) = events[7]
    assert wait.weight == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("step", "/home/u/Dropbox (Work)/p/x.so"),
        ("f(int)", "/usr/lib/x.so"),
        ("std::function<void (int)>::operator()(int) const", "/home/u/Dropbox (Work)/p/x.so"),
        ("<impl A for ([u8; 3], B)>::f", "/src/x.so"),
        ("step", "/dev/zero (deleted)"),
        ("schedule", "[kernel.kallsyms]"),
        ("f(int)", "[unknown]"),
    ],
)
def test_names_and_paths_may_hold_parentheses(name: str, module: str) -> None:
    text = f"python 7/7 1.000000000: cpu-clock/freq=99/: \n\t 1 {name} ({module})\n\n"
    events, _ = perf.collect(text.splitlines(keepends=True), 99)
    ((frame,),) = (event.frames for event in events[7])
    assert (frame.name, frame.module) == (name, module)


@pytest.mark.parametrize(
    ("level", "capability", "sees_all"),
    [(1, None, True), (2, None, False), (3, None, False), (2, 38, True), (2, 21, True)],
)
def test_what_the_kernel_hides_from_perf_is_told_with_the_remedy(
    level: int,
    capability: int | None,
    sees_all: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    held = 0 if capability is None else 1 << capability
    (tmp_path / "level").write_text(f"{level}\n")
    (tmp_path / "status").write_text(f"Name:\tpython\nCapEff:\t{held:016x}\nCapBnd:\t0\n")
    monkeypatch.setattr(perf, "_LEVEL", tmp_path / "level")
    monkeypatch.setattr(perf, "_STATUS", tmp_path / "status")
    monkeypatch.setenv("PATH", str(tmp_path))  # no perf lends it capabilities
    told = perf.unseen()
    assert (told is None) is sees_all
    assert told is None or f"kernel.perf_event_paranoid is {level}: " in told
