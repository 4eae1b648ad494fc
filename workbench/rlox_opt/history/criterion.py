"""Criterion's benchmarks at a commit: the seconds of a call without Python.

Criterion times one build after the other, so its seconds depend on the machine and the hour. They
are shown beside the paired times, under asv's names of the same functions.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from rlox_opt.project.artefacts import forget_oldest
from rlox_opt.project.builds import Builds, Cargo, Criterion, NotBuiltError, keep
from rlox_opt.project.commits import Revision
from rlox_opt.system.commands import executable
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

_LISTED = re.compile(r"^(.+): benchmark$", re.MULTILINE)
_BRIEF = ("--warm-up-time", "0.1", "--measurement-time", "0.4", "--sample-size", "10", "--noplot")
_PATIENCE_S = 180.0


def build(builds: Builds, revision: Revision) -> Path:
    """The program with these benchmarks, with the revision's features; built now or kept.

    Raises:
        NotBuiltError: it does not build.
        UsageError: there is no cargo, or the project declares no such benchmarks.
    """
    of = _declared(builds)
    with builds.checked_out(revision) as (checkout, features):
        program = builds.folder / f"criterion-{builds.asked(revision, features)}"
        if program.exists():
            os.utime(program)
            return program
        asked = ("--package", of.package, "--bench", of.bench)
        told = ("--no-run", "--message-format", "json-render-diagnostics")
        done = builds.cargo(checkout, features, "bench", *asked, *told)
        made = executable(done.output, of.bench)
        if done.status or made is None:
            raise NotBuiltError(f"{revision.title}: criterion does not build:\n{done.tail}")
        keep(made, program)
        forget_oldest(builds.folder)
        return program


def declared(builds: Builds) -> Criterion | None:
    """The benchmarks by criterion that the project declares."""
    return builds.by.criterion if isinstance(builds.by, Cargo) else None


def _declared(builds: Builds) -> Criterion:
    """The same. Raises UsageError if the project declares none."""
    if of := declared(builds):
        return of
    raise UsageError("the project declares no benchmarks by criterion (build.criterion)")


def asv_name(names: Mapping[str, str], id_: str) -> str | None:
    """asv's name of the benchmark of the same function; None without one."""
    for pattern, name in names.items():
        if match := re.fullmatch(pattern, id_):
            return match.expand(name)
    return None


def ids(builds: Builds, program: Path) -> dict[str, str]:
    """Criterion's id of each benchmark with a name of asv's, by that name."""
    listed = subprocess.run(
        [program, "--bench", "--list"], capture_output=True, text=True, check=True
    ).stdout
    names = _declared(builds).names
    return {name: id_ for id_ in _LISTED.findall(listed) if (name := asv_name(names, id_))}


def times(program: Path, wanted: Mapping[str, str]) -> dict[str, float]:
    """The median seconds of a call of each benchmark in `wanted` (criterion's ids by asv's names).
    Benchmarks that fail or take too long are left out."""
    if not wanted:
        return {}
    chosen = f"^(?:{'|'.join(map(re.escape, wanted.values()))})$"
    medians: dict[str, float] = {}
    with scratch() as home:
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run(
                [program, "--bench", *_BRIEF, chosen],
                env=os.environ | {"CRITERION_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=_PATIENCE_S,
            )
        for path in home.rglob("new/estimates.json"):
            of = json.loads(path.with_name("benchmark.json").read_text(encoding="utf-8"))
            estimates = json.loads(path.read_text(encoding="utf-8"))
            seconds = estimates["median"]["point_estimate"] / 1e9  # from nanoseconds
            medians |= {name: seconds for name, id_ in wanted.items() if id_ == of["full_id"]}
    return medians
