"""What cargo, the machine and a commit's own manifests say about how its benches are built.
`parity` compares it."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from rlox_opt.project.builders import wheels
from rlox_opt.project.interpreters import running
from rlox_opt.system import schema
from rlox_opt.system.commands import run
from rlox_opt.system.files import NotReadError, read_text

_TOOLCHAINS = ("rust-toolchain.toml", "rust-toolchain")
_PROFILES = ("bench", "release")  # the first inherits from the second
_DIGITS = 12


def toolchain(checkout: Path) -> str:
    """The file of a checkout that chooses a toolchain, as one line; "" without one."""
    for name in _TOOLCHAINS:
        if (checkout / name).is_file():
            return f"{name}: {' '.join(read_text(checkout / name, errors='replace').split())}"
    return ""


def made(root: Path, checkout: Path, rows: Iterable[str], locks: Iterable[str]) -> dict[str, str]:
    """How the benches of a checkout are made. `root` is the user's project, `rows` are what git
    lists of the commit, and `locks` are the texts of the Cargo.lock files."""
    manifests = [row for row in rows if row.endswith(("Cargo.toml", "Cargo.lock"))]
    asked = hashlib.sha256("\0".join(manifests).encode()).hexdigest()[:_DIGITS]
    rustc = shutil.which("rustc")
    here = run([rustc, "--version"], checkout, limit_s=60.0).output.strip() if rustc else "none"
    return {
        "builder": "cargo bench",
        "interpreter": running().title,
        "compilers": f"{wheels.compilers(root)}; for the checkout {here}",
        "toolchain": toolchain(checkout),
        "variables": " ".join(wheels.variables({})),
        "requirements": f"Cargo.toml and Cargo.lock, {asked}",
        "environment": "\n".join(pins(locks)),
    }


def pins(locks: Iterable[str]) -> list[str]:
    """The locked versions, "serde==1.0.2"; all versions of a package that has several."""
    found: dict[str, set[str]] = {}
    for text in locks:
        table = _decoded(text)
        for of in table.get("package", ()):
            if of.get("source"):  # otherwise it is a crate of the project
                found.setdefault(of["name"], set()).add(of["version"])
    return [f"{name}=={', '.join(sorted(found[name]))}" for name in sorted(found)]


def found(roots: Iterable[Path], manifests: Sequence[Path]) -> Mapping[str, str]:
    """What a commit's manifests choose: the profile of its workspaces, and the default features."""
    profiles = []
    for root in roots:
        profiles += [
            f"{name}.{key}={msgspec.json.encode(value).decode()}"
            for name, table in bench_profiles(root).items()
            for key, value in sorted(table.items())
        ]
    features = []
    for manifest in manifests:
        table = _table(manifest)
        name = (table.get("package") or {}).get("name", "")
        on = (table.get("features") or {}).get("default") or []
        features += [f"{name}: {', '.join(map(str, on))}"] if on else []
    return {
        "cargo's profile": ", ".join(dict.fromkeys(profiles)) or "cargo's own",
        "the default features": "; ".join(features) or "none",
    }


def bench_profiles(root: Path) -> dict[str, dict[str, Any]]:
    """What a workspace's manifest says of the profiles that apply to its benches."""
    said = _table(root).get("profile") or {}
    return {name: said.get(name) or {} for name in _PROFILES}


def _table(manifest: Path) -> dict[str, Any]:
    try:
        return schema.read(manifest, dict[str, Any])
    except NotReadError:
        return {}


def _decoded(text: str) -> dict[str, Any]:
    try:
        table = msgspec.toml.decode(text)
    except msgspec.DecodeError:
        return {}
    return table if isinstance(table, dict) else {}
