"""`rlox-opt test`: do the twins agree, would their tests notice a bug, does every build pass?"""

from __future__ import annotations

import argparse
import signal
from typing import Any

from rlox_opt.plan.catalogue import all_cards
from rlox_opt.plan.features import Build, features
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL
from rlox_opt.system.output import say
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt test p5 p7                 the property tests of P5 and P7, in Rust and in Python
  rlox-opt test r1                    the tests of R1 in Python; R1 needs no build of its own
  rlox-opt test all                   the tests of every optimisation
  rlox-opt test p5 --planted          plants bugs in P5, and tells which its tests catch
  rlox-opt test --builds              all Rust tests in each of the 2N + 2 builds
  rlox-opt test p5 --builds           in the builds that concern P5: none, all, p5, all-p5
  rlox-opt test --builds --only all   in one build

An optimisation that is a profile of cargo (P6) is tested by running the tests of all others under
both profiles. What this machine cannot run, for lack of an accelerator for instance, is skipped,
and the reason is told. The golden runs of all builds are compared, too.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "test",
        help="test that twins agree, that their tests catch bugs, that every build passes",
        description="Run the property tests that hold both forms of an optimisation to the same "
        "results. Or plant bugs in one form, and see whether the tests catch them. Or run the Rust "
        "tests in every build.",
        epilog=_EXAMPLES
        + exits.told(
            good="every test that this machine can run passes",
            difference="a test fails",
            cannot_tell="nothing could be tested, or an optimisation has no test",
            interrupted="what is finished is told",
        ),
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="optimisations, such as p1 p2; or all")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--planted", action="store_true", help="try the bugs of planted.toml")
    kind.add_argument("--builds", action="store_true", help="run the Rust tests in every build")
    parser.add_argument(
        "--only", metavar="LIST", help="with --builds: comma-separated names of builds"
    )
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Test as asked; returns the exit code."""
    from rlox_opt.plan.testing import answers
    from rlox_opt.system.commands import CannotTell, cargo
    from rlox_opt.system.progress import reporter

    project: Project = arguments.project
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also keeps what is finished
    try:
        ids, chosen = _ids(arguments), _chosen(arguments)
        if set(ids).intersection(features(project).known()):
            cargo()
        with reporter() as progress:
            if arguments.planted:
                answer = answers.of_planted(project, ids, progress)
            elif arguments.builds:
                answer = answers.of_builds(project, chosen, progress)
            else:
                answer = answers.of_agreement(project, ids, progress)
    except CannotTell as error:
        say(f"{arguments.parser.prog}: {error}", stderr=True)
        return CANNOT_TELL
    answer.show(arguments.json)
    return answer.status


def _ids(arguments: argparse.Namespace) -> list[str]:
    """The optimisations asked for; of those that no build differs in, there is no planted bug."""
    planned = all_cards(arguments)
    known = features(arguments.project).known()
    if arguments.planted or arguments.builds:
        what = "no optimisation that builds differ in"
    else:
        known += [card.id for card in planned if not card.in_build]
        what = "no optimisation"
        if not arguments.ids:
            raise UsageError("ID: none is given; name optimisations, such as p5, or all")
    asked = [id_.upper() for id_ in arguments.ids]
    for id_ in asked:
        if id_ not in [*known, "ALL"]:
            raise UsageError(
                f"ID {id_.lower()}: is {what}; there are {', '.join(known).lower()}, and all"
            )
    return [id_ for id_ in known if not asked or id_ in asked or "ALL" in asked]


def _chosen(arguments: argparse.Namespace) -> list[Build]:
    """The builds that the arguments ask for, in the order of `feature_sets`."""
    of = features(arguments.project)
    if arguments.only is None:
        return of.builds(_ids(arguments)) if arguments.builds else []
    if not arguments.builds:
        raise UsageError(f"--only {arguments.only}: names builds; use it with --builds")
    if arguments.ids:
        raise UsageError("--only: names the builds already; leave the ids out")
    every = of.builds()
    names = [name for name, _ in every]
    asked = [name.strip().lower() for name in arguments.only.split(",")]
    for name in asked:
        if name not in names:
            raise UsageError(
                f"--only {name}: is no build; there are none, all, p1 (alone), all-p1 (left out) "
                "and so on"
            )
    return [build for build in every if build[0] in asked]
