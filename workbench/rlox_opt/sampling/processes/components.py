"""All processes together: equal ones form one component with a spread, and components are
ranked."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlox_opt.sampling.processes.run import RecordedProcess
from rlox_opt.sampling.processes.threads import UNSAMPLED, ThreadUse, in_order
from rlox_opt.sampling.spans import Phase

MOST_RANKED = 40
NOT_BUSY = ("idle", "gil", "startup")  # layers in which no work of the program is done
_NUMBER = re.compile(r"\d+")

Json = dict[str, Any]
Uses = Mapping[str, Sequence[ThreadUse]]  # by the process's key


def titles(processes: Sequence[RecordedProcess]) -> dict[str, str]:
    """A name for each process that no other process has: "rank 1", "rank 1, env worker 0"."""
    by_key = {process.key: process for process in processes}
    names: dict[str, str] = {}
    taken: dict[str, int] = defaultdict(int)
    for process in processes:
        parent = by_key.get(process.header.parent_key or "")
        title = process.title
        if parent is not None and parent.role not in ("main", "torchrun"):
            title = f"{names.get(parent.key, parent.title)}, {title}"
        taken[title] += 1
        names[process.key] = title if taken[title] == 1 else f"{title} ({taken[title]})"
    return names


def groups(processes: Sequence[RecordedProcess]) -> dict[str, list[RecordedProcess]]:
    """Groups of processes that do the same: their roles are equal, and their parents' roles too."""
    by_key = {process.key: process for process in processes}
    alike: dict[tuple[str, str], list[RecordedProcess]] = {}
    for process in processes:
        parent = by_key.get(process.header.parent_key or "")
        alike.setdefault((process.role, "" if parent is None else parent.role), []).append(process)
    several = {role for role, _ in alike if sum(role == other for other, _ in alike) > 1}
    return {
        f"{role} of {parent}" if role in several and parent else role: members
        for (role, parent), members in alike.items()
    }


def components(processes: Sequence[RecordedProcess], uses: Uses) -> list[Json]:
    """Each component: `title`, `processes`, and its `threads` with their `phases` and `layers`.

    A figure of equal threads is their mean, with the `low`est and `high`est and the threads that
    have these. A thread that was never in a phase counts as 0 there, so that mean times `count` is
    the sum.
    """
    names = titles(processes)
    rows = []
    for title, members in groups(processes).items():
        threads: dict[str, list[tuple[str, ThreadUse]]] = {}
        for process in members:
            for use in uses.get(process.key, ()):
                threads.setdefault(folded(use.name), []).append((names[process.key], use))
        rows.append(
            {
                "title": title,
                "processes": [names[process.key] for process in members],
                "threads": [_thread(name, equal) for name, equal in threads.items()],
            }
        )
    return rows


def folded(thread: str) -> str:
    """The name that equal threads share: "ThreadPoolExecutor-0_1" becomes "…-*_*"."""
    return _NUMBER.sub("*", thread)


def _thread(name: str, equal: Sequence[tuple[str, ThreadUse]]) -> Json:
    seconds: defaultdict[str, float] = defaultdict(float)
    for _, use in equal:
        for phase in use.phases:
            seconds[phase.name] += phase.seconds
    by_name = [(who, {phase.name: phase for phase in use.phases}) for who, use in equal]
    phases = []
    for path in in_order(seconds):
        never = Phase(path, 0.0, 0.0, 0)
        of = [(who, own.get(path, never)) for who, own in by_name]
        phases.append(
            {
                "name": path,
                **_spread((who, phase.seconds) for who, phase in of),
                "self_seconds": sum(phase.self_seconds for _, phase in of) / len(of),
                "calls": sum(phase.calls for _, phase in of) / len(of),
            }
        )
    layers = [(who, use.layers()) for who, use in equal]
    shares = [
        {"name": layer, **_spread((who, own.get(layer, 0.0)) for who, own in layers)}
        for layer in {layer for _, own in layers for layer in own}
    ]
    return {
        "name": name,
        "count": len(equal),
        **_spread((who, use.seconds) for who, use in equal),
        "samples": sum(use.samples for _, use in equal),
        "phases": phases,
        "layers": sorted(shares, key=lambda layer: -layer["seconds"]),
    }


def _spread(figures: Iterable[tuple[str, float]]) -> Json:
    """Mean, lowest and highest of equal figures, with the threads of the lowest and highest."""
    pairs = list(figures)
    low, high = min(pairs, key=lambda f: f[1]), max(pairs, key=lambda f: f[1])
    return {
        "seconds": sum(seconds for _, seconds in pairs) / len(pairs),
        "low": low[1],
        "high": high[1],
        "low_in": low[0],
        "high_in": high[0],
    }


def together(processes: Sequence[RecordedProcess], uses: Uses) -> tuple[list[Json], list[Json]]:
    """The layers of all threads together, and the components' phases and layers by size.

    `share` is the share of all threads' busy time; layers that are not busy have none.
    """
    layers: dict[str, float] = defaultdict(float)
    places: dict[tuple[str, str, str, str], dict[str, float]] = {}
    names = titles(processes)
    for title, members in groups(processes).items():
        for process in members:
            for use in uses.get(process.key, ()):
                for (phase, layer), seconds in use.cells.items():
                    layers[layer] += seconds
                    place = places.setdefault((title, folded(use.name), phase, layer), {})
                    who = names[process.key]
                    place[who] = place.get(who, 0.0) + seconds
    busy = sum(s for layer, s in layers.items() if layer not in (*NOT_BUSY, UNSAMPLED))
    rows = [
        {
            "component": title,
            "thread": thread,
            "phase": phase,
            "layer": layer,
            **_spread(place.items()),
            "seconds": sum(place.values()),
            "processes": len(place),
            "share": sum(place.values()) / busy if busy else None,
        }
        for (title, thread, phase, layer), place in places.items()
        if layer not in (*NOT_BUSY, UNSAMPLED)
    ]
    rows.sort(key=lambda row: -row["seconds"])
    told = [
        {
            "name": layer,
            "seconds": seconds,
            "share": None if layer in (*NOT_BUSY, UNSAMPLED) or not busy else seconds / busy,
        }
        for layer, seconds in sorted(layers.items(), key=lambda item: -item[1])
    ]
    return told, [{"rank": n, **row} for n, row in enumerate(rows[:MOST_RANKED], 1)]
