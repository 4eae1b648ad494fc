"""For how much of each phase a thread ran, where phases are shorter than the time between looks."""

import random

import pytest
from by_hand import MS, Clocked

from rlox_opt.sampling.processes.running import shares
from rlox_opt.sampling.processes.watch import Seen

TRUE = {"spin": 1.0, "copy": 0.5, "sleep": 0.0}


def looked_at(draw: random.Random, period_ms: float) -> tuple[Clocked, Seen, list[tuple[int, int]]]:
    """Two seconds of short phases, between which it waits now and then."""
    clocked, seen = Clocked("main", "main", 1), Seen()
    waits, ran, next_ = [], 0.0, 0.0
    while clocked.at < 2000:
        phase, ms = draw.choice([*TRUE]), draw.uniform(0.5, 6)
        clocked.work(phase, ms)
        before, ran = ran, ran + TRUE[phase] * ms
        while next_ <= clocked.at:  # looks fall anywhere
            part = (next_ - (clocked.at - ms)) / ms if ms else 0.0
            seen.at.append(round(next_ * MS))
            seen.ran.append(round((before + max(0.0, part) * (ran - before)) * MS))
            seen.kept.append(0)
            seen.state.append(0)
            next_ += period_ms
        if draw.random() < 0.2:
            begin = clocked.at
            clocked.wait("q", begin + draw.uniform(1, 9))
            waits.append((round(begin * MS), clocked.track.end_ns))
    return clocked, seen, waits


@pytest.mark.parametrize("seed", range(5))
def test_shares_come_out_though_looks_are_coarser_than_phases(seed: int) -> None:
    clocked, seen, waits = looked_at(random.Random(seed), 20.0)
    found = shares(clocked.track, seen, waits)
    for phase, share in TRUE.items():
        assert found[phase] == pytest.approx(share, abs=0.12)


def test_with_a_few_looks_nothing_is_told() -> None:
    clocked, seen, waits = looked_at(random.Random(1), 400.0)
    assert shares(clocked.track, seen, waits) == {}


def test_what_a_thread_ran_while_it_waited_is_no_phases() -> None:
    clocked, seen, waits = Clocked("main", "main", 1), Seen(), []
    ran = 0.0
    for _ in range(20):
        for share in (0.25, 1.0):  # it works, and spins as it waits
            begin = clocked.at
            if share == 1.0:
                clocked.wait("world", begin + 200, "collective")
                waits.append((round(begin * MS), clocked.track.end_ns))
            else:
                clocked.work("step", 200)
            for look in range(10):
                seen.at.append(round((begin + 20 * look) * MS))
                seen.ran.append(round((ran + 20 * look * share) * MS))
            ran += 200 * share
    assert shares(clocked.track, seen, waits)["step"] == pytest.approx(0.25, abs=0.002)


@pytest.mark.parametrize("seed", range(5))
def test_a_phase_takes_longer_and_runs_no_more_where_the_thread_is_kept_from_running(
    seed: int,
) -> None:
    draw = random.Random(seed)
    clocked, seen = Clocked("main", "main", 1), Seen()
    waits, ran, next_ = [], 0.0, 0.0
    pieces = {"copy": (1.5, 0.0, 4.0), "spin": (4.0, 0.0, 0.4)}  # ms that it runs, and is kept
    spent = {phase: [0.0, 0.0] for phase in pieces}
    while clocked.at < 4000:
        phase, (runs, *kept) = draw.choice([*pieces.items()])
        ms = runs + draw.uniform(*kept)
        begin, before = clocked.at, ran
        clocked.work(phase, ms)
        spent[phase][0] += ms
        spent[phase][1] += runs
        ran += runs
        while next_ <= clocked.at:
            part = max(0.0, (next_ - begin) / ms)
            seen.at.append(round(next_ * MS))
            seen.ran.append(round((before + part * runs) * MS))
            next_ += 20.0
        begin = clocked.at
        clocked.wait("lock", begin + draw.uniform(1, 8), "lock")
        waits.append((round(begin * MS), clocked.track.end_ns))
    found = shares(clocked.track, seen, waits)
    for phase, (took, runs) in spent.items():
        assert found[phase] == pytest.approx(runs / took, abs=0.03)


def test_ten_phases_of_a_steady_loop_have_the_same_share_whatever_their_order() -> None:
    clocked, seen = Clocked("main", "main", 1), Seen()
    clocked.work("init", 50.0)  # before anybody looked
    while clocked.at < 3000:
        for phase in range(10):
            clocked.work(f"phase {phase}", 0.5)
    for at in range(50 * MS, clocked.track.end_ns, 20 * MS):
        seen.at.append(at)
        seen.ran.append(round(0.8 * at))
    found = shares(clocked.track, seen, [])
    assert found == {f"phase {n}": pytest.approx(0.8, abs=0.01) for n in range(10)}
