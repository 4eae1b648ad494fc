"""`rlox-opt bisect`: which commit made a benchmark slower?"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from rlox_opt.cli.sides import (
    SUITE_OF_ALL,
    add_environment,
    add_suite,
    asked_notes,
    builds_for,
    in_environments,
    in_one_environment,
    measured_by,
)
from rlox_opt.cli.types import Once
from rlox_opt.harness.restarts import ContestError
from rlox_opt.harness.sequential import Comparison
from rlox_opt.project import parity, thresholds
from rlox_opt.project.builds import Artefact, NotBuiltError
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import READING, named, side_by_side
from rlox_opt.stats.family import Judgement, judge
from rlox_opt.stats.paired import FLAGGED, LOOKS
from rlox_opt.stats.student import t_tail, welch
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD, INTERRUPTED
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_EXAMPLES = """\
examples:
  rlox-opt bisect HEAD~20 HEAD --bench 'data_plane.Gae.time_gae(2048)'
  rlox-opt bisect HEAD~64 HEAD --bench time_gae --json
  rlox-opt bisect v1.0 HEAD --bench time_gae --python 3.12 --with numpy==1.26

First GOOD is compared with BAD. Then GOOD is compared with the commit in the middle of those that
are left, until it is known whether that commit takes as long as GOOD or as long as BAD. At last the
commit that is found is compared with the one before it. A comparison is that of `rlox-opt diff`,
but may take 160 restarts. Commits that do not build, or at which the benchmark fails, are passed
over.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "bisect",
        help="find the commit that made a benchmark slower",
        description="Find, by paired tests, the commit at which a benchmark's time changed.",
        epilog=_EXAMPLES
        + exits.told(good="found", cannot_tell="undecided", interrupted="what is known is printed"),
    )
    parser.add_argument("good", metavar="GOOD", help="a revision from before the change; "
        "with cargo's features as in REV+opt-p5, which BAD must name, too")  # fmt: skip
    parser.add_argument("bad", metavar="BAD", help="a descendant of it, after the change")
    parser.add_argument(
        "--bench", metavar="NAME", action=Once, required=True,
        help="one benchmark: its name, or a part of it that no other has",
    )  # fmt: skip
    add_suite(parser, SUITE_OF_ALL)
    add_environment(parser)
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


@dataclass
class Patient(Comparison):
    """One undecided comparison ends a search, so each is given more time than in `diff`."""

    looks: Sequence[int] = (*LOOKS, 80, 160)


@dataclass
class Ends(Patient):
    """GOOD against BAD, until all of the interval lies beyond half of the difference: who is held
    against both must know both."""

    def look(self) -> None:
        super().look()
        for name, of in self.until_look().items():
            judgement = self.judgements[name]
            if judgement.ci99 and len(of) < self.looks[-1] and judgement.verdict in FLAGGED:
                nearest = min(abs(math.log(end)) for end in judgement.ci99)
                if nearest < abs(math.log(judgement.ratio)) / 2:
                    self.judgements[name] = replace(judgement, verdict="undecided")


@dataclass
class Between(Patient):
    """GOOD against a commit between GOOD and BAD: "same" if it takes as long as GOOD, "slower" or
    "faster" if as long as BAD, whose log-ratios to GOOD are `bad`."""

    bad: Sequence[float] = ()

    def look(self) -> None:
        self.judgements = {}
        for name, of in self.until_look().items():
            judgement = judge({name: of}, band=0.0, level=self.level)[name]
            to_bad, error, df = welch(of, self.bad)
            if abs(to_bad) > abs(math.log(judgement.ratio)):  # closer to GOOD
                refused = t_tail(abs(to_bad) / error, df) <= self.level
                judgement = replace(judgement, verdict="same" if refused else "undecided")
            self.judgements[name] = judgement


