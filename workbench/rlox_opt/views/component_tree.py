"""A component's phases as a text tree: those without inner phases on one line, then the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

_WORTH_TELLING = 0.1  # spreads below a tenth of the mean are left out


def tree_lines(component: Mapping[str, Any]) -> list[str]:
    """All threads of a component that have phases."""
    many = len(component["processes"])
    title = component["title"] + (f" ×{many}" if many > 1 else "")
    lines = []
    for thread in component["threads"]:
        if not thread["phases"]:
            continue
        whose = "" if thread["name"] == "MainThread" else f" [{_of(thread)}]"
        of = f"{thread['seconds']:.1f} s"
        mean = "" if thread["count"] == 1 else ", means; in brackets where they differ"
        lines.append(f"{title}{whose} profile tree view (seconds of {of}{mean}):")
        lines.extend(_tree(thread["phases"], "", ""))
    return lines


def _of(thread: Mapping[str, Any]) -> str:
    return f"{thread['name']} ×{thread['count']}" if thread["count"] > 1 else str(thread["name"])


def _tree(phases: Sequence[Mapping[str, Any]], outer: str, indent: str) -> Iterator[str]:
    here = [phase for phase in phases if phase["name"].rpartition("/")[0] == outer]
    outers = {phase["name"].rpartition("/")[0] for phase in phases}
    leaves = [phase for phase in here if phase["name"] not in outers]
    if leaves:
        yield indent + ", ".join(map(entry, leaves))
    for phase in here:
        if phase["name"] in outers:
            yield indent + entry(phase)
            yield from _tree(phases, phase["name"], indent + "  ")


def entry(phase: Mapping[str, Any]) -> str:
    """ "forward: 38.41", or "env_step: 169.8 (160.1–175.3, highest in env worker 2)"."""
    name, mean = phase["name"].rsplit("/", 1)[-1], phase["seconds"]
    text = f"{name}: {mean:.4f}"
    if phase["high"] - phase["low"] > _WORTH_TELLING * mean:
        text += f" ({phase['low']:.4f}–{phase['high']:.4f}, highest in {phase['high_in']})"
    return text
