"""From recorded threads to programs: synthetic threads whose replay and gains are known."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from by_hand import MS, Clocked, contended, ranks, workers
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import Record, by_hand

from rlox_opt.sampling.processes.gains import Gain, gains
from rlox_opt.sampling.processes.programs import Recorded, Spent, WorkPart, phases, programs
from rlox_opt.sampling.processes.replay import RECEIVE, Program, Stretch, replay
from rlox_opt.sampling.processes.tracks import Block, Exchange, Track, exclusive
from rlox_opt.sampling.processes.tracks import tracks as tracks_of
from rlox_opt.sampling.samples import OUTSIDE


def by_name(tracks: list[Track], cores: int = 64) -> dict[str, Gain]:
    mains = {id(t) for t in tracks if t.role in ("rank", "main")}
    recorded = programs(tracks, goal=lambda track: id(track) in mains)
    return {gain.what: gain for gain in gains(recorded, cores).gains}


def test_a_replay_of_what_was_recorded_takes_as_long() -> None:
    for tracks in (
        ranks(20, [3.0, 5.0]),
        ranks(20, [3.0, 5.0], operations=[0.3, 0.4, 2.7, 4.0]),
        ranks(20, [3.0, 3.0], operations=[0.015, 1.985]),
        workers(20, [2.0, 2.0, 6.0, 2.0], 3.0),
    ):
        found = replay(programs(tracks).programs, 64)
        assert found.seconds == pytest.approx(max(t.end_ns for t in tracks) * 1e-9, rel=1e-3)
        assert not found.stuck


def test_the_straggler_is_named_and_worth_what_it_is_behind() -> None:
    found = by_name(ranks(50, [3.0, 3.0, 3.0, 5.0]))
    whole = 5.2
    straggler = found["rank 3 alone: gradient"]
    assert straggler.kind == "straggler"
    assert straggler.evened == pytest.approx(whole / 3.2, rel=1e-3)
    assert found["rank: gradient"].twice == pytest.approx(whole / 2.7, rel=1e-3)
    assert not any(name.startswith("rank 0 alone") for name in found)


def test_of_workers_that_are_waited_for_only_the_slowest_counts() -> None:
    found = by_name(workers(50, [2.0, 2.0, 6.0, 2.0], learn=3.0))
    whole = 3.0 + 6.0 + 0.2  # two hand-overs
    assert found["worker: step"].twice == pytest.approx(whole / (3 + 3 + 0.2), rel=1e-2)
    assert found["worker 2 alone: step"].evened == pytest.approx(whole / (3 + 2 + 0.2), rel=0.03)
    assert found["main: learn"].gone == pytest.approx(whole / (6 + 0.2), rel=1e-2)


def test_on_few_cores_workers_share_them() -> None:
    tracks = workers(30, [4.0, 4.0, 4.0, 4.0], learn=1.0)
    whole = replay(programs(tracks).programs, 2).seconds / 30 * 1e3
    assert whole == pytest.approx(8 + 1 + 0.2, rel=0.05)


def test_the_lock_is_named_and_worth_the_time_that_it_is_held() -> None:
    found = by_name(contended(100, 4, held=1.0, else_=0.5))
    lock = found["lock: train.py:7, while it is held"]
    assert lock.kind == "lock"
    assert lock.twice == pytest.approx(2.0, rel=0.02)
    assert next(iter(found.values())) in (lock, found["main: T*: inside"])
    uncontended = by_name(contended(100, 2, held=0.2, else_=2.0))
    assert uncontended["main: T*: else"].gone > uncontended["main: T*: inside"].gone


def test_of_threads_that_share_an_interpreter_all_work_counts() -> None:
    main, other = Clocked("main", "main", 1), Clocked("main", "main", 1, "T", 2)
    for clocked, path in ((main, "learn"), (other, "log")):
        clocked.work(path, 10.0)  # as seen by the clock; half of it each waited for the other
    tracks = [main.track, other.track]
    recorded = programs(tracks, lambda _: Spent(0.5, 0.0, gil=True), lambda t: t is main.track)
    found = {gain.what: gain for gain in gains(recorded, 64).gains}
    assert replay(recorded.programs, 64).seconds == pytest.approx(0.010)
    assert found["main: T: log"].gone == pytest.approx(2.0)
    assert found["main: learn"].twice == pytest.approx(10 / 5)


def test_sleep_is_for_the_phase_that_sleeps_and_an_unknown_wait_is_nobodys() -> None:
    main = Clocked("main", "main", 1)
    main.track.blocks.append(Block("env", 0, 5 * MS))
    main.wait("", 4.0, "sleep", "sleep: sleep")
    main.at = 5.0
    main.wait("somewhere", 8.0)
    (found,) = programs([main.track]).programs
    rest = {part.path: seconds for s in found.stretches for part, seconds in s.rest.items()}  # type: ignore[attr-defined]
    assert rest["env"] == pytest.approx(0.004)
    assert rest["waiting for what was not recorded"] == pytest.approx(0.003)


def test_a_queue_that_was_full_makes_its_sender_wait_in_the_replay_too() -> None:
    maker, user = Clocked("main", "main", 1), Clocked("user", "user", 2)
    room, n = 2, 40
    for i in range(n):
        maker.work("make", 1.0)
        freed = max(maker.at, 1.0 + 3.0 * (i - room) + 0.001) if i > room else maker.at
        maker.track.exchanges.append(Exchange("send", "queue", "q", "put", *maker._until(freed)))
        user.wait("q", max(user.at, maker.at), "queue")
        user.work("use", 3.0)
    found = by_name([maker.track, user.track])
    assert found["user: use"].twice > 1.5
    assert found["main: make"].gone < 1.05


def test_the_end_of_a_process_whose_main_thread_left_nothing_is_not_waited_for() -> None:
    main, helper = Clocked("main", "main", 1), Clocked("worker", "worker", 77, "T", 78)
    main.work("learn", 1.0)
    main.wait("77", 50.0, "process", "join")
    helper.work("step", 40.0)
    recorded = programs([main.track, helper.track])
    found = replay(recorded.programs, 4, there=recorded.there)
    assert not found.stuck
    assert found.seconds == pytest.approx(0.05)


def test_a_replay_that_is_lost_from_the_first_is_worth_nothing_and_names_who_waits() -> None:
    part = WorkPart("worker", "worker", "step")
    lost = Program("main", [Stretch({}, {}, RECEIVE, "never"), Stretch({part: 1.0}, {})])
    other = Program("worker", [Stretch({part: 1.0}, {})], goal=False)
    found = gains(Recorded([lost, other], {}), 4)
    assert (found.seconds, found.gains, found.stuck) == (1.0, [], ["main"])


def test_the_innermost_phase_has_the_time() -> None:
    blocks = [Block("a", 0, 10), Block("a/b", 2, 4), Block("a/b/c", 3, 4), Block("d", 12, 13)]
    changes = phases(blocks)
    assert [at for at, _ in changes] == sorted(at for at, _ in changes)

    def at(ns: int) -> str:
        return next((path for since, path in reversed(changes) if since <= ns), OUTSIDE)

    assert [at(ns) for ns in (0, 2, 3, 4, 9, 11, 12, 13)] == [
        "a", "a/b", "a/b/c", "a", "a", OUTSIDE, "d", OUTSIDE,
    ]  # fmt: skip


def test_a_wait_within_a_wait_is_part_of_it() -> None:
    outer = Exchange("wait", "queue", "q", "get", 10, 20)
    inner = Exchange("wait", "pipe", "p", "receive", 12, 19)
    later = Exchange("send", "pipe", "p", "send", 20, 21)
    assert exclusive([inner, later, outer]) == [outer, later]


@settings(max_examples=40)
@given(st.lists(st.floats(0.5, 9), min_size=1, max_size=5), st.floats(0.5, 9), st.integers(1, 12))
def test_a_replay_keeps_the_time_of_any_workers(own: list[float], learn: float, steps: int) -> None:
    tracks = workers(steps, own, learn)
    taken = replay(programs(tracks).programs, 64).seconds
    assert taken == pytest.approx(max(t.end_ns for t in tracks) * 1e-9, rel=0.1)


@settings(max_examples=25)
@given(st.integers(0, 1 << 30))
def test_work_is_kept_whatever_the_threads_did(seed: int) -> None:
    """The parts of a program sum to the thread's time without its waits."""
    draw = random.Random(seed)
    clocked, waited = Clocked("main", "main", 1), 0.0
    for _ in range(draw.randrange(30)):
        match draw.randrange(4):
            case 0:
                clocked.work(draw.choice("abc"), draw.uniform(0.1, 5))
            case 1:
                clocked.send("out")
            case 2:
                before = clocked.at
                clocked.wait("out", clocked.at + draw.uniform(0.1, 5))
                waited += clocked.at - before
            case _:
                clocked.hold("l", "lock", draw.uniform(0.1, 3), "inside")
    (found,) = programs([clocked.track]).programs
    work = sum(sum(stretch.cpu.values()) for stretch in found.stretches)
    assert work * 1e3 == pytest.approx(clocked.at - waited, abs=1e-3)


