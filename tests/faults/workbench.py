"""A user's repository in which every verb of rlox-opt runs in seconds. Its commits are toys, and
cargo is a script that copies a file, so that the tool's own checkouts and builds are real.

As a program, `python workbench.py REPOSITORY ARGUMENT…` is `rlox-opt ARGUMENT…` in that repository.
`RLOX_FAULTS_KILL_AT=N,MICROSECONDS,GROUP` kills it, or its whole group, that time after it begins
its Nth write.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import itertools
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT / "workbench" / "tests")]  # as pytest has it

import users_repository  # noqa: E402

KILL_AT = "RLOX_FAULTS_KILL_AT"
SLOW = "RLOX_FAULTS_SLOW"  # seconds that programs of others take, to be caught at it
PASSES = (10, 10, 10, 60)  # of the commits' work: the last is slower, beyond doubt
IGNORED = "/target/\n__pycache__/\n/asv_bench/pages/\n*.ignored\n"
# What `rlox-opt new` puts lines into.
_EDITED_BY_NEW = (
    "crates/rlox-core/Cargo.toml", "crates/rlox-bench/Cargo.toml", "crates/rlox-python/Cargo.toml",
    "crates/rlox-laboratory/Cargo.toml",
    "crates/rlox-core/src/switchboard.rs", "crates/rlox-core/src/training/mod.rs",
    "crates/rlox-core/src/wiring.rs",
    "crates/rlox-bench/src/pairs/mod.rs", "crates/rlox-bench/src/pairs/tests.rs",
)  # fmt: skip
# Profiles, which no toy writes so quickly.
_RECORDED = (
    ("profiles/2026-11-22_amd-epyc-2c_ppo/report.json", "profiles/a/report.json"),
    ("profiles/2026-11-23_amd-epyc-2c_ppo/report.json", "profiles/b/report.json"),
    ("profiles/2026-11-23_amd-epyc-2c_ppo-two-ranks/report.json", "profiles/c/report.json"),
)
PACKAGE = """
NAME, SIZE = "toy", 1

def build_info():
    return {{"commit": "HEAD", "features": [], "profile": "release", "rustc": "rustc 1.90.0"}}

def work(numbers):
    for _ in range({passes}):
        sum(numbers)
