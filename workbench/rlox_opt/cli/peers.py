"""`rlox-opt peers`: this library and others, each in an environment of its own.

What is raced by training is in the project's list of peers; `primitives` and `growth` time single
operations; a plug-in `kinds.py` beside the list adds what else the project measures, by
`peers_kind.add_kind`.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from typing import Any

from rlox_opt.cli import growth, primitives
from rlox_opt.cli.missing import missing
from rlox_opt.cli.peers_kind import Report, add_kind, chosen, conclude
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.training import Race
from rlox_opt.system import exits, plugins
from rlox_opt.system.files import NotReadError
from rlox_opt.system.numbers import real, whole

_ABOUT = """\
examples:
  rlox-opt peers {race}
  rlox-opt peers {race} --runs 5 --only THIS,THAT
  rlox-opt peers {race} --total-timesteps 2048 --runs 1 --no-record
                                        a quick look whether everything runs

Each peer is installed from its lock file into an environment of its own, in the project's cache. A
round trains every peer once, with the same seed, in random order and in a process each. Steps per
second are those of the whole training; the time to make environments is not counted, and the time
to compile is told apart. A peer that does not install, fails or hangs is left out, and the reason
is told. Ctrl-C keeps the runs that are finished; the same command goes on from there.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "peers",
        help="this library against others: training and single operations",
        description="Measure this library beside others, each in an environment of its own.",
        epilog="Each WHAT has its own --help.\n" + exits.told(),
    )
    if not project.peers.is_dir():
        missing(
            parser,
            f"{project.peers} would hold peers.toml, which says what is raced and by whom, or "
            "primitives/primitives.toml, which operations are timed; it is not there",
        )
        return
    try:
        races = racing.races(project)
    except NotReadError as error:
        missing(parser, str(error))
        return
    kinds = parser.add_subparsers(title="what", dest="what", required=True, metavar="WHAT")
    for race, job in races.items():
        _add_race(kinds, race, job)
    primitives.add_to(kinds)
    growth.add_to(kinds)
    more = project.peers / "kinds.py"
    if more.exists():
        plugins.load(more).add_to(kinds)


def _add_race(kinds: Any, race: str, job: Mapping[str, Any]) -> None:
    task = f" on {job['env_id']}" if "env_id" in job else ""  # it is missed when the race begins
    parser = add_kind(
        kinds,
        race,
        run,
        help=f"training with {job['algo'].upper()}{task}, against other libraries",
        description="Train with this library and its peers in turn, with the same task and "
        "hyperparameters: steps per second, time to a given return and final return, with "
        "intervals",
        about=_ABOUT.format(race=race),
    )
    add = parser.add_argument
    add("--only", metavar="LIST", help="comma-separated peers; ratios are to the first of them")
    for option, kind, what in (
        ("--total-timesteps", whole(1), "steps of a training"),
        ("--threads", whole(1), "of torch and XLA"),
        ("--reach", real(-1e12, 1e12), "the return to be reached"),
    ):
        default = job.get(option.removeprefix("--").replace("-", "_"))
        add(option, type=kind, metavar="N", help=f"{what} (default: {default})")
    add("--time-limit", type=whole(1), default=900, metavar="S", help="of one run (default: 900)")
    parser.set_defaults(race=race)


def run(arguments: argparse.Namespace) -> int:
    """Race as asked; returns the exit code."""
    from rlox_opt.plan.comparing import provenance
    from rlox_opt.views import race as view
    from rlox_opt.views.race_picture import picture

    project: Project = arguments.project
    job, peers = racing.load(project, arguments.race)
    if arguments.only is not None:
        named = {peer.name: peer for peer in peers}
        peers = [named[name] for name in chosen(arguments.only, named, arguments.parser)]
    for name in ("total_timesteps", "threads", "reach"):
        if (asked := getattr(arguments, name)) is not None:
            job[name] = asked
    job["threads"] = min(job["threads"], len(os.sched_getaffinity(0)))
    where = provenance(project, project.installed.build_info())
    race = Race(project, arguments.race, job, peers, where, arguments.time_limit)
    return conclude(race, arguments, Report.of(view, {".svg": picture}))
