"""`python -m asv_bench.injected`: how often `rlox-opt diff`, `rlox-opt bisect` and `asv continuous`
find slowdowns of known size, and whether the right code is named as the cause."""

from __future__ import annotations

import argparse
import itertools
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.harness.restarts import ContestError
from rlox_opt.project import calibration
from rlox_opt.project.builds import NotBuiltError
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.files import NotReadError
from rlox_opt.system.guard import guarded
from rlox_opt.system.machine import commit
from rlox_opt.system.progress import reporter
from rlox_opt.system.usage import UsageError

from asv_bench.injected import commits, scores, tools, trials
from asv_bench.injected.journal import Journal, Step
from asv_bench.injected.regressions import LIST, Regression, load
from asv_bench.injected.tools import FOLDER
from asv_bench.injected.trials import Trials
from asv_bench.project import PROJECT

_EXAMPLES = """\
examples:
  python -m asv_bench.injected probe                        is each slowdown as large as planned?
  python -m asv_bench.injected score --tool diff --only gae-loop --percent 0 3
  python -m asv_bench.injected score --repeats 3            the whole table; hours
  python -m asv_bench.injected score --tool diff apart --percent 0 3 5
  python -m asv_bench.injected aa --runs 50
  python -m asv_bench.injected aa --load 'T=$(mktemp -d) && cargo check --target-dir $T; rm -r $T'
  python -m asv_bench.injected aa --tool asv --factor 1.03 --default-set --runs 2
  python -m asv_bench.injected bisect --seeds 8 --first 100  seeds that nothing was mended on
  python -m asv_bench.injected attribute --percent 5 10      right layer, right function?

The commits are made of --at and the list injected.toml, and no branch knows them. The tools are
those of the working tree, which is not touched. Every trial is noted at once under
target/injected/: after a Ctrl-C the same command goes on where it was. The tools of another commit
begin anew, but for the probes. A finished run leaves a record in asv_bench/record/. Run it when
nothing else runs.

Exit codes: 0 measured, 1 some trials failed (they are named, and tried again by the same command),
2 asked wrongly or could not measure, 130 interrupted (the table of what there is, is printed).
"""


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        prog="python -m asv_bench.injected", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        made = verbs.add_parser(name, help=text, description=text.capitalize() + ".")
        made.add_argument(
            "--at", metavar="REV", default="HEAD", help="inject into it (%(default)s)"
        )
        made.add_argument(
            "--list", metavar="FILE", type=Path, default=LIST,
            help="what to inject (the list beside this program); an older REV may need its own",
        )  # fmt: skip
        made.add_argument(
            "--only", metavar="NAME", nargs="+", default=[],
            help="regressions of these ids, kinds or bounds",
        )  # fmt: skip
        return made

    def with_load(made: argparse.ArgumentParser) -> None:
        made.add_argument(
            "--load", metavar="COMMAND", default="",
            help="what the shell does again and again meanwhile: the machine is busy (nothing)",
        )  # fmt: skip

    def with_tools(made: argparse.ArgumentParser) -> None:
        with_load(made)
        made.add_argument(
            "--tool", choices=("diff", "apart", "asv"), nargs="+", default=["diff", "asv"],
            help="diff, the same with a process for each side, asv; in turn (diff asv)",
        )  # fmt: skip
        made.add_argument(
            "--factor", metavar="F", type=float, nargs="+", default=tools.FACTORS,
            help="of asv, each with a run of its own (1.03 1.1)",
        )  # fmt: skip

    verb("probe", "measure each slowdown at its probe, and at a quarter of it")
    made = verb("score", "count slowdowns found and missed, and false alarms")
    with_tools(made)
    made.add_argument(
        "--percent", metavar="P", type=float, nargs="+", default=[0, 1, 3, 5, 10],
        help="slowdowns; 0 is a changed comment (0 1 3 5 10)",
    )  # fmt: skip
    made.add_argument("--repeats", metavar="N", type=int, default=1, help="(%(default)s)")
    made.add_argument(
        "--bench-others", metavar="K", type=int, default=3,
        help="benchmarks measured along that the slowdown spares (%(default)s)",
    )  # fmt: skip
    made.add_argument(
        "--threshold", metavar="PERCENT", type=float, default=1.0, help="of diff (%(default)s)"
    )
    made = verb("aa", "count false alarms where nothing changed, over all injected benchmarks")
    with_tools(made)
    made.add_argument("--runs", metavar="N", type=int, default=20, help="(%(default)s)")
    made.add_argument(
        "--threshold", metavar="PERCENT", type=float, nargs="+", default=[1.0, 3.0],
        help="of diff, each with runs of its own (1 3)",
    )  # fmt: skip
    made.add_argument(
        "--default-set", action="store_true",
        help="all that asv times unasked, instead of the injected benchmarks; with --tool asv",
    )  # fmt: skip
    made = verb("bisect", "search histories that have one slowdown")
    with_load(made)
    made.add_argument("--seeds", metavar="N", type=int, default=4, help="histories (%(default)s)")
    made.add_argument(
        "--first", metavar="SEED", type=int, default=0, help="of the first history (%(default)s)"
    )
    made.add_argument("--commits", metavar="N", type=int, default=64, help="in each (%(default)s)")
    made.add_argument(
        "--percent", metavar="P", type=float, nargs=2, default=[3.0, 5.0],
        help="of the slowdown, drawn between these (3 5)",
    )  # fmt: skip
    made = verb(
        "attribute", "put slowdowns down to a layer and a function: are they the right ones?"
    )
    made.add_argument(
        "--percent", metavar="P", type=float, nargs="+", default=[5, 10], help="slowdowns (5 10)"
    )
    made.add_argument("--repeats", metavar="N", type=int, default=1, help="(%(default)s)")
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    top = parser()
    arguments = top.parse_args(argv)
    try:
        with guarded():  # the tools and the load do not outlive this program
            return _run(arguments)
    except (NotReadError, UsageError) as problem:
        top.exit(CANNOT_TELL, f"{top.prog}: {problem}\n")
    except (NotBuiltError, ContestError) as problem:
        print(f"{top.prog}: {problem}", file=sys.stderr)
        return CANNOT_TELL


