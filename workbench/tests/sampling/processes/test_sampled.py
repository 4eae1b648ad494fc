"""Beliefs about what samplers saw of several processes: who waited, in which thread, what of the
run they missed."""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from recorded import Record, by_hand
from toy_projects import CLASSIFIER

from rlox_opt.sampling import perf, pyspy
from rlox_opt.sampling.processes import samplers
from rlox_opt.sampling.processes.sampled import read_samplers, remove_spent
from rlox_opt.sampling.processes.samples_file import read_samples
from rlox_opt.sampling.samples import MAIN_THREAD

CONNECTION = "/lib/python3.11/multiprocessing/connection.py"
STACKS = f"""\
thread (7): MainThread;Connection._recv ({CONNECTION}:395);read (libc.so.6) 5
thread (7): MainThread;Connection._send ({CONNECTION}:384);write (libc.so.6) 2
thread (8);load (/home/train.py:4) 3
"""


def pyspy_said(folder: Path, of: Record, stacks: str = STACKS) -> Path:
    """What py-spy leaves of a process, in the folder of the run; returns its own folder there."""
    left = folder / f"{of.key}.py-spy"
    left.mkdir()
    (left / "pyspy.raw").write_text(stacks)
    (left / "pyspy.log").write_text("Samples: 10 Errors: 0\n")
    return left


def test_who_receives_waits_and_threads_have_their_names(tmp_path: Path) -> None:
    worker = Record(tmp_path, 7).thread(1, 8, "loader").until(1000)
    pyspy_said(tmp_path, worker)
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    samples = read_samples(tmp_path, worker.key)
    assert samples is not None
    seen = [(sample.thread, sample.layer) for sample in samples.samples]
    assert (
        seen
        == [(MAIN_THREAD, "idle")] * 5 + [(MAIN_THREAD, "kernel")] * 2 + [("loader", "python")] * 3
    )


@pytest.mark.parametrize("name", ["trainer", "Thread-1 (f)"])
def test_the_main_thread_is_known_by_its_id_whatever_its_name(name: str, tmp_path: Path) -> None:
    main = Record(tmp_path, 7).until(1000)
    pyspy_said(tmp_path, main, STACKS.replace("MainThread", name))
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    samples = read_samples(tmp_path, main.key)
    assert samples is not None
    assert {sample.thread for sample in samples.samples} == {MAIN_THREAD, "8"}


def perf_said(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    times_s: list[float],
    status: int = 0,
    first: str = "",
) -> None:
    """What perf leaves of a process 7 that ran at these times, in the folder of its run, and a
    `perf script` that reads it, after the lines `first`, and ends with `status`."""
    rate = 99
    (folder / perf.DATA).write_bytes(b"PERFILE2")
    (folder / "perf.json").write_text(json.dumps({"pid": 7, "rate": rate}))
    told = first + "".join(
        f"python 7/7  {at:.9f}: cpu-clock/freq={rate}/: \n\t 1 step (/home/env.py)\n\n"
        for at in times_s
    )
    (folder / "told").write_text(told)
    program = folder / "bin" / "perf"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\ncat '{folder}/told'\necho broken >&2\nexit {status}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent), prepend=os.pathsep)


@pytest.mark.parametrize("full", [True, False])
def test_samples_that_are_all_of_times_that_were_not_kept_are_missed(
    full: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = 10**9
    record = Record(tmp_path, 7).span("a", 60_100, 60_900)
    record.write(recorded=[60 * s, 61 * s]).write(end=[61 * s, "exit"])
    perf_said(tmp_path, monkeypatch, [1 + n / 99 for n in range(99)])
    if full:
        limit = "[ perf record: perf size limit reached (786432 KB), stopping session ]\n"
        (tmp_path / "perf.log").write_text(limit)
    (said,) = read_samplers(by_hand(tmp_path), CLASSIFIER)
    assert read_samples(tmp_path, record.key) is None
    assert said.endswith("Use --from and --for.")
    if full:
        assert said.startswith("perf stopped after 2 s of the run, when its data was 0 MiB")
    else:
        assert said.startswith("perf sampled none of the time that was kept of main, ")


def test_samples_of_times_that_were_kept_are_not_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, 7).span("a", 0, 5000).until(5000)
    perf_said(tmp_path, monkeypatch, [1 + n / 99 for n in range(99)])
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    samples = read_samples(tmp_path, record.key)
    assert samples is not None
    assert [sample.phase for sample in samples.samples] == ["a"] * 99


def test_what_was_read_stays_until_the_report_is_there_and_what_is_anothers_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unlink(path: Path, **_: bool) -> None:
        if path.suffix == ".map":
            raise PermissionError(1, "Operation not permitted", str(path))
        os.unlink(path)  # noqa: PTH108

    monkeypatch.setattr(Path, "unlink", unlink)
    Record(tmp_path, 7).span("a", 0, 5000).until(5000)
    perf_said(tmp_path, monkeypatch, [1 + n / 99 for n in range(99)])
    run = by_hand(tmp_path)
    assert read_samplers(run, CLASSIFIER) == []
    assert (tmp_path / perf.DATA).exists()
    assert Path("/tmp/perf-7.map") in run.spent
    remove_spent(run)
    assert not (tmp_path / perf.DATA).exists()


