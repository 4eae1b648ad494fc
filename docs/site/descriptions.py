"""`python docs/site/descriptions.py ADDRESS TAG`: makes the READMEs what PyPI shows of rlox-rl and
rlox-opt, whose long descriptions they are. A relative link leads nowhere there, so each becomes one
to the file of that tag at ADDRESS, where the repository is published.

The release workflow runs it in its own checkout, before it builds. It needs Python's own library
alone. Exit codes: 0 done, 1 a link leads to no file.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

import links

ROOT = Path(__file__).resolve().parents[2]
_PROJECTS = ("pyproject.toml", "workbench/pyproject.toml")


def sources() -> list[str]:
    """The files that are long descriptions, by their paths in the repository."""
    return [
        (Path(file).parent / tomllib.loads((ROOT / file).read_text("utf-8"))["project"]["readme"])
        .as_posix()
        for file in _PROJECTS
    ]  # fmt: skip


def main(argv: Sequence[str]) -> int:
    """Write them; returns the exit code."""
    address, tag = argv
    for source in sources():
        path = ROOT / source
        try:
            text = links.absolute(path.read_text("utf-8"), source, address, tag, ROOT)
        except links.MissingError as error:
            print(f"descriptions: {error}", file=sys.stderr)
            return 1
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
