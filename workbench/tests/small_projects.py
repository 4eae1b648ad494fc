"""Projects that are built, made on the spot: some by a back-end of their own, which needs nothing
from outside, and wheels in a folder that stands for an index."""

import os
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.builds import Artefact, Builds
from rlox_opt.project.commits import Commits, Revision

PYPROJECT = """
[build-system]
requires = []
build-backend = "inner"
backend-path = ["backend"]
[project]
name = "thing"
version = "1"
"""
# Makes a wheel of thing.py, and of thing_c.c where there is one, after $BACK_END_S seconds.
# The rest is what a test puts in.
BACKEND = """
import os, pathlib, subprocess, sys, zipfile
from time import sleep

def build_wheel(folder, settings=None, metadata=None):
    print("the back-end is at work")
    sleep(float(os.environ.get("BACK_END_S", "0")))
    files = {"thing.py": pathlib.Path("thing.py").read_bytes()}
    version, requires = "1", ""
    {more}
    if pathlib.Path("thing_c.c").exists():
        command = ["cc", "-shared", "-fPIC", *flags(), "thing_c.c", "-o", "out.so"]
        subprocess.run(command, check=True)
        files["thing_c.so"] = pathlib.Path("out.so").read_bytes()
    files[f"thing-{version}.dist-info/METADATA"] = (
        f"Metadata-Version: 2.1\\nName: thing\\nVersion: {version}\\n{requires}".encode())
    files[f"thing-{version}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\\nGenerator: t\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    record = f"thing-{version}.dist-info/RECORD"
    files[record] = "".join(f"{n},,\\n" for n in [*files, record]).encode()
    name = f"thing-{version}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        for path, content in files.items():
            wheel.writestr(path, content)
    return name

def flags():
    return os.environ.get("CFLAGS", "-O2").split()
"""


# What such a back-end asks for besides.
ASKS = """
def get_requires_for_build_wheel(settings=None):
    return [{}]
"""


def backend(more: str = "") -> str:
    """The back-end, with some lines more."""
    return BACKEND.replace("{more}", more.replace("\n", "\n    "))


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, capture_output=True, check=True)
    return done.stdout.decode().strip()


def repository(folder: Path, *commits: Mapping[str, str]) -> list[str]:
    """A checkout whose commits change these files; their hashes."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    made = []
    for files in commits:
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        git(folder, "add", "--all")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "a commit")
        made.append(git(folder, "rev-parse", "HEAD"))
    return made


def own(thing: str = "ONE = 1\n", more: str = "", **files: str) -> dict[str, str]:
    """The files of a commit with a back-end of its own."""
    return {
        "pyproject.toml": PYPROJECT, "thing.py": thing, "backend/inner.py": backend(more)
    } | files  # fmt: skip


def builds(root: Path, package: str = "thing", **asks: Any) -> Builds:
    """Those of a repository, as nothing but the suite's configuration says."""
    where = PurePosixPath("asv.conf.json"), PurePosixPath("benchmarks")
    configuration = Configuration(*where, asks.pop("project", PurePosixPath()), **asks)
    suite = root / "benchmarks"
    commits = Commits(root, root / ".rlox-opt" / "cache" / "revisions")
    return Builds(commits, None, package, suite, configuration)


def wheel(folder: Path, name: str, version: str, requires: Sequence[str] = ()) -> Path:
    """A wheel with one module, which holds its version."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        + "".join(f"Requires-Dist: {of}\n" for of in requires),
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\n"
        "Tag: py3-none-any\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{of},,\n" for of in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as made:
        for inner, text in files.items():
            made.writestr(inner, text)
    return path


def index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of wheels, the only place that packages come from: `alpha` 1.0, 1.5 and 2.0, and
    `beta`, of which 1.0 asks for an old alpha."""
    for version in ("1.0", "1.5", "2.0"):
        wheel(folder, "alpha", version)
    wheel(folder, "beta", "1.0", ["alpha<2"])
    wheel(folder, "beta", "2.0", ["alpha"])
    for name in [name for name in os.environ if name.startswith(("UV_", "PIP_"))]:
        monkeypatch.delenv(name)
    # Offline, uv takes what another program brought into its cache; so it has a cache of its own.
    monkeypatch.setenv("UV_CACHE_DIR", str(folder.with_name("uv-cache")))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


def of(commit: str, features: tuple[str, ...] | None = None) -> Revision:
    return Revision(commit[:10], commit, features)


def said(built: Artefact, program: str) -> str:
    whole = f"import sys; sys.path.insert(0, {str(built.folder)!r}); {program}"
    command = [built.python, "-I", "-c", whole]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
