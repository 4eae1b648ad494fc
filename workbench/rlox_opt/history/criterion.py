"""Criterion's benchmarks of the data plane, at a commit: the seconds of a call without Python.

Criterion times one build after the other, so its seconds belong to the machine and the hour; they
stand beside the paired times, under the names that those functions have in `asv_bench/`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlox_opt.project import revisions
from rlox_opt.project.revisions import REVISIONS, NotBuiltError, Revision
from rlox_opt.system import git
from rlox_opt.system.commands import cargo, run
from rlox_opt.system.scratch import scratch

# A group and id of criterion's, and the benchmark of asv's that calls the same function.
_NAMES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"gae/(\d+)", r"Gae.time_gae(\1)"),
        (r"gae_batched/(\w+)/(\d+)x(\d+)", r"GaeBatched.time_gae_batched((\2, \3), '\1')"),
        (r"vtrace/(\d+)", r"Vtrace.time_vtrace(\1)"),
        (r"token_kl/(\d+)x(\d+)", r"TokenKl.time_token_kl((\1, \2))"),
        (r"group_advantages/(\d+)x(\d+)", r"GroupAdvantages.time_group_advantages((\1, \2))"),
        (r"push/(\d+)", r"Push.time_push(\1)"),
        (r"sample/obs_dim=(\d+)/(\d+)", r"Sample.time_sample((\2, \1))"),
        (r"per/sample_256/100000", r"Prioritized.time_sample_256"),
        (r"per/update_256/100000", r"Prioritized.time_update_256"),
        (r"env_step/CartPole-v1/(\d+)", r"EnvStep.time_step(\1)"),
    )
)
_LISTED = re.compile(r"^(.+): benchmark$", re.MULTILINE)
_BRIEF = ("--warm-up-time", "0.1", "--measurement-time", "0.4", "--sample-size", "10", "--noplot")
_PATIENCE_S = 180.0


def build(revision: Revision) -> Path:
    """The program that holds them, built with the revision's features, or the one that is there.

    Raises:
        NotBuiltError: it does not build.
        UsageError: there is no cargo.
    """
    with revisions.checked_out(revision) as (checkout, features, asked):
        program = REVISIONS / f"criterion-{asked}"
        if program.exists():
            os.utime(program)
            return program
        done = run(
            [
                *(cargo(), "bench", "--locked", "--package", "rlox-bench", "--bench", "data_plane"),
                *("--no-run", "--message-format", "json-render-diagnostics"),
                *("--features", ",".join(features), "--target-dir", str(REVISIONS / "target")),
            ],
            checkout,
            git.environment(trusted=checkout),
        )
        made = [
            message["executable"]
            for message in map(_message, done.output.splitlines())
            if message.get("executable") and message["target"]["name"] == "data_plane"
        ]
        if done.status or not made:
            raise NotBuiltError(f"{revision.title}: criterion does not build:\n{done.tail}")
        part = program.with_suffix(".part")
        shutil.copy2(made[0], part)
        part.rename(program)
        return program


def _message(line: str) -> dict[str, Any]:
    """What cargo says in JSON; what it says otherwise is for people."""
    try:
        found = json.loads(line)
    except json.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def asv_name(id_: str) -> str | None:
    """What asv calls the benchmark of the same function; None where it has none."""
    for pattern, name in _NAMES:
        if match := pattern.fullmatch(id_):
            return f"data_plane.{match.expand(name)}"
    return None


def ids(program: Path) -> dict[str, str]:
    """asv's name of each benchmark that has one, and criterion's own."""
    listed = subprocess.run(
        [program, "--bench", "--list"], capture_output=True, text=True, check=True
    ).stdout
    return {name: id_ for id_ in _LISTED.findall(listed) if (name := asv_name(id_))}


def times(program: Path, wanted: Mapping[str, str]) -> dict[str, float]:
    """The median seconds of a call of each of `wanted`, asv's names with criterion's ids; what
    fails or comes too late is left out."""
    if not wanted:
        return {}
    chosen = f"^(?:{'|'.join(map(re.escape, wanted.values()))})$"
    found: dict[str, float] = {}
    with scratch() as home:
        with contextlib.suppress(subprocess.SubprocessError):
            subprocess.run(
                [program, "--bench", *_BRIEF, chosen],
                env=os.environ | {"CRITERION_HOME": str(home)},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                check=True,
                timeout=_PATIENCE_S,
            )
        for path in home.rglob("new/estimates.json"):
            of = json.loads(path.with_name("benchmark.json").read_text(encoding="utf-8"))
            estimates = json.loads(path.read_text(encoding="utf-8"))
            seconds = estimates["median"]["point_estimate"] / 1e9  # of nanoseconds
            found |= {name: seconds for name, id_ in wanted.items() if id_ == of["full_id"]}
    return found
