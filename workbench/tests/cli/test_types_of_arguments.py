"""What the values of options mean."""

import pytest

from rlox_opt.cli.types import pattern


@pytest.mark.parametrize(
    ("given", "name", "other"),
    [
        ("boundary.Call.time_call(1)", "boundary.Call.time_call(1)", "boundary.Call.time_call(2)"),
        ("Gae.time((32, 4))", "advantages.Gae.time((32, 4))", "advantages.Gae.time((32, 8))"),
        ("test_sum[7]", "test_sums.py::test_sum[7]", "test_sums.py::test_sum[8]"),
    ],
)
def test_a_benchmark_is_found_by_the_name_that_a_table_shows(
    given: str, name: str, other: str
) -> None:
    assert pattern(given).search(name)
    assert not pattern(given).search(other)


@pytest.mark.parametrize("text", ["Gae|Push", r"Gae\(1\)", "(Gae|Push)", "^work", "time_[ab]$", ""])
def test_a_regular_expression_stays_what_it_is(text: str) -> None:
    assert pattern(text).pattern == text
