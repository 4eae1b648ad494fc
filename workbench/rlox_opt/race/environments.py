"""The peers of a race, an environment for each, and single training runs."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rlox_opt.project.project import Project
from rlox_opt.system.files import understood
from rlox_opt.system.machine import slug
from rlox_opt.system.process import end_group
from rlox_opt.system.schema import read
from rlox_opt.system.scratch import scratch
from rlox_opt.system.uv import reason, uv

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_LIST = "peers.toml"
_INSTALL_S = 1800
_TAIL_LINES = 4


class PeerError(RuntimeError):
    """A peer does not install, crashes or hangs; the message is one line for the user."""


@dataclass(frozen=True)
class Peer:
    """A library that takes part. `driver` is the program that runs it, in that `form`. `lock` is
    the lock file of its environment, None if it runs in this interpreter. One that does not train
    does only what no trainer can leave out. `package` is the distribution whose version counts; by
    default the first of the lock's input file."""

    name: str
    what: str
    driver: Path
    form: str | list[str]
    lock: Path | None = None
    trains: bool = True
    package: str = ""


@dataclass(frozen=True)
class Training:
    """A finished training run: its seconds, those of them for compiling, its environment steps, and
    its episodes as (seconds, environment steps, return)."""

    train_s: float
    compile_s: float
    steps: int
    episodes: list[tuple[float, int, float]]


def races(project: Project) -> dict[str, dict[str, Any]]:
    """The races of a project by name; none without a list of peers. Raises NotReadError."""
    path = project.peers / _LIST
    if not path.exists():
        return {}
    with understood(path, "list of peers"):
        table = read(path, dict[str, Any])["race"]
        return {name: _job(table, name) for name in table}


def load(project: Project, race: str) -> tuple[dict[str, Any], list[Peer]]:
    """The task of a race, and the peers that take part. Raises NotReadError."""
    path = project.peers / _LIST
    table = read(path, dict[str, Any])
    with understood(path, "list of peers"):
        job = _job(table["race"], race)
        algo, named = job["algo"], job.pop("peers", None)
        peers = [
            Peer(
                row["name"],
                row["what"],
                project.peers / row["driver"],
                row["forms"][algo],
                lock_of(project, row),
                row.get("trains", True),
                row.get("package", ""),
            )
            for row in table["peer"]
            if algo in row["forms"]
        ]
        if named is not None:
            by_name = {peer.name: peer for peer in peers}
            peers = [by_name[name] for name in named]
        for key in ("env_id", "total_timesteps", "threads", "reach"):
            job[key]
        return job, peers


