"""`python docs/site/tutorial.py`: does what docs/tutorial.md tells its reader, and holds the
outputs that the page shows to the present ones; with --write it puts the present figures into the
page.

A block of code with a `title` is a file, which is written into the folder; one that is called
"more of FILE" is put at that file's end. In a block `console` a line that begins with `$` is a
command, and the lines below it are of its output, in their order;
`…` stands for lines that the page leaves out. Figures, times and the machine's name may differ,
words may not.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "tutorial.md"
LEFT_OUT = "…"
WHERE = "/home/you"  # what the page calls the folder that the project's folder is in
_COLUMNS = 84  # of the output: as wide as the pages
_LIMIT_S = 600
_MORE = "more of "
_FENCE = re.compile(
    r"^```(?P<kind>\w+)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<body>.*?)^```$", re.M | re.S
)
_VARIES = (
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{10}\b"), "#"),  # a commit
    (re.compile(r"profiles/\d{4}-\d\d-\d\d_[\w.-]+?_(?=[a-z]+/)"), "profiles/#_"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "#"),
    (re.compile(r"\b(?:ms|µs|ns|s)\b"), "s"),
    (re.compile(r"[▏▎▍▌▋▊▉█]+"), "▏"),
    (re.compile(r"\s+"), " "),
)


class DiffersError(Exception):
    """The page shows what a command no longer prints; the message says what."""


@dataclass(frozen=True)
class File:
    """A file that the reader writes, or what is put at the end of one."""

    name: str
    text: str
    more: bool = False

    def write(self, folder: Path) -> None:
        """As the reader does."""
        path = folder / self.name
        path.parent.mkdir(parents=True, exist_ok=True)
        before = path.read_text(encoding="utf-8") if self.more else ""
        path.write_text(before + self.text, encoding="utf-8")


@dataclass(frozen=True)
class Command:
    """A command, the lines of its output that are shown, and where these stand in the page."""

    line: str
    shown: tuple[str, ...]
    at: int


def steps(page: str) -> list[File | Command]:
    """What the page has its reader do, first to last."""
    found: list[File | Command] = []
    for block in _FENCE.finditer(page):
        if block["title"] and not block["title"].startswith("."):
            name = block["title"].removeprefix(_MORE)
            found.append(File(name, block["body"], more=name != block["title"]))
        elif block["kind"] == "console":
            at = page[: block.start("body")].count("\n")
            lines = block["body"].splitlines()
            starts = [n for n, line in enumerate(lines) if line.startswith("$ ")]
            for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
                shown = tuple(lines[start + 1 : end])
                found.append(Command(lines[start][2:], shown, at + start + 1))
    return found


def plain(line: str) -> str:
    """A line without what may differ from run to run."""
    for pattern, instead in _VARIES:
        line = pattern.sub(instead, line)
    return line.strip()


def same(line: str, shown: str) -> bool:
    """Whether two plain lines are one: where a line is cut, what there is of it."""
    cut, other = sorted((line, shown), key=lambda one: not one.endswith(LEFT_OUT))
    if cut.endswith(LEFT_OUT):
        length = min(len(one.rstrip(LEFT_OUT)) for one in (cut, other))
        return line[:length] == shown[:length]
    return line == shown


def present(command: Command, output: str) -> list[str]:
    """The lines that are shown, as they are now.

    Raises:
        DiffersError: one is not in the output, or not in this order.
    """
    rest = iter(output.splitlines())
    now: list[str] = []
    for shown in command.shown:
        if shown == LEFT_OUT or not shown:
            now.append(shown)
            continue
        for line in rest:
            if same(plain(line), plain(shown)):
                cut = shown.endswith(LEFT_OUT)
                now.append(f"{line.rstrip(LEFT_OUT + ' ')}{LEFT_OUT}" if cut else line.rstrip())
                break
        else:
            raise DiffersError(f"$ {command.line}\nno longer prints\n{shown}\nbut\n{output}")
    return now


def run(page: str, folder: Path, environment: Mapping[str, str]) -> str:
    """The page with the present outputs, all of it done in a folder. Raises DiffersError."""
    lines = page.splitlines()
    code = 0
    for step in steps(page):
        if isinstance(step, File):
            step.write(folder)
            continue
        done = subprocess.run(
            ["bash", "-c", f"(exit {code}); {step.line}"], cwd=folder, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=_LIMIT_S,
        )  # fmt: skip
        code = done.returncode
        now = present(step, done.stdout.replace(str(folder.parent), WHERE))
        lines[step.at : step.at + len(now)] = now
    return "\n".join(lines) + "\n"


def environment() -> dict[str, str]:
    """What the commands run with: the workbench of this environment, output of a fixed width, and
    commits that are the same in each run."""
    who = {f"GIT_{of}_{what}": value for of in ("AUTHOR", "COMMITTER") for what, value in {
        "NAME": "you", "EMAIL": "you@example.org", "DATE": "2026-01-01T12:00:00Z",
    }.items()}  # fmt: skip
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    return {**own, **who, "PATH": path, "COLUMNS": str(_COLUMNS), "PYTHONUNBUFFERED": "1"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the page; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tutorial.py", description=__doc__)
    parser.add_argument(
        "--write", action="store_true", help="put the present outputs into the page"
    )
    write = parser.parse_args(argv).write
    page = PAGE.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        try:
            now = run(page, Path(folder) / "words", environment())
        except DiffersError as error:
            print(f"tutorial: {error}", file=sys.stderr)
            return 1
    if write:
        PAGE.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
