"""The two sides of `rlox-opt profile diff`: folders with profiles, or builds that are trained in
turn."""

from __future__ import annotations

import argparse
import copy
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.history import condensed
from rlox_opt.history.causes import sources
from rlox_opt.history.compared import Compared, Run
from rlox_opt.history.store import Profile
from rlox_opt.project.project import Project
from rlox_opt.sampling import brief, workloads
from rlox_opt.sampling.driver import Progress
from rlox_opt.sampling.functions import Text, own
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.processes.report import KIND as PROCESSES
from rlox_opt.sampling.samples import OUTSIDE
from rlox_opt.sampling.spec import Spec
from rlox_opt.system.files import understood
from rlox_opt.system.machine import slug
from rlox_opt.system.schema import read
from rlox_opt.system.usage import UsageError

PROFILE = "profile.json"  # a profile's condensed form, in its folder
_REPORT = "report.json"
_BUILD_S = 40.0
_RUN_S = 25.0
_COMPARED = ("algo", "env_id", "total_timesteps", "features", "settings", "versions")


def are_folders(arguments: argparse.Namespace) -> bool:
    """Whether folders are compared. Raises UsageError if only one side is a folder, or if nothing
    says what to compare."""
    sides = [arguments.before, arguments.after]
    if sides[1] is None:
        if sides[0] is not None:
            raise UsageError(f"A {sides[0]}: needs a B to be compared with")
        if not arguments.enable | arguments.disable:
            raise UsageError("A and B: name two folders or revisions, or --enable, or --disable")
        return False
    reported = [bool(_reports(Path(side))) for side in sides]
    if reported[0] != reported[1]:
        other = sides[reported.index(False)]
        raise UsageError(f"{other!r}: holds no {_REPORT}; compare two folders, or two revisions")
    return reported[0]


def _reports(folder: Path) -> list[Path]:
    own = folder / _REPORT
    # A revision may be too long for a file's name, which pathlib treats as an error.
    if not os.path.isdir(folder):  # noqa: PTH112
        return []
    return [own] if own.exists() else sorted(folder.glob(f"*/{_REPORT}"))


def of_folders(arguments: argparse.Namespace) -> Compared:
    """The profiles in two folders.

    Raises:
        ValueError: a profile cannot be read, or was not finished.
    """
    tables, runs = [], []
    missing: list[str] = []
    for side in (arguments.before, arguments.after):
        paths = _reports(Path(side))
        tables.append([_read(path) for path in paths])
        loaded = []
        for path, table in zip(paths, tables[-1], strict=True):
            with understood(path.parent, "profile"):
                loaded.append(_run(path, table))
            missing += [f"{path.parent}: {text}" for text in table.get("incomplete") or ()]
        runs.append(tuple(loaded))
    every = [table for side in tables for table in side]
    machines = sorted({slug(table["machine"]) for table in every})
    algos = sorted({_what(table) for table in every})
    notes = [f"Profiled on different machines: {', '.join(machines)}."] if machines[1:] else []
    notes += [f"Different training: {', '.join(algos)}."] if algos[1:] else []
    notes += _differences(tables[0][0], tables[1][0]) + missing
    return Compared(
        runs[0],
        runs[1],
        titles=(str(arguments.before), str(arguments.after)),
        rounds=False,
        steps=not machines[1:] and not algos[1:],
        band=arguments.threshold / 100,
        notes=tuple(notes),
    )


def _read(path: Path) -> dict[str, Any]:
    table = read(path, dict[str, Any])
    of_processes = table.get("kind") == PROCESSES
    if not (table.get("wall_s") if of_processes else table.get("phases") and table.get("train_s")):
        raise ValueError(f"{path}: its plain run did not finish; profile again")
    if of_processes and (table.get("interrupted") or table.get("status") != 0):
        raise ValueError(f"{path}: its program did not finish, or failed; profile again")
    return table


def _what(table: dict[str, Any]) -> str:
    if table.get("kind") == PROCESSES:
        return " ".join(Path(word).name for word in table["command"][1:])
    return f"{table['algo']} on {table['env_id']}"


def _run(path: Path, table: dict[str, Any]) -> Run:
    """A folder's profile. One that an earlier version wrote has no functions and no stacks."""
    if table.get("kind") == PROCESSES:
        return _run_of_processes(table)
    step_s = 1 / table["sps"]
    kept = path.with_name(PROFILE)
    if kept.exists():
        return Run(read(kept, Profile), step_s)
    whole = table["train_s"]
    phases = {phase["name"]: phase["self_seconds"] / whole for phase in table["phases"]}
    phases[OUTSIDE] = max(0.0, 1 - sum(phases.values()))
    samples = table["tools"].get(table["layer_source"], {}).get("samples", 0)
    layers = {layer["name"]: layer["share"] for layer in table["layers"]}
    return Run(Profile(samples, layers, phases), step_s)