def _run(arguments: argparse.Namespace) -> int:
    if getattr(arguments, "default_set", False) and arguments.tool != ["asv"]:
        got = " ".join(arguments.tool)
        raise UsageError(f"--default-set: is of asv, expected --tool asv, got {got}")
    every = load(arguments.list)
    chosen = _chosen(every, arguments.only, torch=arguments.verb in ("probe", "score", "attribute"))
    base, (answering, dirty) = PROJECT.commits.resolve(arguments.at), commit(PROJECT.root)
    idle = commits.idle(base.commit, every)
    journal = Journal(FOLDER / f"{idle[:12]}.jsonl", trials.BEARABLE)
    of = Trials(
        idle,
        journal,
        answering=answering,
        factors=getattr(arguments, "factor", tools.FACTORS),
        load=getattr(arguments, "load", ""),
    )
    interrupted = False
    steps: list[Step] = []
    with reporter() as progress:
        try:
            progress.begin("build of the commit with all regressions idle")
            there = trials.benchmarks(trials.built(idle))
            progress.end("ready")
            if lacking := [r.benchmark for r in chosen if r.benchmark not in there]:
                raise UsageError(f"no such benchmark: {', '.join(lacking)}")
            steps = [*_steps(arguments, of, chosen, there)]
            journal.run(steps, progress)
        except KeyboardInterrupt:
            interrupted = True
    rows = [row for step in steps if (row := journal.of(step.key))]
    print("\n".join(_tables(arguments.verb, rows, chosen)))
    failures = [*journal.failures(steps)]
    for title, why in failures:
        print(f"{title}: failed: {why}", file=sys.stderr)
    if interrupted:
        return INTERRUPTED
    if not failures and arguments.verb != "probe":
        verb = arguments.verb
        path, _ = calibration.keep(
            PROJECT,
            f"injected-{verb}",
            verb=verb,
            commit=answering,
            dirty=dirty,
            at=base.commit,
            idle=idle,
            rows=rows,
        )
        print(f"\n{path}")
    return DIFFERENCE if failures else GOOD


def _chosen(every: Sequence[Regression], only: Sequence[str], torch: bool) -> list[Regression]:
    """The regressions that were asked for. Training is slow to start, so by default it is left out
    if `torch` says so."""
    for name in only:
        if not any(name in (r.id, r.kind, r.bound) for r in every):
            known = ", ".join(regression.id for regression in every)
            raise UsageError(f"--only: {name!r} is no id, kind or bound of a regression: {known}")
    if only:
        return [r for r in every if {r.id, r.kind, r.bound} & {*only}]
    return [r for r in every if torch or r.bound != "torch"]


def _steps(
    arguments: argparse.Namespace, of: Trials, chosen: Sequence[Regression], there: Sequence[str]
) -> Iterator[Step]:
    if arguments.verb == "aa":
        benchmarks = sorted({regression.benchmark for regression in chosen})
        if arguments.default_set:
            benchmarks = []
        elif "asv" in arguments.tool and len({regression.module for regression in chosen}) > 1:
            raise UsageError("--only: asv has an environment apart for training; ask for it apart")
        for run in range(arguments.runs):
            for tool in arguments.tool:
                for threshold in arguments.threshold if tool != "asv" else [0.0]:
                    yield of.aa(benchmarks, tool, run, threshold)
        return
    for regression in chosen:
        for k in trials.probes(regression):
            yield of.probe(regression, k)
    if arguments.verb in ("score", "attribute"):
        every = itertools.product(range(arguments.repeats), chosen, arguments.percent)
        for repeat, regression, percent in every:
            if arguments.verb == "attribute":
                yield of.attribution(regression, percent, repeat)
                continue
            names = trials.beside(regression, percent, repeat, there, arguments.bench_others)
            for tool in arguments.tool:
                yield of.trial(regression, percent, repeat, tool, arguments.threshold, names)
    elif arguments.verb == "bisect":
        low, high = arguments.percent
        for seed in range(arguments.first, arguments.first + arguments.seeds):
            yield of.bisection(chosen, seed, arguments.commits, (low, high))


def _tables(verb: str, rows: Sequence[Any], chosen: Sequence[Regression]) -> Iterator[str]:
    kinds = ("trial", "bisect", "probe", "attribution")
    of = {what: [row for row in rows if row["what"] == what] for what in kinds}
    if verb == "score":
        yield from scores.score_tables(of["trial"], chosen)
    elif verb == "aa":
        yield from scores.aa_table(rows)
    elif verb == "attribute":
        yield from scores.attribution_tables(of["attribution"], chosen)
    elif verb == "bisect":
        yield from scores.bisect_table(of["bisect"])
    else:
        yield from scores.probe_table(of["probe"])


if __name__ == "__main__":
    sys.exit(main())
