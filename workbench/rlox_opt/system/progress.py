"""Shows on stderr what a long command is doing: a bar in a terminal, lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TimeElapsedColumn
from rich.table import Column, Table
from rich.text import Text

from rlox_opt.system.output import cells, columns, folded

_NOTE_EVERY_S = 20.0
_BAR, _LEAST_BAR, _ELAPSED, _NOTE = 24, 8, 7, 48  # columns
_GAPS = 3  # between the four


class Lines:
    """A line when a step begins, now and then while it runs, and when it ends."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._left: dict[str, float] = {}
        self._steps = self._done = 0
        self._title = ""
        self._started = self._noted = 0.0

    def plan(self, steps: Sequence[tuple[str, float]]) -> None:
        """The steps to come, each with the seconds it may take."""
        self._left = dict(steps)
        self._steps, self._done = len(steps), 0

    def begin(self, title: str) -> None:
        """A step begins."""
        self._title, self._started = title, time.monotonic()
        self._noted = self._started
        self.say(f"{self._head()} …{self._remaining()}")

    def note(self, text: str, fraction: float | None = None) -> None:
        """What the step is doing, and how much of it is done."""
        if time.monotonic() - self._noted >= _NOTE_EVERY_S:
            self._noted = time.monotonic()
            percent = "" if fraction is None else f", {100 * fraction:.0f} %"
            self.say(f"{self._head()}: {text}{percent}")

    def end(self, text: str) -> None:
        """The step is over, with this outcome."""
        self.say(f"{self._head()}: {text} ({time.monotonic() - self._started:.0f} s)")
        self._left.pop(self._title, None)
        self._done += 1

    def say(self, text: str) -> None:
        """Print a line of its own, above the bar if there is one."""
        for line in folded(text, columns(sys.stderr)):
            self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _head(self) -> str:
        if self._done >= self._steps:
            return self._title
        return f"{self._done + 1}/{self._steps} {self._title}"

    def _remaining(self) -> str:
        seconds = sum(self._left.values())
        if seconds < 1:
            return ""
        return f" about {seconds / 60:.0f} min left" if seconds > 90 else " about a minute left"


class _Line(ProgressColumn):
    """A running step in one line: its title, a bar, how long it has run, and what it is doing. The
    widths depend on the title alone, so that nothing moves while the step runs; a note that is too
    long for its place is cut there, since the next one takes its place."""

    def __init__(self, console: Console) -> None:
        super().__init__()
        self._console = console
        self._elapsed = TimeElapsedColumn()

    def render(self, task: Task) -> Table:
        width = self._console.width
        title = min(cells(task.description), max(1, width // 2))
        room = width - title - _ELAPSED - _GAPS
        bar = max(_LEAST_BAR, min(_BAR, room - _NOTE))
        places = (title, bar, _ELAPSED, max(1, room - bar))
        line = Table.grid(
            *(Column(width=of, no_wrap=True, overflow="ellipsis") for of in places), padding=(0, 1)
        )
        note = Text(task.fields["note"], "dim")
        drawn = BarColumn(bar).render(task), self._elapsed.render(task)
        line.add_row(Text(task.description), *drawn, note)
        return line


class Bars(Lines):
    """A line for each step that has ended, and below them a bar for the present one."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.bar = Progress(_Line(console), console=console, transient=True)
        self._task = self.bar.add_task("", total=1.0, note="", visible=False)

    def begin(self, title: str) -> None:
        self._title, self._started = title, time.monotonic()
        self.bar.reset(self._task, description=self._head(), total=None, visible=True, note="")
        self.note("")

    def note(self, text: str, fraction: float | None = None) -> None:
        # Without a fraction the bar pulses, since the remaining time is not known.
        self.bar.update(
            self._task,
            note=", ".join(filter(None, (text, self._remaining_now()))),
            total=None if fraction is None else 1.0,
            completed=fraction or 0.0,
        )

    def end(self, text: str) -> None:
        super().end(text)
        self.bar.update(self._task, visible=False)

    def _remaining_now(self) -> str:
        spent = time.monotonic() - self._started
        this = self._left.get(self._title, 0.0)
        seconds = sum(self._left.values()) - min(spent, this)
        return f"about {seconds:.0f} s left in all" if seconds > 1 else ""


@contextlib.contextmanager
def reporter() -> Iterator[Lines]:
    """The reporter of a command's progress, on stderr."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Lines(console)
        return
    bars = Bars(console)
    with bars.bar:
        yield bars
