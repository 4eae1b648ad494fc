"""`python tests/supply/release.py v0.1.0`: may this commit be released as that tag?

One version holds for both distributions, since they are released together from one commit:
`Cargo.toml` has it for the extension and so for `rlox-rl`, `workbench/pyproject.toml` for
`rlox-opt`, and the first entry of CHANGELOG.md tells of it, with the day of the release. It needs
Python's own library alone, so that the workflow can ask before anything is installed.

Exit codes: 0 it may, 1 it may not, and why is printed, a reason a line.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_ENTRY = re.compile(r"^## (?P<version>\S+) \((?P<day>unreleased|\d{4}-\d\d-\d\d)\)$", re.M)


def versions(root: Path = ROOT) -> dict[str, str]:
    """By file, what it says: the version of the next release, or of the newest."""
    cargo = tomllib.loads((root / "Cargo.toml").read_text("utf-8"))
    workbench = tomllib.loads((root / "workbench/pyproject.toml").read_text("utf-8"))
    return {
        "Cargo.toml": cargo["workspace"]["package"]["version"],
        "workbench/pyproject.toml": workbench["project"]["version"],
        "CHANGELOG.md": entry(root)[0],
    }


def entry(root: Path = ROOT) -> tuple[str, str]:
    """The first of the changelog: its version and its day. Raises ValueError where it has none."""
    headings = re.findall(r"^## .*$", (root / "CHANGELOG.md").read_text("utf-8"), re.M)
    found = _ENTRY.fullmatch(headings[0]) if headings else None
    if not found:
        raise ValueError(f'CHANGELOG.md: begins with {headings[:1]}; write "## 1.2.3 (unreleased)"')
    return found["version"], found["day"]


def reasons_against(tag: str, root: Path = ROOT) -> Iterator[str]:
    """Why the commit may not be released as this tag."""
    for file, version in versions(root).items():
        if tag != f"v{version}":
            yield f"{file}: has version {version}, and the tag is {tag}; a tag is v and the version"
    if entry(root)[1] == "unreleased":
        yield "CHANGELOG.md: its first entry says (unreleased); write the day of the release"


def main(argv: Sequence[str]) -> int:
    """Print what stands against it; returns the exit code."""
    (tag,) = argv
    against = [*reasons_against(tag)]
    for reason in against:
        print(reason, file=sys.stderr)
    return int(bool(against))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
