"""A wheel made by PEP 517: by the back-end that a commit's own pyproject.toml names.

uv builds it in an isolated environment with pinned build requirements, so that both sides are built
by the same versions of them unless a commit asks for others.
"""

from __future__ import annotations

import contextlib
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from subprocess import CalledProcessError
from typing import Any

from pyproject_hooks import BackendUnavailable, BuildBackendHookCaller

from rlox_opt.project.builders import wheels
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.project.environments import name_of
from rlox_opt.project.interpreters import Interpreter
from rlox_opt.system import git, schema
from rlox_opt.system.commands import run
from rlox_opt.system.files import NotReadError
from rlox_opt.system.schema import table_in, texts_in
from rlox_opt.system.usage import UsageError
from rlox_opt.system.uv import environment, uv

# The back-end of a project that names none, by PEP 517.
_LEGACY = "setuptools.build_meta:__legacy__"
_LEGACY_REQUIRES = ("setuptools>=40.8.0", "wheel")
_MATURIN, _SETUPTOOLS_RUST = "maturin", "setuptools-rust"
_ARGUMENTS = "MATURIN_PEP517_ARGS"


@dataclass(frozen=True)
class Asked:
    """What a commit asks for: its `backend`, what the back-end `requires`, the versions of Python,
    and the cargo `features` that the commit turns on itself."""

    backend: str = _LEGACY
    requires: tuple[str, ...] = _LEGACY_REQUIRES
    python: str = ""
    features: tuple[str, ...] = ()
    there: bool = False
    """Whether the commit contains anything that could be built."""

    declared: bool = False
    """Whether it says how it is built: by a table [build-system], or by a setup.py."""

    path: tuple[str, ...] = ()
    """Folders of the project that contain the back-end, if it is the project's own."""

    offered: Mapping[str, str] = field(default_factory=dict)
    """The distributions that it names in an extra or a group, with the name of that table."""

    text: str = field(default="", repr=False)
    """The texts of its files that say how it is built."""

    @property
    def by_maturin(self) -> bool:
        """Whether its features are cargo's and its back-end, or the one that this wraps, knows
        them."""
        return self.backend.startswith(_MATURIN) or _MATURIN in map(name_of, self.requires)

    @property
    def of_rust(self) -> bool:
        """Whether its back-end compiles a crate."""
        return self.by_maturin or _SETUPTOOLS_RUST in map(name_of, self.requires)


def asked_by(commits: Commits, commit: str, project: PurePosixPath) -> Asked:
    """What a commit asks for in the folder `project`."""
    return asked(lambda name: commits.text(commit, str(project / name)))


def asked(text: Callable[[str], str]) -> Asked:
    """What a commit asks for, by the texts of its files ("" for a missing one)."""
    files = {name: text(name) for name in ("pyproject.toml", "setup.cfg", "setup.py")}
    table: dict[str, Any] = {}
    with contextlib.suppress(NotReadError):
        table = schema.parse(files["pyproject.toml"], dict[str, Any], Path("pyproject.toml"))
    system = table_in(table, "build-system")
    requires = system.get("requires")
    # A table without a back-end means setuptools, with the requirements in the table.
    return Asked(
        backend=str(system.get("build-backend") or _LEGACY),
        requires=texts_in(requires) if isinstance(requires, list) else _LEGACY_REQUIRES,
        python=_python(table, files["setup.cfg"], files["setup.py"]),
        features=tuple(sorted(texts_in(table_in(table, "tool", "maturin").get("features")))),
        there=any(files.values()),
        declared=bool(system or files["setup.py"]),
        path=texts_in(system.get("backend-path")),
        offered=_offered(table),
        text="\n".join(files.values()),
    )


def also_required(
    asked: Asked,
    project: Path,
    checkout: Path,
    python: Path,
    env: Mapping[str, str],
    limit_s: float,
) -> tuple[str, ...] | None:
    """What the back-end requires besides, to build a wheel of the folder `project`. It is asked in
    the environment of `python`, which has what pyproject.toml requires. None if that fails: the
    build will then show why."""

    def ask(
        cmd: Sequence[str],
        cwd: str | None = None,
        extra_environ: Mapping[str, str] | None = None,
    ) -> None:
        path = os.pathsep.join((str(python.parent), os.environ.get("PATH", os.defpath)))
        told = {**environment(), **git.trusting(checkout), **env, "PATH": path}
        done = run(cmd, Path(cwd or project), {**told, **(extra_environ or {})}, limit_s=limit_s)
        if done.status:
            raise CalledProcessError(done.status, cmd)

    failing = CalledProcessError, OSError, ValueError, BackendUnavailable
    with contextlib.suppress(*failing), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the back-end, which concern its project
        hooks = BuildBackendHookCaller(
            str(project), asked.backend, asked.path or None, ask, str(python)
        )
        return texts_in(hooks.get_requires_for_build_wheel())
    return None


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
    """Build the wheel of the folder `project` of a checkout into the folder `out`.

    Raises:
        NotBuiltError: it does not build. The message ends with the last lines of the output, all of
            which is in the file `log`.
    """
    constrained: tuple[str | Path, ...] = ()
    if pins:  # uv would warn of an empty file
        constraints = out / "constraints.txt"
        constraints.write_text("".join(f"{pin}\n" for pin in pins))
        constrained = ("--build-constraints", constraints)
    done = uv(
        *("build", "--wheel", "--out-dir", out / "wheel", "--no-create-gitignore"),
        *("--python", interpreter.path, *constrained, project),
        cwd=out,
        env={**git.trusting(checkout), **env},
        limit_s=limit_s,
    )
    if done.status:
        raise wheels.failed(revision.title, done, log)
    return wheels.only_wheel(out / "wheel", revision.title)


def variables(
    asked: Asked, revision: Revision, target: Path, env: Mapping[str, str]
) -> dict[str, str]:
    """The variables to build with, added to `env`: the features that are asked for, and cargo's
    target folder, which all commits share so that each compiles only what it changed.

    Raises:
        UsageError: features are asked for that the back-end does not know.
    """
    told = {"CARGO_TARGET_DIR": str(target)}
    if revision.features is None or revision.features == asked.features:
        return told
    if not asked.by_maturin:
        by = f"{asked.backend} with {_SETUPTOOLS_RUST}" if asked.of_rust else asked.backend
        raise UsageError(
            f"{revision.text!r}: features are cargo's, and this project is built by {by}, which "
            f"takes none from outside; write them where the project names its own, and compare "
            f"that with what is committed: rlox-opt diff HEAD ."
        )
    # Even an empty list replaces the one in pyproject.toml.
    words = [env.get(_ARGUMENTS, ""), f"--features={','.join(revision.features)}"]
    return told | {_ARGUMENTS: " ".join(filter(None, words))}


def _python(table: Mapping[str, Any], cfg: str, setup: str) -> str:
    """The versions of Python that a package asks for."""
    for found in (
        table_in(table, "project").get("requires-python"),
        table_in(table, "tool", "flit", "metadata").get("requires-python"),
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


def _offered(table: Mapping[str, Any]) -> dict[str, str]:
    """What the extras and groups of a pyproject.toml name, the first entry of each name. A project
    names itself to include another of its extras."""
    own = name_of(f"{table_in(table, 'project').get('name', '')}")
    found: dict[str, tuple[str, str]] = {}
    for names in (("project", "optional-dependencies"), ("dependency-groups",)):
        for group, listed in table_in(table, *names).items():
            for of in texts_in(listed):
                where = f"[{'.'.join(names)}] {group}"
                if name_of(of) != own:
                    found.setdefault(name_of(of), (of, where))
    return dict(found.values())
