"""A race: every peer trains on the same task, once in each round."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.plan.comparing import code
from rlox_opt.plan.unfinished import Unfinished
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.environments import Peer, PeerError
from rlox_opt.race.standings import WINDOW, row_of, standings
from rlox_opt.system.scratch import scratch

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines


class Race:
    """The `peers` on one `job`, the task called `name`. A training may take `limit_s` seconds.
    `where` describes the record: the commit, the machine and the build."""

    untimed = "no peer ran"

    def __init__(
        self,
        project: Project,
        name: str,
        job: Mapping[str, Any],
        peers: Sequence[Peer],
        where: Mapping[str, Any],
        limit_s: float,
    ) -> None:
        self.project, self.name, self.where = project, name, where
        self.home = racing.home(project)
        self._job, self._peers, self._limit_s = job, peers, limit_s
        digests = [[peer.name, racing.digest(project, peer)] for peer in peers]
        what = [job, digests, *code(project, where)]
        self._runs = Unfinished(self.home, name, what)
        self._left_out: dict[str, str] = {}
        self._pythons: dict[str, Path] = {}
        self._versions: dict[str, str] = {}

    def install(self, progress: Lines) -> None:
        """Make the environments that are missing."""
        progress.begin("environments")
        wanted = [(peer.name, peer, peer.package) for peer in self._peers]
        self._pythons, self._versions, self._left_out = racing.install(wanted, self.home, progress)
        progress.end(f"{len(self._pythons)} of {len(self._peers)}")

    def time(self, rounds: int, progress: Lines) -> None:
        """Train until every working peer has run in each of `rounds`."""
        done = {(row["round"], row["peer"]) for row in self._runs.rows}
        progress.begin("training")
        with scratch() as folder:
            for number in range(rounds):
                for peer in random.sample(self._peers, len(self._peers)):
                    if peer.name in self._left_out or (number, peer.name) in done:
                        continue
                    progress.note(f"round {number + 1}, {peer.name}", number / rounds)
                    job = {**self._job, "seed": number}
                    python = self._pythons[peer.name]
                    try:
                        training = racing.train(peer, python, job, self._limit_s, folder)
                    except PeerError as problem:
                        self._left_out[peer.name] = f"{problem} (round {number + 1})"
                    else:
                        self._runs.add(row_of(peer.name, number, training, self._job["reach"]))
        progress.end(f"{rounds} rounds, {len(self._runs.rows)} runs")

    def kept(self) -> str:
        """What remains after an interruption, as a sentence."""
        return f"{len(self._runs.rows)} runs are kept"

    def left_out(self) -> list[str]:
        """A sentence on each peer that was left out."""
        return [f"{name} {why}" for name, why in self._left_out.items()]

    def timed(self) -> bool:
        """Whether any peer ran."""
        return bool(self._runs.rows)

    def record(self) -> dict[str, Any]:
        """The standings, the peers left out with the reasons, and every run."""
        described = {
            peer.name: {
                "what": peer.what,
                "version": self._versions.get(peer.name, ""),
                "trains": peer.trains,
                "ours": peer.lock is None,  # it runs in this interpreter with this checkout's build
            }
            for peer in self._peers
        }
        order = [peer.name for peer in self._peers]
        table = standings(self._runs.rows, order, self._job.get("limit"))
        return {
            "schema": 1,
            "race": self.name,
            **self.where,
            "job": self._job,
            "window": WINDOW,
            "held_to": table[0]["peer"],
            "table": [row | described[row["peer"]] for row in table],
            "left_out": self._left_out,
            "runs": self._runs.rows,
        }

    def forget(self) -> None:
        """Remove the file of the runs."""
        self._runs.forget()