def waits_of(folder: Path, key: str) -> list[tuple[float, float, str]]:
    """When each wait began, how long it lasted, in seconds, and its phase."""
    samples = read_samples(folder, key)
    assert samples is not None
    found = [sample for sample in samples.samples if sample.layer == "idle"]
    return [((sample.time_ns or 0) / 1e9, sample.weight, sample.phase) for sample in found]


def test_a_wait_counts_for_as_long_as_it_lies_in_times_that_were_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    s = 10**9
    record = Record(tmp_path, 7).span("a", 60_100, 64_000)
    record.write(recorded=[60 * s, 61 * s]).write(recorded=[63 * s, 65 * s])
    record.write(end=[65 * s, "exit"])
    wait = "python 7/7 59.5: PERF_RECORD_SWITCH OUT\npython 7/7 63.5: PERF_RECORD_SWITCH IN\n"
    perf_said(tmp_path, monkeypatch, [63.6, 62.0], first=wait)
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    waits = waits_of(tmp_path, record.key)
    assert waits == [(60.0, pytest.approx(1.0), ""), (63.0, pytest.approx(0.5), "a")]


def test_a_wait_that_had_begun_before_sampling_lasts_from_when_that_was_switched_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, 7).write(recorded=[0, 1 << 60]).write(end=[1 << 60, "exit"])
    perf_said(tmp_path, monkeypatch, [])
    sampler = samplers.Perf()
    monkeypatch.setattr(sampler, "_folder", tmp_path, raising=False)
    monkeypatch.setattr(sampler, "_tell", lambda _: None)
    sampler.switch(True)
    on_s = json.loads((tmp_path / perf.ASKED).read_text())["on_ns"] * 1e-9
    (tmp_path / "told").write_text(f"python 7/7 {on_s + 2:.9f}: PERF_RECORD_SWITCH IN\n")
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    ((began_s, lasted_s, _),) = waits_of(tmp_path, record.key)
    assert (began_s, lasted_s) == (pytest.approx(on_s), pytest.approx(2.0, abs=1e-3))


@pytest.mark.parametrize("read", [0, 10])
def test_where_perfs_data_cannot_be_read_that_is_told_and_the_data_kept(
    read: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = Record(tmp_path, 7).span("a", 0, 5000).until(5000)
    perf_said(tmp_path, monkeypatch, [1 + n / 99 for n in range(read)], status=3)
    (said,) = read_samplers(by_hand(tmp_path), CLASSIFIER)
    assert said.startswith("perf script failed with status 3: broken")
    assert ("layers are not known" in said) == (not read)
    assert (read_samples(tmp_path, record.key) is None) == (not read)
    assert (tmp_path / perf.DATA).exists()


def test_processes_that_pyspy_found_too_young_are_named(tmp_path: Path) -> None:
    main = Record(tmp_path, 7).until(9000)
    pyspy_said(tmp_path, main)
    Record(tmp_path, 8, "env worker", 0, main, begin=100).until(4000)
    Record(tmp_path, 9, "helper", None, main, begin=200).until(300)  # not worth a word
    Record(tmp_path, 10, "env worker", 1, main, begin=5000).write(end=[9 * 10**9, "exit"])
    run = by_hand(tmp_path)
    run.about.sampler = "py-spy"
    (said,) = read_samplers(run, CLASSIFIER)
    assert "in its first seconds" in said
    assert said.endswith("nothing was sampled of env worker 0.")


def test_how_late_pyspy_began_is_told_and_kept(tmp_path: Path) -> None:
    main = Record(tmp_path, 7).until(14_000)
    (pyspy_said(tmp_path, main) / samplers.BEGUN).write_text(str(5 * 10**9))
    run = by_hand(tmp_path)
    run.about.sampler = "py-spy"
    (said,) = read_samplers(run, CLASSIFIER)
    assert said.startswith("py-spy began late")
    assert said.endswith("nothing was sampled: main (5 of 14 s).")
    samples = read_samples(tmp_path, main.key)
    assert samples is not None
    assert samples.since_ns == 5 * 10**9


SERVES = """\
with logfire.span("request"):
    with span("load"):
        work()
    rest()
"""


def test_blocks_that_the_program_did_not_record_are_no_phases(tmp_path: Path) -> None:
    script = tmp_path / "serve.py"
    script.write_text(SERVES)
    main = Record(tmp_path, 7).span("load", 100, 400).until(1000)
    stack = f"thread (7): MainThread;<module> ({script}"
    pyspy_said(tmp_path, main, f"{stack}:3) 3\n{stack}:4) 2\n")
    assert read_samplers(by_hand(tmp_path), CLASSIFIER) == []
    samples = read_samples(tmp_path, main.key)
    assert samples is not None
    assert Counter(sample.phase for sample in samples.samples) == {"load": 3, "": 2}


def test_pyspy_looks_at_what_a_process_runs_now_and_at_none_that_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    now, own = time.monotonic_ns(), os.getpid()
    before_exec, gone, after_exec = (
        f"{pid}-{now - age_s * 10**9}" for pid, age_s in ((own, 30), (ended.pid, 20), (own, 10))
    )
    attached: list[int] = []
    monkeypatch.setattr(samplers, "keys", lambda _: [after_exec, gone, before_exec])
    monkeypatch.setattr(pyspy, "attach", lambda pid, *_: attached.append(pid))
    sampler = samplers.PySpy()
    sampler.begin(own, tmp_path, 0, None)
    for _ in range(2):
        sampler.poll(31.0)
    assert attached == [own]
    assert [path.name for path in tmp_path.iterdir()] == [f"{after_exec}.py-spy"]