def test_who_joins_a_process_waits_for_the_program_that_took_its_place(tmp_path: Path) -> None:
    main = Record(tmp_path, 5).span("load", 0, 900).until(1000, "exec")
    Record(tmp_path, 5, "train", parent=main, begin=1000).span("learn", 1000, 3000).until(3000)
    Record(tmp_path, 6, "other", begin=1).span("step", 1, 1000).until(1000)
    assert [(t.process, t.replaced, t.ends_process) for t in tracks_of(by_hand(tmp_path))] == [
        ("main, until exec", True, False),
        ("other", False, True),
        ("main", False, True),
    ]
    parent, first = Clocked("parent", "parent", 1), Clocked("main", "main", 5)
    second = Clocked("train", "train", 5)
    parent.wait("5", 3000.0, "process", "join")
    first.work("load", 1000.0)
    first.track.replaced = True
    second.at, second.track.begin_ns = 1000.0, 1000 * MS
    second.work("learn", 2000.0)
    every = [parent.track, first.track, second.track]
    recorded = programs(every, goal=lambda track: track is parent.track)
    found = replay(recorded.programs, 64, there=recorded.there)
    assert found.seconds == pytest.approx(3.0)
    assert not found.stuck


def test_a_message_that_is_under_way_where_a_part_begins_is_sent_before_it(tmp_path: Path) -> None:
    """Who gets it takes the giver's core, and so goes on before the giver does."""
    main = Record(tmp_path, 5)
    worker = Record(tmp_path, 6, "worker", parent=main, begin=1)
    turns = 20
    for start in range(0, 10 * turns, 10):
        main.span("send", start, start + 0.01, "send", "pipe", "to")
        worker.span("receive", start - 3 if start else 1, start + 0.2, "wait", "pipe", "to")
        worker.span("step", start + 0.2, start + 5)
        main.span("receive", start + 0.1, start + 5.2, "wait", "pipe", "from")
        worker.span("send", start + 5, start + 5.5, "send", "pipe", "from")
        main.span("learn", start + 5.2, start + 10)
    main.until(10 * turns)
    worker.until(10 * turns)
    part = tracks_of(by_hand(tmp_path), round(5.3 * MS))
    assert [p.inside for t in part if t.role == "worker" for p in t.exchanges][:2] == [False, True]
    recorded = programs(part, goal=lambda track: track.role == "main")
    took = replay(recorded.programs, 2, there=recorded.there).seconds
    assert took * 1e3 == pytest.approx(10 * turns - 5.3, rel=0.05)


def test_what_a_collective_takes_is_told_though_one_members_first_wait_is_missing() -> None:
    tracks = ranks(20, [3.0, 5.0])
    del tracks[0].exchanges[0]
    for program in programs(tracks).programs:
        for stretch in program.stretches[1:-1]:
            (took,) = stretch.rest.values()
            assert took == pytest.approx(0.0002)


def test_a_wait_whose_event_lies_outside_takes_as_long_as_it_took() -> None:
    main = Clocked("main", "main", 1)
    main.track.exchanges.append(Exchange("send", "queue", "q", "put", 0, 2000 * MS, inside=False))
    main.at = 2000.0
    main.work("learn", 3000.0)
    recorded = programs([main.track])
    assert replay(recorded.programs, 2, there=recorded.there).seconds == pytest.approx(5.0)