def _job(races: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The settings of a race. One that is `like` another has that one's, but for its own. `algo`
    is the race that it is like, or its own name."""
    own = dict(races[name])
    like = own.pop("like", name)
    if "like" in races[like]:
        raise ValueError(f"{name} is like {like}, which is like another race itself")
    return {**races[like], **own, "algo": like}


def digest(project: Project, peer: Peer) -> str:
    """A digest of all that decides how the peer runs, except for this checkout's library."""
    parts = [project.peers / "run.py", peer.driver]
    if peer.lock:
        parts.append(peer.lock)
    hashed = hashlib.sha256(json.dumps(peer.form).encode())
    for part in parts:
        hashed.update(part.read_bytes())
    return hashed.hexdigest()[:12]


def lock_of(project: Project, row: Mapping[str, Any]) -> Path | None:
    """The lock file of a row's environment; None if it names none."""
    return project.peers / "locks" / f"{row['lock']}.lock" if row.get("lock") else None


def home(project: Project) -> Path:
    """The folder of the environments, and of the runs of unfinished races."""
    return project.cache / "peers"


def python_of(peer: Peer, environments: Path) -> Path:
    """The interpreter of the peer's environment. It is made in `environments` if it is not there.

    Raises PeerError when it cannot be made.
    """
    if peer.lock is None:
        return Path(sys.executable)
    key = hashlib.sha256(peer.lock.read_bytes() + sys.version.encode()).hexdigest()[:12]
    target = environments / f"{peer.lock.stem}-{key}"
    python = target / "bin" / "python"
    if python.exists():
        return python
    with scratch(environments) as making:
        # Scripts in bin/ contain this temporary path, but drivers need only the interpreter.
        _uv("venv", "--quiet", "--clear", "--python", sys.executable, str(making))
        _uv("pip", "sync", "--quiet", "--require-hashes", "--python", str(making), str(peer.lock))
        try:
            if target.exists() and not python.exists():  # its own interpreter was removed
                shutil.rmtree(target)
            making.rename(target)
        except OSError:
            if not python.exists():  # another command with the same lock was not faster
                raise
    return python


def _uv(*arguments: str) -> None:
    done = uv(*arguments, cwd=Path.cwd(), limit_s=_INSTALL_S)
    if done.status:
        raise PeerError(f"does not install: {reason(done)}")


def version(peer: Peer, python: Path, package: str = "") -> str:
    """The version of the peer's distribution `package`; without a name, of the first one in its
    input file. "" if the environment does not have it."""
    if peer.lock is None:
        return ""
    if not package:
        package = peer.lock.with_suffix(".in").read_text().split()[0].partition("==")[0]
    # Read from files, since starting the interpreter might hang.
    folders = [str(path) for path in python.parents[1].glob("lib/python*/site-packages")]
    there = next(iter(metadata.distributions(name=package, path=folders)), None)
    return f"{package} {there.version}" if there else ""


def install(
    wanted: Sequence[tuple[str, Peer, str]], environments: Path, progress: Lines
) -> tuple[dict[str, Path], dict[str, str], dict[str, str]]:
    """Make the environments that are missing. `wanted` are names, peers and distributions (as in
    `version`). Returns, by name, the interpreters, the versions, and why others are left out."""
    pythons: dict[str, Path] = {}
    versions: dict[str, str] = {}
    left_out: dict[str, str] = {}
    for number, (name, peer, package) in enumerate(wanted):
        progress.note(name, number / len(wanted))
        try:
            python = python_of(peer, environments)
            versions[name] = version(peer, python, package)
            pythons[name] = python
        except PeerError as problem:
            left_out[name] = str(problem)
    return pythons, versions, left_out


def train(
    peer: Peer, python: Path, job: Mapping[str, Any], limit_s: float, folder: Path
) -> Training:
    """Run one training in a process of its own, which is ended with all that it started.

    Raises PeerError when it fails or takes longer than `limit_s`.
    """
    out = folder / "outcome.json"
    out.unlink(missing_ok=True)
    job = {**job, "form": peer.form, "out": str(out)}
    said = folder / "said.txt"
    with said.open("wb") as file, environment(peer) as env:
        process = subprocess.Popen(
            [str(python), str(peer.driver), json.dumps(job)],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            env=env,
            cwd=folder,
            start_new_session=True,  # Ctrl-C reaches the driver of the race alone
        )
        try:
            code = process.wait(limit_s)
        except subprocess.TimeoutExpired:
            raise PeerError(f"did not end within {limit_s:.0f} s") from None
        finally:
            end_group(process)
    if code or not out.exists():
        raise PeerError(f"failed with status {code}: {_last(said.read_text(errors='replace'))}")
    said_of = json.loads(out.read_text())
    episodes = [(at, steps, value) for at, steps, value in said_of.pop("episodes")]
    return Training(**said_of, episodes=episodes)


@contextlib.contextmanager
def environment(peer: Peer) -> Iterator[dict[str, str]]:
    """The variables for a peer, without this process's Python. Compilers begin with empty caches,
    so that every run includes its own compiling."""
    ours = ("PYTHON", "VIRTUAL_ENV") if peer.lock else ()
    left_out = ("JAX_COMPILATION_CACHE_DIR", *ours)
    env = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    with scratch() as cache:
        yield env | {"TORCHINDUCTOR_CACHE_DIR": str(cache), "JAX_PLATFORMS": "cpu"}


def records_of(project: Project, where: Mapping[str, Any]) -> Path:
    """The folder of a machine's records."""
    return project.peers / "record" / slug(dict(where))


def _last(text: str) -> str:
    """The last lines of a program's output, as one line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_TAIL_LINES:]) or "it said nothing"
