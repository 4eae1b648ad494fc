"""What the extension that ships is made of."""

from pathlib import Path

import rlox._laboratory

import rlox._core


def test_neither_the_pairs_nor_a_refused_twin_are_in_the_extension_that_ships() -> None:
    """Extensions keep their symbols, for profilers: P8's refused twin is the type `ByElements`."""
    ships, laboratory = (
        Path(of.__file__ or "").read_bytes() for of in (rlox._core, rlox._laboratory)
    )
    for name in (b"rlox_bench", b"ByElements"):
        assert name in laboratory
        assert name not in ships
