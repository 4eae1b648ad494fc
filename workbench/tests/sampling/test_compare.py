"""Beliefs about comparing a report with what a program says of itself."""

import pytest
from sampling.accuracy.compare import rows, told

TRUTH = {"pid": 7, "thread": "MainThread", "seconds": {"python": 6.0, "numpy": 2.0, "gil": 2.0}}


def report(**seconds: float) -> dict[str, object]:
    """Of one thread, each layer with an interval of a fiftieth of its time to either side."""
    whole = sum(seconds.values())
    layers = [
        {
            "name": name,
            "seconds": of,
            "share": of / whole,
            "ci95": [of / whole - 0.02, of / whole + 0.02],
        }
        for name, of in seconds.items()
    ]
    threads = [{"name": "MainThread", "layers": layers}]
    return {"processes": [{"pid": 7, "threads": threads}]}


def test_shares_are_of_the_time_after_the_start_up() -> None:
    found = rows([TRUTH], report(startup=10.0, python=6.1, numpy=1.9, gil=2.0), "perf")
    errors = {row.layer: row.error for row in found}
    assert errors == pytest.approx({"python": 1.0, "numpy": -1.0, "gil": 0.0})
    assert all(row.holds for row in found)


def test_a_layer_that_is_too_far_off_is_not_held() -> None:
    found = rows([TRUTH], report(python=5.0, numpy=3.0, gil=2.0), "perf")
    assert [row.holds for row in found] == [False, False, True]


def test_a_layer_that_the_report_does_not_have_is_an_error_of_all_of_it() -> None:
    found = rows([TRUTH], report(python=8.0, gil=2.0), "perf")
    numpy = next(row for row in found if row.layer == "numpy")
    assert (numpy.error, numpy.holds) == (pytest.approx(-20.0), False)


def test_a_thread_that_the_report_does_not_have_is_an_error_of_all_its_layers() -> None:
    found = rows([TRUTH | {"thread": "other"}], report(python=8.0, gil=2.0), "perf")
    assert not any(row.holds for row in found)


def test_what_a_stopped_program_waits_is_not_compared_with_pyspy() -> None:
    found = rows([TRUTH], report(python=7.5, numpy=2.5), "py-spy")
    assert {row.layer: row.error for row in found} == pytest.approx({"python": 0.0, "numpy": 0.0})


def test_the_table_has_a_line_for_each_layer() -> None:
    table = told(rows([TRUTH], report(python=6.0, numpy=2.0, gil=2.0), "perf"))
    assert "| MainThread | python | 60.0 | 60.0 | +0.0 | 58.0 to 62.0 | yes |" in table
    assert len(table.splitlines()) == 2 + 3