def _run_of_processes(table: dict[str, Any]) -> Run:
    """A run of several processes: the whole run is the step, and shares are of all threads'
    time."""
    layers = {layer["name"]: layer["seconds"] for layer in table["layers"]}
    phases: dict[str, float] = {}
    for component in table["components"]:
        for thread in component["threads"]:
            for phase in thread["phases"]:
                name = f"{component['title']}: {phase['name']}"
                seconds = phase["self_seconds"] * thread["count"]
                phases[name] = phases.get(name, 0.0) + seconds
    whole = sum(layers.values()) or 1.0
    samples = sum(thread["samples"] for of in table["components"] for thread in of["threads"])
    shares = [{name: seconds / whole for name, seconds in of.items()} for of in (layers, phases)]
    return Run(Profile(samples, shares[0], shares[1]), table["wall_s"])


def _differences(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """The settings in which the two runs differ."""
    differing = []
    for key in _COMPARED:
        a, b = before.get(key), after.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            names = [name for name in {**a, **b} if a.get(name) != b.get(name)]
            differing += [f"{name}: {a.get(name)} → {b.get(name)}" for name in names]
        elif a != b:
            differing.append(f"{key}: {a} → {b}")
    return [f"They differ in {'; '.join(differing)}."] if differing else []


@dataclass(frozen=True)
class _Side:
    """What is trained: this package (None: the installed one), as `spec` says."""

    title: str
    package: Path | None
    spec: Spec
    text: Text


def of_builds(arguments: argparse.Namespace) -> tuple[Compared, bool]:
    """Two builds, trained and profiled in turn; and whether all rounds were done.

    Raises:
        UsageError: there is no such revision, or arguments contradict each other.
        NotBuiltError: a revision does not build.
        ChildError, ValueError: training or its sampler fails.
    """
    from rlox_opt.system.progress import reporter

    specs = _specs(arguments)
    sampler = brief.tool()
    classifier = Classifier(arguments.project.settings.layers)
    with reporter() as progress:
        named = [name for name in (arguments.before, arguments.after) if name is not None]
        progress.plan(
            [(f"build of {name}", _BUILD_S) for name in named]
            + [(f"round {n + 1}", 2 * _RUN_S) for n in range(arguments.runs)]
        )
        sides = _sides(arguments, specs, progress)
        runs: list[tuple[Run, Run]] = []
        complete = True
        try:
            for number in range(arguments.runs):
                progress.begin(f"round {number + 1}")
                ran = _round(sides, sampler, classifier, progress)
                runs.append(ran)
                progress.end(f"a step takes {ran[1].step_s / ran[0].step_s:.3f} × A's")
        except KeyboardInterrupt:
            if not runs:  # there is no result
                raise
            complete = False
            progress.end("interrupted")
    before, after = zip(*runs, strict=True)
    compared = Compared(
        before,
        after,
        titles=(sides[0].title, sides[1].title),
        rounds=True,
        steps=True,
        band=arguments.threshold / 100,
        notes=(f"{arguments.algo.upper()} on {specs[0].env_id}, sampled by {sampler}.",),
    )
    return compared, complete


def _specs(arguments: argparse.Namespace) -> tuple[Spec, Spec]:
    """The training of A and of B; the switches apply to B alone."""
    without = copy.copy(arguments)
    without.enable = without.disable = frozenset()
    project: Project = arguments.project
    of = workloads.known(project)
    if of is None:
        raise UsageError("this project names no training runs; compare two reports")
    return of.spec_of(project, without), of.spec_of(project, arguments)


def _sides(
    arguments: argparse.Namespace, specs: tuple[Spec, Spec], progress: Progress
) -> Sequence[_Side]:
    project: Project = arguments.project
    switches = [f"+{id_.lower()}" for id_ in sorted(arguments.enable)]
    switches += [f"-{id_.lower()}" for id_ in sorted(arguments.disable)]
    added = "".join(f" {switch}" for switch in switches)
    if arguments.after is None:
        titles = "installed", f"installed{added}"
        return [
            _Side(t, None, spec, installed(project)) for t, spec in zip(titles, specs, strict=True)
        ]
    resolved = [project.commits.resolve(text) for text in (arguments.before, arguments.after)]
    sides = []
    for revision, spec, more in zip(resolved, specs, ("", added), strict=True):
        progress.begin(f"build of {revision.text}")
        folder = project.builds.build(revision).folder
        progress.end("ready")
        text = sources(project, revision.commit)
        sides.append(_Side(f"{revision.title}{more}", folder, spec, text))
    return sides


def installed(project: Project) -> Text:
    """The project's own files in the working tree, by path."""

    def text(path: str) -> str:
        source = project.root / path
        return source.read_text(encoding="utf-8") if source.exists() else ""

    return own(project, text)


def _round(
    sides: Sequence[_Side], sampler: str, classifier: Classifier, progress: Progress
) -> tuple[Run, Run]:
    """One run of each side, in random order."""
    runs: dict[int, Run] = {}
    for index in random.sample((0, 1), 2):
        side = sides[index]
        speed, samples = brief.profile(side.spec, side.package, sampler, classifier, progress)
        kept = condensed.profile(samples, speed.self_seconds, side.text)
        runs[index] = Run(kept, 1 / speed.steps_per_s)
    return runs[0], runs[1]
