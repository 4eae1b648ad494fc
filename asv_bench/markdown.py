"""Tables in Markdown, of whoever prints or writes what was scored."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence


def table(head: Collection[str], body: Iterable[Sequence[str]]) -> Iterator[str]:
    """The lines of a table."""
    yield f"| {' | '.join(head)} |"
    yield f"|{'---|' * len(head)}"
    for row in body:
        yield f"| {' | '.join(row)} |"
