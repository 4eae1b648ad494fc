"""Addresses in the extension, resolved to functions with those inlined into them.

Link-time optimisation inlines the core's functions into the binding's, and the symbol alone would
put the core's time on the boundary. The line tables of the extension know better; binutils'
addr2line reads them, once for all addresses.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable

from rlox_opt.sampling.samples import Frame

Resolver = Callable[[Frame], tuple[Frame, ...]]


def resolver(raw: Iterable[Frame]) -> Resolver:
    """Frames (outermost first) for a frame whose `line` is an address in its `module`.

    Of other frames nothing is known; without addr2line the frames keep their symbols.
    """
    by_library: dict[str, list[Frame]] = defaultdict(list)
    for frame in raw:
        by_library[frame.module].append(frame)
    known: dict[Frame, tuple[Frame, ...]] = {}
    for library, frames in by_library.items():
        for frame, inlined in zip(frames, _addr2line(library, frames), strict=True):
            known[frame] = inlined or (frame._replace(line=None),)
    return lambda frame: known.get(frame, (frame,))


def _addr2line(library: str, frames: list[Frame]) -> list[tuple[Frame, ...]]:
    if shutil.which("addr2line") is None:
        return [()] * len(frames)
    asked = subprocess.run(
        ["addr2line", "--exe", library, "--addresses", "--inlines", "--functions", "--demangle"],
        input="\n".join(f"{frame.line:#x}" for frame in frames) + "\n",
        capture_output=True,
        text=True,
        check=False,
    )
    chains: list[list[Frame]] = []
    lines = iter(asked.stdout.splitlines())
    for line in lines:
        if line.startswith("0x"):  # the address that was asked for: a new chain, innermost first
            chains.append([])
            continue
        file, _, number = next(lines, "").partition(" (")[0].rpartition(":")
        if chains and file and not file.startswith("?"):
            chains[-1].append(Frame(line, file, int(number) if number.isdigit() else None))
    if len(chains) != len(frames):
        return [()] * len(frames)
    return [tuple(reversed(chain)) for chain in chains]