@dataclass
class Search:
    """What is known: `commits` are those after GOOD in order, up to BAD; `low` is the index of the
    last known good (-1 is GOOD), `high` of the first known bad. `comparisons` tell what was asked.
    """

    good: str
    commits: list[str]
    benchmark: str = ""  # known after the first comparison
    built: Mapping[str, Any] = field(default_factory=dict)  # how GOOD and BAD were
    low: int = -1
    high: int = 0
    verdict: str = "undecided"
    change: Judgement | None = None
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def left(self) -> list[str]:
        """The commits of which one is the first bad."""
        return self.commits[self.low + 1 : self.high + 1]

    def candidates(self) -> Iterator[int]:
        """What could be asked next: the middle of what is left, then what is closest to it, that
        has not been passed over."""
        middle = (self.low + self.high) // 2
        inner = range(self.low + 1, self.high)
        for index in sorted(inner, key=lambda index: abs(index - middle)):
            if self.commits[index] not in self.skipped:
                yield index


def most_comparisons(commits: int) -> int:
    """With one for the ends, and one for the commit found."""
    return math.ceil(math.log2(commits)) + 2 if commits > 1 else 2


def run(arguments: argparse.Namespace) -> int:
    """Search; returns the exit code."""
    from rlox_opt.system.progress import reporter

    project: Project = arguments.project
    commits = project.commits
    ends = [in_one_environment(project, of, arguments) for of in (arguments.good, arguments.bad)]
    good, bad = ends
    if good.features != bad.features:
        raise UsageError(
            f"GOOD and BAD: {good.text} and {bad.text} ask for different features; every commit "
            "between them is built with the same ones, so name the same for both, or none"
        )
    project, suite = measured_by(project, [bad], arguments.suite)
    project, suite = in_environments(project, suite, ends)
    for end in ends:
        project.builds.check(end)
    search = Search(good.commit, commits.between(good, bad))
    search.high = len(search.commits) - 1
    search.notes = [*asked_notes(project, suite)]
    with reporter() as progress:
        try:
            Bisection(project, search, arguments.bench, progress, bad).run()
            code = GOOD if search.verdict == "found" else CANNOT_TELL
        except KeyboardInterrupt:
            code = INTERRUPTED
    if arguments.json:
        print(json.dumps(facts(search)))
    else:
        say("\n".join(sentences(search, commits)))
    return code


