"""Restarts go on where they are needed, and only there."""

import math
import random
from collections.abc import Iterator, Sequence

import pytest

from rlox_opt.harness import sequential
from rlox_opt.harness.packages import Failure, Reading
from rlox_opt.harness.sequential import Comparison, tally
from rlox_opt.stats.paired import LEAST, LOOKS

SPREAD = {"steady": 0.001, "slower": 0.001, "noisy": 0.2}
SHIFT = {"slower": math.log(1.1)}


class Restarts:
    """Restarts that draw their readings, and remember what was asked."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.asked: list[list[str]] = []
        self._rng = random.Random(0)
        self._stop_after = stop_after

    def __call__(self, names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading | Failure]]:
        if len(self.asked) == self._stop_after:
            raise KeyboardInterrupt
        self.asked.append(list(names))
        for name in names:
            if name == "fails":
                yield name, Failure("head", "ValueError: no")
                continue
            noise = self._rng.gauss(0, SPREAD[name])
            aa = self._rng.gauss(0, SPREAD[name])
            yield name, Reading(noise + SHIFT.get(name, 0.0), aa, 1e-3, 1.1e-3)


def test_what_is_decided_is_not_measured_again() -> None:
    restarts, comparison = Restarts(), Comparison(["steady", "slower", "noisy"])
    comparison.run(restarts)
    verdicts = {name: judgement.verdict for name, judgement in comparison.judgements.items()}
    assert verdicts == {"steady": "same", "slower": "slower", "noisy": "undecided"}
    assert [len(names) for names in restarts.asked] == [3] * LOOKS[0] + [1] * 35
    assert comparison.aa()["slower"].verdict == "same"


def test_a_patient_comparison_goes_on_and_judges_by_all_restarts() -> None:
    restarts, comparison = Restarts(), Comparison(["slower"], patient=True)
    comparison.run(restarts)
    assert len(restarts.asked) == comparison.judgements["slower"].restarts == LOOKS[-1]


def test_a_patient_comparison_begins_no_restart_that_does_not_fit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = Clock(monkeypatch, {"steady": 4.0, "slower": 6.0})
    comparison = Comparison(["steady", "slower"], patient=True)
    comparison.run(clock, budget_s=39.0)
    assert {name: len(of) for name, of in comparison.readings.items()} == {"steady": 3, "slower": 3}
    comparison.run(clock, budget_s=9.0)
    assert clock.now == 30.0


def test_no_time_is_asked_for_that_the_restarts_do_not_allow() -> None:
    comparison = Comparison(["soon"])
    restarts = Restarts()
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(SPREAD, "soon", 0.006)  # which ten restarts settle, and five do not
        comparison.run(restarts, LOOKS[0])
    assert comparison.judgements["soon"].verdict == "undecided"
    assert (comparison.more().settled, comparison.more().noisy) == (0, 1)
    comparison.most = LOOKS[-1]
    assert (comparison.more().settled, comparison.more().noisy) == (1, 0)


def test_a_failure_is_kept_and_not_tried_again() -> None:
    restarts, comparison = Restarts(), Comparison(["steady", "fails"])
    comparison.run(restarts)
    assert comparison.failures == {"fails": Failure("head", "ValueError: no")}
    assert restarts.asked[0] == ["steady", "fails"]
    assert restarts.asked[1] == ["steady"]
    assert comparison.judgements.keys() == {"steady"}


def test_a_failure_after_a_look_costs_that_benchmark_alone() -> None:
    comparison, noisy = Comparison(["noisy", "fickle"]), Restarts()

    def restart(names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading | Failure]]:
        for name in names:
            ((_, reading),) = noisy(["noisy"], seed)
            late = len(comparison.readings.get(name, ())) > LOOKS[0]
            yield name, Failure("head", "MemoryError") if late and name == "fickle" else reading

    comparison.run(restart, most=LOOKS[1])
    assert comparison.failures.keys() == {"fickle"}
    assert comparison.judgements.keys() == {"noisy"}


def test_all_failing_ends_at_once() -> None:
    restarts, comparison = Restarts(), Comparison(["fails"])
    comparison.run(restarts)
    assert len(restarts.asked) == 1


def test_an_interruption_keeps_the_last_look() -> None:
    comparison = Comparison(["noisy", "slower"])
    with pytest.raises(KeyboardInterrupt):
        comparison.run(Restarts(stop_after=7))
    comparison.look()
    assert comparison.judgements["slower"].verdict == "slower"
    assert comparison.judgements["noisy"].restarts == LOOKS[0]


def test_out_of_time_it_stops_with_what_it_has() -> None:
    comparison = Comparison(["noisy"])
    comparison.run(Restarts(), budget_s=0.0)
    assert comparison.judgements["noisy"].verdict == "undecided"
    assert comparison.judgements["noisy"].restarts == 1


class Clock:
    """A clock that each reading of a benchmark moves on, and restarts that take so long."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]) -> None:
        self.now = 0.0
        self.seconds = seconds
        self.asked: list[list[str]] = []
        self._rng = random.Random(0)
        monkeypatch.setattr(sequential.time, "monotonic", lambda: self.now)

    def __call__(self, names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading | Failure]]:
        self.asked.append(list(names))
        for name in names:
            self.now += self.seconds[name]
            noise = self._rng.gauss(0, SPREAD.get(name, 0.001))
            yield name, Reading(noise + SHIFT.get(name, 0.0), 0.0, 1.0, 1.0)


