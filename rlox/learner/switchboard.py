"""Which planned optimisations of the training loop a trainer runs with.

An id names a card of `optimizations/`. What is not chosen runs as it did before.
"""

from collections.abc import Collection

OPTIMIZATIONS = tuple(f"R{n}" for n in range(1, 12))
ACCEPTED: frozenset[str] = frozenset()  # those whose numbers are in


def choose(optimizations: Collection[str] | None) -> frozenset[str]:
    """The ids in `optimizations`, in any case; None stands for `ACCEPTED`.

    Raises ValueError for an id that is none.
    """
    if optimizations is None:
        return ACCEPTED
    chosen = frozenset(name.upper() for name in optimizations)
    if unknown := sorted(chosen.difference(OPTIMIZATIONS)):
        raise ValueError(
            f"optimizations holds {', '.join(unknown)}; there are {', '.join(OPTIMIZATIONS)}"
        )
    return chosen
