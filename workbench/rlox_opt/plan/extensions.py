"""Builds of the extension with other features or another profile, for use beside the installed one.
They need cargo and a checkout."""

from __future__ import annotations

import hashlib
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.harness.restarts import worker
from rlox_opt.plan.features import cargo_of
from rlox_opt.project.artefacts import forget_oldest, keep
from rlox_opt.project.builders.cargo import RUST
from rlox_opt.project.builders.wheels import outside
from rlox_opt.project.checkouts import alone
from rlox_opt.project.interpreters import running
from rlox_opt.project.project import Project
from rlox_opt.system import commands
from rlox_opt.system.usage import UsageError

_KEPT = 4  # builds of one name and profile; of 15 MB each
_DIGITS = 12


class BuildError(RuntimeError):
    """A build failed, or is not the one that was asked for."""


@dataclass(frozen=True)
class Extension:
    """A built extension: cargo's seconds, its size, and its own description of the build."""

    path: Path
    seconds: float
    bytes: int
    info: dict[str, Any]


def cargo(project: Project, *arguments: str) -> None:
    """Run cargo in the checkout. Raises `BuildError`."""
    try:
        program = commands.cargo()
    except UsageError as error:
        raise BuildError(str(error)) from None
    if not (project.root / "Cargo.toml").exists():
        raise BuildError(
            "this needs a checkout of the project: an installed package has no sources"
        )
    done = commands.run([program, *arguments], project.root)
    if done.status:
        raise BuildError(f"cargo {' '.join(arguments)} failed:\n{done.tail}")


def build(
    project: Project,
    name: str,
    features: Sequence[str],
    profile: str = "release",
    *,
    cold: bool = False,
    twins: bool = False,
) -> Extension:
    """Build the extension, or with `twins` the one with the pairs; or take the one that was built
    from the same sources before.

    It is kept in `variants/<name>-<profile>-<digest>/` in the project's cache, by `made_from`. A
    `cold` build starts from an empty folder, so that its time can be compared. The binary is asked
    for its description before it is used, since an old one would be timed in its place. Raises
    `BuildError`.
    """
    variants, by = project.cache / "variants", cargo_of(project)
    of = by.laboratory if twins and by.laboratory else by
    target = variants / (f"cold-{profile}" if cold else "target")
    path = variants / f"{name}-{profile}-{made_from(project)}" / f"{of.library}.so"
    start = time.monotonic()
    with alone(variants):  # one build at a time in the one target folder
        if cold or not path.exists():
            if cold:
                shutil.rmtree(target, ignore_errors=True)
            cargo(
                project,
                *("build", "--locked", "--package", of.crate, "--profile", profile),
                *("--features", ",".join(features), "--target-dir", str(target)),
            )
            path.parent.mkdir(exist_ok=True)
            keep(target / profile / f"lib{of.library}.so", path)
            forget_oldest(variants, [f"{name}-{profile}-{'?' * _DIGITS}"], _KEPT)
    seconds = time.monotonic() - start
    with worker(path, random.Random()) as ask:
        told = ask("build")
    if set(told["features"]) != set(features) or told["profile"] != profile:
        raise BuildError(
            f"{path.parent.name}: is {told['profile']} with {told['features']}, expected "
            f"{profile} with {sorted(features)}; remove {variants} and build again"
        )
    return Extension(path, seconds, path.stat().st_size, told)


def made_from(project: Project) -> str:
    """A digest of everything that the extension is built from, and by."""
    root = project.root
    every = (path for part in RUST for path in [root / part, *(root / part).rglob("*")])
    digest = hashlib.sha256("\n".join([*outside(root), running().title]).encode())
    for path in sorted(path for path in every if path.is_file()):
        digest.update(f"{path.relative_to(root)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:_DIGITS]
