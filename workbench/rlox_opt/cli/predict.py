"""`rlox-opt predict`: a prediction, recorded before the work, as wide as earlier errors say."""

from __future__ import annotations

import argparse
import json
import math
import re
import textwrap
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.history import ledger, predicted, records
from rlox_opt.history.predicted import Width
from rlox_opt.plan import precedence
from rlox_opt.plan.catalogue import all_cards, card_named, need_rich
from rlox_opt.plan.precedence import Course
from rlox_opt.project import cards
from rlox_opt.project.cards import Card, Prediction
from rlox_opt.project.project import Project
from rlox_opt.system import exits, git
from rlox_opt.system.files import write
from rlox_opt.system.output import say
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError
from rlox_opt.views import units

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_EXAMPLES = """\
examples:
  rlox-opt predict p30 --ratio 1.4 --why "Two of five loads a step go."
  rlox-opt predict p30 --ratio 1.4 --why "..." \\
    --workload push --size n=64,obs_dim=4
  rlox-opt predict p30  tells what was predicted, and whether it was before the work
  rlox-opt predict all --json |
    jq '.[] | select(.verdict != "before the work") | .id'

The ratio is baseline time / optimised time, as you expect it. An interval around it goes into the
card. It is so wide that 80 of 100 predictions would hold if they erred as earlier predictions of
that layer did. Commit the card before you write the optimised form: whether the prediction came
first is read from git's history.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "predict",
        help="record what an optimisation will bring, before it is written",
        description="Write a prediction into an optimisation's card, with an interval that follows "
        "from the errors of earlier predictions. Or tell whether predictions came before the work.",
        epilog=_EXAMPLES
        + exits.told(
            good="the prediction is written; without --ratio: it was made before the work",
            difference="a prediction was made with the work, after it, or after it was measured",
            cannot_tell="nothing is predicted, or the prediction is not committed",
        ),
    )
    parser.add_argument("id", metavar="ID", help="the id of its card, such as p30; or all")
    parser.add_argument("--ratio", type=float, metavar="X", help="the ratio that you expect")
    parser.add_argument("--why", metavar="TEXT", help="the reason, with its figures")
    parser.add_argument("--workload", help="a workload of the card (default: its only one)")
    parser.add_argument("--size", metavar="NAME=N[,NAME=N]", help="one of that workload's sizes")
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Predict, or tell what was predicted; returns the exit code."""
    if not arguments.json:
        need_rich(arguments.parser)
    asked = ("ratio", "why", "workload", "size")
    given = [name for name in asked if getattr(arguments, name) is not None]
    every = arguments.id.lower() == "all"
    try:
        if given and every:
            raise UsageError(f"--{given[0]}: is of one optimisation; name it in place of all")
        if given:
            return _write(card_named(arguments, arguments.id), arguments)
        chosen = all_cards(arguments)
        if not every:
            chosen = [card_named(arguments, arguments.id)]
        return _tell(arguments.project, chosen, arguments.json, every)
    except git.GitError as error:
        raise UsageError(str(error)) from None


def _tell(project: Project, chosen: list[Card], as_json: bool, every: bool) -> int:
    from rlox_opt.system.progress import reporter

    with reporter() as progress:
        courses = {card.id: _course(project, card, progress, every) for card in chosen}
    told = [_facts(card, courses[card.id]) for card in chosen]
    if as_json:
        print(json.dumps(told if every else told[0], indent=1))
    else:
        _show(chosen, courses)
    verdicts = {course.verdict for course in courses.values()}
    if verdicts & {precedence.WITH, precedence.AFTER, precedence.MEASURED}:
        return exits.DIFFERENCE
    return exits.CANNOT_TELL if verdicts != {precedence.BEFORE} else exits.GOOD


def _course(project: Project, card: Card, progress: Lines, every: bool) -> Course:
    if every:
        progress.note(f"the history of {card.id}")
    return precedence.course(project, card)


def _facts(card: Card, course: Course) -> dict[str, Any]:
    return {
        "id": card.id,
        "prediction": _told(card.prediction) if card.prediction else None,
        "verdict": course.verdict,
        "commits": {
            "prediction": course.prediction,
            "work": course.work,
            "record": course.record,
        },
    }


def _told(prediction: Prediction) -> dict[str, Any]:
    return {
        "workload": prediction.workload,
        "size": dict(prediction.size),
        "ratio": list(prediction.ratio),
        "why": prediction.why.strip(),
    }


def _show(chosen: list[Card], courses: Mapping[str, Course]) -> None:
    from rlox_opt.views.grid import Grid, Told, console

    rows = []
    for card in chosen:
        course = courses[card.id]
        commits = (course.prediction, course.work, course.record)
        band = units.band(card.prediction.ratio if card.prediction else None)
        shown = ((commit or units.MISSING)[:10] for commit in commits)
        rows.append((card.id, band, course.verdict, *shown))
    headings = ("id", "predicted", "made", "prediction", "work", "record")
    to = console()
    to.print(Grid(headings, rows, left=3))
    counts = Counter(course.verdict for course in courses.values())
    of = ", ".join(f"{counts[v]} {v}" for v in precedence.VERDICTS if counts[v])
    to.print()
    to.print(Told(f"{of}; prediction, work and record are the first commit of each", "dim"))


