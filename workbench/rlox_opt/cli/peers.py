"""`rlox-opt peers`: this library and others, same task, same hyperparameters, interleaved.

`peers ppo` and `peers sac` train, here; `peers primitives` and `peers growth` time single
operations, in `rlox_opt.race.primitives`; `peers backends` compares networks, in
`rlox_opt.race.backends`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.cli import primitives
from rlox_opt.project.project import Project
from rlox_opt.race import backends
from rlox_opt.race import environments as racing
from rlox_opt.race.environments import Peer, PeerError
from rlox_opt.race.primitives import growth
from rlox_opt.race.standings import WINDOW, row_of, standings
from rlox_opt.system import exits
from rlox_opt.system.exits import CANNOT_TELL, INTERRUPTED
from rlox_opt.system.files import add_row, check_folder, write_new
from rlox_opt.system.numbers import whole
from rlox_opt.system.scratch import scratch

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_EXAMPLES = """\
examples:
  rlox-opt peers ppo
  rlox-opt peers sac --runs 5 --only sb3,sbx,rlox
  rlox-opt peers ppo --total-timesteps 2048 --runs 1 --no-record      does everything run?

Each peer is installed into an environment of its own under target/peers/ from its lock in
peers/locks/. A round trains every peer once, in random order, a process each, with the same seed.
Steps per second are those of the whole training, without making environments and without
compiling, which stands beside. A peer that does not install, fails or hangs is left out, and said.
Ctrl-C keeps the runs that are finished: the same command goes on from there.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "peers",
        help="this library against others: training and single operations",
        description="Measure this library beside others, each in an environment of its own.",
        epilog="example: rlox-opt peers primitives --case gae; each WHAT has a --help of its own\n"
        + exits.told(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kinds = parser.add_subparsers(title="what", dest="what", required=True, metavar="WHAT")
    for algo in ("ppo", "sac"):
        _add_race(kinds, algo)
    for kind in (primitives, growth, backends):
        kind.add_to(kinds)


def _add_race(kinds: Any, algo: str) -> None:
    parser = kinds.add_parser(
        algo,
        help=f"training with {algo.upper()} against other libraries",
        description="Train with this library and its peers in turn, with the same task and "
        "hyperparameters: steps per second, time to a given return and final return, with "
        "bootstrap intervals; a record, a page and a picture under peers/record/.",
        epilog=_EXAMPLES
        + exits.told(
            cannot_tell="also where no peer ran", interrupted="the runs that are finished are kept"
        ),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--runs", type=whole(1), default=10, metavar="N", help="rounds (default: 10)")
    add(
        "--only", metavar="LIST", help="comma-separated peers; the first is what others are held to"
    )
    add(
        "--total-timesteps",
        type=whole(1),
        metavar="N",
        help="(default: 50000 of PPO, 20000 of SAC)",
    )
    add(
        "--threads",
        type=whole(1),
        metavar="N",
        help="of torch and XLA (default: 1 of PPO, 2 of SAC)",
    )
    add("--reach", type=float, metavar="R", help="the return to be reached (default: 150, or -300)")
    add("--time-limit", type=whole(1), default=900, metavar="S", help="of one run (default: 900)")
    add("--no-record", action="store_true", help="write no record")
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser, algo=algo)


def run(arguments: argparse.Namespace) -> int:
    """Race as asked; returns the exit code."""
    from rlox_opt.plan.comparing import provenance
    from rlox_opt.system.progress import reporter

    project: Project = arguments.project
    job, peers = racing.load(project, arguments.algo)
    peers = _chosen(peers, arguments)
    for name in ("total_timesteps", "threads", "reach"):
        if (asked := getattr(arguments, name)) is not None:
            job[name] = asked
    job["threads"] = min(job["threads"], len(os.sched_getaffinity(0)))
    where = provenance(project, project.installed.build_info())
    race = Race(project, arguments.algo, job, peers, where)
    check_folder(race.home)
    if not arguments.no_record:
        check_folder(racing.records_of(project, race.where["machine"]))
    try:
        with reporter() as progress:
            race.install(progress)
            race.run(arguments.runs, arguments.time_limit, progress)
    except KeyboardInterrupt:
        kept = f"{len(race.rows)} runs are kept"
        print(f"rlox-opt peers: {kept}; the same command goes on from there", file=sys.stderr)
        return INTERRUPTED
    for name, why in race.left_out.items():
        print(f"rlox-opt peers: {name} {why}", file=sys.stderr)
    if not race.rows:
        print("rlox-opt peers: no peer ran", file=sys.stderr)
        return CANNOT_TELL
    found = race.found()
    if not arguments.no_record:
        found["record"] = str(write(project, found).relative_to(project.root))
    race.forget()
    if arguments.json:
        print(json.dumps(found))
    else:
        from rlox_opt.views.comparison import show_race

        show_race(found)
    return 0


def _chosen(peers: Sequence[Peer], arguments: argparse.Namespace) -> list[Peer]:
    if arguments.only is None:
        return list(peers)
    named = {peer.name: peer for peer in peers}
    asked = [name.strip() for name in arguments.only.split(",")]
    for name in asked:
        if name not in named:
            arguments.parser.error(f"--only: is {name!r}, expected some of {', '.join(named)}")
    return [named[name] for name in dict.fromkeys(asked)]


class Race:
    """The runs of one command, in a file that outlives an interruption."""

    def __init__(
        self,
        project: Project,
        algo: str,
        job: Mapping[str, Any],
        peers: Sequence[Peer],
        where: Mapping[str, Any],
    ) -> None:
        self.home = racing.home(project)
        self.algo, self.job, self.peers, self.where = algo, job, peers, where
        what = [
            job,
            [[p.name, racing.digest(project, p)] for p in peers],
            where["commit"],
            where["machine"],
        ]
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:12]
        self._path = self.home / f"{algo}-{key}.jsonl"
        self.rows = racing.kept(self._path)
        self.left_out: dict[str, str] = {}
        self._pythons: dict[str, Path] = {}
        self._versions: dict[str, str] = {}

    def install(self, progress: Lines) -> None:
        """Make the environments that are not there."""
        progress.begin("environments")
        wanted = [(peer.name, peer, "") for peer in self.peers]
        self._pythons, self._versions, self.left_out = racing.install(wanted, self.home, progress)
        progress.end(f"{len(self._pythons)} of {len(self.peers)}")

    def run(self, rounds: int, limit_s: float, progress: Lines) -> None:
        """Train until every peer that works has run in each of `rounds`."""
        done = {(row["round"], row["peer"]) for row in self.rows}
        progress.begin("training")
        with scratch() as folder:
            for number in range(rounds):
                for peer in random.sample(self.peers, len(self.peers)):
                    if peer.name in self.left_out or (number, peer.name) in done:
                        continue
                    progress.note(f"round {number + 1}, {peer.name}", number / rounds)
                    job = {**self.job, "algo": self.algo, "seed": number}
                    try:
                        python = self._pythons[peer.name]
                        outcome = racing.train(peer, python, job, limit_s, folder)
                    except PeerError as problem:
                        self.left_out[peer.name] = f"{problem} (round {number + 1})"
                    else:
                        row = row_of(peer.name, number, outcome, self.job["reach"])
                        add_row(row, self._path)
                        self.rows.append(row)
        progress.end(f"{rounds} rounds, {len(self.rows)} runs")

    def forget(self) -> None:
        """Remove the runs' file, so that the next race makes its own."""
        self._path.unlink(missing_ok=True)

    def found(self) -> dict[str, Any]:
        """The record: the table, what was left out and why, and every run."""
        described = {
            peer.name: {
                "what": peer.what,
                "version": self._versions.get(peer.name, ""),
                "ours": peer.lock is None,  # this interpreter has this tree's build
            }
            for peer in self.peers
        }
        table = standings(self.rows, [peer.name for peer in self.peers])
        return {
            "schema": 1,
            "race": self.algo,
            **self.where,
            "job": self.job,
            "window": WINDOW,
            "held_to": table[0]["peer"],
            "table": [row | described[row["peer"]] for row in table],
            "left_out": self.left_out,
            "runs": self.rows,
        }


def write(project: Project, found: Mapping[str, Any]) -> Path:
    """Write the record with its page, its Markdown and its picture, never over others; returns
    the record's path."""
    from rlox_opt.views import race, race_picture

    folder = racing.records_of(project, found["machine"])
    stem = f"{found['date'].replace(':', '')}_{found['race']}"
    path = write_new(json.dumps(found, indent=1) + "\n", folder, stem)
    write_new(race_picture.picture(found), folder, path.stem, ".svg")
    write_new(race.markdown(found), folder, path.stem, ".md")
    write_new(race.page(found), folder, path.stem, ".html")
    return path