"""
_WRITES = ("os.rename", "os.mkdir", "os.remove", "os.link", "os.rmdir", "os.truncate", "os.utime",
           "subprocess.Popen", "shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp")  # fmt: skip


@functools.cache
def _template() -> Path:
    """Made once in a process, and copied afterwards."""
    import toy_entries
    import toy_packages

    folder = Path(tempfile.mkdtemp(prefix="rlox-faults-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = folder / "made"
    source = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "toy_repository", made, ignore=source)
    shutil.copytree(ROOT / "optimizations", made / "optimizations", ignore=source)
    toy_packages.benchmarks(made / "asv_bench", "rlox")
    toy_entries.written(toy_entries.history({0: 1.0, 20: 1.2}), made / "asv_bench" / "history")
    meant = f'[[acknowledged]]\nbenchmark = "*"\ncommit = "{toy_entries.commit(20)}"\n'
    meant += 'kind = "time"\nratio = 1.3\n'
    for path, name in _RECORDED:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, made / name)
    primitives = Path("peers") / "primitives"
    shutil.copytree(ROOT / primitives, made / primitives, ignore=source)
    for pattern in ("kinds.py", "sharing*.py", "limits*.py"):
        for path in (ROOT / "peers").glob(pattern):
            shutil.copy(path, made / "peers")
    tree = {str(p.relative_to(made)): p.read_text() for p in made.rglob("*") if p.is_file()}
    tree |= {path: (ROOT / path).read_text() for path in _EDITED_BY_NEW}
    tree |= {"pyproject.toml": _settings()}
    tree |= {".gitignore": IGNORED, "asv_bench/acknowledged.toml": f'{meant}reason = "meant"\n'}
    packages = [{"rlox/__init__.py": PACKAGE.format(passes=passes)} for passes in PASSES]
    history = [{**of, "number": str(number)} for number, of in enumerate(packages)]
    repository = users_repository.make(
        folder / "repository", [{**tree, **history[0]}, *history[1:]]
    )
    # As git does it by itself now and then: one file in place of hundreds, for all that copy and
    # read the repository.
    users_repository.git(repository, "repack", "-a", "-d", "--quiet")
    return repository


def _settings() -> str:
    """The project's settings, for a copy that trains with this repository's programs."""
    ours = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    table = ours[ours.index("[tool.rlox-opt]") : ours.index("[tool.maturin]")]
    workloads = f'[tool.rlox-opt]\nworkloads = "{ROOT / "workloads"}"'
    return table.replace("[tool.rlox-opt]", workloads, 1) + "[tool.maturin]\nfeatures = []\n"


def make(folder: Path) -> Path:
    """A new user's repository in `folder`, which is made; returns the repository. Beside it lies
    `project`, of the same user."""
    source = shutil.ignore_patterns("__pycache__")
    shutil.copytree(HERE / "toy_project", folder / "project", ignore=source)
    for name in ("tmp", "cache"):
        (folder / "home" / name).mkdir(parents=True)
    return shutil.copytree(_template(), folder / "repository", symlinks=True)


def environment(repository: Path, **more: str) -> dict[str, str]:
    """The variables for `rlox-opt` there: folders of its own for all that it may write."""
    home = repository.parent / "home"
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "RLOX_"))}
    path = (HERE / "tools", Path(sys.executable).parent, kept["PATH"])
    return {
        **kept,
        "PATH": os.pathsep.join(map(str, path)),
        "PYTHONPATH": str(ROOT),
        "PYTHONDONTWRITEBYTECODE": "1",
        "HOME": str(home),
        "TMPDIR": str(home / "tmp"),
        "XDG_CACHE_HOME": str(home / "cache"),
        **more,
    }


def command(repository: Path, words: list[str]) -> list[str]:
    """The command that runs `rlox-opt WORDS` there."""
    return [sys.executable, str(HERE / "workbench.py"), str(repository), *words]


def relocate(repository: Path) -> None:
    """Make this process's rlox-opt work in `repository`, wherever it is started, and quickly."""
    from rlox_opt.harness import packages
    from rlox_opt.history import recording
    from rlox_opt.plan import end_to_end
    from rlox_opt.plan.extensions import Extension
    from rlox_opt.project.installed import Installed
    from rlox_opt.project.project import Project

    Project.here = classmethod(lambda cls: cls.find(repository))  # type: ignore[assignment]
    packages._CONTEST_S, packages._CONTESTS = 0.01, 1
    recording.STAGES, recording.MORE = ("time", "memory"), 0
    # A ladder's builds and trainings take an hour: here every build is the one that is installed.
    toy = Extension(Installed("rlox", "_core", ()).extension(), 0.0, 1, {})
    end_to_end.build_all = lambda project, variants, _: dict.fromkeys(
        (variant.name for variant in variants), toy
    )
    end_to_end.train = lambda *_: (1.0, "0")


def _kill_at(number: int, microseconds: int, group: int) -> None:
    """Be killed, alone or with the whole group, this time after the `number`th write begins: a file
    may then be open and empty, or git halfway through."""
    count = itertools.count(1)
    writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT

    def kill() -> None:
        time.sleep(microseconds / 1e6)
        (os.killpg if group else os.kill)(os.getpid(), signal.SIGKILL)

    def hear(event: str, arguments: tuple[Any, ...]) -> None:
        opens = event == "open" and isinstance(arguments[2], int) and arguments[2] & writing
        if (opens or event in _WRITES) and next(count) == number:
            if microseconds:
                threading.Thread(target=kill, daemon=True).start()
            else:
                kill()

    sys.addaudithook(hear)


def rlox_opt() -> Callable[[], int]:
    """The function that the command `rlox-opt` calls, from its pyproject.toml."""
    text = (ROOT / "workbench" / "pyproject.toml").read_text(encoding="utf-8")
    scripts = tomllib.loads(text)["project"]
    module, _, function = scripts["scripts"]["rlox-opt"].partition(":")
    found: Callable[[], int] = getattr(importlib.import_module(module), function)
    return found


def main(repository: Path, words: list[str]) -> int:
    """`rlox-opt WORDS` in a repository."""
    sys.argv = ["rlox-opt", *words]
    relocate(repository)
    run = rlox_opt()
    if at := os.environ.pop(KILL_AT, ""):
        _kill_at(*map(int, at.split(",")))
    return run()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
