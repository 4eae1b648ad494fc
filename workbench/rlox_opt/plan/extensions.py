"""Builds of the extension with other features or another profile, side by side with the installed
one. Needs cargo and a checkout."""

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
from rlox_opt.system import commands
from rlox_opt.system.machine import ROOT
from rlox_opt.system.usage import UsageError

VARIANTS = ROOT / "target" / "variants"


class BuildError(RuntimeError):
    """A build that failed, or that is not the one asked for."""


@dataclass(frozen=True)
class Extension:
    """A built extension, the seconds that cargo took, its size, and what it says of itself."""

    path: Path
    seconds: float
    bytes: int
    info: dict[str, Any]


def cargo(*arguments: str) -> None:
    """Run cargo in the checkout. Raises `BuildError`."""
    try:
        program = commands.cargo()
    except UsageError as error:
        raise BuildError(str(error)) from None
    if not (ROOT / "Cargo.toml").exists():
        raise BuildError(
            "this needs a checkout of the project: an installed package has no sources"
        )
    done = commands.run([program, *arguments], ROOT)
    if done.status:
        raise BuildError(f"cargo {' '.join(arguments)} failed:\n{done.tail}")


def build(
    name: str, features: Sequence[str], profile: str = "release", *, cold: bool = False
) -> Extension:
    """Build the extension, or take the one built from the same sources before.

    It is kept as `target/variants/<name>-<profile>-<digest of the sources>.so`. A `cold` build
    starts from an empty folder, for its time to mean something. The binary is asked what it is
    before it is handed out, since a stale one would be timed in its place. Raises `BuildError`.
    """
    target = VARIANTS / (f"cold-{profile}" if cold else "target")
    path = VARIANTS / f"{name}-{profile}-{sources()}.so"
    start = time.monotonic()
    if cold or not path.exists():
        if cold:
            shutil.rmtree(target, ignore_errors=True)
        cargo(
            *("build", "--locked", "--package", "rlox-python", "--profile", profile),
            *("--features", ",".join(features), "--target-dir", str(target)),
        )
        part = path.with_suffix(".part")
        shutil.copy2(target / profile / "lib_core.so", part)
        part.rename(path)
    seconds = time.monotonic() - start
    with worker(path, random.Random()) as ask:
        found = ask("build")
    if set(found["features"]) != set(features) or found["profile"] != profile:
        raise BuildError(
            f"{path.name}: is {found['profile']} with {found['features']}, expected {profile} with "
            f"{sorted(features)}; remove {VARIANTS} and build again"
        )
    return Extension(path, seconds, path.stat().st_size, found)


def sources() -> str:
    """A digest of all that the extension is built from."""
    files = [ROOT / "Cargo.toml", ROOT / "Cargo.lock"]
    files += (path for path in (ROOT / "crates").rglob("*") if path.suffix in (".rs", ".toml"))
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]
