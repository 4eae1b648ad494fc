"""Level changes: where there is one it is found, and where there is none nothing is told."""

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from rlox_opt.stats import levels
from rlox_opt.stats.levels import Change, Readings, changes, family

from asv_bench.levels.synthetic import NOISES, SHAPES, drawn

WIGGLE = (0.0, 0.002, -0.002, 0.001, -0.001, 0.0025, -0.0025)


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outliers and the partition of readings that come again are not found again: they depend
    on these readings alone, and finding them takes most of the time of a family."""
    clean, part = levels._without_outliers, levels._Model.partition.func
    cleaned: dict[bytes, tuple[levels.Floats, float]] = {}
    parted: dict[bytes, list[int]] = {}

    def without_outliers(logs: levels.Floats) -> tuple[levels.Floats, float]:
        key = logs.tobytes()
        if key not in cleaned:
            cleaned[key] = clean(logs)
        return cleaned[key]

    def partition(model: levels._Model) -> list[int]:
        key = model.logs.tobytes()
        if key not in parted:
            parted[key] = part(model)
        return parted[key]

    monkeypatch.setattr(levels, "_without_outliers", without_outliers)
    monkeypatch.setattr(levels._Model, "partition", property(partition))


def steady(*parts: tuple[int, float]) -> list[float]:
    """So many readings at each level, but for a quarter of a per cent."""
    readings = [level for count, level in parts for _ in range(count)]
    return [of * (1 + WIGGLE[index % 7]) for index, of in enumerate(readings)]


def found(values: Sequence[float], **more: float | bool) -> list[Change]:
    return changes(Readings(values, [None] * len(values), **more))  # type: ignore[arg-type]


def cuts(values: Sequence[float]) -> list[int]:
    return [change.index for change in found(values)]


@pytest.mark.parametrize("ratio", [1.05, 0.95, 2.0])
@pytest.mark.parametrize("at", [5, 20, 35, 38])
def test_a_jump_is_found_at_its_reading_in_its_direction(ratio: float, at: int) -> None:
    (change,) = found(steady((at, 1.3), (40 - at, 1.3 * ratio)))
    assert (change.index, change.before) == (at, at - 1)
    assert change.ratio == pytest.approx(ratio, rel=0.005)
    assert change.ci99[0] <= ratio <= change.ci99[1]
    assert change.p < levels.LEVEL


def test_nothing_is_told_of_a_steady_series() -> None:
    assert found(steady((60, 1.0))) == []
    assert found([1.0] * 60) == []


def test_nothing_is_told_of_a_handful_of_readings() -> None:
    assert found([]) == []
    assert found(steady((4, 1.0), (5, 2.0))) == []


def test_a_change_is_an_alarm_until_five_readings_bear_it_out() -> None:
    states = [found(steady((40, 1.0), (n, 1.05)))[0].state for n in (2, 4, 5)]
    assert states == ["alarm", "alarm", "confirmed"]


def test_one_reading_alone_is_an_outlier() -> None:
    assert cuts(steady((40, 1.0), (1, 1.3))) == []
    assert cuts(steady((20, 1.0), (1, 1.3), (20, 1.0))) == []


def test_two_outliers_at_the_end_are_no_alarm_where_outliers_are_common() -> None:
    clean, hit = steady((58, 1.0)), steady((58, 1.0))
    for index in (5, 16, 29, 41, 52):
        hit[index] *= 1.1
    assert cuts([*clean, 1.1, 1.1]) == [58]
    assert cuts([*hit, 1.1, 1.1]) == []
    assert cuts([*hit, 1.1, 1.1, 1.1]) == [58]


def test_three_outliers_in_a_row_are_no_level() -> None:
    assert cuts(steady((20, 1.0), (3, 1.3), (20, 1.0))) == []


def test_a_regression_that_was_mended_is_two_changes() -> None:
    assert cuts(steady((20, 1.0), (8, 1.06), (20, 1.0))) == [20, 28]


def test_stairs_are_found_step_by_step() -> None:
    assert cuts(steady((15, 1.0), (15, 1.03), (15, 1.06), (15, 1.02))) == [15, 30, 45]


def test_slower_and_faster_are_seen_alike() -> None:
    values = steady((15, 1.0), (15, 1.03), (15, 1.01))
    turned = found([1 / value for value in values])
    assert [1 / change.ratio for change in turned] == pytest.approx(
        [c.ratio for c in found(values)]
    )


def test_a_change_below_what_is_worth_telling_is_not_told() -> None:
    values = steady((30, 1.0), (30, 1.03))
    assert found(values, least=math.log(1.025))
    assert not found(values, least=math.log(1.035))


def test_what_is_not_worth_telling_is_added_to_the_next_change() -> None:
    creeping = steady((20, 1.0), (20, 1.02), (20, 1.04), (20, 1.06))
    (change,) = found(creeping, least=math.log(1.035))
    assert change.index == 40
    assert change.ratio == pytest.approx(1.04, abs=0.002)
    assert change.ci99[0] < 1.04 < change.ci99[1]
    there_and_back = steady((20, 1.0), (20, 1.02), (20, 1.0), (20, 1.05))
    (change,) = found(there_and_back, least=math.log(1.03))
    assert change.ratio == pytest.approx(1.05, abs=0.002)


def test_readings_that_are_less_sure_than_the_jump_do_not_tell_of_it() -> None:
    values = steady((20, 1.0), (3, 1.04))
    assert changes(Readings(values, [0.002] * 23))
    assert not changes(Readings(values, [0.002] * 20 + [0.05] * 3))
    assert not changes(Readings(values, [0.05] * 23))


def test_counts_are_taken_at_their_word_at_once() -> None:
    counts = [1000.0] * 5 + [1010.0, 1000.0, 1000.0]
    told = found(counts, least=0.005, exact=True)
    assert [change.index for change in told] == [5, 6]
    assert told[0].ratio == pytest.approx(1.01)
    assert {change.state for change in told} == {"confirmed"}


def test_counts_that_creep_are_told_of_when_they_have_come_far_enough() -> None:
    counts = [1000.0 * 1.002**n for n in range(7)]
    assert [c.index for c in found(counts, least=0.005, exact=True)] == [3, 6]


def test_counts_that_hang_on_chance_have_no_levels_but_such_as_stand_out() -> None:
    rng = np.random.default_rng(5)
    counts = 1000 * np.exp(rng.normal(0, 0.008, 60))
    assert not found([*counts], least=0.005, exact=True)
    counts[40:] *= 0.9
    assert [c.index for c in found([*counts], least=0.005, exact=True)] == [40]


@pytest.mark.parametrize(
    ("counts", "at"),
    [
        ([1, 1, 1.448, 1.448, 1.448], [2]),
        ([1, 1, 2, 2, 2, 4, 4], [2, 5]),
        ([1, 1, 1, 1.5, 1.5, 1.5, 2, 2, 2], [3, 6]),
        ([1, 1, 1, 1.448, 1, 1, 1], [3, 4]),
    ],
)
def test_steps_of_a_short_series_of_counts_are_not_what_is_usual_there(
    counts: list[float], at: list[int]
) -> None:
    nearly = [of * (1 + 1e-6 * (n % 3)) for n, of in enumerate(counts)]
    for values in (counts, nearly):
        assert [c.index for c in found(values, least=0.005, exact=True)] == at


@pytest.mark.parametrize(("n", "most"), [(5, 0.07), (7, 0.06), (9, 0.05), (15, 0.05)])
def test_a_short_series_whose_counts_wander_is_seldom_told_of(n: int, most: float) -> None:
    rng = np.random.default_rng(9)
    wandering = [[*np.exp(rng.normal(0, 0.02, n))] for _ in range(400)]
    told = [bool(found(counts, least=0.005, exact=True)) for counts in wandering]
    assert sum(told) <= most * 400


def test_the_partition_is_the_best_of_all() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        drawn_ = rng.normal(0, 0.01, 17) + np.repeat([0, 0.02, 0], [6, 6, 5])
        model = levels._Model(Readings([*np.exp(drawn_)], [None] * 17), levels.LEVEL)
        logs = model.logs
        price = 4 * math.log(17) * float(np.sort(np.diff(logs) ** 2)[:16].mean()) / 2

        def cost(of: Sequence[int], logs: np.ndarray = logs, price: float = price) -> float:
            parts = np.split(logs, of)
            return sum(((part - part.mean()) ** 2).sum() for part in parts) + price * len(parts)

        every = [
            list(of)
            for n in range(4)
            for of in itertools.combinations(range(1, 17), n)
            if all(b - a >= levels.SETTLED for a, b in itertools.pairwise(of))
        ]
        assert model.partition == min(every, key=cost)


FLAT, STEP = SHAPES[0], SHAPES[1]


def alarmed(noise: str, histories: int = 100) -> float:
    told = [bool(found([*np.exp(drawn(noise, FLAT, [1, n]))])) for n in range(histories)]
    return sum(told) / histories


@pytest.mark.parametrize("noise", [name for name in NOISES if name not in ("machines",)])
def test_noise_alone_is_no_change(noise: str) -> None:
    assert alarmed(noise) <= 0.03


def test_without_a_memory_of_its_own_the_model_takes_memory_for_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(levels, "_PHIS", np.zeros(1))
    assert alarmed("ar1") > 0.1


def test_three_per_cent_are_located_in_noise_of_one() -> None:
    for noise, least in (("gauss", 0.9), ("outliers", 0.85), ("own", 0.9), ("ar1", 0.7)):
        told = [cuts([*np.exp(drawn(noise, STEP, [2, n]))]) for n in range(60)]
        near = sum(any(abs(index - 50) <= 2 for index in of) for of in told)
        assert near / 60 >= least, noise


def test_intervals_hold_the_truth() -> None:
    held = []
    for n in range(100):
        told = found([*np.exp(drawn("gauss", STEP, [3, n]))])
        held += [c.ci99[0] <= math.exp(0.03) <= c.ci99[1] for c in told if abs(c.index - 50) <= 2]
    assert len(held) > 90
    assert sum(held) >= 0.92 * len(held)


@functools.cache
def weak_and_strong() -> tuple[Readings, Readings]:
    """Two changes, one of which alone just passes."""
    for jump in np.arange(0.004, 0.02, 0.00025):
        logs = drawn("gauss", FLAT, [4])[:60] + jump * (np.arange(60) >= 30)
        weak = Readings([*np.exp(logs)], [None] * 60)
        if told := changes(weak):
            assert told[0].p > levels.LEVEL / 50
            return weak, Readings(steady((30, 1.0), (30, 1.5)), [None] * 60)
    raise AssertionError("unreachable: the jump grows")


@pytest.mark.usefixtures("remembered")
def test_among_many_series_a_change_must_be_clearer() -> None:
    weak, strong = weak_and_strong()
    quiet = {f"quiet {n}": Readings(steady((60, 1.0)), [None] * 60) for n in range(99)}
    assert family({"weak": weak})["weak"] == changes(weak)
    told = family({"weak": weak, "strong": strong} | quiet)
    assert [name for name, of in told.items() if of] == ["strong"]
    # Benjamini and Hochberg: beside many that have changed, it is told again.
    many = {f"strong {n}": strong for n in range(99)}
    assert family({"weak": weak} | many)["weak"]


def test_a_change_beyond_doubt_does_not_hide_the_others_of_its_series() -> None:
    values = steady((15, 1.0), (15, 1.05), (15, 1.0), (15, 1.02))
    alone = Readings(values, [None] * 60)
    assert min(c.p for c in changes(alone)) == 0.0
    assert family({"alone": alone})["alone"] == changes(alone)


@functools.cache
def late(noise: str, seed: int, jump: float = 0.0) -> Readings:
    """44 readings, the last ten at another level, of a machine whose others are like it."""
    logs = drawn(noise, FLAT, [seed])[-44:]
    logs[34:] += jump
    return Readings([*np.exp(logs)], [None] * 44, like="machine")


def beside(noise: str, one: Readings) -> list[Change]:
    """Those of a series among thirty others."""
    return family({"it": one} | {f"{n}": late(noise, 100 + n) for n in range(30)})["it"]


@pytest.mark.usefixtures("remembered")
def test_a_late_step_is_no_memory_where_no_other_series_has_one() -> None:
    """Of itself it may as well be: twice the scatter, for less than a quarter of a history."""
    steps = [late("gauss", seed, 0.025) for seed in range(20)]
    alone = sum(bool(changes(step, levels.LEVEL / 31)) for step in steps)
    together = sum(any(abs(c.index - 34) <= 2 for c in beside("gauss", step)) for step in steps)
    assert alone <= 8
    assert together >= 16


@pytest.mark.usefixtures("remembered")
def test_where_all_remember_a_late_step_may_be_memory() -> None:
    steps = [late("ar1_strong", seed, 0.025) for seed in range(20)]
    alone = sum(bool(changes(step, levels.LEVEL / 31)) for step in steps)
    assert sum(bool(beside("ar1_strong", step)) for step in steps) <= alone + 2


@pytest.mark.usefixtures("remembered")
def test_a_series_unlike_all_others_may_remember() -> None:
    told = [beside("gauss", late("ar1_strong", seed)) for seed in range(60)]
    assert sum(map(bool, told)) <= 3


def test_too_few_series_say_nothing_of_memory() -> None:
    few = {f"{n}": late("gauss", n) for n in range(7)}
    one = late("gauss", 3, 0.02)
    assert levels.usual_memory([*few.values()]) is None
    assert family({"it": one})["it"] == changes(one)


def test_where_the_code_is_known_to_have_changed_less_is_needed() -> None:
    logs = [drawn("gauss", FLAT, [5, n])[:44] + 0.02 * (np.arange(44) >= 34) for n in range(30)]

    def told(*suspected: int) -> int:
        readings = [Readings([*np.exp(of)], [None] * 44, suspected=suspected) for of in logs]
        return sum(any(abs(c.index - 34) <= 2 for c in changes(of)) for of in readings)

    assert told(7, 34) >= told() + 5
    assert told(7, 12) <= told()


def test_a_suspicion_is_no_change() -> None:
    rng = np.random.default_rng(6)
    told = [
        changes(replace(late("gauss", n), suspected=[*rng.integers(5, 40, 3)])) for n in range(200)
    ]
    assert sum(map(bool, told)) <= 2


def test_a_suspected_place_may_lie_anywhere() -> None:
    values = steady((20, 1.0), (20, 1.05))
    for place in (-3, 0, 1, 2, 20, 38, 39, 40, 90):
        of = Readings(values, [None] * 40, suspected=[place])
        assert [c.index for c in changes(of)] == [20]


def test_what_lies_before_the_first_level_is_no_noise_of_it() -> None:
    """Two commits were recorded before a build profile made everything faster: their readings made
    every later step look small."""
    rest = drawn("gauss", FLAT, [8])[:40] + 0.05 * (np.arange(40) >= 30)
    logs = np.concatenate([[0.3, 0.31], rest])
    (change,) = found([*np.exp(logs)])
    assert (change.index, change.before) == (32, 31)
    assert change == found([*np.exp(rest)])[0].at(range(2, 42))


def test_series_too_short_to_tell_take_no_part_in_what_noise_is_allowed() -> None:
    weak, _ = weak_and_strong()
    short = {f"short {n}": Readings([1.0, 1.1], [None] * 2) for n in range(500)}
    assert family({"weak": weak} | short)["weak"] == changes(weak)


@pytest.mark.usefixtures("remembered")
def test_counts_take_no_part_in_what_noise_is_allowed() -> None:
    weak, _ = weak_and_strong()
    quiet = {f"quiet {n}": Readings(steady((60, 1.0)), [None] * 60) for n in range(99)}
    counts = {f"count {n}": Readings([1.0, 2.0], [None] * 2, exact=True) for n in range(900)}
    told = family({"weak": weak} | quiet | counts)
    assert told["weak"] == []
    assert told["count 0"]
