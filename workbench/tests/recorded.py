"""Runs a small program under the recorder, and writes records by hand."""

import json
import os
import subprocess
import sys
from array import array
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rlox_opt.sampling.processes.inside.rlox_opt_segments import Segments, encode, read_clock
from rlox_opt.sampling.processes.launch import INSIDE, Options
from rlox_opt.sampling.processes.phases import log_of
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun, read_run


def environment(folder: Path, **options: Any) -> dict[str, str]:
    return os.environ | {
        "PYTHONPATH": str(INSIDE),
        "RLOX_OPT_RECORD": str(folder),
        "RLOX_OPT_RECORD_OPTIONS": json.dumps(asdict(Options()) | {"start_ns": 0} | options),
    }


def run_program(folder: Path, program: str, **options: Any) -> RecordedRun:
    """The record of a program, which must end well."""
    folder.mkdir(exist_ok=True)
    script = folder / "program.py"
    script.write_text(program)
    clock = read_clock()
    done = subprocess.run(
        [sys.executable, str(script)],
        env=environment(folder, **options),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "rlox-opt:" not in done.stderr, done.stderr
    return finished(folder, clock)


def finished(folder: Path, clock: list[int]) -> RecordedRun:
    about = {"schema": 1, "clock": clock, "end": read_clock(), "command": ["python", "program.py"]}
    about |= {"options": {}, "machine": {"cpu": "a CPU", "cores": 2}, "status": 0}
    (folder / "run.json").write_text(json.dumps(about))
    return read_run(folder)


class Record:
    """The files of one process, written line by line. Times are in milliseconds of the run."""

    def __init__(
        self,
        folder: Path,
        pid: int,
        role: str = "main",
        index: int | None = None,
        parent: "Record | None" = None,
        begin: float = 0,
    ) -> None:
        self.key = f"{pid}-{int(begin * 1e6)}"
        header = {
            "key": self.key,
            "pid": pid,
            "parent": 1 if parent is None else int(parent.key.partition("-")[0]),
            "parent_key": None if parent is None else parent.key,
            "role": role,
            "index": index,
            "name": role,
            "start": "exec",
            "argv": [],
        }
        thread = {"thread": [0, pid, "MainThread"]}
        preamble = [{"process": header}, thread, {"source": [0, "PPO"]}]
        self.files = Segments(str(folder / self.key), 1 << 30, 1 << 30, lambda _: preamble)
        self.names: dict[tuple[str, ...], int] = {}
        self.begin = begin

    def write(self, **entry: Any) -> "Record":
        self.files.write([entry])
        return self

    def thread(self, number: int, native_id: int, name: str) -> "Record":
        return self.write(thread=[number, native_id, name])

    def span(
        self, path: str, begin: float, end: float, *kind: str, thread: int = 0, source: int = 0
    ) -> "Record":
        name = (str(source), path, *kind)
        if name not in self.names:
            self.names[name] = len(self.names)
            self.write(name=[source, self.names[name], path, *kind])
        words = array("q", [self.names[name], int(begin * 1e6), int(end * 1e6)])
        return self.write(spans=[source, thread, encode(words)])

    def flow(self, path: str, time: float, number: int) -> "Record":
        index = self.names.setdefault((path, "flow"), len(self.names))
        self.write(name=[0, index, path, "flow", "", ""])
        return self.write(flows=[0, 0, encode(array("q", [index, int(time * 1e6), number]))])

    def until(self, end: float, how: str | None = "exit") -> "Record":
        self.write(recorded=[int(self.begin * 1e6), int(end * 1e6)])
        return self if how is None else self.write(end=[int(end * 1e6), how])


def by_hand(folder: Path) -> RecordedRun:
    """The run of records that were written by hand: its clock began at 0."""
    about = {"schema": 1, "clock": [0, 0, 0], "command": ["python", "train.py"], "status": 0}
    about |= {"options": {}, "machine": {"cpu": "a CPU", "cores": 2}, "sampler": None}
    (folder / "run.json").write_text(json.dumps(about))
    return read_run(folder)


def calls(process: RecordedProcess) -> Counter[tuple[str, str]]:
    """How often each phase was entered, by thread and path."""
    return Counter((span.thread, span.path) for span in log_of(process))
