"""What all pages share: the frame around them, tables, links, and where each page lies.

Text is escaped where it becomes `Html`; what is `Html` already stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from string import Template
from typing import NamedTuple
from urllib.parse import quote

from rlox_opt.views.site.model import Commit, Recording, slug

PAGES = {
    "index.html": "Overview",
    "commits.html": "Commits",
    "profiles.html": "Profiles",
    "optimisations.html": "Optimisations",
    "trust.html": "Trust",
}
_TEMPLATE = Template(files("rlox_opt.views.site").joinpath("page.html").read_text(encoding="utf-8"))


class Html(str):
    """Text that is HTML."""

    __slots__ = ()


def html(text: object) -> Html:
    """Text as HTML, escaped unless it is that already."""
    return text if isinstance(text, Html) else Html(escape(str(text)))


def colour(layer: str) -> Html:
    """The style that gives an element the colour of a layer."""
    return Html(f"--c:var(--{html(layer)})")


def join(parts: Iterable[object], between: str = "") -> Html:
    """Parts one after the other."""
    return Html(between.join(html(part) for part in parts))


def tag(name: str, inner: object = "", **attributes: object) -> Html:
    """An element. Attributes of None or False are left out, of True have no value; `class_` is
    `class`, and `_` stands for `-`."""
    told = "".join(
        f" {key.strip('_').replace('_', '-')}"
        + ("" if value is True else f'="{escape(str(value))}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    return Html(f"<{name}{told}>{html(inner)}</{name}>")


def link(path: str, inner: object, depth: int = 1, **attributes: object) -> Html:
    """A link to a page from one that lies `depth` folders deep."""
    return tag("a", inner, href="../" * depth + quote(path, safe="/#"), **attributes)


def benchmark_path(name: str) -> str:
    """The page of a benchmark."""
    return f"benchmark/{slug(name)}.html"


def commit_path(commit: str) -> str:
    """The page of a commit, by its whole hash."""
    return f"commit/{commit[:12]}.html"


def diff_path(commit: str) -> str:
    """The page of what a commit changed in the code."""
    return f"diff/{commit[:12]}.html"


def card_path(id_: str) -> str:
    """The page of an optimisation."""
    return f"optimisation/{id_.lower()}.html"


def raw_path(recording: Recording) -> str:
    """The copy of a recording's file."""
    return f"raw/{recording.entry.slug}/{recording.path.name}"


def commit_link(commit: Commit, depth: int = 1) -> Html:
    """A commit's hash and subject, the first a link to its page."""
    return Html(
        f"{link(commit_path(commit.hash), tag('code', commit.short), depth)} {html(commit.subject)}"
    )


class Page(NamedTuple):
    """A page of the site; `path` says where it lies, `scripts` run in order after it was read."""

    path: str
    title: str
    body: object
    over: object = None
    heading: object = None
    styles: Sequence[str] = ()
    scripts: Sequence[str] = ()

    def of(self, package: str) -> str:
        """The whole page; its titles say whose performance it is about."""
        depth = self.path.count("/")
        root = "../" * depth
        site = f"{package} performance history"
        sheets = (f'<link rel="stylesheet" href="{root}static/{name}">' for name in self.styles)
        return _TEMPLATE.substitute(
            title=escape(f"{self.title}: {site}"),
            root=root,
            head="\n".join(sheets),
            nav="\n".join(
                link(to, name, depth, aria_current="page" if to == self.path else None)
                for to, name in PAGES.items()
            ),
            over=html(site if self.over is None else self.over),
            heading=html(self.title if self.heading is None else self.heading),
            body=html(self.body),
            foot="\n".join(f'<script defer src="{root}{name}"></script>' for name in self.scripts),
        )


def breakable(name: str) -> Html:
    """A benchmark's name, which may go on in the next line where its parts meet."""
    return Html(re.sub(r"([.,(_])(?=.)", r"\1<wbr>", html(name)))


def benchmark_link(name: str, depth: int = 1) -> Html:
    """A benchmark's name, a link to its page."""
    return link(benchmark_path(name), breakable(name), depth)


