"""A wheel by the back-end that a commit's own pyproject.toml names, as PEP 517 says.

uv builds it in an environment of its own, with the build requirements that we have pinned, so that
both sides are built by the same versions of them unless a commit asks for others.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.project.builders import wheels
from rlox_opt.project.commits import Revision
from rlox_opt.project.interpreters import Interpreter
from rlox_opt.system import git, schema
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError
from rlox_opt.system.uv import uv

# What builds a project that names no back-end, by PEP 517.
_LEGACY = "setuptools.build_meta:__legacy__"
_LEGACY_REQUIRES = ("setuptools>=40.8.0", "wheel")
_MATURIN = "maturin"
_ARGUMENTS = "MATURIN_PEP517_ARGS"


@dataclass(frozen=True)
class Asked:
    """What a commit asks for: its `backend`, what that `requires`, which versions of Python, and
    the cargo `features` that it turns on itself."""

    backend: str = _LEGACY
    requires: tuple[str, ...] = _LEGACY_REQUIRES
    python: str = ""
    features: tuple[str, ...] = ()
    there: bool = False
    """Whether the commit has anything that could be built."""

    @property
    def by_maturin(self) -> bool:
        """Whether its features are cargo's, and its back-end knows them."""
        return self.backend.startswith(_MATURIN)


def asked(text: Callable[[str], str]) -> Asked:
    """What a commit asks for, by the texts of its files ("" where it has none)."""
    files = {name: text(name) for name in ("pyproject.toml", "setup.cfg", "setup.py")}
    table: dict[str, Any] = {}
    with contextlib.suppress(NotReadError):
        table = schema.parse(files["pyproject.toml"], dict[str, Any], Path("pyproject.toml"))
    system = _of(table, "build-system")
    requires = system.get("requires")
    listed = (
        tuple(of for of in requires if isinstance(of, str)) if isinstance(requires, list) else None
    )
    # A table without a back-end means setuptools, with what it requires.
    features = _of(table, "tool", "maturin").get("features", ())
    return Asked(
        backend=str(system.get("build-backend") or _LEGACY),
        requires=_LEGACY_REQUIRES if listed is None else listed,
        python=_python(table, files["setup.cfg"], files["setup.py"]),
        features=tuple(sorted(map(str, features))) if isinstance(features, list) else (),
        there=any(files.values()),
    )


def build(
    revision: Revision,
    project: Path,
    checkout: Path,
    interpreter: Interpreter,
    pins: Sequence[str],
    env: Mapping[str, str],
    out: Path,
    log: Path,
    limit_s: float,
) -> Path:
    """The wheel of the folder `project` of a checkout, in the folder `out`.

    Raises:
        NotBuiltError: it does not build; the message ends with the last lines of what was said,
            all of which is in the file `log`.
    """
    constrained: tuple[str | Path, ...] = ()
    if pins:  # uv warns of a file without any
        constraints = out / "constraints.txt"
        constraints.write_text("".join(f"{pin}\n" for pin in pins))
        constrained = ("--build-constraints", constraints)
    done = uv(
        *("build", "--wheel", "--out-dir", out / "wheel", "--no-create-gitignore"),
        *("--python", interpreter.path, *constrained, project),
        cwd=out,
        env={**git.environment(trusted=checkout), **env},
        limit_s=limit_s,
    )
    if done.status:
        raise wheels.failed(revision.title, done, log)
    return wheels.only_wheel(out / "wheel", revision.title)


def variables(
    asked: Asked, revision: Revision, target: Path, env: Mapping[str, str]
) -> dict[str, str]:
    """The variables to build with, on top of `env`: the features that are asked for, and the one
    folder of what cargo compiles, so that a commit compiles only what it changed.

    Raises:
        UsageError: features are asked for that the back-end knows nothing of.
    """
    told = {"CARGO_TARGET_DIR": str(target)}
    if revision.features is None or revision.features == asked.features:
        return told
    if not asked.by_maturin:
        raise UsageError(
            f"{revision.text!r}: features are cargo's, and this project is built by "
            f"{asked.backend}, which takes none; leave them out"
        )
    if not revision.features:
        raise UsageError(
            f"{revision.text!r}: [tool.maturin] of that commit turns on "
            f"{', '.join(asked.features)}, which cannot be turned off from outside; name the "
            f"features to build with instead"
        )
    words = [env.get(_ARGUMENTS, ""), "--features", ",".join(revision.features)]
    return told | {_ARGUMENTS: " ".join(filter(None, words))}


def _python(table: Mapping[str, Any], cfg: str, setup: str) -> str:
    """Which versions of Python a package asks for."""
    for found in (
        _of(table, "project").get("requires-python"),
        _of(table, "tool", "flit", "metadata").get("requires-python"),
    ):
        if isinstance(found, str):
            return found
    for pattern, text in (
        (r"^\s*python_requires\s*=\s*(.+)$", cfg),
        (r"python_requires\s*=\s*[\"']([^\"']+)[\"']", setup),
    ):
        if told := re.search(pattern, text, re.MULTILINE):
            return told[1].strip()
    return ""


def _of(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    """A table within a table; an empty one where it is none."""
    for name in names:
        inner = table.get(name) if isinstance(table, dict) else None
        table = inner if isinstance(inner, dict) else {}
    return table
