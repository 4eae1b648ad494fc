"""A thread's time told apart: whole, and for the right ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from by_hand import MS, Clocked, contended, ranks, workers
from hypothesis import given, settings
from hypothesis import strategies as st

from rlox_opt.sampling.processes.analysis import kinds
from rlox_opt.sampling.processes.states import OPERATION, SEEN, Division, divide
from rlox_opt.sampling.processes.tracks import Track
from rlox_opt.sampling.processes.watch import Seen, Watch
from rlox_opt.sampling.processes.watcher import STATES

NOBODY = Watch({})


def whole(division: Division) -> float:
    return division.busy + division.kept + division.waiting + division.idle


def watched(track: Track, ran: float, states: dict[str, float], kept: float = 0.0) -> Seen:
    """Looks at a thread every ms, that ran for a share of its time and was seen in states by their
    shares, evenly."""
    seen, owed = Seen(), dict.fromkeys(states, 0.0)
    for at in range(track.begin_ns, track.end_ns + 1, MS):
        for name, share in states.items():
            owed[name] += share
        state = max(owed, key=owed.__getitem__)
        owed[state] -= 1
        seen.at.append(at)
        seen.ran.append(round((at - track.begin_ns) * ran))
        seen.kept.append(round((at - track.begin_ns) * kept))
        seen.state.append(STATES.index(state))
    return seen


def test_a_rank_waits_for_the_one_that_comes_last_and_then_for_the_operation() -> None:
    found = {d.track: d for d in divide(ranks(50, [3.0, 5.0]), NOBODY)}
    waits = {wait.whom: wait.seconds for wait in found["rank 0"].waits}
    assert waits == {"rank 1": pytest.approx(0.1), OPERATION: pytest.approx(0.01)}
    assert {wait.whom for wait in found["rank 1"].waits} == {OPERATION}
    assert found["rank 0"].busy == pytest.approx(0.15)
    assert found["rank 1"].busy == pytest.approx(0.25)


def test_a_rank_that_is_in_the_next_operation_already_was_not_the_last() -> None:
    found = [Clocked(f"rank {i}", "rank", 10 + i) for i in range(3)]
    for clocked, came, left, came_next in zip(
        found, (0.0, 5.0, 9.0), (10.0, 9.9, 9.95), (10.5, 9.92, 15.0), strict=True
    ):
        clocked.work("gradient", came)
        clocked.wait("world", left, "collective", "all_reduce")
        clocked.work("gradient", came_next - left)
        clocked.wait("world", 20.0, "collective", "all_reduce")
    first = divide([clocked.track for clocked in found], NOBODY)[0]
    waits = {wait.whom: wait.seconds for wait in first.waits}
    assert waits == {"rank 2": pytest.approx(0.0135), OPERATION: pytest.approx(0.006)}


def test_workers_wait_for_the_learner_and_the_learner_for_workers() -> None:
    found = {d.track: d for d in divide(workers(50, [2.0, 6.0], 3.0), NOBODY)}
    assert {wait.whom for wait in found["worker 0"].waits} == {"main"}
    assert {wait.whom for wait in found["main"].waits} == {"worker 0", "worker 1"}


def test_a_lock_is_waited_for_whoever_has_it() -> None:
    for division in divide(contended(50, 3, 1.0, 0.5), NOBODY):
        assert {wait.what for wait in division.waits} == {"lock: train.py:7"}
        assert {wait.whom for wait in division.waits} <= {f"main: T{i}" for i in range(3)} - {
            division.track
        }


def test_of_two_threads_in_python_each_waits_for_the_other_half_the_time() -> None:
    main, other = Clocked("main", "main", 1), Clocked("main", "main", 1, "T", 2)
    for clocked in (main, other):
        clocked.work("learn", 1000.0)
    seen = {
        (c.track.pid, c.track.tid): watched(c.track, 0.5, {"running": 0.5, "gil": 0.5})
        for c in (main, other)
    }
    for division in divide([main.track, other.track], Watch(seen)):
        assert division.busy == pytest.approx(0.5, abs=0.002)
        assert division.of("gil") == pytest.approx(0.5, abs=0.005)
        (wait,) = division.waits
        assert (wait.what, wait.whom) == (SEEN, "main: T" if division.track == "main" else "main")
        assert division.spent.gil
        assert division.spent.cpu == pytest.approx(0.5, abs=0.002)


@pytest.mark.parametrize(("ran", "one_at_a_time"), [(0.7, False), (0.51, True)])
def test_who_waits_for_the_interpreter_shares_it_unless_they_run_together(
    ran: float, one_at_a_time: bool
) -> None:
    """System calls run without it, so a little more than the whole is still one at a time."""
    main = Clocked("main", "main", 1)
    main.wait("q", 10_000.0, "queue")  # which is no time to run in
    threads = [Clocked("main", "main", 1, f"T{i}", 2 + i) for i in range(2)]
    seen = {(1, 1): watched(main.track, 0.0, {"sleep": 1.0})}
    for clocked in threads:
        clocked.work("hash", 1000.0)
        looks = watched(clocked.track, ran, {"running": ran, "gil": 1 - ran})
        seen[1, clocked.track.tid] = looks
    for division in divide([c.track for c in (main, *threads)], Watch(seen))[1:]:
        assert division.of("gil") == pytest.approx(1 - ran, abs=0.01)
        assert division.spent.gil == one_at_a_time
        assert division.spent.rest == pytest.approx(0 if one_at_a_time else 1 - ran, abs=0.01)


def test_one_thread_that_waits_for_the_interpreter_by_the_way_shares_it_with_nobody() -> None:
    threads = [Clocked("main", "main", 1, f"T{i}", 1 + i) for i in range(3)]
    for clocked in threads:
        clocked.work("hash", 1000.0)
    seen = {
        (1, c.track.tid): watched(
            c.track, 0.32 * (1 - gil), {"running": 1 - gil, "gil": gil}, 0.68 * (1 - gil)
        )
        for c, gil in zip(threads, (0.04, 0.0, 0.0), strict=True)
    }
    assert not any(d.spent.gil for d in divide([c.track for c in threads], Watch(seen)))


def test_time_that_others_had_the_cores_is_neither_busy_nor_waiting() -> None:
    main = Clocked("main", "main", 1)
    main.work("learn", 1000.0)
    seen = watched(main.track, 0.6, {"running": 1.0}, kept=0.4)
    (division,) = divide([main.track], Watch({(1, 1): seen}))
    assert division.busy == pytest.approx(0.6, abs=0.002)
    assert division.kept == pytest.approx(0.4, abs=0.002)
    assert (division.waits, division.spent.gil) == ((), False)


def test_noted_sleep_is_idle_and_unnoted_sleep_is_too() -> None:
    main = Clocked("main", "main", 1)
    main.work("learn", 200.0)
    main.wait("", 500.0, "sleep")
    main.work("other", 500.0)
    (division,) = divide([main.track], NOBODY)
    assert division.idle == pytest.approx(0.3)
    seen = watched(main.track, 0.2, {"running": 0.3, "sleep": 0.7})
    (division,) = divide([main.track], Watch({(1, 1): seen}))
    assert division.idle == pytest.approx(0.8, abs=0.01)
    assert not division.waits


def test_equal_threads_are_one_row_with_their_spread() -> None:
    rows = {row["kind"]: row for row in kinds(divide(workers(50, [2.0, 2.0, 6.0], 3.0), NOBODY))}
    assert rows["worker"]["threads"] == 3
    low, high = rows["worker"]["spread"]
    assert high == pytest.approx(3 * low, rel=0.01)
    assert low < rows["worker"]["busy"] < high
    json.dumps(rows, allow_nan=False)


@settings(max_examples=30)
@given(
    st.lists(st.floats(0.5, 9), min_size=1, max_size=4),
    st.floats(0.5, 9),
    st.floats(0, 1),
    st.sampled_from(STATES),
)
def test_the_parts_of_a_threads_time_are_all_of_it(
    own: list[float], learn: float, ran: float, state: str
) -> None:
    tracks = workers(20, own, learn)
    seen = {
        (t.pid, t.tid): watched(t, ran, {"running": ran, state: 1 - ran} if ran else {state: 1.0})
        for t in tracks
    }
    for watch in (NOBODY, Watch(seen)):
        for division in divide(tracks, watch):
            assert whole(division) == pytest.approx(division.wall)
            assert min(division.busy, division.kept, division.idle, division.waiting) >= -1e-12
            assert 0 <= division.spent.cpu <= 1 + 1e-9
            assert 0 <= division.spent.rest <= 1 + 1e-9


def test_where_nobody_looked_the_watch_is_empty(tmp_path: Path) -> None:
    assert Watch.load(tmp_path).of(1, 1) is None
    assert Watch.load(tmp_path).cpu_s(0, 1) is None


def looks(period_ms: int, ran: list[tuple[float, float]]) -> Seen:
    """Looks at a thread that ran for a share of each stretch of ms, until so many ms; while it did
    not, it was at nothing that is known."""
    seen, at, done = Seen(), 0.0, 0.0
    end = ran[-1][0]
    stretches = iter(ran)
    until, share = next(stretches)
    for look in range(0, round(end) + 1, period_ms):
        while until < look:
            done += (until - at) * share
            at = until
            until, share = next(stretches)
        done += (look - at) * share
        at = look
        seen.at.append(look * MS)
        seen.ran.append(round(done * MS))
        seen.kept.append(0)
        seen.state.append(STATES.index("running" if share == 1.0 else "other"))
    return seen


def test_who_runs_while_it_waits_is_not_busy_then() -> None:
    main = Clocked("main", "main", 1)
    main.work("before", 2000.0)
    main.wait("world", 8000.0, "collective", "all_reduce")
    main.work("after", 2000.0)
    seen = looks(20, [(2000, 0.25), (8000, 0.5), (10_000, 0.25)])
    (division,) = divide([main.track], Watch({(1, 1): seen}))
    assert division.busy == pytest.approx(4 * 0.25, abs=1e-6)
    assert division.of("collective") == pytest.approx(6)
    assert division.spent.cpu == pytest.approx(0.25, abs=1e-6)
    assert whole(division) == pytest.approx(10)


@pytest.mark.parametrize("wait_ms", [15, 30, 60, 100])
def test_work_beside_a_quiet_wait_is_all_busy_wherever_the_looks_fall(wait_ms: int) -> None:
    main = Clocked("main", "main", 1)
    ran: list[tuple[float, float]] = []
    while main.at < 10_000:
        main.work("step", 7.0)
        ran.append((main.at, 1.0))
        main.wait("q", main.at + wait_ms)
        ran.append((main.at, 0.0))
    end = -(-round(main.at) // 20) * 20
    main.work("step", end - main.at)  # to a look
    ran.append((main.at, 1.0))
    (division,) = divide([main.track], Watch({(1, 1): looks(20, ran)}))
    busy = sum(block.end_ns - block.begin_ns for block in main.track.blocks) / 1e9
    assert division.busy == pytest.approx(busy, abs=1e-6)


def test_a_program_that_took_anothers_place_has_its_own_time() -> None:
    first, second = Clocked("main", "main", 1), Clocked("train", "train", 1)
    first.work("load", 1000.0)
    second.at, second.track.begin_ns = 1000.0, 1000 * MS
    second.work("sleep", 1000.0)
    seen = looks(20, [(1000, 1.0), (2000, 0.0)])
    found = divide([first.track, second.track], Watch({(1, 1): seen}))
    assert [division.busy for division in found] == pytest.approx([1.0, 0.0], abs=1e-6)
