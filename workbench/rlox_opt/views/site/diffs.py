"""Pages of what commits changed in the code: the text of `git show`, cut to a limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rlox_opt.system import git
from rlox_opt.views.site.layout import Page, diff_path
from rlox_opt.views.site.model import Commit

LINES = 1500  # of a commit that are shown
_CHARACTERS = 400  # of a line
_MARK = "\x01commit "
_KINDS = {"+": "added", "-": "removed", "@": "hunk"}


def known(hashes: Sequence[str], root: Path) -> list[str]:
    """The commits that the repository at `root` has; none without a repository."""
    asked = "".join(f"{name}^{{commit}}\n" for name in hashes)
    try:
        found = git.of(root).run("cat-file", "--batch-check", stdin=asked)
    except git.GitError:
        return []
    there = {line.split()[0] for line in found.splitlines() if line.split()[1:2] == ["commit"]}
    return [name for name in hashes if name in there]


def texts(hashes: Sequence[str], root: Path) -> Iterator[tuple[str, list[str]]]:
    """Each commit's message, statistics and patch against its first parent, as lines: at most
    `LINES`, and one more that says so. One call of git gives all, and is read as a stream."""
    if not hashes:
        return
    told = git.of(root).stream(
        *("log", "--no-walk=unsorted", "--stdin", "--no-color", "--stat=100", "--patch"),
        *("--no-textconv", "--no-ext-diff"),  # textconv would store its results as refs
        *("--diff-merges=first-parent", f"--format={_MARK}%H%n%aI%n%n%w(0,4,4)%B"),
    )
    with told:
        assert told.stdin is not None
        assert told.stdout is not None
        told.stdin.write("".join(f"{name}\n" for name in hashes))
        told.stdin.close()
        name, lines, left = "", list[str](), 0
        for line in told.stdout:
            if line.startswith(_MARK):
                if name:
                    yield name, _ended(lines, left)
                name, lines, left = line.removeprefix(_MARK).strip(), [], 0
            elif len(lines) < LINES:
                text = line.rstrip("\n")
                lines.append(text if len(text) <= _CHARACTERS else f"{text[:_CHARACTERS]}…")
            else:
                left += 1
        if name:
            yield name, _ended(lines, left)


def _ended(lines: list[str], left: int) -> list[str]:
    return [*lines, f"… and {left:,} more lines, which `git show` has"] if left else lines


def diff_page(commit: Commit, lines: Sequence[str] | None) -> Page:
    """The page of a commit's `lines`, which are None if the repository lacks it."""
    told = None if lines is None else [(_kind(line), line) for line in lines]
    return Page(diff_path(commit.hash), "diff", {"commit": commit, "lines": told})


def _kind(line: str) -> str | None:
    if line.startswith("diff --git "):
        return "file"
    return None if line == "---" else _KINDS.get(line[:1])  # "---" separates message and statistics
