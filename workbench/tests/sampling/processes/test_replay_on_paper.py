"""The replay of programs whose time is known in closed form, or from a naive oracle."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlox_opt.sampling.processes.replay import (
    ACQUIRE,
    END,
    MEET,
    RECEIVE,
    RELEASE,
    SEND,
    Program,
    Stretch,
    path,
    replay,
)

MANY = 64  # cores


def work(part: str, seconds: float, event: str = END, channel: str = "") -> Stretch:
    return Stretch({part: seconds}, {}, event, channel)


def took(programs: Sequence[Program], cores: int = MANY, **left: float) -> float:
    return replay(programs, cores, lambda part: left.get(str(part), 1.0)).seconds


def each(n: int, *stretches: Stretch) -> list[Stretch]:
    """`n` times all of them."""
    return [*stretches] * n


def pipeline(n: int, make: float, use: float) -> list[Program]:
    maker = each(n, work("make", make, SEND, "q"))
    user = each(n, Stretch({}, {}, RECEIVE, "q"), work("use", use))
    return [Program("maker", maker, goal=False), Program("user", user)]


def test_alone_a_thread_takes_the_sum_of_its_work() -> None:
    alone = [Program("main", [work("a", 3.0), Stretch({"b": 1.0}, {"sleep": 2.0})])]
    assert took(alone) == pytest.approx(6)
    assert took(alone, a=0.5) == pytest.approx(4.5)
    assert took(alone, sleep=0.0) == pytest.approx(4)


def test_a_pipeline_takes_as_long_as_its_slower_end() -> None:
    slow_maker = pipeline(100, make=2.0, use=1.0)
    assert took(slow_maker) == pytest.approx(201)
    assert took(slow_maker, use=0.5) == pytest.approx(200.5)  # next to nothing
    assert took(slow_maker, make=0.5) == pytest.approx(101)
    assert took(slow_maker, make=0.25) == pytest.approx(100.5)  # now the other end is slower


def test_a_room_for_few_makes_the_maker_wait() -> None:
    n = 50
    maker = each(n, Stretch({}, {}, RECEIVE, "room"), work("make", 1.0, SEND, "q"))
    user = each(n, Stretch({}, {}, RECEIVE, "q"), work("use", 3.0, SEND, "room"))
    programs = [Program("maker", maker), Program("user", user)]
    held = replay(programs, MANY, there={"room": 2})
    assert held.seconds == pytest.approx(1 + 3 * n)
    assert held.done[0][-1] == pytest.approx(1 + 3 * (n - 2) + 1)
    assert not held.stuck


@given(st.lists(st.lists(st.floats(0.01, 9), min_size=5, max_size=5), min_size=2, max_size=6))
def test_who_meet_take_as_long_as_the_slowest_each_time(rounds: list[list[float]]) -> None:
    programs = [
        Program(f"rank {i}", [work(f"r{i}", s, MEET, "world") for s in own])
        for i, own in enumerate(rounds)
    ]
    assert took(programs) == pytest.approx(sum(map(max, zip(*rounds, strict=True))))


def test_a_straggler_is_worth_what_it_is_behind_and_no_more() -> None:
    def rank(i: int, seconds: float) -> Program:
        return Program(f"rank {i}", [work(f"r{i}", seconds, MEET, "world") for _ in range(10)])

    programs = [rank(0, 1.0), rank(1, 1.0), rank(2, 1.5)]
    assert took(programs) == pytest.approx(15)
    assert took(programs, r0=0.0, r1=0.0) == pytest.approx(15)
    assert took(programs, r2=0.0) == pytest.approx(10)
    assert path(programs, replay(programs, MANY)) == {"r2": pytest.approx(15)}


@pytest.mark.parametrize("threads", [2, 4, 7])
def test_a_lock_that_is_always_wanted_is_passed_on_without_a_break(threads: int) -> None:
    n, held, else_ = 20, 1.0, 0.4
    turn = work("else", else_, ACQUIRE, "l"), work("held", held, RELEASE, "l")
    programs = [Program(f"thread {i}", each(n, *turn)) for i in range(threads)]
    assert took(programs) == pytest.approx(else_ + threads * n * held)
    faster = took(programs, held=0.5)
    assert faster == pytest.approx(else_ + threads * n * 0.5, rel=0.03)
    assert took(programs, **{"else": 0.0}) == pytest.approx(threads * n * held)


@pytest.mark.parametrize(("threads", "cores"), [(6, 2), (5, 2), (3, 4), (1, 1)])
def test_threads_share_the_cores(threads: int, cores: int) -> None:
    programs = [Program(f"thread {i}", [work("spin", 3.0)]) for i in range(threads)]
    assert took(programs, cores) == pytest.approx(3.0 * max(1, threads / cores))


def test_threads_of_one_interpreter_run_one_at_a_time_and_others_beside_them() -> None:
    bound = [Program(f"bound {i}", [work("spin", 2.0)], shares="7") for i in range(3)]
    free = Program("free", [work("other", 5.0)])
    assert took(bound) == pytest.approx(6)
    assert took([*bound, free], 2) == pytest.approx(6)
    assert replay([*bound, free], 2).left[3] == [pytest.approx(5)]


def test_who_sleeps_leaves_the_interpreter_to_others() -> None:
    sleeper = Program("sleeper", [Stretch({"spin": 1.0}, {"sleep": 2.0})], shares="7")
    spinner = Program("spinner", [work("spin", 2.0)], shares="7")
    assert replay([sleeper, spinner], MANY).left == [[pytest.approx(3)], [pytest.approx(2)]]


def test_what_passes_by_itself_needs_no_core() -> None:
    programs = [Program(f"thread {i}", [Stretch({}, {"sleep": 2.0})]) for i in range(8)]
    assert took(programs, 1) == pytest.approx(2)


def test_who_waits_for_what_never_comes_is_named() -> None:
    found = replay(
        [Program("user", [work("a", 1.0, RECEIVE, "q")]), Program("b", [work("b", 3.0)])], 2
    )
    assert found.stuck == ["user"]
    assert found.seconds == pytest.approx(3)


def test_without_a_goal_there_is_nothing_to_ask() -> None:
    with pytest.raises(ValueError, match="expected one and a goal"):
        replay([Program("a", [], goal=False)], 2)


@st.composite
def acyclic(draw: st.DrawFn) -> list[Program]:
    """Threads that send and receive so that nobody waits for himself."""
    rng = random.Random(draw(st.integers(0, 2**32)))
    stretches: list[list[Stretch]] = [[] for _ in range(draw(st.integers(1, 5)))]
    for number in range(draw(st.integers(0, 30))):
        one, other = rng.choices(range(len(stretches)), k=2)
        # A later number is received after all earlier ones were sent: no ring of waits.
        stretches[one].append(work(f"t{one}", rng.uniform(0, 3), SEND, str(number)))
        stretches[other].append(work(f"t{other}", rng.uniform(0, 3), RECEIVE, str(number)))
    for i, own in enumerate(stretches):
        own.append(work(f"t{i}", rng.uniform(0, 3)))
    return [Program(f"thread {i}", own) for i, own in enumerate(stretches)]


def longest(programs: Sequence[Program], left: float, of: str) -> float:
    """The naive oracle: the longest way through the graph, with as many cores as there are
    threads; each channel carries one thing."""
    sent: dict[str, float] = {}
    at = [0.0] * len(programs)
    next_ = [0] * len(programs)
    while any(n < len(p.stretches) for n, p in zip(next_, programs, strict=True)):
        for i, program in enumerate(programs):
            while next_[i] < len(program.stretches):
                stretch = program.stretches[next_[i]]
                if stretch.event == RECEIVE and stretch.channel not in sent:
                    break
                at[i] += sum(s * (left if p == of else 1) for p, s in stretch.cpu.items())
                if stretch.event == SEND:
                    sent[stretch.channel] = at[i]
                elif stretch.event == RECEIVE:
                    at[i] = max(at[i], sent[stretch.channel])
                next_[i] += 1
    return max(at)


@settings(max_examples=60)
@given(acyclic(), st.floats(0, 1))
def test_as_the_naive_oracle_says_and_never_slower_for_less_work(
    programs: list[Program], left: float
) -> None:
    base = took(programs)
    assert base == pytest.approx(longest(programs, 1.0, ""))
    for i in range(len(programs)):
        name = f"t{i}"
        faster = took(programs, **{name: left})
        assert faster == pytest.approx(longest(programs, left, name))
        assert faster <= base + 1e-9


@settings(max_examples=60)
@given(acyclic(), st.integers(1, 4))
def test_the_critical_path_is_as_long_as_the_whole(programs: list[Program], cores: int) -> None:
    found = replay(programs, cores)
    assert not found.stuck
    assert sum(path(programs, found).values()) == pytest.approx(found.seconds)
    assert (
        found.seconds
        >= sum(sum(s.cpu.values()) for p in programs for s in p.stretches) / cores - 1e-9
    )
