"""A project that knows nothing of the workbench: a back-end of its own, an asv suite as one finds
them, and no [tool.rlox-opt]; and rlox-opt over it, as a process of its own or in this one."""

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import command_line
import pytest
import small_projects
import users_repository

from rlox_opt.harness import packages

# Contests so short that nobody would believe them, for tests that read something else.
QUICK = "from rlox_opt.harness import packages as p; p._CONTEST_S, p._CONTESTS = 0.01, 1"
# Beside it, where calls start programs: one round of them, and none to warm up.
ROUGH = """
from rlox_opt.harness import side_processes as o
o._LONG_S, o._LEAST_ROUNDS = 0.01, ((0.01, 5),)
"""
# One restart of one benchmark, where what is looked at does not depend on any time.
SPENT = ("--budget", "1e-09", "--no-counts")
# Short contests: what is looked at is what is said, not how close the times are.
SHORT = ("--restarts", "5", "--no-counts")
# Where a verdict is looked at, another look, should a neighbour disturb one of five.
DECIDED = ("--restarts", "10", "--no-counts")
# Where all is known to differ by much: of what is decided soon, more looks cost nothing.
SURE = ("--restarts", "40", "--no-counts")
_SOURCES = ("UV_", "PIP_")  # of variables that tell where packages come from
# What asv's own template has, without its comments.
ASV = json.dumps({
    "version": 1,
    "project": "thing",
    "project_url": "https://thing.example/",
    "repo": ".",
    "branches": ["main"],
    "environment_type": "virtualenv",
    "show_commit_url": "https://thing.example/commit/",
    "benchmark_dir": "benchmarks",
    "env_dir": ".asv/env",
    "results_dir": ".asv/results",
    "html_dir": ".asv/html",
})  # fmt: skip
SUITE = '''
"""Of all kinds."""
import thing


class Work:
    """With parameters."""

    params = [[100, 2000], ["one kind", None]]
    param_names = ["n", "kind"]

    def setup(self, n, kind):
        self.data = list(range(n))

    def time_work(self, n, kind):
        thing.work(self.data)

    def time_elsewhere(self, n, kind):
        if kind is None:
            raise NotImplementedError("not of this kind")
        thing.work(self.data)


class Cached:
    """What one call makes, others are given."""

    def setup_cache(self):
        return {"n": 1000}

    def time_cached(self, cache):
        thing.work(range(cache["n"]))

    def track_size(self, cache):
        return thing.size(cache["n"])

    track_size.unit = "bytes"


def timeraw_import():
    return "import thing"


def peakmem_list():
    return thing.work(list(range(200_000)))
'''
LATER = """
from thing import fresh  # which no commit had before


def time_fresh():
    fresh()
"""


def thing(passes: int = 1, more: str = "", size: int = 8) -> str:
    """The package's module, whose `work` passes so often over what it is given."""
    return (
        f"def work(data):\n    for _ in range({passes}):\n        total = sum(data)\n"
        f"    return total\n\ndef size(n):\n    return {size} * n\n{more}"
    )


BROKEN = "def work(data):\n    raise ValueError('not today')\n\ndef size(n):\n    return n\n"
FAILING, NOT_BUILT, SLOWER = 3, 4, 6  # which commits; the first is 0
_FRESH = "\ndef fresh():\n    return work(range(100))\n"
HISTORY: tuple[Mapping[str, str], ...] = (
    small_projects.own(thing())
    | {"asv.conf.json": ASV, "benchmarks/__init__.py": "", "benchmarks/work.py": SUITE}
    | {"README.md": "A thing.\n"},
    {"README.md": "A thing of beauty.\n"},
    {"README.md": "A thing of beauty is a joy for ever.\n"},
    {"thing.py": BROKEN},
    {"backend/inner.py": "def build_wheel(*_):\n    raise SystemExit('error: no such header')\n"},
    {"backend/inner.py": small_projects.backend(), "thing.py": thing()},
    {"thing.py": thing(passes=6)},
    {"thing.py": thing(passes=6, more=_FRESH, size=9), "benchmarks/later.py": LATER},
    {"thing.py": thing(passes=6, more=f"# Done.\n{_FRESH}", size=9)},
)


def project(folder: Path) -> list[str]:
    """The repository, with work of its user's that is in no commit; its commits, the oldest
    first."""
    users_repository.make(folder, HISTORY)
    line = users_repository.git(folder, "rev-list", "--first-parent", "--reverse", "main")
    return line.split()


def rlox_opt(
    folder: Path, *words: str, first: str = "", limit_s: float = 800.0, **env: str
) -> CompletedProcess[str]:
    """The installed command, started there as its user would."""
    return subprocess.run(
        command(*words, first=first), cwd=folder, env=environment(**env), capture_output=True,
        text=True, errors="replace", timeout=limit_s,
    )  # fmt: skip


def asked(root: Path, *words: str, code: int = 0, first: str = QUICK, **env: str) -> Any:
    """What a verb says as JSON."""
    done = rlox_opt(root, *words, "--json", first=first, **env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def here(folder: Path, *words: str, **env: str) -> CompletedProcess[str]:
    """The command in this process, which takes no second to start, where the point is what is said;
    with contests as short as `QUICK` makes them."""
    with pytest.MonkeyPatch.context() as now:
        now.chdir(folder)
        for name in [name for name in os.environ if name.startswith(_SOURCES)]:
            now.delenv(name)
        for name, value in {"UV_OFFLINE": "1", **env}.items():
            now.setenv(name, value)
        now.setattr(packages, "_CONTEST_S", 0.01)
        now.setattr(packages, "_CONTESTS", 1)
        return command_line.rlox_opt(*_unexplained(words))


def asked_here(root: Path, *words: str, code: int = 0, **env: str) -> Any:
    """What a verb says as JSON in this process."""
    done = here(root, *words, "--json", **env)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def command(*words: str, first: str = "") -> list[str]:
    """The words of that command, which runs the lines `first` before anything else."""
    program = f"{first}\nimport sys\nfrom rlox_opt import main\nsys.exit(main())"
    return [sys.executable, "-c", program, *_unexplained(words)]


def _unexplained(words: tuple[str, ...]) -> tuple[str, ...]:
    """Why what is slower is so is looked for where a test asks for it."""
    if words[:1] in (("diff",), ("gate",)) and "--why" not in words and "-h" not in words:
        return (words[0], "--no-why", *words[1:])
    return words


def environment(**more: str) -> dict[str, str]:
    """What its process has: no network."""
    own = {name: of for name, of in os.environ.items() if not name.startswith(_SOURCES)}
    return {**own, "UV_OFFLINE": "1", **more}


@contextlib.contextmanager
def untouched(folder: Path) -> Iterator[None]:
    """What the user has, and what git says of it, is afterwards as it was, but for the one folder
    that is the tool's."""
    before, said = _all_of(folder)
    yield
    after, says = _all_of(folder)
    assert after.keys() == before.keys()
    assert [name for name in after if after[name] != before[name]] == []
    assert says == said


def _all_of(folder: Path) -> tuple[dict[str, str], str]:
    status = users_repository.git(folder, "--no-optional-locks", "status", "--porcelain")
    return users_repository.fingerprint(folder, own=".rlox-opt"), status