class Bisection:
    """Narrows a search by comparisons. Each commit is built as `bad` is: with its features, in an
    environment like its own."""

    def __init__(
        self, project: Project, search: Search, bench: str, progress: Lines, bad: Revision
    ) -> None:
        self._project = project
        self._bad = bad
        self._good: Artefact | None = None
        self.search = search
        self._bench = bench
        self._progress = progress
        self._most = most_comparisons(len(search.commits))

    def run(self) -> None:
        """Until one commit is left, nothing more can be told, or the comparisons are used up.

        Raises:
            ContestError: the benchmark fails in GOOD or in BAD.
            NotBuiltError: GOOD or BAD does not build.
            UsageError: no such benchmark.
        """
        search = self.search
        good = self._good = self._build(search.good)
        bad = self._build(search.commits[-1])
        search.built = parity.facts(good, bad)
        ends, readings = self._compare(good, bad, Ends)
        if ends.verdict not in FLAGGED:
            search.verdict = "no change"
            return
        while search.high - search.low > 1:
            between = self._next_that_builds()
            if between is None:
                return  # nothing that is left between them can be measured
            index, artefact = between
            try:
                there, _ = self._compare(good, artefact, partial(Between, bad=readings))
            except ContestError:
                search.skipped.append(search.commits[index])
                continue
            if there.verdict == "undecided":
                return
            if there.verdict == "same":
                search.low = index
            else:
                search.high = index
        before = self._build(search.commits[search.low]) if search.low >= 0 else good
        search.change = (
            ends
            if before is good and search.high == len(search.commits) - 1
            else self._compare(before, self._build(search.commits[search.high]), Patient)[0]
        )
        if search.change.verdict == ends.verdict:
            search.verdict = "found"

    def _next_that_builds(self) -> tuple[int, Artefact] | None:
        for index in self.search.candidates():
            commit = self.search.commits[index]
            try:
                return index, self._build(commit)
            except NotBuiltError:
                self.search.skipped.append(commit)
        return None

    def _build(self, commit: str) -> Artefact:
        self._progress.begin(f"build of {commit[:10]}")
        try:
            builds = builds_for(self._project, self._bench)
            built = builds.build(replace(self._bad, text=commit, commit=commit), self._good)
        except NotBuiltError:
            self._progress.end("does not build")
            raise
        self._progress.end("ready")
        return built

    def _compare(
        self, base: Artefact, head: Artefact, kind: Callable[[Sequence[str]], Comparison]
    ) -> tuple[Judgement, Sequence[float]]:
        """The verdict of that kind of comparison, and the log-ratios that it was found by."""
        differs = parity.findings(base, head)
        asked = len(self.search.comparisons) + 1
        title = f"{asked} of at most {self._most}: {head.revision.commit[:10]}"
        self._progress.begin(title)
        with side_by_side(self._project, base, head) as packages:
            self._progress.note(READING)
            packages.beginning = self.search.benchmark
            name = self.search.benchmark = named(self._bench, packages.names("time"), "--bench")
            comparison = kind([name])
            comparison.own = thresholds.own(self._project.settings.thresholds, [name])
            comparison.run(
                packages.contests,
                tell=lambda n, *_: self._progress.note(f"restart {n}", n / comparison.looks[-1]),
            )
            told = [f"{of}: {what}" for of, what in packages.told().items()]
            self.search.notes = [*dict.fromkeys([*self.search.notes, *told])]
        if name in comparison.failures:
            failure = comparison.failures[name]
            raise ContestError(
                f"{name}: fails in {failure.side or 'one of them'}: {failure.reason}"
            )
        judgement = comparison.judgements[name]
        self._progress.end(judgement.verdict)
        self.search.comparisons.append(
            {
                "base": base.revision.commit,
                "head": head.revision.commit,
                "ratio": judgement.ratio,
                "ci99": judgement.ci99,
                "verdict": judgement.verdict,
                "restarts": judgement.restarts,
                "differs": differs,
            }
        )
        return judgement, comparison.until_look()[name]


def facts(search: Search) -> dict[str, Any]:
    """What `--json` prints: `commit` is the first bad one, or null."""
    change = search.change if search.verdict == "found" else None
    return {
        "schema": 1,
        "good": search.good,
        "bad": search.commits[-1],
        "benchmark": search.benchmark,
        "built": search.built,
        "verdict": search.verdict,
        "commit": search.commits[search.high] if change else None,
        "ratio": change and change.ratio,
        "ci99": change and change.ci99,
        "left": search.left(),
        "skipped": search.skipped,
        "comparisons": search.comparisons,
        "notes": search.notes,
    }


def sentences(search: Search, commits: Commits) -> Iterator[str]:
    """The same for people."""
    for asked in search.comparisons:
        low, high = asked["ci99"] or (math.nan, math.nan)
        yield (
            f"{asked['base'][:10]} → {asked['head'][:10]}  {asked['ratio']:.3f} "
            f"({low:.3f}–{high:.3f}), {asked['restarts']} restarts"
        )
        yield from (f"  {told}" for told in asked["differs"])
    yield from search.notes
    if search.skipped:
        skipped = ", ".join(commit[:10] for commit in search.skipped)
        yield f"passed over, since they do not build or the benchmark fails: {skipped}"
    if search.verdict == "found" and search.change:
        yield f"{commits.described(search.commits[search.high])}"
        yield f"made it {search.change.verdict}: {search.change.ratio:.3f} times its time before."
    elif search.verdict == "no change":
        yield "Undecided: GOOD and BAD do not differ enough to look for a commit between them."
    else:
        yield f"Undecided: it is one of {len(search.left())} commits:"
        yield from (f"  {commits.described(commit)}" for commit in search.left())
