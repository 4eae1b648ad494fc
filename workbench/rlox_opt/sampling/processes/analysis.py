"""Why a run of several processes takes as long as it does: which threads wait for which, and how
much faster the whole would be if one part were faster."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import Any

from rlox_opt.sampling.processes.gains import gains
from rlox_opt.sampling.processes.programs import programs
from rlox_opt.sampling.processes.run import RecordedRun
from rlox_opt.sampling.processes.states import Division, divide
from rlox_opt.sampling.processes.tracks import MAIN, Track, tracks
from rlox_opt.sampling.processes.watch import Watch

MOST_EVENTS = 8_000  # that are replayed; some twenty replays of them take seconds
_BUSY = 0.05  # a note is given if threads were kept off the cores for more of their time
_FAR = 0.1  # a note is given if a replay's length differs from the record's by more
_GOALS = ("rank", "main")


def analyse(run: RecordedRun, from_ns: int = 0, until_ns: int = 1 << 62) -> dict[str, Any] | None:
    """The table of a run, or of a part of it. None where no thread recorded anything in that time.

    `threads` and `kinds` (equal threads as one, with their spread) are of the whole time. `gains`,
    `critical_path` and `work` (CPU seconds by component and phase) are of the part that was
    replayed. `notes` say what limits these figures. A single process without phases has no parts to
    distinguish, so it is not replayed: `replayed` is None, and those three are empty.
    """
    every = tracks(run, from_ns, until_ns)
    if not every:
        return None
    watch = Watch.load(run.folder)
    divisions = divide(every, watch)
    notes = _notes(run, divisions)
    told: dict[str, Any] = {"replayed": None, "work": {}, "gains": [], "critical_path": {}}
    if len(run.processes) > 1 or any(track.blocks for track in every):
        begin, end = replayed(every)
        part = tracks(run, max(from_ns, begin), min(until_ns, end))
        told, doubts = _replayed(run, part, watch)
        notes += doubts
    return {
        "wall_s": (max(t.end_ns for t in every) - min(t.begin_ns for t in every)) * 1e-9,
        "threads": [_row(division) for division in divisions],
        "kinds": kinds(divisions),
        "notes": notes,
        **told,
    }


def _replayed(
    run: RecordedRun, part: Sequence[Track], watch: Watch
) -> tuple[dict[str, Any], list[str]]:
    """What the replay of a part shows, and sentences on its limits."""
    notes = []
    spent = {division.track: division.spent for division in divide(part, watch)}
    wanted = goals(part)
    goal = {id(track) for track in wanted}
    recorded = programs(part, lambda track: spent[track.title], lambda track: id(track) in goal)
    worth = gains(recorded, _cores(run))
    took = (max(t.end_ns for t in wanted) - min(t.begin_ns for t in part)) * 1e-9
    if abs(worth.seconds - took) > _FAR * took:
        notes.append(
            f"The replay takes {worth.seconds:.2f} s for what took {took:.2f} s: something that "
            "was not recorded holds it up or lets it go, and the gains are to be doubted."
        )
    if worth.stuck:
        notes.append(f"The replay lost {', '.join(worth.stuck)}, who wait for what none sent.")
    told = {
        "replayed": {"recorded_s": took, "replayed_s": worth.seconds},
        "work": worth.work,
        "gains": [asdict(gain) for gain in worth.gains],
        "critical_path": worth.path,
    }
    return told, notes


def _cores(run: RecordedRun) -> int:
    return int(run.about.machine.get("cores") or len(os.sched_getaffinity(0)))


def replayed(every: Sequence[Track]) -> tuple[int, int]:
    """The part of the run that is replayed: its end, with `MOST_EVENTS` events at the most."""
    ends = sorted(exchange.end_ns for track in every for exchange in track.exchanges)
    last = max(track.end_ns for track in every)
    if len(ends) <= MOST_EVENTS:
        return min(track.begin_ns for track in every), last
    return ends[-MOST_EVENTS], last


def goals(every: Iterable[Track]) -> list[Track]:
    """The threads that end the run: those of the ranks, or of the first process."""
    every = list(every)
    for role in _GOALS:
        if threads := [t for t in every if t.role.split(" of ")[0] == role and t.thread == MAIN]:
            return threads
    return every


def kinds(divisions: Sequence[Division]) -> list[dict[str, Any]]:
    """Equal threads as one row: their number, the mean of each share of their time, and the lowest
    and highest busy share."""
    by_kind: defaultdict[str, list[Division]] = defaultdict(list)
    for division in divisions:
        if division.wall > 0:
            by_kind[division.kind].append(division)
    rows = []
    for kind, equal in by_kind.items():
        busy = [division.busy / division.wall for division in equal]
        rows.append(
            {
                "kind": kind,
                "threads": len(equal),
                "busy": fmean(busy),
                "spread": [min(busy), max(busy)],
                "kept": fmean(d.kept / d.wall for d in equal),
                "waiting": fmean(d.waiting / d.wall for d in equal),
                "idle": fmean(d.idle / d.wall for d in equal),
                "waits": _waits(equal),
            }
        )
    return sorted(rows, key=lambda row: -row["busy"] * row["threads"])


def _waits(equal: Sequence[Division]) -> list[dict[str, Any]]:
    """What the threads waited for, as shares of their time, the largest first."""
    shares: defaultdict[tuple[str, str, str], float] = defaultdict(float)
    wall = sum(division.wall for division in equal)
    for division in equal:
        for wait in division.waits:
            shares[wait.on, wait.what, wait.whom] += wait.seconds / wall
    ranked = sorted(shares.items(), key=lambda item: -item[1])
    return [{"on": on, "what": what, "whom": whom, "share": s} for (on, what, whom), s in ranked]


def _row(division: Division) -> dict[str, Any]:
    table = asdict(division)
    del table["asleep"], table["running"]
    return table


def _notes(run: RecordedRun, divisions: Sequence[Division]) -> list[str]:
    notes = []
    if any(len(process.recorded) > 1 for process in run.processes):
        notes.append(
            "Spans of some seconds only were kept: what was waited for in the others counts as "
            "busy, and the gains are to be doubted."
        )
    wall = sum(division.wall for division in divisions)
    if (kept := sum(division.kept for division in divisions)) > _BUSY * wall:
        notes.append(
            f"For {100 * kept / wall:.0f} % of their time threads were kept off the cores. Where "
            "other programs had them, a replay, which has the cores to itself, is quicker."
        )
    if not all(division.watched for division in divisions):
        notes.append(
            "Nobody looked at some threads from outside: of those, time outside noted waits counts "
            "as busy, and waiting for the interpreter is not told apart."
        )
    return notes
