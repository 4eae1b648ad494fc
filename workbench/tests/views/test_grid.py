"""How a table stands where its columns do not fit: a paragraph for each row, with nothing lost."""

import io

import pytest
from rich.console import Console

from rlox_opt.system.output import cells
from rlox_opt.views import units
from rlox_opt.views.grid import Grid

TABLE = Grid(
    ("peer", "what runs", "where", "knees", "time", "ratio"),
    [
        ("gymnasium", "a vector of environments", "apart", ["at 10", "at 100"], "1.5 ms", "2.0×"),
        ("ours", units.MISSING, "here", [], "1.0 ms", ""),
    ],
    left=4,
)


def printed(grid: Grid, width: int) -> list[str]:
    out = io.StringIO()
    Console(file=out, width=width, highlight=False, color_system=None).print(grid)
    return out.getvalue().splitlines()


def test_a_paragraph_has_the_heading_of_all_but_what_names_the_row() -> None:
    assert printed(TABLE, 50) == [
        "gymnasium  what runs a vector of environments",
        "    where apart",
        "    knees",
        "      at 10",
        "      at 100",
        "    time 1.5 ms · ratio 2.0×",
        "ours  where here",
        "    time 1.0 ms",
    ]


def test_two_columns_may_name_the_row() -> None:
    named = Grid(TABLE.columns, TABLE.rows, TABLE.left, named=2)
    first = [printed(named, 50)[n] for n in (0, 5)]
    assert first == ["gymnasium  a vector of environments  where apart", "ours  where here"]


def test_a_row_of_figures_alone_has_them_behind_their_headings() -> None:
    figures = Grid(("size", "time", "ratio"), [("1,000", "1.5 ms", "2.0× (1.9–2.1)")], left=0)
    assert printed(figures, 24) == ["    size 1,000", "    time 1.5 ms", "    ratio 2.0× (1.9–2.1)"]


@pytest.mark.parametrize("width", range(24, 75))
def test_every_word_stands_in_any_width_and_no_line_is_wider(width: int) -> None:
    lines = printed(TABLE, width)
    assert max(map(cells, lines)) <= width
    told = " ".join(lines).split()
    asked = ["gymnasium", "vector", "environments", "apart", "100", "1.5", "2.0×"]
    for word in (*asked, *" ".join(TABLE.columns[1:]).split()):
        assert word in told
