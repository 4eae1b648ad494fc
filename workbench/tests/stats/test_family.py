"""Verdicts on many benchmarks: found where there is something, rarely where there is nothing."""

import math
import random

import pytest

from rlox_opt.stats.family import judge, restarts_to_settle
from rlox_opt.stats.paired import BAND, ERROR, LEAST, LEVEL, LOOKS, next_look


def noise(rng: random.Random, n: int, sd: float, shift: float = 0.0) -> list[float]:
    return [rng.gauss(shift, sd) for _ in range(n)]


def test_slower_means_that_head_takes_longer() -> None:
    rng = random.Random(0)
    of = {"up": noise(rng, 10, 0.002, 0.05), "down": noise(rng, 10, 0.002, -0.05)}
    found = judge(of | {"flat": noise(rng, 10, 0.002)})
    assert {name: j.verdict for name, j in found.items()} == {
        "up": "slower",
        "down": "faster",
        "flat": "same",
    }
    assert found["up"].ratio == pytest.approx(math.exp(0.05), rel=0.005)


def test_a_difference_inside_the_band_is_the_same_however_certain() -> None:
    certain = judge({"": noise(random.Random(0), 40, 0.0001, 0.004)})[""]
    assert certain.ci99 is not None
    assert certain.ci99[0] > 1
    assert certain.verdict == "same"


def test_slower_takes_the_whole_interval_beyond_the_threshold() -> None:
    """Two per cent are beyond a threshold of one, and within one of three."""
    of = {"": noise(random.Random(0), 20, 0.004, math.log(1.02))}
    by_threshold = {percent: judge(of, math.log1p(percent / 100))[""] for percent in (1, 2, 3)}
    assert {percent: found.verdict for percent, found in by_threshold.items()} == {
        1: "slower",
        2: "undecided",
        3: "same",
    }
    faster = judge({"": [-ratio for ratio in of[""]]}, math.log(1.01))[""]
    assert faster.verdict == "faster"


@pytest.mark.parametrize(("percent", "leans"), [(4, "slower"), (2, "same"), (-4, "faster")])
def test_an_undecided_benchmark_leans_to_where_its_ratio_lies(percent: int, leans: str) -> None:
    middle = math.log1p(percent / 100)
    found = judge({"": [middle + x for x in (-0.1, -0.05, 0, 0.05, 0.1)]}, math.log(1.03))[""]
    assert (found.verdict, found.leans) == ("undecided", leans)


@pytest.mark.parametrize("band", [0.0, 0.01])
def test_the_p_is_that_of_a_truth_at_the_end_of_the_band(band: float) -> None:
    """Where the truth is there, p is below any level as often as the level says."""
    rng = random.Random(0)
    ps = [judge({"": noise(rng, 5, 0.02, band)}, band)[""].p for _ in range(4_000)]
    below = {level: sum(p <= level for p in ps if p is not None) / 4_000 for level in (0.01, 0.1)}
    assert below == {0.01: pytest.approx(0.01, abs=0.005), 0.1: pytest.approx(0.1, abs=0.015)}


@pytest.mark.parametrize("sd", [0.002, 0.01, 0.02])
def test_two_per_cent_are_no_regression_at_a_threshold_of_three(sd: float) -> None:
    """However noisy the machine: it must not fail more innocent commits for its noise."""
    rng, band = random.Random(0), math.log(1.03)
    verdicts = [v for _ in range(100) for v in run(rng, 5, sd, math.log(1.02), band)]
    assert verdicts.count("slower") / len(verdicts) <= 0.01


def test_of_one_restart_or_two_nothing_is_said() -> None:
    found = judge({"": [0.5] * (LEAST - 1)})[""]
    assert (found.ci99, found.verdict) == (None, "undecided")


@pytest.mark.parametrize("restarts", range(LEAST, LOOKS[0]))
@pytest.mark.parametrize("sd", [0.01, 0.2])
def test_few_restarts_err_no_more_often_than_many(restarts: int, sd: float) -> None:
    """The truth is the threshold itself, where a flag is the likeliest."""
    rng, runs = random.Random(restarts), 4_000
    found = [judge({"": noise(rng, restarts, sd, BAND)})[""] for _ in range(runs)]
    assert sum(of.verdict == "slower" for of in found) / runs <= 1.5 * LEVEL
    held = sum(of.ci99[0] <= math.exp(BAND) <= of.ci99[1] for of in found if of.ci99)
    assert held / runs >= 1 - 1.5 * LEVEL


