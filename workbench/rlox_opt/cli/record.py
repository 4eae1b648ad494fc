"""`rlox-opt record`: measures commits and appends them to the history."""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import math
import os
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.sides import SUITE_OF_ALL, add_suite, measured_by
from rlox_opt.cli.types import Once, pattern
from rlox_opt.harness.restarts import ContestError
from rlox_opt.history import recorded, store, unrecorded
from rlox_opt.history.store import Entry
from rlox_opt.project import kinds
from rlox_opt.project.builders.criterion import own_benches
from rlox_opt.project.builds import Artefact, NotBuiltError
from rlox_opt.project.commits import WORKING_TREE, Revision, is_span
from rlox_opt.project.parity import facts_of, findings
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED
from rlox_opt.system.files import check_folder
from rlox_opt.system.machine import machine
from rlox_opt.system.numbers import positive
from rlox_opt.system.output import number_of, say
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_BUILD_S = 10.0  # most commits change no Rust
_EXAMPLES = """\
examples:
  rlox-opt record                        HEAD
  rlox-opt record main~40..main          forty commits, the oldest first: two hours or so
  rlox-opt record main~40..main --list   lists which of them would be recorded; measures nothing
  rlox-opt record main~40..main --features none
  rlox-opt record v1 --budget 330        enough for all parts, also on two slow cores
  rlox-opt record HEAD --bench '^io' --again
  rlox-opt record v1 --control main~40

Each commit is timed beside a control: one build that stays the same for the whole history of a
machine. It is the control of the newest entry, or else the first commit that is asked for. Commit
and control are called in turn, and the ratio of their times is kept beside the seconds. Then follow
instructions and allocations (by callgrind), and peak memory; and of what a project has beyond its
suite: a short profile of each training run, its planned optimisations before and after, and
criterion. Where a time changed, its layer and function are looked for. No part but the first, the
times, begins once the budget is spent.

A commit is appended when it is finished, so that the same command goes on after Ctrl-C or a crash.
Commits that are recorded already, with the same features and control, are passed over. Of FROM..TO,
commits that failed before, or that change nothing that is measured, are passed over, too. Two
`record` that run at once share the commits between them. Run nothing else meanwhile. Each kind of
machine has a series of its own. `rlox-opt regressions` tells how many commits have no recording.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "record",
        help="measure commits for the history",
        description="Measure commits and append them to the history: times beside a control, "
        "counts, memory, profiles of training.",
        epilog=_EXAMPLES
        + exits.told(
            good="recorded, or there already",
            cannot_tell="also where nothing could be measured",
            interrupted="what is known of the commit is kept",
        ),
    )
    add = parser.add_argument
    add("revisions", metavar="REV", nargs="*", default=["HEAD"], help="a commit, or FROM..TO; with "
        "cargo's features as in REV+simd,threads (default: HEAD)")  # fmt: skip
    add("--budget", metavar="S", type=positive, default=120.0,
        help="seconds of measuring a commit, after its build (default: 120)")  # fmt: skip
    add("--bench", metavar="REGEX", action=Once, type=pattern,
        help="only benchmarks whose name has it; those of training are train.NAME")  # fmt: skip
    add("--features", metavar="LIST", help="cargo's features of commits that name none: shipped "
        "(default), none, or such as simd,threads")  # fmt: skip
    add(
        "--control",
        metavar="REV",
        help="the commit whose time all times are divided by (default: that of the newest entry)",
    )
    add_suite(parser, SUITE_OF_ALL)
    add("--again", action="store_true", help="record commits once more that are recorded already")
    add(
        "--every", action="store_true", help="of FROM..TO also commits that change nothing measured"
    )
    add("--list", action="store_true", help="only tell which commits would be recorded, and why "
        "not the others")  # fmt: skip
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


@dataclass
class Told:
    """What became of the commits: paths of new entries, why others have no numbers, which were
    there already or are another process's, which of a range failed before, and which need none; of
    new entries, what was built otherwise than in the entry before, what notes there are that it has
    not, and what they lack; what was noticed of benchmarks, by name; and how many are of kinds that
    a history does not keep."""

    recorded: dict[str, str] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    passed: list[str] = field(default_factory=list)
    failed_before: list[str] = field(default_factory=list)
    unneeded: list[str] = field(default_factory=list)
    built_unlike: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    lacking: dict[str, str] = field(default_factory=dict)
    noticed: dict[str, str] = field(default_factory=dict)
    unkept: int = 0
    complete: bool = False


def run(arguments: argparse.Namespace) -> int:
    """Record as asked; returns the exit code."""
    from rlox_opt.system.progress import reporter

    told = Told()
    asked = _asked(arguments, told)
    if arguments.list:
        return _list(asked, arguments, told)
    if asked:  # one suite for the whole history
        head = arguments.project.commits.resolve("HEAD")
        arguments.project, _ = measured_by(arguments.project, [head], arguments.suite)
    check_folder(recorded.home(arguments.project))
    with reporter() as progress:
        try:
            if asked:
                _record(asked, arguments, told, progress)
            told.complete = True
        except KeyboardInterrupt:
            progress.end("interrupted")
    if arguments.json:
        print(json.dumps({"schema": 1, **dataclasses.asdict(told)}))
    else:
        say("\n".join(_sentences(told)))
    if not told.complete:
        return INTERRUPTED
    return 0 if told.recorded or told.passed or not asked else CANNOT_TELL


def _list(asked: Sequence[Revision], arguments: argparse.Namespace, told: Told) -> int:
    """Say what would be recorded. Raises UsageError, NotReadError; NotBuiltError of a control."""
    project: Project = arguments.project
    newest = store.last(recorded.home(project))
    control = dict(newest.control) if newest else None
    if arguments.control:
        control = recorded.named(project.builds.build(project.commits.resolve(arguments.control)))
    wanted = asked if control is None else _left(asked, arguments, control, told)
    if arguments.json:
        table = {"wanted": [r.title for r in wanted], "passed": told.passed}
        print(json.dumps({"schema": 1, **table, "unneeded": told.unneeded}))
        return 0
    for revision in wanted:
        say(project.commits.described(revision.commit))
    minutes = math.ceil(len(wanted) * _expected_s(newest, arguments) / 60)
    said = f"{len(wanted)} to record, in some {minutes} minutes"
    say(", ".join([said, *_left_out(told)]) + ".")
    return 0


def _expected_s(newest: Entry | None, arguments: argparse.Namespace) -> float:
    """How long a commit will take: as long as that of the newest entry, if that measured all and so
    will this; otherwise the budget, after a build."""
    if newest and newest.complete and newest.cells and not arguments.bench:
        return newest.seconds
    return _BUILD_S + float(arguments.budget)


def _asked(arguments: argparse.Namespace, told: Told) -> list[Revision]:
    """The revisions, each once; notes those that need no recording, and in `arguments.of_ranges`
    those that are not named themselves. Raises UsageError."""
    project: Project = arguments.project
    asked, named = {}, set()
    for text in arguments.revisions:
        if text.partition("+")[0] == WORKING_TREE:
            raise UsageError(f"{text!r}: is no commit; the history is made of commits")
        if arguments.features not in (None, *recorded.SHIPPED) and "+" not in text:
            text = f"{text}+{arguments.features}"
        of = project.commits.span(text)
        needed = unrecorded.changing(project, of[-1].commit) if is_span(text) else {of[0].commit}
        for revision in of:
            if revision.commit in needed or arguments.every:
                asked[revision.commit, revision.features] = revision
            else:
                told.unneeded.append(revision.title)
        if not is_span(text):
            named.add((of[0].commit, of[0].features))
    arguments.of_ranges = [revision for key, revision in asked.items() if key not in named]
    return [*asked.values()]


def _record(
    asked: Sequence[Revision], arguments: argparse.Namespace, told: Told, progress: Lines
) -> None:
    project: Project = arguments.project
    progress.begin("control")
    control = recorded.choose_control(project, asked, arguments.control)
    progress.end(control.revision.title)

    left = _left(asked, arguments, recorded.named(control), told)
    seconds = _expected_s(store.last(recorded.home(project)), arguments)
    progress.plan([(revision.title, seconds) for revision in left])
    for revision in left:
        progress.begin(revision.title)
        with unrecorded.alone(project, revision) as own:
            missing = _left([revision], arguments, recorded.named(control), Told())
            if own and missing:
                progress.end(_one(revision, control, arguments, told, progress))
            else:
                told.passed.append(revision.title)
                progress.end("another process has it")


def _left(
    asked: Sequence[Revision], arguments: argparse.Namespace, control: dict[str, Any], told: Told
) -> list[Revision]:
    """Those to measure; notes the others."""
    left, whole = [], not arguments.project.settings.left_out.recorded
    for revision in asked:
        of = [*recorded.entries(arguments.project, revision.commit, revision.features, control)]
        if not arguments.again and recorded.hold(of, arguments.bench, whole):
            told.passed.append(revision.title)
        elif not arguments.again and of and not of[-1].cells and revision in arguments.of_ranges:
            told.failed_before.append(revision.title)
        else:
            left.append(revision)
    return left


def _one(
    revision: Revision,
    control: Artefact,
    arguments: argparse.Namespace,
    told: Told,
    progress: Lines,
) -> str:
    """Measure a commit and append its entry; returns how it went, in a few words."""
    from rlox_opt.history import lacking
    from rlox_opt.history.recording import Recording, toolchain

    project: Project = arguments.project
    start = time.monotonic()
    now = datetime.datetime.now(datetime.timezone.utc)
    parent, committed, subject = project.commits.about(revision.commit)
    known = toolchain(project, control)
    entry = Entry(
        commit=revision.commit,
        parent=parent,
        subject=subject,
        committed=committed,
        date=now,
        machine=machine(),
        toolchain=known,
        profile="release",
        features=recorded.SHIPPED if revision.features is None else revision.features,
        control=recorded.named(control),
        seconds=0.0,
        complete=arguments.bench is None,
        cells=(),
        asked=arguments.bench.pattern if arguments.bench else "",
    )
    try:
        progress.note("build")
        builds = dataclasses.replace(project.builds, twins=True)
        built = builds.build(revision, control)
        notes = _notes(project, control, built)
    except (NotBuiltError, UsageError) as error:
        reason = str(error).removeprefix(f"{revision.title} ")
        told.failed[revision.title] = reason
        # The history is published: where it was recorded is nobody's business.
        kept = reason.replace(f"{project.root}{os.sep}", "")
        failures = ({"benchmark": "build", "reason": kept},)
        earlier = [*recorded.entries(project, entry.commit, entry.features, dict(entry.control))]
        if not earlier or earlier[-1].failures != failures:
            store.append(dataclasses.replace(entry, failures=failures), project.history)
        return "does not build"
    for artefact in (control, built):
        os.utime(artefact.folder)  # used last, however long ago it was built
    before, own = recorded.before(project, revision, entry), own_benches(built)
    recording = Recording(
        project,
        built,
        control,
        arguments.bench or project.recorded,
        arguments.budget,
        progress,
        before,
        own != own_benches(control),
    )
    interrupted = False
    try:
        recording.measure()
    except KeyboardInterrupt:
        interrupted = True
    except ContestError as error:
        recording.failures["benchmarks"] = str(error)
    entry = dataclasses.replace(
        entry,
        toolchain=known | toolchain(project, built) | recording.rustc,
        profile=recording.build.get("profile", "release"),
        optimizations=tuple(recording.build.get("features", ())),
        seconds=round(time.monotonic() - start, 1),
        complete=entry.complete and not interrupted,
        stopped=interrupted,
        cells=tuple(recording.cells),
        profiles=recording.profiles,
        failures=tuple({"benchmark": n, "reason": why} for n, why in recording.failures.items()),
        causes=recording.causes,
        built=facts_of(built),
        suite=own or kinds.of(project.configuration).digest(project.suite),
        notes=notes,
    )
    if before and (unlike := entry.built_unlike(before)):
        told.built_unlike[revision.title] = unlike
    known_notes = {*(before.notes if before else ()), *chain(*told.notes.values())}
    if new := [note for note in notes if note not in known_notes]:
        told.notes[revision.title] = new
    told.noticed |= recording.noticed
    if entry.cells or (entry.failures and not interrupted):
        path = store.append(entry, project.history)
    if entry.cells:
        told.recorded[revision.title] = str(path)
        told.unkept = max(told.unkept, recording.unkept)
        if not interrupted and (lacks := lacking.told(entry, recording.skipped)):
            told.lacking[revision.title] = lacks
    elif not interrupted:
        why = "no benchmark of it has such a name" if arguments.bench else "it has none to record"
        if recording.unkept:
            why = "only track_ and mem_ benchmarks, which are not kept in a history"
        told.failed[revision.title] = "; ".join(recording.failures.values()) or why
    if interrupted:
        raise KeyboardInterrupt
    return f"{number_of(len(entry.cells), 'number')}, {number_of(len(entry.profiles), 'profile')}"


def _notes(project: Project, control: Artefact, built: Artefact) -> tuple[str, ...]:
    """What people should know of the two builds and of how they differ, without the folder of the
    project. Raises UsageError as `findings` does."""
    sides = {"base": "the control", "head": "the commit"}
    differ = (
        re.sub(r"\bin (base|head)\b", lambda of: f"in {sides[of[1]]}", text)
        for text in findings(control, built)
    )
    said = dict.fromkeys([*control.notes, *built.notes, *differ])
    return tuple(note.replace(f"{project.root}{os.sep}", "") for note in said)


def _left_out(told: Told) -> list[str]:
    """Why there is no new entry, and of how many."""
    whys = (
        (told.passed, "there already, or being recorded by another process"),
        (told.failed, "without numbers"),
        (told.failed_before, "that failed before; name them to try again"),
        (told.unneeded, "that change nothing measured"),
    )
    return [f"{len(of)} {why}" for of, why in whys if of]


def _sentences(told: Told) -> Iterator[str]:
    for title, why in told.failed.items():
        yield f"{title}: {why}"
    for title, unlike in told.built_unlike.items():
        yield f"{title}: built otherwise than the recording before: {'; '.join(unlike)}"
    yield from (f"{title}: note: {of}" for title, notes in told.notes.items() for of in notes)
    yield from (f"{title}: {lacks}" for title, lacks in told.lacking.items())
    yield from (f"{name}: {what}" for name, what in told.noticed.items())
    if told.unkept == 1:
        yield "1 track_ or mem_ benchmark is not kept in a history"
    elif told.unkept:
        yield f"{told.unkept} track_ and mem_ benchmarks are not kept in a history"
    said = [f"{len(told.recorded)} recorded"] if told.recorded else []
    said += _left_out(told)
    yield f"{', '.join(said) or 'nothing recorded'}."
    if told.recorded:
        yield str(Path(next(reversed(told.recorded.values()))).parent)
