"""`rlox-opt ladder`: from no optimisation to all of them, in training: each alone, and each with
all others on."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from rlox_opt.cli.missing import missing
from rlox_opt.plan import end_to_end
from rlox_opt.plan.catalogue import all_cards
from rlox_opt.plan.end_to_end import TrainingDiffersError, Variant
from rlox_opt.plan.features import Features, features
from rlox_opt.plan.unfinished import Unfinished, write_record
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.stats import paired
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, INTERRUPTED
from rlox_opt.system.files import check_folder
from rlox_opt.system.machine import slug
from rlox_opt.system.output import say

_EXAMPLES = """\
examples:
  rlox-opt ladder ppo
  rlox-opt ladder sac-prioritized --rounds 10
  rlox-opt ladder ppo --json > ladder.json

The extension is built without any optimisation, with all of them, and twice for each optimisation
that this training runs through: with that one alone, and with all but that one. Optimisations of
Python need no build; they are switched on and off instead. A round trains once with each of these,
in random order, in a process each. The time of torch.compile is not counted.
Ctrl-C keeps the rounds that are finished; the same command goes on from there.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "ladder",
        help="what each optimisation brings to training, alone and with the others on",
        description="Train with builds from no optimisation to all of them, and show what each "
        "brings: alone, and with all others on; a table and a waterfall picture.",
        epilog=_EXAMPLES
        + exits.told(
            difference="a build trained to other parameters",
            interrupted="the rounds that are finished are kept",
        ),
    )
    jobs = sorted(end_to_end.jobs(project))
    if not jobs:
        missing(parser, end_to_end.no_jobs(project))
        return
    parser.add_argument(
        "algo",
        metavar="JOB",
        type=end_to_end.job_named(project),
        help=f"what to train: {', '.join(jobs)}",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        choices=paired.LOOKS,
        help="rounds of training (default: 5)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Climb as asked; returns the exit code."""
    from rlox_opt.plan.comparing import provenance
    from rlox_opt.system.progress import reporter
    from rlox_opt.views.waterfall import waterfall

    project: Project = arguments.project
    algo: str = arguments.algo
    planned = all_cards(arguments)
    steps = steps_of(project, algo, planned)
    variants = variants_for(features(project), steps, planned)
    where = provenance(project, project.installed.build_info())
    job = end_to_end.jobs(project)[algo]
    so_far = unfinished(project, algo, job, variants, where)
    folder = project.comparisons / slug(where["machine"])
    check_folder(folder)
    try:
        with reporter() as progress:
            progress.begin(f"builds for {algo}")
            built = end_to_end.build_all(project, variants, progress)
            progress.end(f"{len(built)} builds")
            progress.begin("training")
            times = so_far.rows
            for row in end_to_end.rounds(
                project, variants, built, algo, arguments.rounds - len(times)
            ):
                so_far.add(row)
                progress.note(f"round {len(times)}", len(times) / arguments.rounds)
            progress.end(f"{len(times)} rounds of {len(built)} trainings")
    except KeyboardInterrupt:
        kept = f"{len(so_far.rows)} of {arguments.rounds} rounds are kept"
        say(f"rlox-opt ladder: {kept}; the same command goes on from there", stderr=True)
        return INTERRUPTED
    except TrainingDiffersError as problem:
        say(f"rlox-opt ladder: {problem}", stderr=True)
        return DIFFERENCE
    except RuntimeError as problem:
        say(f"rlox-opt ladder: {problem}", stderr=True)
        return CANNOT_TELL
    gains = climb(project, steps, algo, times)
    record = {"schema": 1, "ladder": algo, **where, "job": job, **gains}
    written = write_record(record, folder, f"ladder_{algo}", {".svg": waterfall(record)})
    so_far.forget()
    path = written.relative_to(project.root)
    if arguments.json:
        print(json.dumps(record | {"record": str(path)}))
    else:
        from rlox_opt.views.comparison import show_ladder

        show_ladder(record, path)
    return 0


def steps_of(project: Project, algo: str, cards: Sequence[Card]) -> list[Card]:
    """The cards on the job's path. Settings are no steps: they change what is learnt."""
    return [c for c in cards if c.seam.kind != "setting" and end_to_end.on_path(project, c, algo)]


def variants_for(of: Features, steps: Sequence[Card], planned: Sequence[Card]) -> list[Variant]:
    """None, all, each alone, each left out: first those that builds differ in. `planned` are all
    cards, of which one may say what cargo's profile is."""
    loop = tuple(card.id for card in steps if not card.in_build)
    sets = of.builds([card.id for card in steps if card.in_build])
    switched = [(name, on, loop if name.startswith("all") else ()) for name, on in sets]
    none, all_ = dict(sets)["none"], dict(sets)["all"]
    switched += [(id_.lower(), none, (id_,)) for id_ in loop]
    switched += [
        (f"all-{id_.lower()}", all_, tuple(other for other in loop if other != id_)) for id_ in loop
    ]
    return [Variant(*each, end_to_end.profile(planned, each[1])) for each in switched]


def unfinished(
    project: Project,
    algo: str,
    job: Mapping[str, Any],
    variants: Sequence[Variant],
    where: Mapping[str, Any],
) -> Unfinished:
    """The rounds finished so far."""
    from rlox_opt.plan.comparing import code

    names = [[v.name, *v.features, *v.optimizations] for v in variants]
    what = [algo, job, names, *code(project, where)]
    return Unfinished(project.cache / "ladder", algo, what)


def climb(
    project: Project, steps: Sequence[Card], algo: str, times: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    """Gains from `times`: of all together, and of each step alone and with the others on."""

    def as_dict(estimate: paired.Estimate) -> dict[str, Any]:
        return {key: getattr(estimate, key) for key in ("ratio", "ci95", "verdict")}

    rows = []
    for card in steps:
        name = card.id.lower()
        rows.append(
            {
                "id": card.id,
                "title": card.title,
                "alone": as_dict(end_to_end.gain(times, "none", name)),
                "with_the_others": as_dict(end_to_end.gain(times, f"all-{name}", "all")),
                "bound": end_to_end.bound(project, card, algo),
            }
        )
    return {
        "rounds": len(times),
        "together": as_dict(end_to_end.gain(times, "none", "all")),
        "seconds": {
            name: math.exp(sum(math.log(row[name]) for row in times) / len(times))
            for name in sorted(times[0])
        },
        "steps": rows,
    }
