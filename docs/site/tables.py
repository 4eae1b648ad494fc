"""Tables of the generated pages, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def lines(heads: Sequence[str], rows: Sequence[Sequence[str]], optional: int) -> Iterator[str]:
    """A table without its column number `optional` where that is empty in all rows. A bar in a
    cell must be escaped already, unless it is in code."""
    kept = [n for n in range(len(heads)) if n != optional or any(row[n] for row in rows)]
    for cells in (heads, ["---"] * len(heads), *rows):
        yield f"| {' | '.join(cells[n] for n in kept)} |"
