"""The path of each page, and how it is written: by a template in `templates/site/`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from jinja2 import Environment

from rlox_opt.views.pages import environment
from rlox_opt.views.site import figures
from rlox_opt.views.site.model import EntryFile, features_title, slug

PAGES = {
    "index.html": "Overview",
    "commits.html": "Commits",
    "profiles.html": "Profiles",
    "optimisations.html": "Optimisations",
    "trust.html": "Trust",
}


def benchmark_path(name: str) -> str:
    """The page of a benchmark."""
    return f"benchmark/{slug(name)}.html"


def data_path(name: str) -> str:
    """The file of a benchmark's figures."""
    return f"data/benchmark/{slug(name)}.js"


def commit_path(commit: str) -> str:
    """The page of a commit, by its whole hash."""
    return f"commit/{commit[:12]}.html"


def diff_path(commit: str) -> str:
    """The page of what a commit changed in the code."""
    return f"diff/{commit[:12]}.html"


def card_path(id_: str) -> str:
    """The page of an optimisation."""
    return f"optimisation/{id_.lower()}.html"


def raw_path(recording: EntryFile) -> str:
    """The copy of a recording's file."""
    return f"raw/{recording.entry.slug}/{recording.path.name}"


@cache
def parts(name: str) -> tuple[str, ...]:
    """The parts of a benchmark's name, after each of which a line may break."""
    return tuple(re.split(r"(?<=[.,(_])(?=.)", name))


def laid(
    columns: Mapping[str, str | None], cells: Sequence[object]
) -> Iterator[tuple[bool, str, str | None, object]]:
    """A row's cells: whether it is the first, its column's title and class, and what it holds."""
    first = True
    for (title, kind), cell in zip(columns.items(), cells, strict=True):
        yield first, title, kind, cell
        first = False


def parted(text: str) -> list[str]:
    """A card's text and, as every second part, what it has between backticks."""
    return re.split("`([^`]+)`", text.strip())


_FILTERS = (
    benchmark_path, data_path, commit_path, diff_path, card_path, raw_path, parts, laid, parted,
    slug, features_title, figures.change, figures.points,
)  # fmt: skip


@cache
def _environment() -> Environment:
    """Jinja2's environment of all pages, with the functions that the site's templates need."""
    made = environment().overlay()
    made.filters = made.filters | {of.__name__: of for of in _FILTERS}
    return made


class Key(NamedTuple):
    """What a legend says about a line or an area: its title, its colour by name, and the number of
    a line's dash pattern."""

    title: str
    colour: str
    dash: int | None = None


class Table(NamedTuple):
    """Rows of text under `columns`, {title: class}: words have the class "word", figures none."""

    columns: Mapping[str, str | None]
    rows: Sequence[Sequence[str]]
    caption: str


class Page(NamedTuple):
    """A page of the site: its path, its template, and the template's values."""

    path: str
    template: str
    values: Mapping[str, object]

    def of(self, package: str, shown: Collection[str] = tuple(PAGES)) -> str:
        """The page of a package's site, with a navigation of the pages `shown`."""
        return (
            _environment()
            .get_template(f"site/{self.template}.html")
            .render(
                self.values,
                path=self.path,
                root="../" * self.path.count("/"),
                package=package,
                navigation={path: PAGES[path] for path in shown},
            )
        )