def test_the_budget_bounds_all_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred seconds reach five restarts of ten benchmarks of forty, and no more."""
    names = [str(n) for n in range(40)]
    clock = Clock(monkeypatch, dict.fromkeys(names, 2.0))
    comparison = Comparison(names)
    comparison.run(clock, budget_s=100.0)
    assert clock.now <= 100.0
    settled = [name for name, j in comparison.judgements.items() if j.verdict == "same"]
    assert len(settled) >= 9
    assert comparison.more().settled == 40 - len(settled)


def test_one_of_many_benchmarks_is_decided_where_a_restart_of_all_takes_the_whole_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [str(n) for n in range(10)]
    clock = Clock(monkeypatch, dict.fromkeys(names, 14.0))
    comparison = Comparison(names)
    comparison.run(clock, budget_s=120.0)
    assert clock.now <= 120.0
    assert [j.verdict for j in comparison.judgements.values()].count("same") == 1
    assert comparison.more().settled == 9


def test_a_change_of_many_times_is_found_where_time_does_not_suffice_for_five_restarts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SHIFT, "many times", math.log(300))
    clock = Clock(monkeypatch, {"many times": 20.0})
    comparison = Comparison(["many times"])
    comparison.run(clock, budget_s=80.0)
    assert clock.now <= 80.0
    assert comparison.judgements["many times"].restarts == LEAST
    assert comparison.judgements["many times"].verdict == "slower"


def test_a_look_at_few_restarts_takes_the_place_of_the_last_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Time held in reserve suffices for three restarts, and all of it for more than forty."""
    clock = Clock(monkeypatch, {"noisy": 3.0})
    comparison = Comparison(["noisy"])
    comparison.run(clock, budget_s=200.0, reserve_s=190.0)
    assert comparison.judgements["noisy"].restarts == LOOKS[-2]


def test_what_is_decided_early_gives_its_time_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["steady", "other", "noisy"]
    clock = Clock(monkeypatch, dict.fromkeys(names, 1.0))
    comparison = Comparison(names)
    comparison.run(clock, budget_s=60.0)
    assert comparison.judgements["noisy"].restarts == LOOKS[-1]  # 40 + 5 + 5 seconds
    more = comparison.more()
    assert (more.settled, more.noisy) == (0, 1)


@pytest.mark.parametrize(("name", "used"), [("steady", 45), ("slower", 25)])
def test_a_reserve_is_left_where_something_is_slower_and_else_used(
    name: str, used: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch, {name: 1.0, "noisy": 1.0})
    Comparison([name, "noisy"]).run(clock, budget_s=50.0, reserve_s=20.0)
    assert clock.now == used


def test_where_time_is_short_what_will_be_decided_comes_before_what_will_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After five restarts each, one more look is affordable for one of the two."""
    monkeypatch.setitem(SPREAD, "soon", 0.006)
    clock = Clock(monkeypatch, {"noisy": 1.0, "soon": 1.0})
    comparison = Comparison(["noisy", "soon"])
    comparison.run(clock, budget_s=18.0)
    assert [of for of in clock.asked if len(of) == 1] == [["soon"]] * 5
    assert comparison.judgements["soon"].verdict == "same"
    assert comparison.judgements["noisy"].restarts == LOOKS[0]


def test_where_time_is_short_what_seems_to_have_changed_by_much_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After one restart of both, time suffices for the first look of one of the two."""
    monkeypatch.setitem(SHIFT, "doubled", math.log(2))
    clock = Clock(monkeypatch, {"quick": 6.0, "doubled": 8.0})
    comparison = Comparison(["quick", "doubled"])
    comparison.run(clock, budget_s=60.0)
    assert clock.now <= 60.0
    assert comparison.judgements["doubled"].verdict == "slower"
    assert comparison.judgements["quick"].verdict == "undecided"


def test_verdicts_are_counted() -> None:
    comparison = Comparison(["steady", "slower"])
    comparison.run(Restarts())
    expected = {"slower": 1, "faster": 0, "same": 1, "undecided": 0}
    assert tally(comparison.judgements.values()) == expected


def test_more_time_is_foreseen_by_a_benchmarks_own_threshold() -> None:
    """A scatter that hides 1 % for ever, and not 50 %."""
    ratios = [-0.15, 0.1, 0.05, -0.1, 0.15]
    readings = {name: [Reading(of, of, 1.0, 1.0) for of in ratios] for name in ("own", "other")}
    comparison = Comparison(["own", "other"], readings=readings, own={"own": math.log(1.5)})
    comparison.look()
    assert {name: j.verdict for name, j in comparison.judgements.items()} == {
        "own": "same",
        "other": "undecided",
    }
    assert comparison.more().noisy == 1
    assert comparison.aa()["own"].verdict == "same"
