"""The steps that are measured of each project: from the wheel to the first verdict, the known pair
of commits, an unchanged commit, a search for the slower commit, and a history with its pages."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from rlox_opt.history import elsewhere
from rlox_opt.system.scratch import scratch
from rlox_opt.system.usage import UsageError

from asv_bench.elsewhere.beside import Beside
from asv_bench.elsewhere.installed import RloxOpt, Run
from asv_bench.elsewhere.projects import Pair, Part, Project, Unchanged
from asv_bench.elsewhere.rivals import RIVALS
from asv_bench.injected import commits
from asv_bench.injected.journal import Row, Step
from asv_bench.injected.scores import flagged
from asv_bench.injected.tools import ToolError, cells_of
from asv_bench.project import PROJECT

FOLDER = PROJECT.cache / "elsewhere"
BEARABLE = (ToolError, UsageError)
_FIRST_BUDGET = 180
_WHY_RESTARTS = 10  # enough to know that the second commit of a pair is slower


def clone(project: Project, clones: Path | None) -> Path:
    """A clone whose files are those of the commit that is compared with itself. It is made from the
    one of that name in `clones`, otherwise from the project's URL. Raises ToolError."""
    ours = FOLDER / "clones" / project.name
    if ours.is_dir():
        return ours
    there = clones / project.name if clones else None
    given = str(there.resolve()) if there and there.is_dir() else project.url
    part = ours.with_name(f"{project.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.parent.mkdir(parents=True, exist_ok=True)
    _git("clone", "--quiet", "--no-checkout", given, str(part))
    _git("-C", str(part), "checkout", "--quiet", "--detach", project.unchanged.at)
    if project.criterion and (command := project.criterion.run_before):
        with (part / "Cargo.toml").open("a", encoding="utf-8") as file:
            file.write(f"\n[workspace.metadata.rlox-opt]\nbefore-build = {json.dumps(command)}\n")
    part.rename(ours)
    return ours


@dataclass(frozen=True)
class Trials:
    """All measurements of one project."""

    project: Project
    clone: Path
    rlox_opt: RloxOpt

    def steps(self) -> Iterator[Step]:
        """In the order in which they are taken."""
        name, project = self.project.name, self.project

        def step(
            what: str, tool: str, title: str, of: Mapping[str, Any], does: Callable[[], Row]
        ) -> Step:
            key = {"project": name, "what": what, "tool": tool, **of}
            return Step(tool, f"{name}: {title}", key, does)

        if project.first:
            yield step("first", "first", "from the wheel to a verdict", {}, self.first)
        rival = project.kind
        for pair in project.pair:
            of = _plain(pair)
            title = f"{pair.base[:7]} and {pair.head[:7]}"
            yield step("pair", "diff", title, of, partial(self.pair, pair))
            yield step("pair", rival, f"{title} by {rival}", of, partial(self.pair_by, pair))
            if pair.function:
                yield step("why", "diff", f"why, of {title}", of, partial(self.why, pair))
        if project.bisect:
            yield step("bisect", "bisect", "search", _plain(project.bisect), self.bisect)
        if project.record:
            yield step("record", "record", "a history", _plain(project.record), self.record)
        for number, part in enumerate(project.unchanged.part):
            of = {"at": project.unchanged.at, "bench": part.bench, "budget": part.budget}
            title = f"nothing changed, part {number + 1}"
            for run in range(part.runs):
                again = f"{title}, run {run + 1}"
                does = partial(self.unchanged, part)
                yield step("unchanged", "diff", again, of | {"run": run}, does)
            by = partial(self.unchanged_by, part.bench)
            yield step("unchanged", rival, f"{title} by {rival}", of, by)

    def first(self) -> Row:
        """`init`, and the comparison that it names, with a new clone and a new cache of packages.
        Only `--budget` is added, and counts are left out."""
        with scratch() as folder:
            own = {"UV_CACHE_DIR": str(folder / "packages")}
            there = folder / self.project.name
            _git("clone", "--quiet", str(self.clone), str(there))
            found = self.rlox_opt("init", "--json", cwd=there, env=own)
            if found.status:
                raise ToolError(f"rlox-opt init: {found.lines[-1][1]}")
            init = found.json()
            words = shlex.split(init["next"])[1:]
            words += ["--budget", str(_FIRST_BUDGET), "--no-counts", "--json"]
            done = self.rlox_opt(*words, cwd=there, env=own)
            said = done.json()
            written = _git("-C", str(there), "status", "--porcelain").splitlines()
        told = [one for one in init["uncovered"] if self.project.uncovered in one]
        return {
            "command": init["next"],
            "configured": len([line for line in written if ".rlox-opt/" not in line]),
            "init_seconds": found.seconds,
            "parts": done.parts(),
            "seconds": round(found.seconds + done.seconds, 1),
            "uncovered": bool(told) if self.project.uncovered else None,
            "notes": said["notes"],
            "cells": {"diff": cells_of(said["results"])},
            "failures": said["failures"],
            "skipped": said["skipped"],
            "said": f"{len(said['results'])} verdicts after {found.seconds + done.seconds:.0f} s",
        }

    def pair(self, pair: Pair) -> Row:
        """What `rlox-opt diff` says about the pair."""
        row = self._diff(pair.base, pair.head, pair.bench, pair.budget, pair.suite)
        return row | {"said": _found(pair, row)}

    def pair_by(self, pair: Pair) -> Row:
        """What the usual tool for this kind of suite says about the pair."""
        row = self._rival(pair.base, pair.head, pair.bench, pair.suite)
        return row | {"said": _found(pair, row)}

    def why(self, pair: Pair) -> Row:
        """What `rlox-opt diff --why` names as reasons for the expected slowdowns."""
        row = self._diff(
            pair.base, pair.head, pair.expected, pair.budget, pair.suite,
            ("--why", "--no-coverage", "--restarts", str(_WHY_RESTARTS)),
        )  # fmt: skip
        row |= {"expected": pair.expected, "function": pair.function}
        found = elsewhere.reasons(row)
        named = sum(of.named for of in found)
        return row | {"said": f"named for {named} of {len(found)}"}

    def unchanged(self, part: Part) -> Row:
        """What `rlox-opt diff` says about a commit and the same commit with one more comment."""
        of = self.project.unchanged
        # --anyway, since with a comment in Rust the package is the same byte for byte.
        more = ("--no-why", "--anyway")
        row = self._diff(of.at, self._commented(of), part.bench, part.budget, of.at, more)
        return row | {"said": _flags(row)}

    def unchanged_by(self, bench: str) -> Row:
        """What the usual tool for this kind of suite says about the same two commits."""
        of = self.project.unchanged
        row = self._rival(of.at, self._commented(of), bench, of.at)
        return row | {"said": _flags(row)}

    def bisect(self) -> Row:
        """Which commit the search finds."""
        of = self.project.bisect
        assert of
        words = ("bisect", of.good, of.bad, "--bench", of.bench, *self._suite(of.suite), "--json")
        done = self._run(*words)
        said = done.json()
        right = (said["commit"] or "?").startswith(of.guilty)
        within = _git("-C", str(self.clone), "rev-list", "--count", f"{of.good}..{of.bad}")
        outcome = "undecided" if said["commit"] is None else "right" if right else "wrong"
        keep = ("commit", "ratio", "ci99", "verdict", "left", "skipped", "comparisons")
        row = {name: said[name] for name in keep}
        row |= {"commits": int(within), "outcome": outcome, "seconds": done.seconds}
        return row | {"said": f"{outcome}: {said['commit']}"}

    def record(self) -> Row:
        """A history of commits, and its pages."""
        of = self.project.record
        assert of
        shutil.rmtree(self.clone / ".rlox-opt" / "history", ignore_errors=True)
        words = ("record", of.commits, "--bench", of.bench, "--budget", str(of.budget))
        done = self._run(*words, "--every", "--json")
        said = done.json()
        listed = self._run("regressions", "--json")
        with scratch() as folder:
            start = time.monotonic()
            published = self._run("publish", str(folder / "p"), "--json")
            pages = published.json()
            seconds = time.monotonic() - start
            texts = [path.read_text(encoding="utf-8") for path in folder.glob("p/**/*.html")]
        return {
            "asked": len(said["recorded"]) + len(said["failed"]) + len(said["unneeded"]),
            "recorded": len(said["recorded"]),
            "unrecorded": said["failed"],
            "seconds": done.seconds,
            "open": listed.json()["open"],
            "publish_seconds": round(seconds, 1),
            "pages": {name: pages[name] for name in ("commits", "series", "written")},
            "named": sum(self.project.name in text for text in texts) / max(len(texts), 1),
            "said": f"{len(said['recorded'])} recorded, {len(said['failed'])} failed",
        }

    def _diff(
        self, base: str, head: str, bench: str, budget: float, suite: str,
        more: tuple[str, ...] = ("--no-why",),
    ) -> Row:  # fmt: skip
        words = ["diff", base, head, "--bench", bench, "--budget", str(budget), "--no-counts"]
        words += more
        words += [word for one in self.project.requires for word in ("--with", one)]
        words += ["--python", self.project.python] if self.project.python else []
        done = self._run(*words, *self._suite(suite), "--json")
        said = done.json()
        if not said["complete"]:
            raise ToolError("rlox-opt diff was interrupted")
        return {
            "compared": [said["base"], said["head"]],
            "cells": {"diff": cells_of(said["results"]), "base again": cells_of(said["aa"])},
            "failures": said["failures"],
            "skipped": said["skipped"],
            "unmeasured": len(said["unmeasured"]),
            "missing": len(said["missing"]),
            "broken": said["broken"],
            "notes": said["notes"],
            "why": said["why"],
            "parts": done.parts(),
            "seconds": done.seconds,
        }

    def _rival(self, base: str, head: str, bench: str, suite: str) -> Row:
        project, folder = self.project, self.folder
        folder.mkdir(parents=True, exist_ok=True)
        if project.kind == "asv":
            cells, took = Beside(project, self.clone, folder).compared(base, head, suite, bench)
        else:
            rival = RIVALS[project.kind]
            cells, took = rival(project, self.clone, folder, base, head, suite, bench)
        return {"compared": [base, head], "cells": cells, **took}

    @property
    def folder(self) -> Path:
        """The folder for all that is made except the clone."""
        return FOLDER / self.project.kind / self.project.name

    def _run(self, *words: str) -> Run:
        """`rlox-opt` in the clone."""
        return self.rlox_opt(*words, cwd=self.clone, env=self.project.env(self.folder))

    def _suite(self, named: str) -> tuple[str, str]:
        return "--suite", str(self.project.suite(named) or named)

    def _commented(self, of: Unchanged) -> str:
        """A commit after `at` with one more comment, on no branch."""
        text = commits.content(of.at, of.file, self.clone)
        text += ("//" if of.file.endswith(".rs") else "#") + " One more comment.\n"
        parent = _git("-C", str(self.clone), "rev-parse", of.at).strip()
        return commits.made(parent, {of.file: text}, "One more comment", self.clone)


def _found(pair: Pair, row: Row) -> str:
    said = []
    for arm, cells in row["cells"].items():
        of = [cell["verdict"] for name, cell in cells.items() if re.search(pair.expected, name)]
        if arm != "base again":
            said.append(f"{of.count('slower')} of {len(of)} found by {arm}")
    return ", ".join(said)


def _flags(row: Row) -> str:
    return ", ".join(
        f"{sum(map(flagged, cells.values()))} of {len(cells)} flagged by {arm}"
        for arm, cells in row["cells"].items()
    )


def _git(*words: str) -> str:
    done = subprocess.run(["git", *words], capture_output=True, text=True)
    if done.returncode:
        raise ToolError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def _plain(of: Any) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(of))
    return {name: value for name, value in plain.items() if name != "why"}
