"""The line of a step that runs, in terminals of several widths: one line, in which the bar and the
time are whole, and nothing moves."""

import io
import re

import pytest
from rich.console import Console

from rlox_opt.system.progress import Bars

ELAPSED = re.compile(r"\d:\d\d:\d\d")
TITLE = "build of a-long-branch-name+opt-p5 (0123456789)"
NOTES = ("", "restart 7", "restart 10, 12 undecided, at most 300 s to come", "x" * 200)


def line(bars: Bars) -> str:
    """What stands in the terminal now."""
    out = io.StringIO()
    Console(file=out, width=bars.console.width, color_system=None).print(bars.bar.get_renderable())
    (only,) = out.getvalue().splitlines()
    return only.rstrip()


@pytest.fixture
def bars(request: pytest.FixtureRequest) -> Bars:
    return Bars(Console(file=io.StringIO(), width=request.param, force_terminal=True))


@pytest.mark.parametrize("bars", [40, 60, 80, 120], indirect=True)
@pytest.mark.parametrize("title", ["timing", TITLE])
def test_bar_and_time_are_whole_and_stand_still_whatever_the_note_says(
    bars: Bars, title: str
) -> None:
    bars.plan([(title, 20.0), ("another", 20.0)])
    bars.begin(title)
    seen = set()
    for note in NOTES:
        bars.note(note, 1.0)
        shown = line(bars)
        assert len(shown) <= bars.console.width
        before, after = ELAPSED.split(shown)
        assert after
        seen.add((before.index("━"), before.rindex("━"), len(before)))
    (places,) = seen
    assert places[1] - places[0] >= 7


@pytest.mark.parametrize("bars", [80], indirect=True)
def test_what_the_comparison_says_while_it_times_is_shown_whole_in_eighty_columns(
    bars: Bars,
) -> None:
    bars.begin("timing")
    bars.note(NOTES[2], 0.1)
    assert line(bars).endswith(f" {NOTES[2]}")
    bars.begin("[bold]no markup[/bold]")
    assert line(bars).startswith("[bold]no markup[/bold]")
