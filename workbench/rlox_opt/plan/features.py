"""The builds that differ in their optimisations, each with a name and its cargo features.

`none` has none of them on and `all` all; `p5` is P5 alone and `all-p5` all but P5. Which there are,
and what one stands on, is read from the manifest of the core.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from rlox_opt.system.files import read_toml, understood
from rlox_opt.system.machine import ROOT
from rlox_opt.system.usage import UsageError

MANIFEST = ROOT / "crates" / "rlox-core" / "Cargo.toml"
_PREFIX = "opt-p"

Build = tuple[str, tuple[str, ...]]  # name, features in the order of the plan


def known() -> list[str]:
    """The optimisations of the data plane, `P1` … in order."""
    return [_id(feature) for feature in _needs()]


def features_of(ids: Iterable[str]) -> tuple[str, ...]:
    """The features that turn on `ids` and what they stand on: of P3, `opt-p3` and `opt-p12`."""
    wanted = {_feature(id_) for id_ in ids}
    needs = _needs()
    while more := {need for feature in wanted for need in needs[feature]} - wanted:
        wanted |= more
    return tuple(feature for feature in needs if feature in wanted)


def feature_sets(ids: Iterable[str] | None = None) -> list[Build]:
    """The builds that tell `ids` from the others: none, all, each one alone, each one left out.

    Leaving one out leaves out what stands on it. Without `ids`, all there are: 2N + 2 builds.
    """
    chosen = known() if ids is None else list(ids)
    alone = [(id_.lower(), features_of([id_])) for id_ in chosen]
    left_out = [(f"all-{id_.lower()}", _without(id_)) for id_ in chosen]
    return [("none", ()), ("all", features_of(known())), *alone, *left_out]


def drawn(commit: str) -> str:
    """The name of one of the builds besides none and all, drawn by the hexadecimal `commit`."""
    others = [name for name, _ in feature_sets()][2:]
    return others[int(commit, 16) % len(others)]


def _without(id_: str) -> tuple[str, ...]:
    others = [other for other in known() if _feature(id_) not in features_of([other])]
    return features_of(others)


@cache
def _needs() -> dict[str, list[str]]:
    """Of every feature `opt-pN`, those that it turns on.

    Raises:
        NotReadError: the manifest cannot be read.
        UsageError: this is no checkout.
    """
    if not MANIFEST.exists():
        raise UsageError(
            f"{MANIFEST}: is not there; the builds can only be tested in a checkout of the sources"
        )
    table = read_toml(MANIFEST)
    with understood(MANIFEST, "manifest with features"):
        of = {name: list(on) for name, on in table["features"].items() if name.startswith(_PREFIX)}
        return {name: of[name] for name in sorted(of, key=lambda f: int(f[len(_PREFIX) :]))}


def _feature(id_: str) -> str:
    return f"opt-{id_.lower()}"


def _id(feature: str) -> str:
    return feature.removeprefix("opt-").upper()
