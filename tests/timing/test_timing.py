"""Beliefs about the tree of blocks: what is summed, what is shown, and in which thread."""

import random
import re
import threading
import time
from array import array
from collections.abc import Iterable

import pytest

from rlox.timing import SpanLog, Timing, measure_overhead


def seconds(timing: Timing) -> dict[str, float]:
    return {phase.name: phase.seconds for phase in timing.phases()}


def test_add_time_accumulates_over_calls() -> None:
    timing = Timing()
    for _ in range(3):
        with timing.add_time("work"):
            time.sleep(0.002)
    (phase,) = timing.phases()
    assert (phase.name, phase.calls) == ("work", 3)
    assert phase.seconds >= 0.006
    assert phase.self_seconds == phase.seconds


def test_nested_blocks_make_paths_outer_before_inner() -> None:
    timing = Timing()
    with timing.add_time("update"):
        with timing.add_time("forward"):
            pass
        with timing.add_time("critic"), timing.add_time("forward"):
            pass
    assert [phase.name for phase in timing.phases()] == [
        "update",
        "update/forward",
        "update/critic",
        "update/critic/forward",
    ]


def test_inner_blocks_and_self_time_sum_to_their_parent() -> None:
    timing = Timing()
    for _ in range(20):
        with timing.add_time("outer"):
            time.sleep(0.0002)
            with timing.add_time("a"):
                time.sleep(0.0002)
            with timing.add_time("b"):
                pass
    phases = {phase.name: phase for phase in timing.phases()}
    inner = phases["outer/a"].seconds + phases["outer/b"].seconds
    assert inner < phases["outer"].seconds
    assert phases["outer"].self_seconds == pytest.approx(phases["outer"].seconds - inner)
    total = sum(phase.self_seconds for phase in timing.phases())
    assert total == pytest.approx(phases["outer"].seconds)


def test_the_same_name_inside_itself_is_a_child_of_its_own() -> None:
    timing = Timing()
    with timing.add_time("value"), timing.add_time("value"):
        pass
    assert [phase.name for phase in timing.phases()] == ["value", "value/value"]


def test_a_block_that_raises_is_counted_and_closed() -> None:
    timing = Timing()
    with pytest.raises(RuntimeError), timing.add_time("outer"), timing.add_time("fails"):
        raise RuntimeError
    with timing.add_time("next"):
        pass
    assert [phase.name for phase in timing.phases()] == ["outer", "outer/fails", "next"]


def test_the_tree_view_puts_leaves_on_one_line_and_subtrees_after_them() -> None:
    timing = Timing("Learner")
    with timing.add_time("misc"):
        pass
    with timing.add_time("train"):
        with timing.add_time("losses"), timing.add_time("tail"):
            pass
        with timing.add_time("epoch_init"):
            pass
        with timing.add_time("minibatch_init"):
            pass
    with timing.add_time("prepare_batch"):
        pass
    shape = re.sub(r"\d+\.\d+ \(\d+\.\d %, 1x\)", "S", str(timing)).splitlines()
    assert shape == [
        "Learner profile tree view (seconds, share, calls):",
        "misc: S, prepare_batch: S",
        "train: S",
        "  epoch_init: S, minibatch_init: S",
        "  losses: S",
        "    tail: S",
    ]


def test_shares_of_the_tree_view_are_of_all_timed_seconds() -> None:
    timing = Timing()
    for name in ("a", "b"):
        with timing.add_time(name):
            time.sleep(0.001)
    shares = [float(share) for share in re.findall(r"\(([\d.]+) %", str(timing))]
    assert sum(shares) == pytest.approx(100, abs=0.2)


def test_timeit_shows_the_last_and_time_avg_the_mean_while_phases_hold_the_sum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = [0]
    monkeypatch.setattr("rlox.timing.timing.perf_counter_ns", lambda: now_ns[0])
    timing = Timing()
    for pause_ns in (20_000_000, 4_000_000):
        with timing.timeit("last"):
            now_ns[0] += pause_ns
        with timing.time_avg("mean"):
            now_ns[0] += pause_ns
    last, mean = (
        float(re.search(rf"{kind} (\d+\.\d+)", str(timing))[1])  # type: ignore[index]
        for kind in ("last", "mean")
    )
    assert (last, mean) == (0.004, 0.012)
    assert seconds(timing) == pytest.approx({"last": 0.024, "mean": 0.024})


def test_a_disabled_timing_records_nothing_and_can_be_switched_on() -> None:
    timing = Timing(enabled=False)
    with timing.add_time("unseen"), timing.timeit("unseen"), timing.time_avg("unseen"):
        pass
    assert timing.phases() == []
    timing.enabled = True
    with timing.add_time("seen"):
        pass
    assert list(seconds(timing)) == ["seen"]


