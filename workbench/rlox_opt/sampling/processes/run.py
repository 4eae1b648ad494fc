"""Reads the files of a run of several processes (`format`). Large parts are read as streams."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec

from rlox_opt.sampling.processes.format import (
    RUN,
    SCHEMA,
    Batch,
    Clock,
    Header,
    Name,
    Thread,
    Total,
    lines,
    triples,
)
from rlox_opt.sampling.processes.inside.rlox_opt_segments import EXEC
from rlox_opt.sampling.samples import MAIN_THREAD


@dataclass
class RecordedProcess:
    """What is known of a process, without its large data, which methods such as `spans` stream."""

    header: Header
    files: list[Path]
    role: str = ""
    index: int | None = None
    name: str = ""
    clocks: list[Clock] = field(default_factory=list)
    threads: dict[int, Thread] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    names: dict[tuple[int, int], Name] = field(default_factory=dict)
    totals: list[Total] = field(default_factory=list)
    recorded: list[tuple[int, int]] = field(default_factory=list)  # adjacent windows are one
    loaded: dict[str, Any] = field(default_factory=dict)  # versions and features that it ran with
    pairs: dict[str, str] = field(default_factory=dict)  # channels that are two ends, both ways
    begin_ns: int = 0
    end_ns: int = 0  # the last time in its files
    how: str | None = None  # it ended; None: it was killed, or still runs
    dropped_segments: int = 0

    @property
    def key(self) -> str:
        return self.header.key

    @property
    def title(self) -> str:
        """ "rank 1", "env worker 0", "main"."""
        return self.role if self.index is None else f"{self.role} {self.index}"

    @property
    def script(self) -> str | None:
        """The path of the file that Python was given to run; None where it was given none."""
        words = iter(self.header.argv[1:])
        for word in words:
            if word in ("-c", "-m"):
                return None
            if word in ("-W", "-X"):  # the next word is their value
                next(words, None)
            elif not word.startswith("-"):
                return str(Path(word).absolute())
        return None

    @property
    def recorded_s(self) -> float:
        """Seconds of the windows in which spans were kept."""
        return sum(end - begin for begin, end in self.recorded) / 1e9

    def recorded_before(self, ns: int) -> float:
        """Seconds of these windows before a time."""
        return sum(max(0, min(end, ns) - begin) for begin, end in self.recorded) / 1e9

    @property
    def from_its_beginning(self) -> bool:
        """Whether all spans from its first moment to its last were kept."""
        return len(self.recorded) == 1 and self.recorded[0][0] <= self.begin_ns

    def spans(self) -> Iterator[Batch]:
        """Closed spans of all kinds, in the order in which they were written."""
        return self._blocks("spans")

    def flows(self) -> Iterator[Batch]:
        """Points of flows: index, time, id."""
        return self._blocks("flows")

    def looks(self) -> Iterator[Batch]:
        """Lines of Python that threads were at: index, wanted, had."""
        return self._blocks("frames")

    def parts(self) -> Iterator[Batch]:
        """Parts of torch's work: index, begin, end."""
        return self._blocks("parts")

    def counters(self) -> Iterator[tuple[str, int, float]]:
        """Name, time, value."""
        for file in self.files:
            for key, value in lines(file):
                if key == "counter":
                    name, time_ns, number = value
                    yield name, time_ns, number

    def _blocks(self, what: str) -> Iterator[Batch]:
        for file in self.files:
            for key, value in lines(file):
                if key == what:
                    source, thread, data = value
                    if thread in self.threads:  # the line that names it may be lost
                        yield Batch(source, thread, triples(data))


def keys(folder: Path) -> list[str]:
    """The keys of the processes that wrote something into the folder, the earliest first."""
    names = (path.name.split(".") for path in folder.glob("*.*.jsonl"))
    recorded = {parts[0] for parts in names if len(parts) == 3 and parts[1].isdigit()}
    return sorted(recorded, key=lambda key: int(key.partition("-")[2]))


def segments(folder: Path, key: str, what: str = "") -> list[Path]:
    """The files of a process in order; `what` is "" or "torch"."""
    stem = f"{key}.{what}." if what else f"{key}."
    paths = folder.glob(f"{stem}*.jsonl")
    numbers = {path: path.name.removeprefix(stem).removesuffix(".jsonl") for path in paths}
    numbered = [path for path, number in numbers.items() if number.isdigit()]
    return sorted(numbered, key=lambda path: int(numbers[path]))


