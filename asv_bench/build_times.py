"""How long a commit that touches one Rust file takes to build: our build command against asv's.

    .venv/bin/python asv_bench/build_times.py

For every command in turn, commits that are on no branch are built, each with one edited file of the
core, in an environment for that command. asv itself checks the commit out and runs the command. Our
command keeps cargo's target directory, so it first builds the commit before them, which is not
counted. Wall time is the time to wait; CPU time, of all processes together, is less distorted by a
busy machine. The record goes to asv_bench/record/<machine>/.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import tempfile
import time
import zipfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import plugin
from asv.config import Config
from asv.environment import get_environments
from asv.repo import get_repo
from rlox_opt.project import calibration

from asv_bench.injected import commits
from asv_bench.project import PROJECT

EDITED = "crates/rlox-core/src/buffer/ringbuf.rs"
REPEATS = 3
# The commands of asv 0.6.6 if no build_command is given, run one after the other. The first builds
# a wheel from an sdist and does not use it; the second builds the wheel that asv installs.
ASV_DEFAULT = {
    "python -m build": "PIP_NO_BUILD_ISOLATION=0 python -m build",
    "pip wheel": "python -m pip wheel -w {build_cache_dir} {build_dir}",
}


class Builder:
    """One build command and the environment that asv runs it in."""

    def __init__(self, name: str, command: str | None, env_dir: Path) -> None:
        self.name = name
        conf = Config.load(str(PROJECT.root / "asv.conf.json"))
        conf.repo = str(PROJECT.root)
        conf.build_command = [command] if command else conf.build_command
        self.command = conf.build_command[0]  # of what ships
        conf.build_command = [self.command]
        conf.install_command = conf.uninstall_command = []
        conf.env_dir = str(env_dir / name.replace(" ", "_"))
        conf.matrix = {"req": conf.matrix["req"]}
        self._conf, self._repo = conf, get_repo(conf)
        (self._env,) = get_environments(conf, None)
        self._env.create()
        self.wall_s: list[float] = []
        self.cpu_s: list[float] = []

    def build(self, commit: str) -> None:
        """Check out and build. The wheel for asv must contain an extension of that commit."""
        start, used = time.perf_counter(), cpu_of_children()
        self._env.install_project(self._conf, self._repo, commit)
        self.wall_s.append(round(time.perf_counter() - start, 2))
        self.cpu_s.append(round(cpu_of_children() - used, 2))
        if "{build_cache_dir}" in self.command:
            (wheel,) = Path(self._conf.env_dir).glob(f"*/asv-build-cache/{commit}/rlox_rl-*.whl")
            with zipfile.ZipFile(wheel) as files:
                (extension,) = (name for name in files.namelist() if name.endswith(".so"))
                if commit.encode() not in files.read(extension):
                    raise RuntimeError(f"{self.name}: the extension was not built from {commit}")
        print(f"  {self.name:16} {self.wall_s[-1]:7.1f} s  {self.cpu_s[-1]:7.1f} s", flush=True)


def cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def edits(head: str) -> Iterator[str]:
    """Commits after `head`, on no branch, each with another constant in the edited file."""
    parent, original = head, commits.content(head, EDITED)
    for number in range(REPEATS):
        text = f"{original}\nconst _: u32 = {number};\n"
        parent = commits.made(parent, {EDITED: text}, f"Edit {number}")
        yield parent


def measured(head: str) -> list[Builder]:
    with tempfile.TemporaryDirectory(prefix="rlox-build-times-") as folder:
        builders = [
            Builder(name, command, Path(folder))
            for name, command in {"ours": None, **ASV_DEFAULT}.items()
        ]
        print("before, not counted:    wall        CPU")
        builders[0].build(head)
        del builders[0].wall_s[:], builders[0].cpu_s[:]
        for number, edit in enumerate(edits(head)):
            print(f"edit {number + 1} of {REPEATS}:")
            for builder in builders if number % 2 else reversed(builders):
                builder.build(edit)
    return builders


def compared(ours: list[float], *default: list[float]) -> dict[str, float]:
    """The medians, and our median as a part of the default's."""
    total = statistics.median(map(sum, zip(*default, strict=True)))
    own = statistics.median(ours)
    return {"ours": own, "asv_default": round(total, 2), "share": round(own / total, 4)}


def main() -> None:
    plugin.setup()
    head = PROJECT.commits.resolve("HEAD").commit
    load = os.getloadavg()[0]
    builders = measured(head)
    medians = {
        "wall_s": compared(*(builder.wall_s for builder in builders)),
        "cpu_s": compared(*(builder.cpu_s for builder in builders)),
    }
    rustc = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    print("\nmedian     ours   asv's default   ours takes")
    for clock, median in medians.items():
        ours, default, share = median.values()
        print(f"{clock:6} {ours:8.1f} {default:15.1f} {share:12.1%}")
    path, _ = calibration.keep(
        PROJECT,
        "build_times",
        commit=head,
        load_before=load,
        asv=metadata.version("asv"),
        rustc=rustc.stdout.strip(),
        edited=EDITED,
        builds={
            builder.name: {
                "command": builder.command,
                "wall_s": builder.wall_s,
                "cpu_s": builder.cpu_s,
            }
            for builder in builders
        },
        medians=medians,
    )
    print(path.relative_to(PROJECT.root))


if __name__ == "__main__":
    main()
