"""`rlox-opt calibrate`: how often does this machine see a change where there is none, and how small
a change does it see?"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from rlox_opt.cli.sides import SUITE_OF_ONE, add_suite, builds_for, measured_by
from rlox_opt.cli.types import Once, pattern
from rlox_opt.harness.sequential import Comparison
from rlox_opt.project import calibration, unmeasured
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import READING, side_by_side
from rlox_opt.stats.paired import LOOKS
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, GOOD, INTERRUPTED
from rlox_opt.system.numbers import positive
from rlox_opt.system.output import number_of, say
from rlox_opt.system.patterns import beginning
from rlox_opt.system.usage import UsageError

_EXAMPLES = """\
examples:
  rlox-opt calibrate                       half an hour at most
  rlox-opt calibrate --bench data_plane --json

HEAD is compared with itself, in 40 restarts of every benchmark. Their spread tells how often `diff`
would report a difference where there is none, and the smallest change that `diff` finds 95 times
in 100. `diff` reads the newest calibration of its machine. Calibrate when nothing else runs, and
again after the machine has changed.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "calibrate",
        help="measure how small a change this machine can find",
        description="Measure, on this machine, the false alarms of `diff` and the smallest change "
        "that it finds.",
        epilog=_EXAMPLES + exits.told(good="measured", interrupted="nothing is written"),
    )
    parser.add_argument(
        "--bench", metavar="REGEX", action=Once, type=pattern, default=project.compared,
        help="only benchmarks whose name has it"
    )  # fmt: skip
    parser.add_argument(
        "--budget", metavar="S", type=positive, default=1800.0, help="seconds at most; "
        "where they do not suffice there are fewer restarts, and a benchmark with fewer than five "
        "is left out (default: 1800)"
    )  # fmt: skip
    add_suite(parser, SUITE_OF_ONE)
    parser.add_argument("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """Calibrate; returns the exit code."""
    from rlox_opt.system.progress import reporter

    project: Project = arguments.project
    try:
        head, dirty = project.commits.resolve("HEAD"), unmeasured.dirty(project)
        project, _ = measured_by(project, [head], arguments.suite)
        calibration.check_records(project.records)
        with reporter() as progress:
            progress.begin("build of HEAD")
            built = builds_for(project, arguments.bench).build(head)
            progress.end("ready")
            with side_by_side(project, built, built) as packages:
                packages.beginning = beginning(arguments.bench)
                progress.begin(READING)
                names = [n for n in packages.names("time") if arguments.bench.search(n)]
                if not names:
                    raise UsageError(f"--bench: {arguments.bench.pattern!r} matches no benchmark")
                progress.end(f"{number_of(len(names), 'benchmark')} to measure")
                progress.begin("HEAD against itself")
                comparison = Comparison(names, patient=True)
                start = time.monotonic()
                comparison.run(
                    packages.contests,
                    budget_s=arguments.budget,
                    tell=lambda n, _, left: progress.note(
                        f"restart {n}, about {left:.0f} s to come", n / LOOKS[-1]
                    ),
                )
                seconds = time.monotonic() - start
            progress.end(number_of(len(comparison.readings), "benchmark"))
            failed = {n: of.reason for n, of in comparison.failures.items() if not of.skipped}
    except KeyboardInterrupt:
        say("rlox-opt calibrate: interrupted, nothing is written", stderr=True)
        return INTERRUPTED
    of = {
        name: [reading.log_ratio for reading in readings]
        for name, readings in comparison.readings.items()
        if len(readings) >= LOOKS[0]  # the spread of fewer says little
        and name not in comparison.failures
    }
    for name, reason in failed.items():
        say(f"rlox-opt calibrate: {name} fails, and is left out: {reason}", stderr=True)
    if not of:
        if len(comparison.failures) < len(names):
            say(
                f"rlox-opt calibrate: no benchmark had {LOOKS[0]} restarts; more --budget, or a "
                "--bench that chooses fewer",
                stderr=True,
            )
        return CANNOT_TELL
    path, record = calibration.keep(
        project,
        "calibration",
        commit=head.commit,
        dirty=dirty,
        restarts=min(map(len, of.values())),
        seconds_per_restart=seconds / sum(map(len, of.values())),  # of one benchmark
        log_ratios=of,
        **calibration.rates(of),
    )
    if arguments.json:
        print(json.dumps(record))
    else:
        from rlox_opt.views import verdicts

        verdicts.show_calibration(record, path)
    return GOOD
