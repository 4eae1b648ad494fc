"""`rlox-opt bisect`: which commit made a benchmark slower?"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
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
from rlox_opt.project.builders.criterion import own_benches
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
but may take 160 restarts. Searched are BAD and its first parents, as far as GOOD does not contain
them: a merge stands for all that it brought in. Commits that do not build, that cannot be compared
with GOOD, or at which the benchmark fails, are passed over, with the reason.
"""
_BEARABLE = (ContestError, NotBuiltError, UsageError)  # at a commit between GOOD and BAD
_OTHER = "the suite does not compile there, and its own benches may do something else"


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
    last known good (-1 is GOOD), `high` of the first known bad. `comparisons` tell what was asked,
    `skipped` why commits were passed over."""

    good: str
    commits: list[str]
    before: str = ""  # the commit before the first of them; "" if that is GOOD
    benchmark: str = ""  # known after the first comparison
    built: Mapping[str, Any] = field(default_factory=dict)  # how GOOD and BAD were
    low: int = -1
    high: int = 0
    verdict: str = "undecided"
    change: Judgement | None = None
    comparisons: list[dict[str, Any]] = field(default_factory=list)
    skipped: dict[str, str] = field(default_factory=dict)
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


def begun(commits: Commits, good: Revision, bad: Revision) -> Search:
    """A search of which nothing is known yet. Raises UsageError as `Commits.between` does."""
    search = Search(good.commit, commits.between(good, bad))
    search.high = len(search.commits) - 1
    before, *_ = commits.about(search.commits[0])
    if before and before != good.commit:
        search.before = before
        search.notes.append(
            f"{good.title} is not among the first parents of {bad.title}: what its own branch "
            "changed is a part of each comparison with it"
        )
    return search


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
    search = begun(commits, good, bad)
    search.notes += asked_notes(project, suite)
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
            UsageError: no such benchmark, or GOOD and BAD cannot be compared.
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
            between = self._next_that_builds({own_benches(good), own_benches(bad)})
            if between is None:
                return  # nothing that is left between them can be measured
            index, artefact = between
            try:
                there, _ = self._compare(good, artefact, partial(Between, bad=readings))
            except _BEARABLE as error:
                search.skipped[search.commits[index]] = _reason(error)
                continue
            if there.verdict == "undecided":
                return
            if there.verdict == "same":
                search.low = index
            else:
                search.high = index
        try:
            self._confirm(good, bad, ends)
        except _BEARABLE as error:
            search.notes.append(f"not compared with the commit before: {_reason(error)}")

    def _confirm(self, good: Artefact, bad: Artefact, ends: Judgement) -> None:
        """Compare the commit that is left with the one before it, by the same benches."""
        search = self.search
        previous = search.commits[search.low] if search.low >= 0 else search.before
        before = self._build(previous) if previous else good
        last = search.high == len(search.commits) - 1
        after = bad if last else self._build(search.commits[search.high])
        known = before is good and after is bad
        search.change = ends if known else self._compare(before, after, Patient)[0]
        if search.change.verdict == ends.verdict and own_benches(before) == own_benches(after):
            search.verdict = "found"

    def _next_that_builds(self, own: Collection[str]) -> tuple[int, Artefact] | None:
        """The next commit with the suite's benches, or with those of one of the ends (`own`)."""
        for index in self.search.candidates():
            commit = self.search.commits[index]
            try:
                built = self._build(commit)
            except _BEARABLE as error:
                self.search.skipped[commit] = _reason(error)
                continue
            if own_benches(built) in own:
                return index, built
            self.search.skipped[commit] = _OTHER
        return None

    def _build(self, commit: str) -> Artefact:
        self._progress.begin(f"build of {commit[:10]}")
        try:
            builds = builds_for(self._project, self._bench)
            built = builds.build(replace(self._bad, text=commit, commit=commit), self._good)
        except (NotBuiltError, UsageError):
            self._progress.end("does not build")
            raise
        self._progress.end("ready")
        self.search.notes = [*dict.fromkeys([*self.search.notes, *built.notes])]
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


def _reason(error: Exception) -> str:
    """Why a commit cannot be measured, in a line."""
    return "does not build" if isinstance(error, NotBuiltError) else f"{error}".partition("\n")[0]


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
        "skipped": [*search.skipped],
        "reasons": search.skipped,
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
    for why in dict.fromkeys(search.skipped.values()):
        alike = ", ".join(commit[:10] for commit, of in search.skipped.items() if of == why)
        yield f"passed over: {alike}: {why}"
    if search.verdict == "found" and search.change:
        yield f"{commits.described(search.commits[search.high])}"
        yield f"made it {search.change.verdict}: {search.change.ratio:.3f} times its time before."
    elif search.verdict == "no change":
        yield "Undecided: GOOD and BAD do not differ enough to look for a commit between them."
    else:
        yield f"Undecided: it is one of {len(search.left())} commits:"
        yield from (f"  {commits.described(commit)}" for commit in search.left())
