"""Decides whether two builds may be compared: what differs between them besides the change itself.

A difference that comes from this workbench, the machine or the date would be measured together with
the change, so the comparison is refused. A difference that comes from a commit, in its metadata or
its binaries, is a part of the change, and is reported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from packaging.utils import canonicalize_name

from rlox_opt.project.allocators import GLOBAL
from rlox_opt.project.artefacts import Artefact
from rlox_opt.system.usage import UsageError

_NONE = "none"
_SYSTEMS = "the system's"  # allocator
_ALLOCATOR = "allocator"
_OF_THIS_MACHINE = ("variables", "interpreter path")
_IN_A_FOLDER = re.compile(r" \([^()]*/[^()]*\)")
_ON = ("Cython's tracing", "assertions", "debug information")


def findings(base: Artefact, head: Artefact) -> list[str]:
    """What the change made different in how it is built and run, one sentence each.

    Raises:
        UsageError: something else differs; the message names it, both values, and the remedy.
    """
    released = [of for of in (base, head) if of.revision.is_release]
    told = [*_interpreters(base, head)]
    if released and base.made.get("builder") != head.made.get("builder"):
        told.append(_differs("how it is built", base, head, "builder"))
    elif not released:
        told += _builds(base, head)
    told += _environments(base, head)
    told += _binaries(base, head, released)
    told += _allocators(base, head, released)
    return told


def facts(base: Artefact, head: Artefact) -> dict[str, dict[str, str]]:
    """How the sides were built and run, by topic. "same" has what is equal, "base" and "head" what
    differs. Of an equal environment, only the number of its packages is given."""
    sides = [_facts(of) for of in (base, head)]
    same = {what: value for what, value in sides[0].items() if sides[1].get(what) == value}
    told = {what: _in_short(value) for what, value in same.items()}
    differ = [{what: of for what, of in side.items() if what not in same} for side in sides]
    return {"same": told, "base": differ[0], "head": differ[1]}


def facts_of(built: Artefact) -> dict[str, str]:
    """How one side was built and run, by topic. Of its environment, only the number of packages is
    given. Folders of this machine are left out, and so are variables, which may contain some."""
    return {
        what: _IN_A_FOLDER.sub("", _in_short(value))
        for what, value in _facts(built).items()
        if what not in _OF_THIS_MACHINE
    }


def _facts(of: Artefact) -> dict[str, str]:
    features = {"features": ", ".join(of.features)} if of.features else {}
    return features | {what: value for what, value in {**of.made, **of.found}.items() if value}


def _in_short(value: str) -> str:
    lines = value.splitlines()
    return f"of {len(lines)} packages" if len(lines) > 1 else value


def _interpreters(base: Artefact, head: Artefact) -> list[str]:
    if base.made.get("interpreter") == head.made.get("interpreter"):
        return []
    if base.revision.python or head.revision.python:
        return [_differs("the interpreter, as was asked for", base, head, "interpreter")]
    raise UsageError(
        _differs("the interpreter", base, head, "interpreter")[:-1]
        + "; choose one that both can have: --python VERSION"
    )


def _builds(base: Artefact, head: Artefact) -> list[str]:
    """The findings on two builds of commits."""
    told = []
    if base.made.get("builder") != head.made.get("builder"):
        told.append(f"the commit changed {_differs('how it is built', base, head, 'builder')}")
    # A file of the commit may choose the toolchain, and so the compiler.
    asked = base.made.get("toolchain") != head.made.get("toolchain")
    if asked:
        told.append(f"the commit changed {_differs('the toolchain', base, head, 'toolchain')}")
    for what in ("compilers",) * (not asked) + ("variables", "not checked out"):
        if base.made.get(what, "") != head.made.get(what, ""):
            raise UsageError(
                _differs(what, base, head, what)[:-1] + "; run it again, so that both are built "
                "by the same"
            )
    asked = base.made.get("build requirements") != head.made.get("build requirements")
    told += _pins("build environment", "build requirement", base, head, lambda: asked)
    return told


def _environments(base: Artefact, head: Artefact) -> list[str]:
    extra = base.revision.extra != head.revision.extra
    asked = base.made.get("requirements") != head.made.get("requirements")
    # Another interpreter was asked for, and may need other versions.
    other = base.made.get("interpreter") != head.made.get("interpreter")
    return _pins("environment", "dependency", base, head, lambda: extra or asked or other)


def _pins(
    key: str, what: str, base: Artefact, head: Artefact, allowed: Callable[[], bool]
) -> list[str]:
    """The differences between the versions under a key, if they are allowed."""
    sides = [_versions(of.made.get(key, "")) for of in (base, head)]
    differ = sorted(n for n in {*sides[0], *sides[1]} if sides[0].get(n) != sides[1].get(n))
    told = [
        f"{what} {name}: {sides[0].get(name, _NONE)} in base, {sides[1].get(name, _NONE)} in head"
        for name in differ
    ]
    if told and not allowed():
        raise UsageError(
            f"{'; '.join(told)}, and neither commit asks for that; fix the version on both sides: "
            f"--with {differ[0]}==VERSION"
        )
    asks = _asking(base, head, key)
    return [f"{of}, {asks}." for of in told]


def _asking(base: Artefact, head: Artefact, key: str) -> str:
    # asv's commands build with what --with asks for, too; back-ends do not.
    heeded = key == "environment" or not base.made.get("builder", "").startswith("PEP 517")
    if heeded and base.revision.extra != head.revision.extra:
        return "as was asked for by --with"
    if base.made.get("interpreter") != head.made.get("interpreter"):
        return "as goes with the interpreter"
    return "as the commit's own metadata asks for"


def _binaries(base: Artefact, head: Artefact, released: list[Artefact]) -> list[str]:
    who = "the release" if released else "the commit"
    told = []
    for what in dict.fromkeys([*base.found, *head.found]):
        if what in (_ALLOCATOR, GLOBAL):
            continue
        values = [of.found.get(what, "") for of in (base, head)]
        # Compared only if both sides have binaries.
        if values[0] == values[1] or not all(values):
            continue
        if what in _ON and "off" in values:
            side = "head" if values[0] == "off" else "base"
            told.append(f"{who} changed how it is built: {what} is on in {side} alone.")
        else:
            sides = f"{values[0]} in base, {values[1]} in head"
            told.append(f"{who} changed how it is built: {what} is {sides}.")
    return told


def _allocators(base: Artefact, head: Artefact, released: list[Artefact]) -> list[str]:
    """The findings on the allocator: those of the programs; where the programs show none, those of
    the sources, whose allocator is then in neither build."""
    who = "the release" if released else "the commit"
    sides = [of.found.get(_ALLOCATOR, "") for of in (base, head)]
    if all(sides) and sides[0] != sides[1]:
        told = [_SYSTEMS if of == "off" else of for of in sides]
        verb = "dropped" if sides[1] == "off" else "took" if sides[0] == "off" else "changed"
        return [
            f"{who} {verb} an allocator: memory is from {told[0]} in base, from {told[1]} in head."
        ]
    asked = [of.found.get(GLOBAL, "") for of in (base, head)]
    if not all(asked) or asked[0] == asked[1]:
        return []
    what = f"{GLOBAL} in its sources is {asked[0]} in base, {asked[1]} in head"
    if not any(sides):  # nothing is compiled that could show the allocator
        return [f"{who} changed the allocator: {what}."]
    built = _SYSTEMS if sides[0] == "off" else sides[0]
    return [
        f"{who} changed the allocator: {what}; both builds have memory from {built} all the same, "
        "so far as they tell. Where a feature turns it on, --features builds it in, and its cost "
        "is in the times only then."
    ]


def _differs(what: str, base: Artefact, head: Artefact, key: str) -> str:
    sides = [of.made.get(key) or _NONE for of in (base, head)]
    return f"{what}: {sides[0]} in base, {sides[1]} in head."


def _versions(pins: str) -> Mapping[str, str]:
    """Versions by distribution."""
    found = {}
    for pin in pins.splitlines():
        name, _, version = pin.partition(" ;")[0].partition("==" if "==" in pin else "@")
        found[str(canonicalize_name(name.strip()))] = version.strip()
    return found
