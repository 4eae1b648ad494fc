"""Makes the pages: which pages there are, and what each is made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from rlox_opt.history.ledger import Line
from rlox_opt.project.project import Project
from rlox_opt.system.files import understood
from rlox_opt.views.html import style_sheet
from rlox_opt.views.site import benchmark, commit, diffs, optimisations, overview, profiles, trust
from rlox_opt.views.site.figures import change
from rlox_opt.views.site.layout import (
    PAGES,
    benchmark_path,
    commit_path,
    data_path,
    diff_path,
    raw_path,
)
from rlox_opt.views.site.model import Commit, History
from rlox_opt.views.site.writer import Writer, digest

_STATIC = (
    "history.css", "theme.js", "filter.js", "chart.js", "lines.js", "stacked.js", "flamegraph.js",
    "uPlot.iife.min.js", "uPlot.min.css", "uPlot.LICENSE",
)  # fmt: skip


class Site(NamedTuple):
    """What all pages know of the site: whose performance it shows, and which pages it has."""

    package: str
    shown: tuple[str, ...]


Tell = Callable[[str, float], None]


@dataclass(frozen=True)
class Published:
    """The result of a publication, in files."""

    commits: int
    series: int
    written: int
    kept: int
    removed: int


def publish(
    out: Path,
    history: History,
    ledger: Sequence[Line],
    project: Project,
    tell: Tell = lambda _text, _done: None,
) -> Published:
    """Make the pages of a history, in `out`.

    Args:
        ledger: the optimisations with their records.
        project: whose package the pages are about, whose calibrations and scores are shown, and
            whose repository has the commits; those it lacks have no code to show.
        tell: called with what is being made, and how much of it is done.

    Raises:
        UsageError: nothing says what the project's package is.
        NotReadError: a calibration or score is broken.
        writer.ForeignFolderError: `out` holds other files.
    """
    lacking = _lacking(history, ledger)
    site = Site(project.package, tuple(path for path in PAGES if path not in lacking))
    with Writer(out) as writer:
        _static(writer)
        with understood(project.records, "folder of calibrations and scores"):
            trust_page = trust.trust(trust.read(project.records))
        lists = (
            overview.overview(history),
            overview.commits(history),
            profiles.page_of(history, project.settings.workloads),
            optimisations.ledger_page(ledger, project.settings.cards),
        )
        cards = (optimisations.card_page(history, line) for line in ledger)
        for page in (*lists, trust_page, *cards):
            writer.text(page.path, page.of(*site))
        writer.text("data/commits.js", benchmark.commits_data(history))
        writer.text("data/profiles.js", profiles.data(history))
        for number, name in enumerate(history.by_benchmark, 1):
            writer.text(benchmark_path(name), benchmark.benchmark(history, name).of(*site))
            writer.text(data_path(name), benchmark.data(history, name))
            tell(f"benchmark {number}", 0.5 * number / len(history.by_benchmark))
        _commits(writer, history, site, tell)
        _diffs(writer, history, project.top, site)
    return Published(
        len(history.commits), len(history.series), writer.written, writer.kept, writer.removed
    )


def _lacking(history: History, ledger: Sequence[Line]) -> list[str]:
    """The pages that have nothing to show."""
    shown = {"profiles.html": profiles.lines(history), "optimisations.html": ledger}
    return [path for path, of in shown.items() if not of]


def _static(writer: Writer) -> None:
    writer.text("static/page.css", style_sheet())
    for name in _STATIC:
        content = files("rlox_opt.views.site").joinpath("static").joinpath(name).read_bytes()
        writer.text(f"static/{name}", content)


def _commits(writer: Writer, history: History, site: Site, tell: Tell) -> None:
    """A page for each commit, and its recordings' files, which are written once."""
    for one in history.commits:
        path = commit_path(one.hash)
        key = digest([*site, *_shown(history, one)])
        writer.file(path, key, partial(_of_commit, history, one, site))
        for recording in one.recordings:
            writer.file(raw_path(recording), recording.path.name, recording.path.read_bytes)
        tell(f"commit {one.index + 1}", 0.5 + 0.5 * one.index / len(history.commits))


def _of_commit(history: History, one: Commit, site: Site) -> str:
    return commit.commit(history, one).of(*site)


def _shown(history: History, one: Commit) -> Iterator[object]:
    """What the page of a commit is made of."""
    yield from (other.hash for other in history.commits[max(0, one.index - 1) : one.index + 2])
    yield one.parent in history.by_hash
    for recording in one.recordings:
        before = history.before(recording)
        yield recording.path.name, recording.entry, before.entry if before else None
    for moved in history.moved_at.get(one.hash, ()):
        level, series = moved.change, moved.series
        figures = [change(ratio) for ratio in (level.ratio, *level.ci99)]
        yield series.benchmark, series.kind, series.features, figures, level.state
        yield moved.answer, moved.excused, moved.last.hash, moved.commits, moved.besides


def _diffs(writer: Writer, history: History, top: Path, site: Site) -> None:
    """A page for each commit with its code. A commit never changes, so git is asked only once."""
    there = set(diffs.known([one.hash for one in history.commits], top))

    def write(one: Commit, lines: Sequence[str] | None) -> None:
        writer.file(diff_path(one.hash), key(one), lambda: diffs.diff_page(one, lines).of(*site))

    def key(one: Commit) -> str:
        return digest([*site, one.hash, one.hash in there])

    missing = {one.hash for one in history.commits if not writer.has(diff_path(one.hash), key(one))}
    for name, lines in diffs.texts(sorted(missing & there), top):
        write(history.by_hash[name], lines)
    for one in history.commits:
        if one.hash not in missing & there:
            write(one, None)