def _write(card: Card, arguments: argparse.Namespace) -> int:
    """Put the prediction into the card, and say what to do next."""
    project: Project = arguments.project
    workload, size = _at(card, arguments)
    _check(card, arguments)
    width = predicted.width(arguments.ratio, card.layer, _known(project, card))
    if width is None:
        raise UsageError("ledger: has too few predictions that were measured to tell a width")
    ratio = (_rounded(width.low), _rounded(width.high))
    prediction = Prediction(workload, size, ratio, arguments.why)
    path = cards.path_of(project, card)
    text = with_prediction(path.read_text(encoding="utf-8"), prediction)
    with scratch() as folder:  # seen to be a card before it is one
        draft = folder / path.name
        draft.write_text(text, encoding="utf-8")
        written = cards.parse(draft).prediction
    assert written is not None
    write(path, text)
    if arguments.json:
        proposed = {"errors": width.errors, "layer": width.layer, "coverage": predicted.COVERAGE}
        print(
            json.dumps({"id": card.id, "prediction": _told(written), "width": proposed}, indent=1)
        )
    else:
        say(_next(card, written, width, arguments.ratio, path.relative_to(project.root)))
    return exits.GOOD


def _known(project: Project, card: Card) -> list[predicted.Checked]:
    return [of for of in predicted.checked(ledger.lines(project)) if of.id != card.id]


def _at(card: Card, arguments: argparse.Namespace) -> tuple[str, dict[str, int]]:
    """The workload and the size that are predicted, of those on the card."""
    if not card.sizes:
        raise UsageError(f"{card.id}: has no sizes yet; write them into its card first")
    workload: str = arguments.workload or (next(iter(card.sizes)) if len(card.sizes) == 1 else "")
    if workload not in card.sizes:
        given = f"is {workload!r}" if workload else "is not given"
        raise UsageError(f"--workload: {given}; use one of {', '.join(card.sizes)}")
    sizes = [dict(size) for size in card.sizes[workload]]
    by_text = {",".join(f"{name}={n}" for name, n in size.items()): size for size in sizes}
    text: str = arguments.size or (next(iter(by_text)) if len(by_text) == 1 else "")
    wanted = sorted(text.replace(" ", "").split(","))
    for known, size in by_text.items():
        if sorted(known.split(",")) == wanted:
            return workload, size
    given = f"is {text!r}" if text else "is not given"
    raise UsageError(f"--size: {given}; use one of {' '.join(by_text)}")


def _check(card: Card, arguments: argparse.Namespace) -> None:
    """Raises UsageError where there is no prediction, or it comes too late."""
    ratio = arguments.ratio
    if ratio is None or not 0 < ratio < math.inf:
        given = "is not given" if ratio is None else f"is {ratio}"
        raise UsageError(f"--ratio: {given}; use baseline time / optimised time, such as 1.4")
    if not (arguments.why or "").strip():
        raise UsageError("--why: is not given; say what goes, and what it costs today")
    project: Project = arguments.project
    course = precedence.course(project, card)
    if course.record or records.records(card.id, project.comparisons):
        raise UsageError(f"{card.id}: was measured already; a prediction comes before that")
    if course.work or precedence.written(project, card):
        raise UsageError(
            f"{card.id}: its optimised form is written already; a prediction comes before that"
        )


def with_prediction(text: str, prediction: Prediction) -> str:
    """The text of a card with this prediction, in place of the one that it may have."""
    size = ", ".join(f"{name} = {n}" for name, n in prediction.size.items())
    wrapped = textwrap.wrap(
        " ".join(prediction.why.split()), 100, break_long_words=False, break_on_hyphens=False
    )
    why = "\n".join(wrapped).replace("\\", "\\\\")
    last = '\\"' if why.endswith('"') else ""  # it would join the quotes behind it
    why = why.removesuffix('"').replace('"""', '""\\"') + last
    table = (
        f'[prediction]\nworkload = "{prediction.workload}"\nsize = {{ {size} }}\n'
        f'ratio = {list(prediction.ratio)}\nwhy = """\n{why}"""\n\n'
    )
    without = re.sub(r"^\[prediction\]\n.*?(?=^\[|\Z)", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"^\[seam\]", lambda seam: table + seam[0], without, count=1, flags=re.MULTILINE)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _next(card: Card, written: Prediction, width: Width, ratio: float, path: Path) -> str:
    size = ", ".join(f"{name}={n:,}" for name, n in written.size.items())
    of = f"of {width.layer}" if width.layer else "of all layers, since its own has too few"
    return (
        f"{card.id}: {units.band(written.ratio)} for {written.workload} at {size}: {ratio:g}×, as "
        f"far off either way as {predicted.COVERAGE:.0%} of {width.errors} earlier predictions "
        f"{of}.\n"
        f"Written into {path}. Commit it before the optimised form is written; then\n"
        f"rlox-opt predict {card.id.lower()} finds it was made before the work."
    )
