"""Packages called toy that need no compiler, and asv benchmarks for them: what a real one does, at
a price that the test chooses.

As a program, `python toy_packages.py OUT` puts the package that ./toy.json asks for into OUT.
"""

import json
import os
import sys
import textwrap
from pathlib import Path

BENCHMARKS = """
import os, time
from benchmarks.inputs import NUMBERS
import toy

if toy.NAME == "unreadable":
    raise RuntimeError("of its import")

def time_work():
    toy.work(NUMBERS)

def time_steady():
    sum(NUMBERS)

class Sized:
    params = (1, 2)
    param_names = ("n",)

    def time_sized(self, n):
        sum(NUMBERS * n)

def time_crashes():
    if toy.NAME == "crashes":
        os._exit(3)

def time_hangs():
    if toy.NAME == "hangs":
        time.sleep(200)

def time_raises():
    if toy.NAME == "raises":
        raise RuntimeError("no such thing")

if toy.NAME != "old":
    def time_new():
        sum(NUMBERS)

def track_size():
    print("a benchmark may print")
    return toy.SIZE

def peakmem_held():
    return bytearray(toy.SIZE * 1_000_000)
"""


def benchmarks(folder: Path, package: str = "toy") -> Path:
    """The folder of benchmarks of a package."""
    path = folder / "benchmarks"
    path.mkdir(parents=True)
    (path / "__init__.py").write_text("")
    (path / "inputs.py").write_text("NUMBERS = list(range(2_000))\n")
    (path / "toys.py").write_text(BENCHMARKS.replace("import toy", f"import {package} as toy"))
    return path


def package(folder: Path, name: str = "toy", passes: int = 10, size: int = 10) -> Path:
    """A folder with a package `toy` whose `work` takes `passes` passes."""
    path = folder / f"{name}-{passes}-{size}" / "toy"
    make(path, name, passes, size)
    return path.parent


def make(path: Path, name: str = "toy", passes: int = 10, size: int = 10) -> None:
    """The package itself."""
    path.mkdir(parents=True, exist_ok=True)
    _put(path / "helper.py", f"PASSES = {passes}\n")
    _put(
        path / "__init__.py",
        textwrap.dedent(f"""
        NAME, SIZE = {name!r}, {size}

        def build_info():
            return {{"commit": NAME, "features": [], "profile": "release"}}

        def work(numbers):
            from .helper import PASSES  # imported late: from the own package all the same
            for _ in range(PASSES):
                sum(numbers)
        """),
    )


def _put(path: Path, text: str) -> None:
    """At once: another process may make the same package, or load it."""
    whole = path.with_suffix(f".{os.getpid()}")
    whole.write_text(text)
    whole.replace(path)


if __name__ == "__main__":
    settings = json.loads(Path("toy.json").read_text())
    settings.pop("number", None)
    if settings.get("name") == "broken":
        sys.exit("it is broken")
    make(Path(sys.argv[1]) / "toy", **settings)
