"""Axes of pictures: places, ticks at round figures, labels that do not touch."""

import math

import pytest

from rlox_opt.views.axes import Axis, apart, decades, round_step, spread


def test_a_factor_is_as_long_everywhere() -> None:
    axis = Axis.around([1.0, 100.0], 50, 250)
    assert [axis(value) for value in (1.0, 10.0, 100.0)] == [50.0, 150.0, 250.0]
    assert Axis.around([1.0, 100.0], 250, 50)(10.0) == 150.0


def test_there_is_room_beyond_the_outermost_values() -> None:
    axis = Axis.around([1.0, math.e], 0, 1, share=0.5, more=0.25)
    assert math.log(axis.low) == pytest.approx(-0.75)
    assert math.log(axis.high) == pytest.approx(1.75)


def test_a_single_value_has_a_place() -> None:
    assert Axis.around([3.0], 76, 710)(3.0) == 76.0


def test_a_linear_axis_is_one_of_differences() -> None:
    axis = Axis(0, 0.8, 0, 100, linear=True, digits=3)
    assert [axis(value) for value in (0, 0.1, 0.8)] == [0.0, 12.5, 100.0]


def test_decades_hold_their_ends_and_no_more() -> None:
    assert decades(0.1, 100.0) == [0.1, 1.0, 10.0, 100.0]
    assert decades(0.4, 3.0, (1, 2, 5)) == [0.5, 1.0, 2.0]
    assert decades(3e-9, 2e-8) == [1e-8]
    assert decades(3.0, 4.0) == []


@pytest.mark.parametrize(
    ("low", "high", "step"),
    [(0, 0.65, 0.2), (0, 0.09, 0.02), (0, 0.001, 0.01), (-0.5, 199.0, 50.0)],
)
def test_a_step_is_the_smallest_round_one_that_is_not_too_fine(
    low: float, high: float, step: float
) -> None:
    assert round_step(low, high, most=6, power=-2) == pytest.approx(step)


def test_labels_that_would_touch_one_before_them_are_left_out() -> None:
    axis = Axis(0, 100, 0, 100, linear=True)
    assert apart([50, 45, 60, 75, 20, 68], axis, 10) == [20, 50, 60, 75]


def test_names_are_moved_on_until_they_stand_below_each_other() -> None:
    assert spread([10, 20, 22, 90], 14, 200, 16) == [14, 30, 46, 90]


def test_names_at_the_end_are_moved_back() -> None:
    assert spread([50, 98, 99], 14, 100, 16) == [50, 84, 100]
    assert spread([99, 99, 99], 14, 100, 16) == [68, 84, 100]
    assert spread([], 14, 100, 16) == []
