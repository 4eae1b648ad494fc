"""The report that a program's own Timing prints at its end, as Sample Factory does, next to ours.

    [2026-01-31 12:00:00,000][4242] RolloutWorker_w0 profile tree view:
    wait_for_trajectories: 0.0767, env_step: 170.3642
    save_policy_outputs: 6.6260
      split_output_tensors: 3.0167

Blocks without inner blocks share a line; the inner blocks of another are indented by two.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import log
from typing import Any

_HEAD = re.compile(r"^(?:\x1b\[[\d;]*m)*(?:\[[^\]]*\])* *(?P<name>\S.*?) profile tree view:")
_BLOCK = re.compile(r"(?P<name>[^\s:,][^:,]*): (?P<seconds>\d+(?:\.\d+)?(?:e[-+]\d+)?)(?:, |$)")
_COLOUR = re.compile(r"\x1b\[[\d;]*m")
_LITTLE_S = 0.01  # blocks shorter than that on both sides are left out
_LEAST_S = 0.00005  # the least that is printed as 0.0001


@dataclass(frozen=True)
class Tree:
    """A component's blocks: seconds by path, "outer/inner", outer before inner."""

    component: str
    seconds: Mapping[str, float]


def trees(text: str) -> list[Tree]:
    """Every report in a program's output, in order; other text is ignored."""
    told: list[Tree] = []
    lines = iter(_COLOUR.sub("", text).splitlines())
    line = next(lines, None)
    while line is not None:
        head = _HEAD.match(line)
        line = next(lines, None)
        if head is None:
            continue
        seconds: dict[str, float] = {}
        open_: list[str] = []
        while line is not None and (blocks := list(_blocks(line))):
            depth = (len(line) - len(line.lstrip())) // 2
            del open_[depth:]
            for name, value in blocks:
                seconds["/".join([*open_, name])] = value
            open_.append(blocks[-1][0])  # indented lines below it are inside it
            line = next(lines, None)
        told.append(Tree(head["name"], seconds))
    return told


def _blocks(line: str) -> Iterator[tuple[str, float]]:
    """Names and seconds of a line that contains nothing else."""
    at, text = 0, line.strip()
    blocks = []
    while at < len(text):
        match = _BLOCK.match(text, at)
        if match is None:
            return
        blocks.append((match["name"], float(match["seconds"])))
        at = match.end()
    yield from blocks


def beside(report: Mapping[str, Any], text: str) -> list[dict[str, Any]]:
    """Each block of the program's own reports, with our measurement: `component`, `ours` (the
    process and thread that has most of its blocks; None if none has any), `block`, `own_s`,
    `our_s`, and whether both are means `per_call`. A Timing prints the mean of the latest calls for
    blocks timed by `time_avg`; if our mean is nearer to what it prints than our sum, means are
    compared."""
    measured = {
        _title(process["title"], thread["name"]): {
            phase["name"]: (phase["seconds"], phase["calls"]) for phase in thread["phases"]
        }
        for process in report["processes"]
        for thread in process["threads"]
    }
    rows = []
    for tree in trees(text):
        title = _nearest(tree, measured)
        ours = {} if title is None else measured[title]
        for block, own_s in tree.seconds.items():
            our_s, calls = ours.get(block, (None, 0))
            if max(own_s, our_s or 0.0) < _LITTLE_S:
                continue
            per_call = False
            if our_s and calls:
                per_call = _apart(own_s, our_s / calls) < _apart(own_s, our_s)
                our_s = our_s / calls if per_call else our_s
            rows.append(
                {
                    **{"component": tree.component, "ours": title, "block": block},
                    **{"own_s": own_s, "our_s": our_s, "per_call": per_call},
                }
            )
    return rows


def _apart(own_s: float, our_s: float) -> float:
    """The logarithm of the ratio of the longer time to the shorter."""
    return abs(log(max(own_s, _LEAST_S) / max(our_s, _LEAST_S)))


def _title(process: str, thread: str) -> str:
    return process if thread == "MainThread" else f"{process}: {thread}"


def _nearest(tree: Tree, measured: Mapping[str, Mapping[str, tuple[float, int]]]) -> str | None:
    """The thread whose blocks have the same names, among equal ones with the nearest times; None if
    none has any."""

    def rank(title: str) -> tuple[int, float]:
        phases = measured[title]
        common = tree.seconds.keys() & phases.keys()
        return len(common), -sum(abs(tree.seconds[block] - phases[block][0]) for block in common)

    best = max(measured, key=rank, default=None)
    return best if best is not None and rank(best)[0] else None
