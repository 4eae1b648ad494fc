"""What the lines below a table of verdicts say."""

from types import SimpleNamespace
from typing import Any, cast

from rlox_opt.harness.sequential import Comparison
from rlox_opt.stats.family import Judgement
from rlox_opt.views import verdicts

BEYOND = Judgement(1.03, (1.02, 1.04), "undecided", 5, 0.002, "slower")
WIDE = Judgement(1.03, (1.00, 1.06), "undecided", 5, 0.2, "slower")


def held_back(**judgements: Judgement) -> list[str]:
    times = Comparison([*judgements])
    times.judgements = judgements
    return [*verdicts._held_back(cast(Any, SimpleNamespace(times=times)))]


def test_who_is_undecided_because_there_are_many_benchmarks_is_named() -> None:
    (said,) = held_back(one=BEYOND, other=WIDE)
    assert said.startswith("one: undecided, although")
    assert "among 2 benchmarks" in said


def test_who_has_a_wide_interval_is_not() -> None:
    assert held_back(other=WIDE) == []


def test_the_largest_change_that_an_interval_holds_is_told() -> None:
    times = Comparison(["slower", "faster", "same"])
    times.judgements = {
        "slower": Judgement(1.04, (0.95, 1.138), "undecided", 5, 0.2, "slower"),
        "faster": Judgement(0.98, (0.87, 1.10), "undecided", 5, 0.2, "same"),
        "same": Judgement(1.0, (0.5, 2.0), "same", 5, 0.2, "same"),
    }
    (said,) = verdicts._left_open(cast(Any, SimpleNamespace(times=times)))
    assert "leaves open is one of 13.8 %, of slower." in said
