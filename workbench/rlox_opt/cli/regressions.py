"""`rlox-opt regressions`: what became slower and still is, and whether that was meant."""

from __future__ import annotations

import argparse
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from rlox_opt.cli.types import Once, pattern
from rlox_opt.history import acknowledged, store, unrecorded
from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.history.store import UNITS, Entry
from rlox_opt.project import calibration
from rlox_opt.project.project import Project
from rlox_opt.sampling.layers import TITLES
from rlox_opt.system import exits
from rlox_opt.system.exits import DIFFERENCE, GOOD
from rlox_opt.system.output import few, say
from rlox_opt.system.patterns import matches
from rlox_opt.system.usage import UsageError
from rlox_opt.views import units

if TYPE_CHECKING:
    from rlox_opt.history.series import Series
    from rlox_opt.stats.levels import Change

_EXAMPLES = """\
examples:
  rlox-opt regressions
  rlox-opt regressions --bench gae --all
  rlox-opt regressions --json |
    jq '.open[] | select(.unexplained) | .commit'

A level change is a commit after which a benchmark takes another time than before, and goes on doing
so. Those of the recorded history (`rlox-opt record`) are listed, as long as more than half of the
change is left today. ratio = new level / old level, with its 99 % interval. Above 1 a benchmark is
slower; steps per second are slower below 1. Where commits before the first recording at the new
level have none, each of them may be the cause: "after A, up to B". An alarm has fewer than five
commits at its new level, and may turn out to be chance. Counts repeat: their changes are confirmed
at once. A regression that is intended is acknowledged in a file, with its kind and the largest
ratio that is accepted; a larger one is listed again:

  [[acknowledged]]
  benchmark = "data_plane.Gae.*"
  kind = "time"
  ratio = 1.05
  reason = "checks its bounds now"
  commit = "1a2b3c4d5e"

Without `commit`, the commit that adds the entry to the file is meant, so that a change can bring
its own acknowledgement. `diff` and `gate` read this file, too.

Where the suite or the environment changed as well, a line says so: the code may be the same. Where
no commit asked for the environment's change, counts and memory are listed as measured otherwise,
and count as explained. Others do not: their control ran in the same environment.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "regressions",
        help="list benchmarks that became slower, and fail where nobody has said why",
        description="List the benchmarks that became slower in the recorded history and still are: "
        "since which commit, by how much, and in which layer.",
        epilog=_EXAMPLES
        + exits.told(
            good="nothing became slower, or all of it is acknowledged or measured otherwise",
            difference="a regression is neither",
            cannot_tell="also where there is no history",
        ),
    )
    add = parser.add_argument
    add("--bench", metavar="REGEX", action=Once, type=pattern, default=re.compile(""),
        help="only benchmarks whose name has it")  # fmt: skip
    add("--all", action="store_true", help="list benchmarks that became faster, too")
    add("--history", metavar="FOLDER", type=Path, default=project.history,
        help="the folder of the entries (default: %(default)s)")  # fmt: skip
    add("--acknowledged", metavar="FILE", type=Path,
        help=f"default: {project.acknowledged}, where there is one")  # fmt: skip
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """List; returns the exit code."""
    from rlox_opt.history import series

    project: Project = arguments.project
    known = acknowledgements(project, arguments.acknowledged)
    entries = [entry for _, entry in store.entries(arguments.history)]
    if not entries:
        raise UsageError(f"--history {arguments.history}: has no entries; `rlox-opt record`")
    kept = store.newest(entries)
    line = order(project, entries, _say)
    known = acknowledged.whole(known, line or ())
    numbers = {commit: number for number, commit in enumerate(line or ())}
    least = calibration.smallest(project.records)
    of = series.of_store(entries, line, least, project.settings.thresholds)
    lacking = unrecorded.of(project, {entry.commit for entry in entries}, line or ())
    rows = [
        _row(one, change, known, kept, numbers)
        for one in of
        for change in one.changes
        if one.open(change)
    ]
    unused = [  # of what is recorded at all
        entry
        for entry in known
        if entry.kind in UNITS
        and not any(entry.fits(one, c, numbers) for one in of for c in one.changes)
    ]
    chosen = [one for one in of if arguments.bench.search(one.benchmark)]
    if of and not chosen:
        raise UsageError(
            f"--bench: {arguments.bench.pattern!r} matches no benchmark of the history; there are "
            + few(sorted({one.benchmark for one in of}))
        )
    shown = [row for row in rows if arguments.bench.search(row["benchmark"])]
    unexplained = sum(row["unexplained"] for row in shown)
    code = DIFFERENCE if unexplained else GOOD
    if arguments.json:
        listed = [row for row in shown if row["slower"] or arguments.all]
        beside = [structs.asdict(entry) for entry in unused]
        told = {"open": listed, "unused": beside, "unrecorded": lacking and asdict(lacking)}
        print(json.dumps(told | {"exit_code": code}, indent=1))
    else:
        for text in lines(shown, arguments.all):
            say(text)
    newest = numbers[lacking.newest] if lacking else -1
    for entry in unused:
        what = f"acknowledged {entry.kind} of {entry.benchmark}"
        at = f"{what} at {entry.commit[:10]}"
        if not entry.commit:
            _say(f"{what}: names no commit, and no commit has brought it in yet")
        elif numbers.get(entry.commit, -1) > newest:
            _say(f"{at}: neither this commit nor a later one is recorded yet")
        else:
            remedy = project.commits.unshallow() or _remedy(entry, of, numbers)
            _say(f"{at}: fits no change{remedy}")
    for unsearched in series.unsearched(chosen):
        _say(unsearched)
    if lacking and lacking.without:
        _say(f"{lacking}")
    _say(f"{unexplained or 'none'} unexplained, in {len(chosen)} series of {len(kept)} recordings")
    return code


def acknowledgements(project: Project, path: Path | None) -> list[Acknowledgement]:
    """Those of a file, each with its commit; without a file, of the project's, where there is
    one."""
    if path is None and not project.acknowledged.exists():
        return []
    path = path or project.acknowledged
    return acknowledged.dated(project, path, acknowledged.load(path))


def _remedy(entry: Acknowledgement, of: Sequence[Series], numbers: Mapping[str, int]) -> str:
    """What to do with an entry that fits no change: nothing, while one may still be found."""
    from rlox_opt.history.series import ABSOLUTE
    from rlox_opt.stats.levels import SHORTEST

    since = numbers.get(entry.commit, -1)
    readings = [
        sum(numbers.get(point.commit, since) >= since for point in one.points)
        for one in of
        if one.kind == entry.kind and matches(one.benchmark, entry.benchmark)
    ]
    if entry.kind not in ABSOLUTE and readings and max(readings) < SHORTEST:
        return f" yet: {SHORTEST} recordings since then would show one"
    return "; remove the entry"


def order(
    project: Project, entries: Sequence[Entry], say: Callable[[str], None]
) -> list[str] | None:
    """The line of HEAD, where the entries are of this repository; says what is not on it."""
    line, recorded = project.commits.line(), {entry.commit for entry in entries}
    off = recorded.difference(line)
    if off == recorded:
        return None
    if off:
        why = project.commits.unshallow()
        say(f"{len(off)} recorded commits are not on the line of HEAD; left out{why}")
    return line


def _row(
    one: Series,
    change: Change,
    known: Sequence[Acknowledgement],
    kept: Mapping[tuple[str, tuple[str, ...], str], Entry],
    numbers: Mapping[str, int],
) -> dict[str, Any]:
    from rlox_opt.history.series import possible

    point = one.points[change.index]
    entry = kept[point.machine, one.features, point.commit]
    answer = acknowledged.answer(known, one, change, numbers)
    reason = answer.reason if answer and answer.excuses(change.ratio) else None
    after = one.points[change.before].commit
    besides, drifted = entry.besides(kept[point.machine, one.features, after])
    return {
        "benchmark": one.benchmark,
        "kind": one.kind,
        "features": list(one.features),
        "machine": point.machine,
        "commit": point.commit,
        "subject": point.subject,
        "after": after,
        "commits": possible(after, point.commit, entry.parent, numbers),
        "ratio": change.ratio,
        "ci99": list(change.ci99),
        "p": change.p,
        "state": change.state,
        "slower": one.slower(change),
        "layer": entry.causes.get(one.benchmark, {}).get("layer"),
        "acknowledged": reason,
        "acknowledged_to": answer.ratio if answer else None,
        "besides": besides,
        "unexplained": one.unexplained(change, reason is not None, drifted),
    }


def lines(rows: Sequence[Mapping[str, Any]], every: bool = False) -> Iterator[str]:
    """What is not explained, what is, and what became faster; the largest first."""
    slower = [row for row in rows if row["slower"]]
    unexplained = [row for row in slower if row["unexplained"]]
    meant = [row for row in slower if row["acknowledged"] is not None]
    otherwise = [row for row in slower if row not in unexplained and row not in meant]
    for title, of in (
        ("Regressions", unexplained),
        ("Measured otherwise", otherwise),
        ("Acknowledged", meant),
        ("Improvements", [row for row in rows if not row["slower"]] if every else []),
    ):
        if of:
            yield title
        for row in sorted(of, key=lambda row: -abs(math.log(row["ratio"]))):
            ratio = units.estimate(row["ratio"], row["ci99"])
            cause = f"in {TITLES.get(row['layer'], row['layer'])}" if row["layer"] else None
            features = ",".join(row["features"]) or "none"
            yield f"  {ratio}, {row['state']}: {row['benchmark']}"
            yield f"      {_since(row)}"
            where = (row["kind"], features, row["machine"], cause)
            yield f"      {' · '.join(filter(None, where))}"
            yield from (f"      {told}" for told in row["besides"])
            if row["acknowledged"] is not None:
                yield f"      {row['acknowledged']}"
            elif row["acknowledged_to"] is not None:
                yield f"      more than the {row['acknowledged_to']:g}× that is acknowledged"


def _since(row: Mapping[str, Any]) -> str:
    """The commit that made the change, or those that may have."""
    commit, commits = row["commit"][:10], row["commits"]
    if commits == 1:
        return f"since {commit} {row['subject']}"
    return f"after {row['after'][:10]}, up to {commit}" + f" ({commits} commits)" * bool(commits)


def _say(text: str) -> None:
    say(f"rlox-opt regressions: {text}", stderr=True)
