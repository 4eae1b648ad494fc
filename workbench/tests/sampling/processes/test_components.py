"""Beliefs about threads and components: seconds by phase and layer, equal workers folded."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from recorded import Record, by_hand

from rlox_opt.history import sides
from rlox_opt.sampling.processes.analysis import analyse
from rlox_opt.sampling.processes.components import components, groups, titles, together
from rlox_opt.sampling.processes.run import RecordedRun, read_run
from rlox_opt.sampling.processes.threads import UNSAMPLED, ThreadUse, threads_of
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples

STACK = (Frame("step", "env.py", 3),)


def sampled(*entries: tuple[str, str, float], thread: str = MAIN_THREAD) -> Samples:
    """Samples of (phase, layer, weight)."""
    found = [Sample(STACK, phase, layer, weight, thread) for phase, layer, weight in entries]
    return Samples("perf", found)


def uses(run: RecordedRun, samples: dict[str, Samples] | None = None) -> dict[str, list[ThreadUse]]:
    found = samples or {}
    return {p.key: threads_of(p, found.get(p.title)) for p in run.processes}


def test_a_threads_cells_sum_to_its_time_whatever_the_samples_weigh(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a/b", 100, 300).span("a", 0, 500).span("c", 600, 700).until(1000)
    by_hand(tmp_path)
    samples = sampled(("a", "python", 7), ("a", "numpy", 21), ("a/b", "rust", 0.5), ("", "idle", 3))
    (use,) = threads_of(read_run(tmp_path).processes[0], samples)
    assert use.seconds == pytest.approx(1)
    assert use.cells == {
        ("a", "python"): pytest.approx(0.3 / 4),
        ("a", "numpy"): pytest.approx(0.3 * 3 / 4),
        ("a/b", "rust"): pytest.approx(0.2),
        ("", "idle"): pytest.approx(0.4),
        ("c", "idle"): pytest.approx(0.1),  # of c there is no sample: it is like what is around it
    }
    assert sum(use.layers().values()) == pytest.approx(1)


@pytest.mark.parametrize(("tool", "points"), [("perf", 1.5), ("py-spy", 7.5)])
def test_no_number_of_samples_makes_an_interval_narrower_than_attributing_is_wrong(
    tool: str, points: float, tmp_path: Path
) -> None:
    Record(tmp_path, 5).until(1000)
    by_hand(tmp_path)
    widths = []
    for many in (20, 20_000):
        samples = sampled(*[("", "python", 1.0), ("", "rust", 1.0)] * many)
        samples.tool, samples.period_s = tool, 1.0
        (use,) = threads_of(read_run(tmp_path).processes[0], samples)
        low, high = use.interval("rust", use.layers()["rust"])
        assert low < 0.5 < high
        widths.append(100 * (high - low))
    assert widths[0] > widths[1] > 2 * points


def test_time_that_nobody_sampled_is_told_apart(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a", 0, 250).until(1000)
    (use,) = threads_of(by_hand(tmp_path).processes[0], None)
    assert use.cells == {("a", UNSAMPLED): 0.25, ("", UNSAMPLED): 0.75}


def test_what_a_thread_did_before_the_sampler_began_is_told_apart(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).thread(1, 51, "loader")
    record.span("load", 0, 250).span("learn", 250, 750)
    record.span("fetch", 250, 1000, thread=1).until(1000)
    samples = sampled(("learn", "numpy", 0.25), ("", "python", 0.25))
    samples.samples += sampled(("fetch", "kernel", 0.5), thread="loader").samples
    samples.since_ns = 500_000_000
    main, loader = threads_of(by_hand(tmp_path).processes[0], samples)
    assert main.cells == {
        ("load", UNSAMPLED): 0.25,
        ("learn", UNSAMPLED): 0.25,
        ("learn", "numpy"): 0.25,
        ("", "python"): 0.25,
    }
    assert loader.cells == {("fetch", UNSAMPLED): 0.25, ("fetch", "kernel"): 0.5}


def test_an_outer_block_that_never_closed_holds_at_least_its_inner_ones(tmp_path: Path) -> None:
    Record(tmp_path, 5).span("a/b/c", 100, 300).span("a/b/c", 400, 600).until(1000, None)
    (use,) = threads_of(by_hand(tmp_path).processes[0], None)
    assert [(p.name, p.seconds, p.self_seconds) for p in use.phases] == [
        ("a", pytest.approx(0.4), 0),
        ("a/b", pytest.approx(0.4), 0),
        ("a/b/c", pytest.approx(0.4), pytest.approx(0.4)),
    ]


def family(folder: Path) -> RecordedRun:
    """Two ranks with two environment workers each, of which one is slow."""
    main = Record(folder, 1, "torchrun").until(1000)
    for rank in range(2):
        parent = Record(folder, 10 + rank, "rank", rank, main, begin=rank + 1)
        parent.span("update", 100, 400 + 10 * rank).until(1000)
        for worker in range(2):
            slow = rank == 1 and worker == 0
            pid = 20 + 2 * rank + worker
            Record(folder, pid, "env worker", worker, parent, begin=pid).span(
                "python_env/step", 100, 900 if slow else 300
            ).until(1000)
    return by_hand(folder)


def test_equal_workers_are_one_component_and_the_straggler_has_a_name(tmp_path: Path) -> None:
    run = family(tmp_path)
    found = {component["title"]: component for component in components(run.processes, uses(run))}
    assert found["rank"]["processes"] == ["rank 0", "rank 1"]
    (thread,) = found["env worker"]["threads"]
    assert thread["count"] == 4
    step = next(phase for phase in thread["phases"] if phase["name"] == "python_env/step")
    assert step["seconds"] == pytest.approx((3 * 0.2 + 0.8) / 4)
    assert (step["low"], step["high"]) == (pytest.approx(0.2), pytest.approx(0.8))
    assert step["high_in"] == "rank 1, env worker 0"


def test_every_process_has_a_name_of_its_own(tmp_path: Path) -> None:
    run = family(tmp_path)
    Record(tmp_path, 90, "torchrun", begin=90).until(91)
    names = titles(read_run(tmp_path).processes)
    assert len(set(names.values())) == 8
    assert "torchrun (2)" in names.values()
    assert len(groups(run.processes)) == 3


def test_the_ranking_is_of_all_that_is_done_and_leaves_waiting_out(tmp_path: Path) -> None:
    run = family(tmp_path)
    samples: dict[str, Any] = {
        f"rank {n}": sampled(("update", "torch_backward", 1), ("", "idle", 1)) for n in range(2)
    }
    for worker in range(2):
        title = f"env worker {worker}"
        samples[title] = sampled(("python_env/step", "env_python", 1), ("", "idle", 1))
    layers, ranking = together(run.processes, uses(run, samples))
    busy = 0.3 + 0.31 + 3 * 0.2 + 0.8
    assert [(row["component"], row["phase"], row["layer"]) for row in ranking] == [
        ("env worker", "python_env/step", "env_python"),
        ("rank", "update", "torch_backward"),
    ]
    assert ranking[0]["share"] == pytest.approx(1.4 / busy)
    assert sum(row["share"] for row in ranking) == pytest.approx(1)
    idle = next(layer for layer in layers if layer["name"] == "idle")
    assert idle["share"] is None


def test_threads_whose_names_differ_by_numbers_alone_are_equal(tmp_path: Path) -> None:
    record = Record(tmp_path, 5)
    for number in range(3):
        record.thread(number + 1, 50 + number, f"pool-0_{number}")
        record.span("load", 100, 200 + number * 100, thread=number + 1)
    run = by_hand(tmp_path) if record.until(1000) else None
    assert run is not None
    (component,) = components(run.processes, uses(run))
    pool = component["threads"][1]
    assert (pool["name"], pool["count"]) == ("pool-*_*", 3)
    assert pool["seconds"] == pytest.approx(0.2)


def test_of_a_part_of_a_run_only_that_part_is_divided_and_replayed(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).span("step", 1000, 1400)
    record.span("sleep: sleep", 1400, 2000, "wait", "sleep", "")
    record.write(recorded=[10**9, 2 * 10**9]).write(end=[5 * 10**9, "exit"])
    found = analyse(by_hand(tmp_path))
    assert found is not None
    (thread,) = found["threads"]
    assert (thread["wall"], thread["busy"], thread["idle"]) == pytest.approx((1.0, 0.4, 0.6))
    assert found["replayed"]["recorded_s"] == pytest.approx(1.0)
    assert found["work"] == {"main: step": pytest.approx(0.4)}


def test_a_replay_is_held_to_the_ranks_not_to_who_started_them(tmp_path: Path) -> None:
    torchrun = Record(tmp_path, 5, "torchrun").span("sleep", 0, 2000, "wait", "sleep", "")
    for index in range(2):
        rank = Record(tmp_path, 6 + index, "rank", index, torchrun, begin=1)
        rank.span("learn", 1, 500).until(500)
    torchrun.until(2000)
    found = analyse(by_hand(tmp_path))
    assert found is not None
    assert found["wall_s"] == pytest.approx(2.0)
    assert found["replayed"]["recorded_s"] == pytest.approx(0.5)
    assert found["replayed"]["replayed_s"] == pytest.approx(0.5)
    assert not any("doubted" in note for note in found["notes"])


S = 10**9


def test_of_a_span_that_reaches_over_the_windows_only_the_time_in_them_counts(
    tmp_path: Path,
) -> None:
    record = Record(tmp_path, 5).thread(1, 51, "loader")
    record.span("train/step", 5100, 5600).span("load", 5200, 5400, thread=1)
    record.write(recorded=[5 * S, 6 * S])
    record.span("load", 15_100, 15_300, thread=1).span("train", 0, 15_500)
    record.write(recorded=[15 * S, 16 * S]).write(end=[20 * S, "exit"])
    main, loader = threads_of(by_hand(tmp_path).processes[0], None)
    assert main.seconds == pytest.approx(2)
    assert [(p.name, p.seconds, p.self_seconds, p.calls) for p in main.phases] == [
        ("train", pytest.approx(1.5), pytest.approx(1.0), 1),
        ("train/step", pytest.approx(0.5), pytest.approx(0.5), 1),
    ]
    assert loader.seconds == pytest.approx(0.8 + 0.3)
    for use in (main, loader):
        assert sum(use.cells.values()) == pytest.approx(use.seconds)


def test_who_never_was_in_a_phase_counts_there_as_nothing(tmp_path: Path) -> None:
    for rank in range(4):
        record = Record(tmp_path, 10 + rank, "rank", rank, begin=rank).span("update", 100, 500)
        if not rank:
            record.span("checkpoint/write", 500, 700).span("checkpoint", 500, 900)
        record.until(1000)
    run = by_hand(tmp_path)
    ((thread,),) = [component["threads"] for component in components(run.processes, uses(run))]
    found = {phase["name"]: phase for phase in thread["phases"]}
    checkpoint = found["checkpoint"]
    assert checkpoint["seconds"] == pytest.approx(0.4 / 4)
    assert (checkpoint["low"], checkpoint["high"]) == (0, pytest.approx(0.4))
    assert (checkpoint["low_in"], checkpoint["high_in"]) == ("rank 1", "rank 0")
    for name, own, calls in (("checkpoint", 0.2, 1), ("checkpoint/write", 0.2, 1)):
        assert found[name]["self_seconds"] * thread["count"] == pytest.approx(own)
        assert found[name]["calls"] * thread["count"] == pytest.approx(calls)


def test_profiles_are_compared_by_what_all_equal_workers_together_took(tmp_path: Path) -> None:
    for rank in range(4):
        record = Record(tmp_path, 10 + rank, "rank", rank, begin=rank)
        if not rank:
            record.span("checkpoint", 500, 900)
        record.write(recorded=[0, S]).write(end=[S, "exit"])
    run = by_hand(tmp_path)
    found = uses(run)
    layers, _ = together(run.processes, found)
    table = {"components": components(run.processes, found), "layers": layers, "wall_s": 1.0}
    side = sides._run_of_processes(table)
    assert side.profile.phases["rank: checkpoint"] == pytest.approx(0.4 / 4)


def test_the_main_thread_is_one_by_whatever_name(tmp_path: Path) -> None:
    record = Record(tmp_path, 5).thread(1, 5, "Thread-3").write(source=[1, "spans"])
    record.span("load", 100, 200, thread=1, source=1).span("update", 0, 500).until(1000)
    (use,) = threads_of(by_hand(tmp_path).processes[0], None)
    assert (use.name, use.seconds) == (MAIN_THREAD, pytest.approx(1))
    assert [(p.name, p.self_seconds) for p in use.phases] == [
        ("update", pytest.approx(0.4)),
        ("update/load", pytest.approx(0.1)),
    ]


class Counted(list[Sample]):
    """Samples that count how often all of them are gone through."""

    times = 0

    def __iter__(self) -> Iterator[Sample]:
        self.times += 1
        return super().__iter__()


def test_samples_are_gone_through_once_however_many_threads_there_are(tmp_path: Path) -> None:
    record, found = Record(tmp_path, 5), Counted()
    for number in range(1, 9):
        record.thread(number, 50 + number, f"worker {number}")
        record.span("load", 100, 200, thread=number)
        found.append(Sample(STACK, "load", "python", 0.1 * number, f"worker {number}"))
    record.until(1000)
    threads = threads_of(by_hand(tmp_path).processes[0], Samples("perf", found))
    assert found.times == 1
    assert [use.samples for use in threads] == [0, *[1] * 8]
    assert threads[1].cells == {
        ("load", "python"): pytest.approx(0.1),
        ("", "python"): pytest.approx(0.7),
    }
