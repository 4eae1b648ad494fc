"""Answers the three questions of `rlox-opt test`, step by step, and prints what was found."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rlox_opt.plan.features import Build
from rlox_opt.plan.testing import agreement, every_build, planted
from rlox_opt.plan.testing.agreement import Agreement
from rlox_opt.project import cards
from rlox_opt.project.project import Project
from rlox_opt.system.commands import CannotTell, CompileError
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, INTERRUPTED
from rlox_opt.system.files import read_text
from rlox_opt.system.output import say
from rlox_opt.system.progress import Lines
from rlox_opt.system.usage import UsageError

_SCHEMA = 1


@dataclass(frozen=True)
class Answer:
    """What was found. `status` is the exit code, and `facts` is what `--json` prints. The other
    fields are for people: a table under `columns`, a last line, and the output of what failed."""

    status: int
    facts: Mapping[str, Any]
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    verdict: str
    behind: Sequence[str]

    def show(self, as_json: bool) -> None:
        """Print it to stdout; the output of failures goes to stderr."""
        if as_json:
            print(json.dumps({"schema": _SCHEMA, **self.facts}, indent=1))
        else:
            from rlox_opt.views.grid import Grid, console

            figures = self.columns[-1:] == ("seconds",)
            console().print(Grid(self.columns, self.rows, len(self.columns) - figures))
            say(f"\n{self.verdict}")
        for text in self.behind:
            say(f"\n{text}", stderr=True)


def of_agreement(project: Project, ids: Sequence[str], progress: Lines) -> Answer:
    """Do the twins of `ids` agree? What was found before Ctrl-C is told; so is a difference, where
    what comes after it cannot be tested."""
    every, held = cards.load(project), project.installed.paired()
    chosen = [card for card in every if card.id in ids]
    by_profile = {card.id: card.seam.profiles for card in chosen if card.seam.profiles}
    paired = [id_ for id_ in ids if id_ in held]
    progress.plan([(step, 0.0) for step in ("Rust", "Python", *by_profile)])
    in_rust: dict[str, Agreement] = {}
    in_python: dict[str, Agreement] = {}
    interrupted, broken = False, list[str]()
    try:
        progress.begin("Rust")
        in_rust |= agreement.rust(project, paired, progress.note) if paired else {}
        progress.end(_count(in_rust))
        progress.begin("Python")
        loop = [card.id for card in chosen if not card.in_build]
        in_python |= agreement.python(project, [*paired, *loop], progress.note)
        progress.end(_count(in_python))
        for id_, profiles in by_profile.items():
            progress.begin(id_)
            in_rust[id_] = agreement.under(project, profiles, progress.note)
            progress.end(" and ".join(profiles))
    except KeyboardInterrupt:
        interrupted = True
    except (CannotTell, UsageError) as problem:
        if all(of.passed is not False for of in (*in_rust.values(), *in_python.values())):
            raise
        broken.append(str(problem))
    complete, asked = not interrupted and not broken, len(ids)
    if not complete:
        ids = [id_ for id_ in ids if id_ in in_rust or id_ in in_python]

    rows = [(id_, in_rust.get(id_), in_python.get(id_)) for id_ in ids]
    both = {id_: agreement.together(outcomes) for id_, *outcomes in rows}
    by_word = {word: [id_ for id_ in ids if both[id_].word == word] for word in agreement.WORDS}
    verdict = "; ".join(_told(word, of, both) for word, of in by_word.items() if of)
    if complete and by_word[agreement.AGREE] == list(ids):
        verdict = "all twins agree"
    if not complete:
        verdict = ": ".join(filter(None, (f"{len(ids)} of {asked} were tested", verdict)))
    if paired and agreement.stale(project):
        verdict += "\nPython tested an extension older than the Rust sources; make setup builds it"
    untold = by_word[agreement.UNTESTED] or not by_word[agreement.AGREE]
    return Answer(
        INTERRUPTED
        if interrupted
        else DIFFERENCE
        if by_word[agreement.DIFFER]
        else CANNOT_TELL
        if untold
        else 0,
        {
            "complete": complete,
            "results": [
                {
                    "id": id_,
                    "outcome": both[id_].word,
                    "rust": _facts(rust),
                    "python": _facts(python),
                }
                for id_, rust, python in rows
            ],
        },
        ("id", "Rust", "Python", "seconds"),
        [
            (id_, _word(rust), _word(python), f"{both[id_].seconds:.2f}")
            for id_, rust, python in rows
        ],
        verdict,
        [f"{id_}:\n{both[id_].output}" for id_ in by_word[agreement.DIFFER]] + broken,
    )


def _told(word: str, ids: Sequence[str], outcomes: Mapping[str, Agreement]) -> str:
    """The sentence on the optimisations with one outcome; for skipped ones, with the reason."""
    if word == agreement.SKIPPED:
        return "; ".join(f"{id_} skipped: {outcomes[id_].output}" for id_ in ids)
    names = f"{len(ids)} optimisations" if len(ids) > 3 else ", ".join(ids)
    told = {
        agreement.AGREE: f"the twins of {names} agree",
        agreement.DIFFER: f"the twins of {', '.join(ids)} differ",
        agreement.UNTESTED: f"no pair holds the twins of {', '.join(ids)}; "
        "`make setup` builds the pairs that the sources have",
    }
    return told[word]


def of_planted(project: Project, ids: Sequence[str], progress: Lines) -> Answer:
    """Is each listed bug in a twin of `ids` caught?"""
    listed = project.twins("planted")
    bugs = [bug for bug in planted.load(listed) if bug.id in ids]
    if not bugs:
        raise CannotTell(f"no bug is listed for {', '.join(ids)}; add some to {listed}")
    for bug in bugs:
        planted.planted_in(read_text(project.root / bug.file), bug)
    progress.plan([("no bug", 60.0), *((_title(bug), 10.0) for bug in bugs)])
    results: list[planted.Result] = []
    complete = False
    try:
        progress.begin("no bug")
        scratch = planted.Scratch(project, progress.note)
        planted.check_unplanted(dict.fromkeys(bug.id for bug in bugs), scratch)
        progress.end("every test passes")
        for bug in bugs:
            progress.begin(_title(bug))
            results.append(planted.tried(bug, scratch))
            progress.end(results[-1].status)
        complete = True
    except KeyboardInterrupt:
        pass
    except CompileError as error:  # with a bug planted, that is the bug's result
        raise CannotTell(
            "the copy of the tracked files does not compile; `git add` what is new, or mend that "
            f"first\n{error}"
        ) from None
    wrong = [result for result in results if not result.as_listed]
    missed = [result for result in wrong if result.status == planted.SURVIVED]
    times = {status: sum(r.status == status for r in results) for status in planted.STATUSES}
    counts = ", ".join(f"{n} {status}" for status, n in times.items() if n)
    excused = sum(r.as_listed and bool(r.bug.survives) for r in results)
    verdict = f"{len(results)} of {len(bugs)} bugs: {counts}"
    verdict += f" ({excused} as listed)" if excused else ""
    verdict += f"; {len(wrong)} not as the list says" if wrong else ""
    return Answer(
        INTERRUPTED if not complete else DIFFERENCE if missed else CANNOT_TELL if wrong else 0,
        {
            "complete": complete,
            "bugs": [
                {key: getattr(r.bug, key) for key in ("id", "twin", "file", "story", "survives")}
                | {key: getattr(r, key) for key in ("status", "as_listed", "seconds")}
                for r in results
            ],
        },
        ("id", "twin", "status", "the bug"),
        [(r.bug.id, r.bug.twin, r.status, r.bug.story + _because(r.bug)) for r in results],
        verdict,
        [f"{_title(r.bug)}: {r.status}\n{r.output}" for r in wrong],
    )


def of_builds(project: Project, chosen: Sequence[Build], progress: Lines) -> Answer:
    """Does every chosen build pass the Rust tests, with the same golden runs?"""
    progress.plan([(name, 40.0) for name, _ in chosen])
    finished: list[every_build.Finished] = []
    try:
        for build in chosen:
            progress.begin(build[0])
            finished.append(every_build.tested(project.root, build, progress.note))
            progress.end(finished[-1].summary)
    except KeyboardInterrupt:
        pass
    complete = len(finished) == len(chosen)
    red = [build for build in finished if not build.green]
    differences = every_build.differences(finished)
    if complete and not red and not differences:
        verdict = f"{len(finished)} builds, all green, golden runs the same"
    else:
        verdict = f"{len(finished)} of {len(chosen)} builds, {len(red)} red"
        verdict = "\n".join([verdict, *differences])
    return Answer(
        INTERRUPTED if not complete else DIFFERENCE if red or differences else 0,
        {
            "complete": complete,
            "differences": differences,
            "builds": [
                {key: value for key, value in asdict(build).items() if key != "output"}
                for build in finished
            ],
        },
        ("build", "tests", "seconds"),
        [(build.name, build.summary, f"{build.seconds:.0f}") for build in finished],
        verdict,
        [f"{build.name}: {build.summary}\n{build.output}" for build in red],
    )


def _title(bug: planted.Bug) -> str:
    return f"{bug.id} {bug.twin}: {bug.story}"


def _because(bug: planted.Bug) -> str:
    return f" (listed: {bug.survives})" if bug.survives else ""


def _count(outcomes: Mapping[str, Agreement]) -> str:
    words = Counter(outcome.word for outcome in outcomes.values())
    return ", ".join(f"{n} {word}" for word, n in words.items()) or "none there"


def _word(outcome: Agreement | None) -> str:
    return "–" if outcome is None else outcome.word


def _facts(outcome: Agreement | None) -> dict[str, Any] | None:
    """The outcome for `--json`: `passed` is null if it was skipped, and `reason` says why."""
    if outcome is None:
        return None
    reason = outcome.output if outcome.word == agreement.SKIPPED else ""
    return {"passed": outcome.passed, "seconds": outcome.seconds, "reason": reason or None}
