"""Series of the store: what is put together, what is compared, and what is no change."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import toy_entries as toy
from toy_entries import BENCHMARK, cell, entry, history

from rlox_opt.history.series import Series, of_store, unsearched
from rlox_opt.history.store import Cell, Entry
from rlox_opt.stats import levels
from rlox_opt.stats.levels import Change, Readings


def only(entries: Sequence[Entry]) -> Series:
    (series,) = of_store(entries)
    return series


def moved(entries: Sequence[Entry]) -> list[int]:
    return [change.index for change in only(entries).changes]


def elsewhere(entries: Sequence[Entry], factor: float) -> list[Entry]:
    """The same on the other machine, where ratios are others."""
    return [
        entry(n, cell(factor * (one.cells[0].ratio or 0)), machine="b")
        for n, one in enumerate(entries)
    ]


def test_a_series_has_its_points_in_order_and_its_change() -> None:
    series = only([*reversed(history({25: 1.05}))])
    assert (series.benchmark, series.kind, series.unit) == (BENCHMARK, "time", "seconds")
    assert series.features == ("shipped",)
    assert [point.commit for point in series.points] == [toy.commit(n) for n in range(40)]
    (change,) = series.changes
    assert series.points[change.index].subject == "Commit 25"
    assert series.points[change.before].subject == "Commit 24"
    assert change.ratio == pytest.approx(1.05, abs=0.003)
    assert series.slower(change)


def test_numbers_feature_sets_and_benchmarks_are_series_of_their_own() -> None:
    cells = [cell(1.0), cell(100.0, "instructions"), cell(1.0, benchmark="data_plane.Other")]
    found = of_store([entry(0, *cells), entry(0, cell(1.0), features=("opt-p5",))])
    assert {(s.benchmark, s.kind, s.features) for s in found} == {
        (BENCHMARK, "time", ("shipped",)),
        (BENCHMARK, "time", ("opt-p5",)),
        (BENCHMARK, "instructions", ("shipped",)),
        ("data_plane.Other", "time", ("shipped",)),
    }


def test_a_move_to_another_machine_is_no_change() -> None:
    here = history({})
    assert moved(here[:20] + elsewhere(here, 1.2)[20:]) == []


@pytest.mark.parametrize("at", [10, 30])
def test_a_change_on_either_side_of_the_move_is_found(at: int) -> None:
    here = history({at: 1.05})
    assert moved(here[:20] + elsewhere(here, 1.2)[20:]) == [at]


def test_a_commit_measured_on_two_machines_has_two_points_and_its_change_is_seen_on_both() -> None:
    here = history({25: 1.05})
    series = only(here + elsewhere(here, 1.2))
    assert len(series.points) == 80
    told = [series.points[change.index] for change in series.changes]
    assert {point.commit for point in told} == {toy.commit(25)}
    assert {point.machine for point in told} == {"amd-epyc-7b13-4c", "intel-xeon-2.80ghz-2c"}


def test_a_change_between_two_stays_on_a_machine_is_found_after_the_second_began() -> None:
    here = history({20: 1.05})
    series = only(here[:15] + elsewhere(here, 1.2)[15:25] + here[25:])
    there, back = series.changes
    assert (there.before, there.index) == (19, 20)
    assert (back.before, back.index) == (14, 25)


def test_another_control_is_no_change() -> None:
    low, high = history({})[:20], history({0: 1.3})[20:]
    other = {"commit": toy.commit(7), "features": []}
    assert moved([*low, *high]) == [20]
    swapped = [entry(n, *one.cells, control=other) for n, one in enumerate(high, 20)]
    assert moved(low + swapped) == []


def test_the_control_s_own_entry_is_of_the_group_of_its_control() -> None:
    first, *others = only(history({})).points
    assert first.commit == toy.commit(0)
    assert {point.place for point in others} == {first.place}


def test_commits_off_the_line_are_left_out() -> None:
    line = [toy.commit(n) for n in range(40) if n != 3]
    (series,) = of_store(history({25: 1.05}), line)
    assert len(series.points) == 39
    assert series.points[series.changes[0].index].commit == toy.commit(25)


def test_the_line_orders_commits_and_not_their_clocks() -> None:
    (series,) = of_store(history({}), [toy.commit(n) for n in (2, 0, 1)])
    assert [point.commit for point in series.points] == [toy.commit(n) for n in (2, 0, 1)]


def test_a_commit_that_was_measured_again_counts_once_as_last_measured() -> None:
    again = entry(5, cell(1.1), date=toy.START.replace(year=2027))
    series = only([*history({}), again])
    assert len(series.points) == 40
    assert series.points[5].ratio == 1.1


def test_times_without_a_control_are_shown_and_not_judged() -> None:
    series = only([entry(n, toy.Cell(BENCHMARK, "criterion", 1.0 + n // 20)) for n in range(40)])
    assert [point.value for point in series.points[19:21]] == [1.0, 2.0]
    assert series.changes == ()


def test_times_that_are_not_searched_on_their_newest_machine_are_counted_by_the_reason() -> None:
    other = Cell("data_plane.Other", "time", 1.0)  # which the control lacks
    entries = [
        entry(n, *one.cells, other, machine="a" if n < 10 else "b")
        for n, one in enumerate(history({}, 13))
    ]
    told = "1 of 2 times are not searched: their newest machine and control have "
    assert unsearched(of_store(entries)) == [
        f"{told}fewer than 10 recordings of them",
        f"{told}no ratio of them",
    ]
    assert unsearched(of_store(history({}, 10))) == []
    assert unsearched(of_store(history({}, 3, kind="instructions"))) == []


def test_fewer_steps_a_second_are_slower() -> None:
    series = only(history({25: 0.9}, kind="steps"))
    (change,) = series.changes
    assert change.ratio < 1
    assert series.slower(change)


def test_a_count_that_differs_is_told_at_its_first_commit() -> None:
    counts = [1000] * 9 + [1020]
    series = only([entry(n, cell(of, "instructions")) for n, of in enumerate(counts)])
    (change,) = series.changes
    assert (change.index, change.state) == (9, "confirmed")
    assert change.ratio == pytest.approx(1.02)


def test_the_first_allocation_is_a_change() -> None:
    series = only([entry(n, cell(float(n >= 6), "allocations")) for n in range(9)])
    assert [change.index for change in series.changes] == [6]
    assert series.slower(series.changes[0])


def test_a_few_stray_allocations_among_all_counted_calls_are_no_change() -> None:
    def told(*counts: float) -> list[int]:
        return moved([entry(n, cell(of, "allocations")) for n, of in enumerate(counts)])

    assert told(0, 0, 0, 0, 2 / 195) == []
    assert told(0, 0, 0, 0, 0.5) == [4]
    assert told(40, 40, 40.4, 40, 41) == [4]
    # Strays that come to stay add up.
    assert told(0, 0, 0, 0, 0.2, 0.2, 0.4, 0.4, 0.6) == [8]


def test_what_a_machine_cannot_tell_apart_is_no_change_there() -> None:
    here = history({25: 1.03})
    both = here + elsewhere(here, 1.2)
    (series,) = of_store(both, least={"amd-epyc-7b13-4c": {BENCHMARK: 0.05}})
    assert [series.points[c.index].machine for c in series.changes] == ["intel-xeon-2.80ghz-2c"]


def test_the_error_of_a_point_is_that_of_its_restarts() -> None:
    # Student's quantile of 99 % for five restarts is 4.604.
    one = entry(0, cell(1.0, ratio_ci99=(1 / 1.02, 1.02), restarts=5))
    assert only([one]).points[0].error == pytest.approx(0.0198 / 4.604, rel=1e-3)
    assert only([entry(0, cell(1.0))]).points[0].error is None


def test_a_regression_is_open_until_half_of_it_is_gone() -> None:
    def opened(levels: dict[int, float]) -> list[bool]:
        series = only(history(levels, 60))
        return [series.open(change) for change in series.changes]

    assert opened({20: 1.05}) == [True]
    assert opened({20: 1.05, 40: 1.0}) == [False, True]
    assert opened({20: 1.05, 40: 1.03}) == [True, True]
    assert opened({20: 1.05, 40: 1.02}) == [False, True]
    assert opened({20: 1.05, 40: 1.08}) == [True, True]


def test_what_was_mended_and_broken_again_is_the_second_commits() -> None:
    series = only(history({15: 1.05, 30: 1.0, 45: 1.05}, 60))
    assert [series.open(change) for change in series.changes] == [False, False, True]


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[str, str], Readings]:
    """What the detector was last asked of, by benchmark and kind."""
    seen: dict[tuple[str, str], Readings] = {}

    def family(readings: Mapping[Any, Readings]) -> dict[Any, list[Change]]:
        seen.update({(key[0], key[1]): of for (key, _), of in readings.items()})
        return {key: [] for key in readings}

    monkeypatch.setattr(levels, "family", family)
    return seen


def test_counts_say_where_a_time_may_have_changed(family: dict[tuple[str, str], Readings]) -> None:
    """Only those of the same benchmark; where the time lacks the commit, its next one has it."""
    entries = []
    for n in range(40):
        counts = [
            cell(1100.0 if n >= 12 else 1000.0, "instructions"),
            cell(2.0 if n >= 20 else 1.0, "allocations"),
        ]
        times = [cell(1.0)] if n not in (3, 20) else []
        entries.append(entry(n, *times, *counts, cell(1.0, benchmark="data_plane.Other")))
    of_store(entries)
    assert family[BENCHMARK, "time"].suspected == [11, 19]  # of commits 12 and 21
    assert family["data_plane.Other", "time"].suspected == []
    assert family[BENCHMARK, "instructions"].suspected == ()


def test_counts_of_other_features_or_of_another_machine_say_nothing(
    family: dict[tuple[str, str], Readings],
) -> None:
    def counted(n: int) -> Cell:
        return cell(1100.0 if n >= 12 else 1000.0, "instructions")

    times = [entry(n, cell(1.0)) for n in range(40)]
    of_store(times + [entry(n, counted(n), machine="b") for n in range(40)])
    assert family[BENCHMARK, "time"].suspected == []
    of_store(times + [entry(n, counted(n), features=("opt-p5",)) for n in range(40)])
    assert family[BENCHMARK, "time"].suspected == []


def test_only_series_of_one_kind_and_machine_are_alike(
    family: dict[tuple[str, str], Readings],
) -> None:
    of_store([entry(0, cell(1.0), cell(1.0, "steps", benchmark="train.ppo"))])
    here = family[BENCHMARK, "time"].like
    assert here is not None
    assert here != family["train.ppo", "steps"].like
    of_store([entry(0, cell(1.0), machine="b")])
    assert here != family[BENCHMARK, "time"].like


def test_a_change_within_the_projects_threshold_is_not_open() -> None:
    entries = history({25: 1.05})
    for percent, matters in ((4, True), (9, False)):
        (series,) = of_store(entries, table={"no*": 1, BENCHMARK: percent})
        assert [series.open(change) for change in series.changes] == [matters]
