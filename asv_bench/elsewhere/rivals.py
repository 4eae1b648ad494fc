"""The tools that other projects use instead of asv: pytest-benchmark's saved runs and criterion's
baselines, each used as its documentation says, on the same commits and benchmarks."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rlox_opt.project import bench_targets
from rlox_opt.project.builders.overlay import lay_over
from rlox_opt.system.usage import UsageError
from rlox_opt.system.uv import reason, uv

from asv_bench.elsewhere.projects import Project
from asv_bench.elsewhere.trees import tree
from asv_bench.injected.tools import Cell, Cells, ToolError, tail

Took = dict[str, Any]

PERCENT = 5
# A bare tree has no git history from which its version could be computed.
_VERSION = {"SETUPTOOLS_SCM_PRETEND_VERSION": "1.0"}
_REGRESSED = re.compile(r"^\t?\s*(?P<name>\S.*?) - Field 'mean' has failed", re.MULTILINE)
_TIME = re.compile(r"^(?P<name>\S.*?)?\s+time:\s+\[[^%\]]*\]\s*$")
_CHANGE = re.compile(r"(?:change|time):\s+\[\S+%\s+(?P<change>[+−-][\d.]+)%\s+\S+%\]")
_WORDS = {
    "Performance has regressed.": "slower",
    "Performance has improved.": "faster",
    "Change within noise threshold.": "unchanged",
    "No change in performance detected.": "unchanged",
}


def pytest_benchmark(
    project: Project, clone: Path, folder: Path, base: str, head: str, suite: str, bench: str
) -> tuple[dict[str, Cells], Took]:
    """`--benchmark-save` in base's environment, then `--benchmark-compare-fail` in head's, with the
    same tests. Raises ToolError."""
    assert project.pytest
    tests = tree(clone, suite, folder / "suites", project.pytest.files)
    start = time.monotonic()
    environments = [_environment(project, clone, folder, commit) for commit in (base, head)]
    built = time.monotonic()
    runs = folder / "runs"
    shutil.rmtree(runs, ignore_errors=True)
    storage = ("--benchmark-storage", f"file://{runs}")
    # Named one by one, since a project's settings may exclude its benchmarks.
    folders = [name for name in project.pytest.files if (tests / name).is_dir()]
    listed = _pytest(environments[1], tests, "--collect-only", "-q", *folders)
    chosen = [
        line for line in listed.stdout.splitlines() if "::" in line and re.search(bench, line)
    ]
    if not chosen:
        raise ToolError(f"pytest collects nothing that {bench!r} finds: {tail(listed)}")
    named = "--benchmark-name=long"
    compare = ("--benchmark-compare", f"--benchmark-compare-fail=mean:{PERCENT}%", named)
    for environment, more in zip(environments, ((), compare), strict=True):
        words = ("--benchmark-only", "--benchmark-enable", "--benchmark-save=run", *storage, *more)
        done = _pytest(environment, tests, *words, *chosen)
    saved = [json.loads(path.read_text("utf-8")) for path in sorted(runs.glob("*/*_run.json"))]
    if len(saved) != 2:
        raise ToolError(f"pytest saved {len(saved)} runs of 2: {tail(done)}")
    cells = compared(saved[0], saved[1], done.stdout + done.stderr)
    took = {"build_seconds": built - start, "seconds": time.monotonic() - built}
    return {f"pytest-benchmark {PERCENT} %": cells}, _rounded(took)


def compared(base: Mapping[str, Any], head: Mapping[str, Any], said: str) -> Cells:
    """The cells of two saved runs, with the second run's text about benchmarks that failed the
    comparison. The text does not mention benchmarks that became faster."""
    means = {of["fullname"]: of["stats"]["mean"] for of in base["benchmarks"]}
    failed = {name.rpartition(" (")[0] for name in _REGRESSED.findall(said)}  # name (run)
    cells: Cells = {}
    for of in head["benchmarks"]:
        if before := means.get(of["fullname"]):
            verdict = "slower" if of["fullname"] in failed else "unchanged"
            ratio = of["stats"]["mean"] / before
            cells[of["fullname"]] = Cell(verdict=verdict, ratio=ratio, ci99=None)
    return cells


def criterion(
    project: Project, clone: Path, folder: Path, base: str, head: str, suite: str, bench: str
) -> tuple[dict[str, Cells], Took]:
    """`--save-baseline` at base and `--baseline` at head, each with its own benches. A supplied
    suite is written over them, since criterion has no other way. Raises ToolError."""
    of = project.criterion
    assert of
    apart = project.suite(suite)
    if apart is None and suite not in (base, head):
        raise UsageError(f"suite: is {suite}, of neither side; criterion measures a side's own")
    # Old versions of criterion save into the target folder of the environment, not of the build.
    saved = folder / "saved"
    own = {"CARGO_TARGET_DIR": str(saved), "CRITERION_HOME": str(saved / "criterion")}
    env = {**os.environ, **own}
    supplied = bench_targets.measured(apart) if apart else []
    names = [target.name for crate in supplied for target in crate.targets] or of.targets
    targets = [word for name in names for word in ("--bench", name)]
    took = {"build_seconds": 0.0, "seconds": 0.0}
    shutil.rmtree(saved, ignore_errors=True)
    for commit, baseline in ((base, "--save-baseline"), (head, "--baseline")):
        top = tree(clone, commit, folder / (f"trees-{apart.name}" if apart else "trees"))
        for crate in supplied:
            lay_over(crate, top / of.folder)
        # In a shared folder cargo would use the other commit's build.
        built = ("--target-dir", str(top / "target"))
        cargo = ("cargo", "bench", "--quiet", *built, *targets)
        for words, where, given, part in (
            (of.run_before, top, None, "build_seconds"),
            ((*cargo, "--no-run"), top / of.folder, env, "build_seconds"),
            ((*cargo, "--", bench, baseline, "base"), top / of.folder, env, "seconds"),
        ):
            if not words:
                continue
            start = time.monotonic()
            done = subprocess.run(
                words, cwd=where, env=given,
                stdin=subprocess.DEVNULL, capture_output=True, text=True,
            )  # fmt: skip
            took[part] += time.monotonic() - start
            if done.returncode:
                raise ToolError(f"{' '.join(words[:2])} at {commit[:10]}: {tail(done)}")
    cells = dict(changes(done.stdout))
    if not cells:
        raise ToolError(f"criterion compares nothing: {tail(done)}")
    return {"criterion": cells}, _rounded(took)


def changes(said: str) -> Iterator[tuple[str, Cell]]:
    """What criterion printed about each benchmark relative to a baseline. A long name has a line of
    its own, and the change of a throughput stands beside that of the time."""
    name, before, ratio = "", "", None
    for line in said.splitlines():
        if found := _TIME.match(line):
            name, ratio = (found["name"] or before).strip(), None
        elif ratio is None and (change := _CHANGE.search(line)):
            ratio = 1 + float(change["change"].replace("−", "-")) / 100
        elif name and ratio is not None and line.strip() in _WORDS:
            yield name, Cell(verdict=_WORDS[line.strip()], ratio=ratio, ci99=None)
            name = ""
        before = line


RIVALS = {"pytest-benchmark": pytest_benchmark, "criterion": criterion}


def _environment(project: Project, clone: Path, folder: Path, commit: str) -> Path:
    """An environment with the project installed at a commit."""
    assert project.pytest
    environment = folder / "env" / commit
    if not environment.is_dir():
        part = environment.with_name(f"{commit}.part")
        shutil.rmtree(part, ignore_errors=True)
        files = tree(clone, commit, folder / "trees")
        requires = (*project.pytest.requires, *project.requires)
        python = part / "bin" / "python"
        steps: tuple[tuple[str | Path, ...], ...] = (
            ("venv", "--quiet", "--python", project.python or sys.executable, part),
            ("pip", "install", "--quiet", "--python", python, files, *requires),
        )
        for words in steps:
            if (done := uv(*words, cwd=folder, env=_VERSION | project.env(folder))).status:
                raise ToolError(f"uv {words[0]} at {commit[:10]}: {reason(done)}")
        part.rename(environment)
    return environment


def _pytest(environment: Path, tests: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [environment / "bin" / "python", "-P", "-m", "pytest", "-o", "addopts=", "-p",
         "no:cacheprovider", *words],
        cwd=tests, stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip


def _rounded(took: Mapping[str, float]) -> Took:
    return {part: round(seconds, 1) for part, seconds in took.items()}
