"""`rlox-opt` as its users have it: a wheel of the workbench, installed into an environment of its
own and run as a command. The time of each line of its output is kept."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.system.uv import reason, uv

from asv_bench.injected.tools import ToolError
from asv_bench.project import PROJECT

_BUILT = re.compile(r"^(?P<side>\d)/2 build of .*: ready")
_TIMING = re.compile(r"^timing( …|:)")


@dataclass(frozen=True)
class Run:
    """A command that ended: its output, its exit status, its seconds, and the time of each line on
    stderr."""

    printed: str
    lines: tuple[tuple[float, str], ...]
    status: int
    seconds: float

    def json(self) -> dict[str, Any]:
        """Its output as JSON. Raises ToolError with the error text if it is none."""
        try:
            said: dict[str, Any] = json.loads(self.printed)
        except json.JSONDecodeError:
            told = [line for _, line in self.lines[-15:]]
            raise ToolError("\n".join([f"exit status {self.status}", *told])) from None
        return said

    def parts(self) -> dict[str, float]:
        """For a `diff`: the seconds until base was ready, from there until head was, from there
        until timing began (reading the suite), and the rest."""
        ends: dict[str, float] = {}
        for at, line in self.lines:
            if built := _BUILT.match(line):
                ends.setdefault("base" if built["side"] == "1" else "head", at)
            elif _TIMING.match(line):
                ends.setdefault("listing", at)
        ends["measuring"] = self.seconds
        before, parts = 0.0, {}
        for part, at in ends.items():
            parts[part] = round(at - before, 1)
            before = at
        return parts


@dataclass(frozen=True)
class RloxOpt:
    """The `rlox-opt` that is installed in `folder`."""

    folder: Path

    @classmethod
    def install(cls, folder: Path) -> RloxOpt:
        """Build the wheel and install it in a new environment. Raises ToolError."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for words in (
            ("build", "--quiet", "--wheel", "--out-dir", folder / "wheel",
             PROJECT.root / "workbench"),
            ("venv", "--quiet", "--clear", "--python", sys.executable, folder / "venv"),
        ):  # fmt: skip
            _uv(*words, cwd=folder)
        (wheel,) = (folder / "wheel").glob("*.whl")
        python = folder / "venv" / "bin" / "python"
        _uv("pip", "install", "--quiet", "--python", python, wheel, cwd=folder)
        return cls(folder)

    def __call__(self, *words: str, cwd: Path, env: Mapping[str, str] | None = None) -> Run:
        """Run it in a folder, with additional variables."""
        own = {name: of for name, of in os.environ.items() if name != "PYTHONPATH"}
        start = time.monotonic()
        lines = []
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as printed,
            subprocess.Popen(
                [str(self.folder / "venv" / "bin" / "rlox-opt"), *words],
                cwd=cwd,
                env={**own, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            ) as process,
        ):
            assert process.stderr
            for line in process.stderr:
                lines.append((round(time.monotonic() - start, 1), line.rstrip()))
            status = process.wait()
            seconds = round(time.monotonic() - start, 1)
            printed.seek(0)
            return Run(printed.read(), tuple(lines), status, seconds)


def _uv(*words: str | Path, cwd: Path) -> None:
    done = uv(*words, cwd=cwd)
    if done.status:
        raise ToolError(f"uv {words[0]}: {reason(done)}")
