"""`python tests/documentation/from_readme.py`: does what README.md tells a newcomer to do with a
project of his own, on public projects, and writes down the results.

Each project gets a new folder, an empty home and an empty Python environment. There the lines of
the README's section "Your own project" are run one after the other, unchanged except for the name
and the address of the project and what a newcomer must choose: commits and benchmarks. The
transcript goes to tests/documentation/record/MACHINE/, without this machine's paths. Where --clones
has a clone of that name, git takes it for the project's address.

Exit codes: 0 a verdict on every project within ten minutes each, 1 otherwise, 2 a wrong argument.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from rlox_opt.system.machine import commit, machine, slug

ROOT = Path(__file__).resolve().parents[2]
RECORDS = Path(__file__).with_name("record")
SECTION = "Your own project"
LIMIT_S = 600.0
NEW_ENVIRONMENT = (sys.executable, "-m", "venv")
_WIDTH = 100
_VERDICTS = re.compile(r"^(?:\d+ [a-z]+, )+in \d+ s\.$", re.M)
_DECIDED = re.compile(r"slower|faster|same")
_REMARK = re.compile(r"\s{3,}#.*$")
_LONGEST = 60  # lines of one command's output that the transcript has
_PASSING = re.compile(r"Looking in |Stored in directory|Created wheel|━")  # of pip: of this hour
# Where programs of a home look for the rest of themselves.
_PROGRAMS = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup", "PYENV_ROOT": ".pyenv"}


@dataclass(frozen=True)
class Stranger:
    """A project that is not ours. `at` is the commit that is checked out, "" for the newest.
    `instead` maps words of the README to their replacements. `found` is the verdict that is known
    of its commits, and `known` its source; "" if nothing is known. `files` are what the newcomer
    has written: script.py, which the README profiles. Without it, that line is left out."""

    name: str
    url: str
    at: str = ""
    instead: Mapping[str, str] = field(default_factory=dict)
    found: str = ""
    known: str = ""
    files: Mapping[str, str] = field(default_factory=dict)


DIFF = "f50fc70b8c~1 f50fc70b8c --suite HEAD --bench time_graph_create"
STRANGERS = {
    "networkx": Stranger(
        "networkx",
        "https://github.com/networkx/networkx.git",
        found="slower",
        known="networkx#5796: slower copies and making of a DiGraph",
        files={
            "script.py": "import networkx\n\ngraph = networkx.path_graph(400)\n"
            "for _ in range(20):\n    networkx.diameter(graph)\n"
        },
    ),
    "multidict": Stranger(
        "multidict",
        "https://github.com/aio-libs/multidict.git",
        at="9d3c53f28c",
        instead={DIFF: "HEAD~1 HEAD --bench test_multidict_add"},
        found="slower",
        known="multidict#1128: its changelog accepts that `add` takes 25 to 50 % longer",
    ),
    "chrono": Stranger(
        "chrono",
        "https://github.com/chronotope/chrono.git",
        at="2703ca2d20",
        instead={DIFF: "HEAD HEAD~4 --bench bench_date_from_ymd"},
        found="slower",
        known="chrono#1438: four commits made it faster, so that their undoing is slower",
    ),
}


@dataclass(frozen=True)
class Line:
    """A command that was run: its folder, its output, its status, and its seconds."""

    command: str
    folder: str
    printed: str
    status: int
    seconds: float


@dataclass(frozen=True)
class Visit:
    """The result for a project: the lines that were run, and the folders' names."""

    name: str
    stranger: Stranger
    lines: tuple[Line, ...]

    @property
    def seconds(self) -> float:
        """The seconds of all lines, with installing and building."""
        return sum(line.seconds for line in self.lines)

    @property
    def verdicts(self) -> str:
        """The last line that counts verdicts; "" if there is none."""
        told = [of for line in self.lines for of in _VERDICTS.findall(line.printed)]
        return told[-1] if told else ""

    @property
    def lacks(self) -> str:
        """What falls short of the README's promise; "" if nothing does."""
        failed = [line for line in self.lines if line.status]
        if failed:
            return f"`{failed[0].command}` ended with {failed[0].status}"
        if not self.verdicts:
            return "no verdict was reached"
        if not _DECIDED.search(self.verdicts):
            return "nothing was decided"
        if self.seconds > LIMIT_S:
            return f"it took {self.seconds:.0f} s, not {LIMIT_S:.0f}"
        if self.stranger.found not in self.verdicts:
            return f"nothing was found {self.stranger.found}, which is known to be"
        return ""