def read_process(folder: Path, key: str, what: str = "") -> RecordedProcess:
    """A process without its large data, in one pass over its files.

    Raises:
        ValueError: there is no header, since the process died before it had written one.
    """
    files = segments(folder, key, what)
    process: RecordedProcess | None = None
    totals: dict[tuple[int, int, int], Total] = {}
    for file in files:
        for kind, value in lines(file):
            if kind == "process":
                header = Header(**value)
                if process is None:
                    process = RecordedProcess(header, files, header.role, header.index, header.name)
                    process.begin_ns = process.end_ns = int(key.partition("-")[2])
                    process.dropped_segments = header.segment
            elif process is not None:
                _take(process, kind, value, totals)
    if process is None:
        raise ValueError(f"{key}: its files hold no whole line; it died as it began")
    process.totals = list(totals.values())
    return process


def torch_of(folder: Path, key: str) -> Iterator[RecordedProcess]:
    """torch's operators in a process. Nothing if none were recorded, or if the process died before
    it had written a header."""
    if segments(folder, key, "torch"):
        with contextlib.suppress(ValueError):
            yield read_process(folder, key, "torch")


def _take(
    process: RecordedProcess, kind: str, value: Any, totals: dict[tuple[int, int, int], Total]
) -> None:
    last = process.end_ns
    match kind:
        case "clock":
            process.clocks.append(Clock(*value))
            last = value[2]
        case "role":
            process.role, process.index, process.name = value
        case "thread":
            number, native_id, name = value
            # The program may have renamed its main thread, or forked from another thread.
            main = native_id == process.header.pid
            process.threads[number] = Thread(native_id, MAIN_THREAD if main else name)
        case "source":
            process.sources[value[0]] = value[1]
        case "name":
            process.names[value[0], value[1]] = Name(*value[2:])
        case "spans":
            data = triples(value[2])
            last = int(data[-1, 2]) if len(data) else last
        case "totals":
            for entry in value:
                totals[tuple(entry[:3])] = Total(*entry)
        case "recorded":
            begin, last = value
            if process.recorded and process.recorded[-1][1] == begin:
                begin = process.recorded.pop()[0]
            process.recorded.append((begin, last))
        case "loaded":
            process.loaded = value
        case "pair":
            process.pairs |= {value[0]: value[1], value[1]: value[0]}
        case "end":
            last, process.how = value
    process.end_ns = max(process.end_ns, last)


@dataclass
class About:
    """What `run.json` says. `options` are `launch.Options` and the run's `start_ns`. A run that has
    not ended, or was killed, has no `end` and no `status`. `outlived`: processes that the first one
    left behind were ended."""

    schema: int
    clock: Clock
    command: list[str] = field(default_factory=list)
    time_namespace: str | None = None
    options: dict[str, Any] = field(default_factory=dict)
    sampler: str | None = None
    machine: dict[str, Any] = field(default_factory=dict)
    status: int | None = None
    interrupted: bool = False
    outlived: bool = False
    end: Clock | None = None


@dataclass
class RecordedRun:
    """A folder that was read: what `run.json` says, and the processes, the earliest first. `spent`
    are files of the samplers that nobody needs once the report is there."""

    folder: Path
    about: About
    processes: list[RecordedProcess]
    spent: list[Path] = field(default_factory=list)

    def channel(self, name: Name) -> str:
        """The channel of a wait or send by the name of its receiving end, which both sides
        share."""
        if name.kind != "send":
            return name.channel
        ends = (process.pairs.get(name.channel) for process in self.processes)
        return next(filter(None, ends), name.channel)

    @property
    def clock(self) -> Clock:
        """The clock that all others are put on: the driver's, at the beginning."""
        return self.about.clock


def read_run(folder: Path) -> RecordedRun:
    """The run in a folder, whether or not it has ended.

    Raises:
        ValueError: the folder holds no run, or one of a later schema.
    """
    try:
        # msgspec alone would refuse bytes of an argument that are no text.
        table = json.loads((folder / RUN).read_text(encoding="utf-8"))
        if (schema := table.get("schema")) != SCHEMA:
            raise ValueError(f"schema {schema}; this version reads {SCHEMA}")
        about = msgspec.convert(table, About)
    except (OSError, ValueError) as error:
        raise ValueError(f"{folder} holds no run: {RUN} cannot be read ({error})") from error
    processes = []
    for key in keys(folder):
        with contextlib.suppress(ValueError):  # it died before it had written a header
            processes.append(read_process(folder, key))
    _succeed(processes)
    return RecordedRun(folder, about, processes)


def _succeed(processes: Sequence[RecordedProcess]) -> None:
    """Gives the part of a program that called exec to the program that took its place."""
    by_key = {process.key: process for process in processes}
    for process in processes:  # the earliest first, so that a part is handed on again
        before = by_key.get(process.header.parent_key or "")
        if before is None or before.how != EXEC or before.header.pid != process.header.pid:
            continue
        process.role, process.index = before.role, before.index
        process.header = replace(process.header, parent_key=before.header.parent_key)
        before.role = f"{before.role}, until exec"
