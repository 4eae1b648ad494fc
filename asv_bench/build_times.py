"""How long a commit that touches one Rust file takes to build: our build command against asv's.

    .venv/bin/python asv_bench/build_times.py

Commits of a scratch clone, each with one edited file of the core, are built by every command in
turn, each in an environment of its own and after one build that is not counted: that fills cargo's
target directory where it is kept, and the caches of cargo and pip. asv itself checks the commit out
and runs the commands. The record goes to asv_bench/record/<machine>/.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import plugin
from asv.config import Config
from asv.environment import get_environments
from asv.repo import get_repo

from rlox.history.records import write_new
from rlox.profiling.machine import ROOT, machine, slug
from rlox.profiling.machine import commit as checked_out

EDITED = "crates/rlox-core/src/buffer/ringbuf.rs"
REPEATS = 3
FOLDER = ROOT / "asv_bench" / "record"
PIP_WHEEL = "python -m pip wheel -w {build_cache_dir} {build_dir}"
# asv runs two commands when build_command is not given. The first only checks that an sdist builds;
# the wheel comes from the second, which therefore stands alone, too.
ASV_DEFAULT = ["PIP_NO_BUILD_ISOLATION=0 python -m build", PIP_WHEEL]


class Builder:
    """One build command and the environment that asv runs it in."""

    def __init__(self, name: str, build_command: list[str] | None, env_dir: Path) -> None:
        self.name = name
        conf = Config.load("asv.conf.json")
        self.command = conf.build_command = build_command or conf.build_command
        conf.install_command = conf.uninstall_command = []
        conf.env_dir = str(env_dir / name.replace(" ", "_"))
        conf.matrix = {"req": conf.matrix["req"]}
        self._conf, self._repo = conf, get_repo(conf)
        (self._env,) = get_environments(conf, None)
        self._env.create()
        self.seconds: list[float] = []

    def build(self, commit: str) -> float:
        """Seconds to check out and build; the wheel must hold an extension of that commit."""
        start = time.perf_counter()
        self._env.install_project(self._conf, self._repo, commit)
        seconds = time.perf_counter() - start
        (wheel,) = Path(self._conf.env_dir).glob(f"*/asv-build-cache/{commit}/rlox_opt-*.whl")
        with zipfile.ZipFile(wheel) as files:
            (extension,) = (name for name in files.namelist() if name.endswith(".so"))
            if commit.encode() not in files.read(extension):
                raise RuntimeError(f"{self.name}: the extension was not built from {commit}")
        return seconds


def git(*arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], check=True, capture_output=True, text=True
    ).stdout.strip()


@contextmanager
def scratch_clone() -> Iterator[Path]:
    """A clone to work in; yields a folder beside it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(prefix="rlox-build-times-") as folder:
        git("clone", "--quiet", str(ROOT), f"{folder}/clone")
        os.chdir(f"{folder}/clone")
        try:
            yield Path(folder)
        finally:
            os.chdir(before)


def edits(count: int) -> Iterator[str]:
    """Commits on top of each other, each with another constant in the edited file."""
    path = Path(EDITED)
    original = path.read_text(encoding="utf-8")
    for number in range(count):
        path.write_text(f"{original}\nconst _: u32 = {number};\n", encoding="utf-8")
        who = ("-c", "user.name=build_times", "-c", "user.email=build_times@localhost")
        git(*who, "commit", "--quiet", "--all", "--message", f"Edit {number}")
        yield git("rev-parse", "HEAD")


def measured() -> list[Builder]:
    with scratch_clone() as folder:
        builders = [
            Builder("ours", None, folder),
            Builder("asv default", ASV_DEFAULT, folder),
            Builder("its pip wheel alone", [PIP_WHEEL], folder),
        ]
        for number, edit in enumerate(edits(1 + REPEATS)):
            for builder in builders if number % 2 else reversed(builders):
                seconds = builder.build(edit)
                print(f"  {builder.name:20} {seconds:7.1f} s{'' if number else '  (not counted)'}")
                if number:
                    builder.seconds.append(seconds)
    return builders


def main() -> None:
    plugin.setup()
    here = machine()
    head, dirty = checked_out()
    builders = measured()
    ours = statistics.median(builders[0].seconds)
    rows: list[dict[str, Any]] = [
        {
            "name": builder.name,
            "command": builder.command,
            "seconds": [round(seconds, 2) for seconds in builder.seconds],
            "ours_share": round(ours / statistics.median(builder.seconds), 4),
        }
        for builder in builders
    ]
    record = {
        "schema": 1,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": head,
        "dirty": dirty,
        "machine": here,
        "asv": metadata.version("asv"),
        "rustc": subprocess.run(
            ["rustc", "--version"], check=True, capture_output=True, text=True
        ).stdout.strip(),
        "edited": EDITED,
        "builds": rows,
    }
    print(f"\n{'build':20} {'median':>9}   ours takes")
    for row in rows:
        median = statistics.median(row["seconds"])
        print(f"{row['name']:20} {median:7.1f} s   {row['ours_share']:7.1%}")
    stem = f"{datetime.now(UTC):%Y-%m-%dT%H%M%SZ}_build_times"
    path = write_new(json.dumps(record, indent=1) + "\n", FOLDER / slug(here), stem)
    print(path.relative_to(ROOT))


if __name__ == "__main__":
    main()
