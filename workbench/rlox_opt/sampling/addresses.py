"""Turns addresses in the extension into functions, including those that were inlined there.

Link-time optimisation inlines the core's functions into the binding's. By the symbol alone, the
core's time would count as time at the boundary. The extension's line tables name the inlined
functions; addr2line of binutils reads the tables, once for all addresses.
"""

from __future__ import annotations

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from rlox_opt.sampling.samples import Frame
from rlox_opt.system import elf

Resolver = Callable[[Frame], tuple[Frame, ...]]


def resolver(raw: Iterable[Frame], *, places: bool = False) -> Resolver:
    """A function that gives the frames (outermost first) of a frame whose `line` is an address in
    its `module`. With `places` the `line` is an offset in that file, as perf gives it.

    Any other frame is returned as it is. Without addr2line the frames keep their symbols.
    """
    by_library: dict[str, list[Frame]] = defaultdict(list)
    for frame in raw:
        by_library[frame.module].append(frame)
    known: dict[Frame, tuple[Frame, ...]] = {}
    for library, frames in by_library.items():
        parts = elf.segments(Path(library)) if places else []
        asked = [_address(frame.line or 0, parts) for frame in frames]
        for frame, inlined in zip(frames, _addr2line(library, asked), strict=True):
            known[frame] = inlined or (frame._replace(line=None),)
    return lambda frame: known.get(frame, (frame,))


def _address(place: int, parts: Iterable[tuple[int, int, int]]) -> int:
    """The address at which an offset in a file is loaded. `parts` are the file's segments: offset,
    length and address. Outside all of them offset and address are taken to be equal."""
    return next((place - begin + at for begin, n, at in parts if 0 <= place - begin < n), place)


def _addr2line(library: str, addresses: list[int]) -> list[tuple[Frame, ...]]:
    if shutil.which("addr2line") is None:
        return [()] * len(addresses)
    asked = subprocess.run(
        ["addr2line", "--exe", library, "--addresses", "--inlines", "--functions", "--demangle"],
        input="\n".join(map(hex, addresses)) + "\n",
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
        # Without line tables addr2line names a compilation unit, which is not a path.
        if chains and "/" in file:
            chains[-1].append(Frame(line, file, int(number) if number.isdigit() else None))
    if len(chains) != len(addresses):
        return [()] * len(addresses)
    return [tuple(reversed(chain)) for chain in chains]