class Column(NamedTuple):
    """A table's column; words stand left, figures right."""

    title: str
    word: bool = False


def table(
    columns: Sequence[Column],
    rows: Iterable[Sequence[object]],
    caption: str,
    attributes: Sequence[Mapping[str, object]] = (),
    id_: str | None = None,
    shown: bool = True,
) -> Html:
    """A table, whose rows become blocks on a phone, where a cell is one element beside its column's
    title. Its caption is `shown`, or only read aloud."""
    head = join(
        tag("th", column.title, scope="col", class_="word" if column.word else None)
        for column in columns
    )
    body = []
    for number, row in enumerate(rows):
        cells = join(
            tag(
                "td" if index else "th",
                tag("span", cell) if isinstance(cell, Html) else cell,
                class_="word" if column.word else None,
                scope=None if index else "row",
                data_label=column.title,
            )
            for index, (column, cell) in enumerate(zip(columns, row, strict=True))
        )
        body.append(tag("tr", cells, **(attributes[number] if attributes else {})))
    told = tag("caption", caption, class_=None if shown else "aloud")
    inner = Html(f"{told}<thead><tr>{head}</tr></thead>\n<tbody>{join(body, chr(10))}</tbody>")
    kind = "narrow" if len(columns) <= 3 else "wide"
    return tag(
        "div",
        tag("table", inner, id=id_),
        class_=f"scroll {kind}",
        tabindex="0",
        role="region",
        aria_label=caption,
    )


def section(id_: str, title: str, *parts: object) -> Html:
    """A part of a page with its heading."""
    return tag("section", join([tag("h2", title), *parts], "\n"), id=id_)


def paragraph(text: object, class_: str | None = None) -> Html:
    """A paragraph."""
    return tag("p", text, class_=class_)


def plot(number: int, title: str, told: str, legend: Iterable[object]) -> Html:
    """The place of a chart, which a script draws from the data's `number`-th part: its lines, a
    slider along its commits, and the values as a table. `told` is the chart in words."""
    label = html(title)
    return join(
        [
            paragraph(told),
            tag("ul", join(legend), class_="legend", aria_label=f"Lines, {title}"),
            tag("div", "", class_="plot", data_chart=number, role="img", aria_label=told),
            Html(
                f'<div class="walk" hidden><input type="range" aria-label="Commit, {label}">'
                "<output></output></div>"
            ),
            Html("<noscript><p>The chart needs JavaScript.</p></noscript>"),
        ],
        "\n",
    )


def values(number: int, title: str) -> Html:
    """The values of a chart as a table, which a script makes when it is opened."""
    told = tag("summary", f"{title}: the values as a table")
    return tag("details", told, class_="values", data_chart=number)


def tools(parts: Iterable[object]) -> Html:
    """Controls in a row, hidden until a script shows them."""
    return tag("div", join(parts, "\n"), class_="tools-bar", id="controls", hidden=True)


def radios(name: str, title: str, options: Mapping[str, str]) -> Html:
    """A choice of one, the first at the start."""
    inner = [
        tag(
            "label",
            Html(
                f'<input type="radio" name="{name}" value="{value}"'
                f"{'' if number else ' checked'}> {html(text)}"
            ),
        )
        for number, (value, text) in enumerate(options.items())
    ]
    return tag("fieldset", join([tag("legend", title), *inner]))


def select(title: str, options: Mapping[str, str], chosen: str = "", **attributes: object) -> Html:
    """A choice from a list; none where there is nothing to choose."""
    if len(options) < 2:
        return Html("")
    inner = join(
        tag("option", text, value=value, selected=value == chosen)
        for value, text in options.items()
    )
    return tag("label", Html(f"{html(title)} {tag('select', inner, **attributes)}"))


def pairs(of: Iterable[tuple[object, object]], class_: str = "facts") -> Html:
    """Names and what they stand for; of class "figures" as large figures."""
    inner = [Html(f"{tag('dt', what)}{tag('dd', value)}") for what, value in of]
    if class_ == "figures":
        inner = [tag("div", pair) for pair in inner]
    return tag("dl", join(inner, "\n"), class_=class_)
