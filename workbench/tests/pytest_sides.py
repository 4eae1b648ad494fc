"""A side of a suite of pytest, which answers commands in a process of its own."""

import contextlib
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from rlox_opt.harness.restarts import Worker
from rlox_opt.harness.side_processes import Side, started
from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.kinds.pytest_benchmarks import Pytest

FILES: Mapping[str, str] = {
    "thing.py": "def work(data):\n    return sum(data)\n",
    "thing_of_the_source.txt": "",
    "pyproject.toml": "[project]\nname = 'thing'\n",
    "tests/__init__.py": "",
}


@contextlib.contextmanager
def asked(
    tmp_path: Path, suite: str, python: str = sys.executable, more: Mapping[str, str] = FILES
) -> Iterator[Worker]:
    """A process with a side that is built, whose own `work` returns -1, and this suite."""
    root, folder, side = tmp_path / "user", tmp_path / "scratch", tmp_path / "side"
    for name, text in {**FILES, **more, "tests/test_it.py": suite}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    side.mkdir()
    folder.mkdir()
    (side / "thing.py").write_text("def work(data):\n    return -1\n")
    path = PurePosixPath("tests/test_it.py")
    laid = Pytest().laid_out(root / path, Configuration(path, path, PurePosixPath()), (), folder)
    sides = {"base": Side(side, ("thing",), python)}
    with started(sides, laid, random.Random(1), 20.0) as ask:
        yield ask


def names(ask: Worker) -> dict[str, Any]:
    """What there is, without the file."""
    ((listed),) = ask("all", "")
    return {name.partition("::")[2]: of for name, of in listed["benchmarks"].items()}


def prepared(ask: Worker, name: str) -> int:
    """How many calls may follow one run of the test, which waits at its call."""
    calls: int = ask("prepare", 0, f"tests/test_it.py::{name}", 7, None, None)
    return calls
