import pytest
from rich.console import Console

from rlox_opt.views.wrapping import room, wrapped

LONG = "benchmark_classes.GraphBenchmark.time_add_edges_from('DiGraph')"


@pytest.mark.parametrize(
    ("name", "width", "lines"),
    [
        (LONG, 80, [LONG]),
        (LONG, 45, ["benchmark_classes.GraphBenchmark.", "  time_add_edges_from('DiGraph')"]),
        (
            LONG,
            29,
            ["benchmark_classes.", "  GraphBenchmark.", "  time_add_edges_from", "  ('DiGraph')"],
        ),
        ("a.time_x(0.25, (1, 22), 'b')", 20, ["a.time_x(0.25, (1,", "  22), 'b')"]),
        ("time_one_two_three_four_five", 20, ["time_one_two_three_", "  four_five"]),
        ("x" * 30, 20, ["x" * 30]),
    ],
)
def test_a_name_breaks_where_one_of_its_parts_ends(name: str, width: int, lines: list[str]) -> None:
    assert wrapped(name, width).split("\n") == lines


@pytest.mark.parametrize("width", range(10, 70))
def test_nothing_of_a_name_is_lost(width: int) -> None:
    folded = wrapped(LONG, width).replace("\n  ", "")
    assert folded == LONG


def test_names_get_the_room_that_the_other_columns_leave() -> None:
    console = Console(width=80)
    assert room(console, [("ratio", "1.000"), ("verdict", "rather slower")]) == 80 - 6 - 14
    assert room(Console(width=10), [("ratio", "1.000")]) == 20