def test_no_restart_at_all_is_an_error() -> None:
    with pytest.raises(ValueError, match="log_ratios: is empty"):
        judge({"": []})


def test_counts_without_any_spread_are_decided_at_once() -> None:
    found = judge({"as before": [0.0] * 5, "more": [math.log(2)] * 5})
    assert (found["as before"].verdict, found["more"].verdict) == ("same", "slower")
    assert found["more"].ci99 == (pytest.approx(2), pytest.approx(2))


def test_a_verdict_that_fell_stands() -> None:
    settled = {"a": judge({"a": [0.1, 0.101, 0.099, 0.1, 0.102]})["a"]}
    assert settled["a"].verdict == "slower"
    later = judge({"a": [0.1, -0.2, 0.3, -0.1, 0.2] * 2}, settled=settled)
    assert later["a"] == settled["a"]


def test_one_among_many_must_be_surer_than_one_alone() -> None:
    """Benjamini and Hochberg: among a hundred, one takes a hundredth of the error."""
    rng = random.Random(3)
    alone = [0.03 + 0.004 * x for x in (-1.2, -0.6, 0.1, 0.7, 1.0)]
    many = {f"flat {i}": noise(rng, 5, 0.03) for i in range(99)}
    assert judge({"": alone})[""].verdict == "slower"
    assert judge({"": alone} | many)[""].verdict == "undecided"


def run(
    rng: random.Random, cells: int, sd: float, shift: float = 0.0, band: float = BAND
) -> list[str]:
    """The verdicts of a run of `diff`, which looks again while something is undecided."""
    of: dict[str, list[float]] = {str(i): [] for i in range(cells)}
    found, done = {}, 0
    while (look := next_look(done, LOOKS[-1])) is not None:
        for ratios in of.values():
            ratios += noise(rng, look - done, sd, shift)
        settled = {name: j for name, j in found.items() if j.verdict != "undecided"}
        found = judge(of, band, settled)
        done = look
    return [judgement.verdict for judgement in found.values()]


def test_the_restarts_that_a_spread_takes_are_foreseen() -> None:
    assert restarts_to_settle(0.003) == 5
    assert restarts_to_settle(0.01) == 20
    assert restarts_to_settle(0.05) is None
    assert restarts_to_settle(0.05, band=0.05) == 20


def test_where_nothing_changed_few_runs_say_otherwise() -> None:
    """Over 20 benchmarks and four looks, at the most uncomfortable spread."""
    rng = random.Random(0)
    runs = 1_000
    alarms = sum(
        "slower" in of or "faster" in of for of in (run(rng, 20, 0.03) for _ in range(runs))
    )
    assert alarms / runs <= 1.5 * ERROR


def test_three_per_cent_are_found_where_restarts_spread_by_two() -> None:
    rng = random.Random(0)
    verdicts = [verdict for _ in range(50) for verdict in run(rng, 10, 0.02, math.log(1.03))]
    assert verdicts.count("slower") / len(verdicts) > 0.99


def test_the_interval_holds_the_truth() -> None:
    """As often as it says, although it is read when a verdict has fallen."""
    rng, truth = random.Random(0), math.log(1.02)
    held = trials = 0
    for _ in range(2_000):
        ratios: list[float] = []
        while (look := next_look(len(ratios), LOOKS[-1])) is not None:
            ratios += noise(rng, look - len(ratios), 0.02, truth)
            found = judge({"": ratios})[""]
            if found.verdict != "undecided":
                break
        assert found.ci99 is not None
        held += found.ci99[0] <= math.exp(truth) <= found.ci99[1]
        trials += 1
    assert held / trials >= 0.99


def test_a_benchmark_is_judged_by_its_own_threshold() -> None:
    three = [math.log(1.03) + x for x in (-1e-3, 1e-3, 0, 2e-3, -2e-3)]
    found = judge({"own": three, "other": three}, math.log(1.01), own={"own": math.log(1.05)})
    assert (found["own"].verdict, found["own"].leans) == ("same", "same")
    assert (found["other"].verdict, found["other"].leans) == ("slower", "slower")
