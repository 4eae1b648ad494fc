"""asv on the same commits, with a copy of the project's own configuration that is adapted to this
machine. Its environments and results lie in a folder of this program."""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlox_opt.project import interpreters
from rlox_opt.project.asv_configuration import NAMES
from rlox_opt.system.usage import UsageError

from asv_bench.elsewhere.projects import Project
from asv_bench.elsewhere.trees import tree
from asv_bench.injected.tools import FACTORS, Cells, ToolError, rows, tail

_TIMED = re.compile(r"\btime(raw)?_\w+(\(|$)")


@dataclass(frozen=True)
class Beside:
    """asv for one project, whose clone is `clone`; all that it makes lies in `folder`."""

    project: Project
    clone: Path
    folder: Path

    def compared(
        self, base: str, head: str, suite: str, bench: str
    ) -> tuple[dict[str, Cells], dict[str, Any]]:
        """asv's verdicts at each factor, and the seconds it took: for environments and builds, and
        for the comparison. Raises ToolError, and UsageError if there is no configuration."""
        config = self._configured(suite)
        self._asv(config, "machine", "--yes")  # otherwise asv would ask for it
        start = time.monotonic()
        for commit in (base, head):
            done = self._asv(config, "run", f"{commit}^!", "--bench", "just-discover")
            if done.returncode:
                raise ToolError(f"asv run {commit[:10]}: {tail(done)}")
        built = time.monotonic()
        at = ("--bench", bench, "--no-only-changed")
        done = self._asv(config, "continuous", base, head, *at, "--factor", str(max(FACTORS)))
        if done.returncode not in (0, 1):
            raise ToolError(f"asv continuous: {tail(done)}")
        seconds = time.monotonic() - built
        cells = {}
        for factor in FACTORS:
            again = self._asv(config, "compare", base, head, "--factor", str(factor))
            chosen = {
                name: cell
                for name, cell in rows(again.stdout)
                if _TIMED.search(name) and re.search(bench, name)
            }
            if not chosen:
                raise ToolError(f"asv compare says nothing: {tail(again)}")
            cells[f"asv {factor:g}"] = chosen
        took = {"build_seconds": round(built - start, 1), "seconds": round(seconds, 1)}
        return cells, took | {"status": done.returncode}

    def _configured(self, suite: str) -> Path:
        """A configuration with the benchmarks of the suite's own commit."""
        assert self.project.asv
        given = self.project.suite(suite)
        at = suite if given is None else self.project.unchanged.at
        files = tree(self.clone, at, self.folder / "trees")
        found = [path for name in NAMES for path in files.glob(f"**/{name}")]
        if not found:
            raise UsageError(f"{self.project.name}: {suite} has no {' or '.join(NAMES)}")
        from asv.util import load_json

        own = min(found, key=lambda path: len(path.parts))
        config = load_json(str(own), js_comments=True)
        benchmarks = given or (own.parent / config.get("benchmark_dir", "benchmarks"))
        lacking = {*self.project.asv.left_out}
        matrix = {name: of for name, of in config.get("matrix", {}).items() if name not in lacking}
        config |= {"repo": str(self.clone), "benchmark_dir": str(benchmarks), "matrix": matrix}
        config |= {"branches": ["HEAD"], "environment_type": self.project.asv.environment_type}
        config |= {f"{of}_dir": str(self.folder / of) for of in ("env", "results", "html")}
        config["results_dir"] += f"-{benchmarks.parent.name}"  # two suites may use the same names
        own_version = ".".join(platform.python_version_tuple()[:2])  # asv's default
        named = [self.project.python] if self.project.python else config.get("pythons")
        config["pythons"] = (named or [own_version])[:1]
        if self.project.asv.build_command:
            config["build_command"] = [*self.project.asv.build_command]
        if requires := " ".join(self.project.requires):
            install = f"in-dir={{env_dir}} python -m pip install {{wheel_file}} {requires}"
            config["install_command"] = [install]
        ours = self.folder / "asv.conf.json"
        ours.write_text(json.dumps(config, indent=1) + "\n", encoding="utf-8")
        return ours

    def _asv(self, config: Path, *words: str) -> subprocess.CompletedProcess[str]:
        # asv takes the first interpreter of that name on PATH.
        version = json.loads(config.read_text(encoding="utf-8"))["pythons"][0]
        paths = (str(interpreters.named(version).path.parent), os.environ.get("PATH", os.defpath))
        return subprocess.run(
            [sys.executable, "-m", "asv", "--config", str(config), *words],
            cwd=self.folder,
            env={**os.environ, **self.project.env(self.folder), "PATH": os.pathsep.join(paths)},
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
