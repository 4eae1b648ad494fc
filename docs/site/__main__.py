"""`python docs/site`: makes the documentation's pages in site/."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from assemble import NotBuiltError, build
from pages import ROOT

_GOOD, _FAILED = 0, 1


def main(argv: Sequence[str] | None = None) -> int:
    """Build; returns the exit code."""
    parser = argparse.ArgumentParser(prog="docs/site", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "site", help="the folder of the pages")
    out = parser.parse_args(argv).out
    try:
        build(out)
    except NotBuiltError as error:
        print(f"docs: {error}", file=sys.stderr)
        return _FAILED
    print(f"{sum(1 for _ in out.rglob('*.html'))} pages; open {out / 'index.html'}")
    return _GOOD


if __name__ == "__main__":
    sys.exit(main())