def told(readme: str) -> list[str]:
    """The commands of the README's section, without their comments. Raises ValueError if there are
    none."""
    _, found, rest = readme.partition(f"\n## {SECTION}\n")
    section = rest.partition("\n## ")[0]
    lines = [line.strip() for line in section.splitlines() if line.startswith("    ")]
    if not found or not lines:
        raise ValueError(f"README.md: has no commands under {SECTION!r}")
    return [_REMARK.sub("", line) for line in lines]


def fitted(lines: Sequence[str], stranger: Stranger) -> Iterator[str]:
    """The lines, adapted to another project than the README's. Raises ValueError if a word to be
    replaced is not in them."""
    for words in stranger.instead:
        if not any(words in line for line in lines):
            raise ValueError(f"README.md: no longer has {words!r} under {SECTION!r}")
    own = {STRANGERS["networkx"].url: stranger.url, "../networkx": f"../{stranger.name}"}
    for line in lines:
        if "script.py" in line and "script.py" not in stranger.files:
            continue
        for words, others in {**own, **stranger.instead}.items():
            line = line.replace(words, others)
        yield line


def environment(folder: Path) -> dict[str, str]:
    """The variables for the newcomer: an empty home and his new environment; from this machine the
    package indexes and the programs: Pythons, git, Rust's toolchain."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("PIP_", "UV_", *_PROGRAMS, "SSL_")) or name.endswith("_proxy")
    }
    programs = {name: str(Path.home() / path) for name, path in _PROGRAMS.items()}
    own = Path(sys.executable).parent
    there = [of for of in os.environ["PATH"].split(os.pathsep) if Path(of) != own]
    return programs | kept | {
        "HOME": str(folder / "home"), "UV_CACHE_DIR": str(folder / "home" / "uv"),
        "PATH": os.pathsep.join([str(folder / "environment" / "bin"), *there]),
        "LANG": "C.UTF-8", "COLUMNS": str(_WIDTH),
    }  # fmt: skip


def visit(name: str, source: str, folder: Path, readme: str) -> Visit:
    """Follow the README on a project, in a new folder, where git fetches from `source` what has the
    project's address. The visit ends with the first command that fails."""
    stranger, lines = STRANGERS[name], []
    (folder / "home").mkdir(parents=True)
    _git("clone", "--quiet", str(ROOT), str(folder / "rlox"))
    _git("config", "--file", str(folder / "home" / ".gitconfig"), f"url.{source}.insteadOf",
         stranger.url)  # fmt: skip
    subprocess.run([*NEW_ENVIRONMENT, folder / "environment"], check=True)
    here = folder / "rlox"
    for command in fitted(told(readme), stranger):
        if command.startswith("cd "):
            here = (here / command.removeprefix("cd ")).resolve(strict=True)
            continue
        lines.append(run(command, here, folder))
        if lines[-1].status:
            break
        if command.startswith("git clone "):
            _prepare(stranger, folder / stranger.name)
    return Visit(name, stranger, tuple(lines))


def _prepare(stranger: Stranger, clone: Path) -> None:
    """Check out the stranger's commit, and write his files."""
    if stranger.at:
        _git("-C", str(clone), "checkout", "--quiet", "--detach", stranger.at)
    for path, text in stranger.files.items():
        (clone / path).write_text(text, encoding="utf-8")