def test_each_thread_has_a_tree_of_its_own() -> None:
    timing = Timing()
    barrier = threading.Barrier(3)

    def work() -> None:
        barrier.wait()
        for _ in range(200):
            with timing.add_time("outer"), timing.add_time("inner"):
                pass

    threads = [threading.Thread(target=work, name="collector") for _ in range(2)]
    for thread in threads:
        thread.start()
    with timing.add_time("wait"):
        barrier.wait()
        for thread in threads:
            thread.join()
    assert list(seconds(timing)) == ["wait"]
    trees = timing.trees()
    assert set(trees) == {threading.current_thread().name, "collector", "collector 2"}
    for name in ("collector", "collector 2"):
        assert [(phase.name, phase.calls) for phase in trees[name]] == [
            ("outer", 200),
            ("outer/inner", 200),
        ]
    assert "[collector]" in str(timing)


def test_a_path_has_one_index_however_many_threads_take_it() -> None:
    timing = Timing()
    timing.spans = log = SpanLog()

    def work() -> None:
        with timing.add_time("outer"), timing.add_time("inner"):
            pass

    for _ in range(3):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert log.paths == ["outer", "outer/inner"]
    assert [span.path for span in log] == ["outer/inner", "outer"] * 3


def test_blocks_that_are_left_in_another_order_do_not_nest_without_end() -> None:
    timing = Timing()
    for _ in range(3000):  # as two coroutines do that take turns
        first = timing.add_time("first")
        first.__enter__()
        second = timing.add_time("second")
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    phases = timing.phases()
    assert max(phase.name.count("/") for phase in phases) < 100
    assert sum(p.calls for p in phases if p.name.endswith("first")) == 3000


def test_of_blocks_in_any_order_only_so_many_paths_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("rlox.timing.timing._MOST_PATHS", 500)
    timing, draw = Timing(), random.Random(0)
    for _ in range(2000):
        first = timing.add_time(draw.choice("abcde"))
        first.__enter__()
        second = timing.add_time(draw.choice("abcde"))
        second.__enter__()
        first.__exit__(None, None, None)
        second.__exit__(None, None, None)
    phases = timing.phases()
    assert len(phases) <= 505  # what comes later is at the root
    assert sum(phase.calls for phase in phases) == 4000


def test_reset_forgets_times_and_goes_on_inside_an_open_block(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_ns = [0]
    monkeypatch.setattr("rlox.timing.timing.perf_counter_ns", lambda: now_ns[0])
    timing = Timing()
    with timing.add_time("open"):
        now_ns[0] += 50_000_000
        with timing.add_time("gone"):
            pass
        timing.reset()
        assert timing.phases() == []
        now_ns[0] += 7_000_000
    (phase,) = timing.phases()
    assert (phase.name, phase.calls) == ("open", 1)
    assert phase.seconds == pytest.approx(0.007)


def test_synchronize_is_called_at_both_ends_of_every_block_and_said() -> None:
    calls: list[None] = []
    timing = Timing(synchronize=lambda: calls.append(None))
    for _ in range(2):
        with timing.add_time("device"):
            pass
    assert len(calls) == 4
    assert "synchronised" in str(timing)


@pytest.mark.parametrize("name", ["", "a/b"])
def test_a_name_that_would_break_a_path_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="name"):
        Timing().add_time(name)


@pytest.mark.parametrize(("logged", "costs_ns"), [(False, 200), (True, 200 + 30)])
def test_the_overhead_is_what_a_block_costs_without_the_loop_and_without_interruptions(
    logged: bool, costs_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a clock that each reading moves on by 100 ns: a block reads it twice. Logging a span costs
    30 ns, and one loop of the seven is interrupted."""
    now_ns, readings = [0], [0]

    def clock() -> int:
        readings[0] += 1
        now_ns[0] += 5_000_000 if readings[0] == 50 else 100
        return now_ns[0]

    class Slow(array):  # type: ignore[type-arg]
        def extend(self, span: Iterable[int], /) -> None:
            now_ns[0] += 30
            super().extend(span)

    monkeypatch.setattr("rlox.timing.timing.perf_counter_ns", clock)
    monkeypatch.setattr("rlox.timing.spans.array", Slow)
    assert measure_overhead(2_000, logged) == pytest.approx(costs_ns, abs=1)


def test_the_overhead_of_a_block_is_more_than_none() -> None:
    assert measure_overhead(2_000) > 0
