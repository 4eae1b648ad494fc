"""Arrows from one thread or process to another: flows that the program names, and messages.

In a channel that is first in, first out, the n-th message sent is the n-th received. So sent and
received messages are paired by counting, which needs their record from the beginning.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import NamedTuple

from rlox_opt.sampling.processes.alignment import Alignment
from rlox_opt.sampling.processes.format import UNORDERED
from rlox_opt.sampling.processes.run import RecordedRun

MOST_ARROWS = 100_000
_NEVER = 1 << 62  # ns


class Waypoint(NamedTuple):
    """A point of a flow: a process (its key), a thread, and a time of the run's clock."""

    key: str
    native_id: int
    time_ns: int
    name: str


def arrows(
    run: RecordedRun, alignments: Mapping[str, Alignment], begin: int
) -> Iterator[list[Waypoint]]:
    """The points of each flow in order of time, two at the least, from `begin` on."""
    count = 0
    for points in chain(_named(run, alignments), _messages(run, alignments)):
        kept = sorted((p for p in points if p.time_ns >= begin), key=lambda p: p.time_ns)
        if len(kept) > 1 and count < MOST_ARROWS:
            count += len(kept)
            yield kept


def _named(run: RecordedRun, alignments: Mapping[str, Alignment]) -> Iterator[list[Waypoint]]:
    flows: defaultdict[tuple[str, int], list[Waypoint]] = defaultdict(list)
    for process in run.processes:
        shift = alignments[process.key].shift_ns
        for batch in process.flows():
            native_id = process.threads[batch.thread].native_id
            for index, time_ns, number in batch.data.tolist():
                name = process.names.get((batch.source, index))
                if name is not None:  # the line that names it may be lost
                    point = Waypoint(process.key, native_id, time_ns + shift, name.path)
                    flows[name.path, number].append(point)
    yield from flows.values()


def _messages(run: RecordedRun, alignments: Mapping[str, Alignment]) -> Iterator[list[Waypoint]]:
    if any(p.dropped_segments or (p.recorded and not p.from_its_beginning) for p in run.processes):
        return  # messages that were not recorded would make the count wrong
    sent: defaultdict[str, list[Waypoint]] = defaultdict(list)
    received: defaultdict[str, list[Waypoint]] = defaultdict(list)
    for process in run.processes:
        shift = alignments[process.key].shift_ns
        passing = {
            key: (sent if name.kind == "send" else received, run.channel(name), name.on)
            for key, name in process.names.items()
            if name.kind == "send" or (name.kind == "wait" and name.on in ("pipe", "queue"))
            if name.channel and not name.channel.startswith(UNORDERED)
        }
        for batch in process.spans():
            native_id = process.threads[batch.thread].native_id
            for index, start, end in batch.data.tolist():
                ends = passing.get((batch.source, index))
                if ends is not None:
                    side, channel, on = ends
                    # Just inside the block, so that the arrow starts and ends at the block.
                    time_ns = (start if side is sent else end - 1) + shift
                    side[channel].append(Waypoint(process.key, native_id, time_ns, on))
    limits, everywhere = _known_until(run, alignments)
    for channel, messages in sent.items():
        there = received.get(channel, [])
        until = limits.get(channel, _NEVER)
        if len(there) != len(messages):  # a process without a record may have taken part
            until = min(until, everywhere)
        messages.sort(key=lambda p: p.time_ns)
        known = sorted((p for p in there if p.time_ns < until), key=lambda p: p.time_ns)
        for message, receipt in zip(messages, known, strict=False):
            yield [message, receipt]


def _known_until(
    run: RecordedRun, alignments: Mapping[str, Alignment]
) -> tuple[dict[str, int], int]:
    """The time until which all messages of a channel were recorded, for channels where that is not
    the end; and the time until which those of every channel were.

    A process that was killed lost what it had not yet written. A process that wrote nothing may
    have used any channel. After a missing message, counting would pair the wrong ones.
    """
    limits: dict[str, int] = {}
    everywhere = _NEVER
    options = run.about.options
    asked = _NEVER
    if (for_s := options.get("for_s")) is not None:
        asked = run.clock.after_ns + round((options.get("from_s", 0.0) + for_s) * 1e9)
    for process in run.processes:
        shift = alignments[process.key].shift_ns
        if process.how is not None and process.end_ns + shift < asked:
            continue  # it recorded everything
        if not process.recorded:
            everywhere = min(everywhere, process.begin_ns + shift)
            continue
        until = process.recorded[-1][1] + shift
        for channel in {run.channel(name) for name in process.names.values() if name.channel}:
            limits[channel] = min(limits.get(channel, until), until)
    return limits, everywhere