def run(command: str, here: Path, folder: Path) -> Line:
    """Run a shell line. It is ended after twice the time that all lines together may take."""
    start = time.monotonic()
    try:
        done = subprocess.run(
            ["bash", "-c", command], cwd=here, env=environment(folder), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=2 * LIMIT_S,
        )  # fmt: skip
        status, printed = done.returncode, done.stdout
    except subprocess.TimeoutExpired as stopped:
        status, printed = 124, stopped.stdout or b""
    seconds = round(time.monotonic() - start, 1)
    return Line(command, here.name, nameless(printed.decode(), folder), status, seconds)


def nameless(printed: str, folder: Path) -> str:
    """The text without this machine's folders and package indexes."""
    printed = printed.replace(str(folder), "/home/you").replace(str(Path.home()), "/home/you")
    return re.sub(r"\bhttps?://(?!github\.com)[^/\s]+", "https://the-index", printed)


def transcript(visits: Sequence[Visit], when: str) -> str:
    """The whole transcript, in Markdown."""
    head, dirty = commit(ROOT)
    here = machine()
    parts = [
        "# From the README to a verdict",
        f"{when}, commit {(head or 'unknown')[:10]}{' and changes' if dirty else ''}, "
        f"{here['cpu']}, {here['cores']} cores. `python tests/documentation/from_readme.py` ran "
        f"the lines of README.md's {SECTION!r}, each project in an empty environment, with nothing "
        "fetched before.",
        "| project | seconds | verdicts | known | lacks |\n|---|---|---|---|---|\n"
        + "\n".join(
            f"| {of.name} | {of.seconds:.0f} | {of.verdicts or 'none'} | {of.stranger.known} "
            f"| {of.lacks or 'nothing'} |"
            for of in visits
        ),
    ]
    for of in visits:
        at = of.stranger.at or "its newest commit"
        parts.append(f"## {of.name}\n{of.stranger.url}, at {at}.")
        parts += [f"`{path}`:\n\n```python\n{text}```" for path, text in of.stranger.files.items()]
        parts += [
            f"```console\n{line.folder}$ {line.command}\n{_shortened(line.printed)}\n```\n"
            f"Status {line.status}, {line.seconds:.0f} s."
            for line in of.lines
        ]
    return "\n\n".join(parts) + "\n"


def _shortened(printed: str) -> str:
    lines = [of.rstrip() for of in printed.strip().splitlines() if not _PASSING.search(of)]
    if len(lines) > _LONGEST:
        lines[_LONGEST // 2 : -_LONGEST // 2] = ["…"]
    return "\n".join(lines)


def _git(*words: str) -> None:
    subprocess.run(["git", "-c", "advice.detachedHead=false", *words], check=True)


def source(name: str, clones: Path | None) -> str:
    """Where the project is cloned from."""
    there = clones / STRANGERS[name].name if clones else None
    return str(there.resolve()) if there and there.is_dir() else STRANGERS[name].url


def main(argv: Sequence[str] | None = None) -> int:
    """Visit the projects and keep the transcript; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=STRANGERS, default=[*STRANGERS])
    parser.add_argument("--clones", type=Path, metavar="FOLDER", help="clones, by project")
    asked = parser.parse_args(argv)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    visits = []
    for name in asked.only:
        with tempfile.TemporaryDirectory() as folder:
            of = visit(name, source(name, asked.clones), Path(folder) / "you", readme)
        visits.append(of)
        lacks = f"; lacks: {of.lacks}" if of.lacks else ""
        print(f"{name}: {of.verdicts or 'no verdict'} After {of.seconds:.0f} s{lacks}", flush=True)
    when = datetime.now(UTC)
    text = transcript(visits, f"{when:%Y-%m-%d %H:%M} UTC")
    path = RECORDS / slug(machine()) / f"{when:%Y-%m-%dT%H%M%SZ}_from-readme.md"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"written: {path.relative_to(ROOT)}")
    return int(any(of.lacks for of in visits))


if __name__ == "__main__":
    sys.exit(main())
