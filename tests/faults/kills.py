"""Kills at random moments of every verb that writes, in a repository with work in every state."""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import subprocess
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import users_repository
from campaign import Trial, complaints, outlived, random_of

import workbench

NAME, SHORT, LONG = "kills", range(5, 7), 140
_KILLS = 2, 4  # in one trial, of the same command, before it may end
_WRITES = 150  # about as many as a verb makes
_GONE_S = 30.0
_SLOW_S = 10 * _GONE_S  # what runs on is there still when it is looked for
_UNDER_WAY = ".writing-"  # begins the name of a file that has not yet taken its place
_LIMIT_S = 180.0
_QUICK = ("--bench", "toys.time_steady", "--budget", "0.001")
_RECORDS = ("asv_bench/history", "asv_bench/record", "optimizations/record", "peers/record")


@dataclass(frozen=True)
class Verb:
    """A command line, its seconds, its exit codes, and what it may write in the repository besides
    `target/` and the records."""

    words: tuple[str, ...]
    seconds: float
    codes: tuple[int, ...] = (0,)
    writes: tuple[str, ...] = ()
    project: bool = False  # run beside the repository, in a folder of the user's


VERBS = (
    Verb(("record", "HEAD~1", "HEAD", *_QUICK), 3.0),
    Verb(("diff", "HEAD~1", "HEAD", "--no-counts", *_QUICK), 2.0),
    Verb(("diff", "HEAD~1", ".", "--no-counts", *_QUICK), 2.0, writes=(".git/objects",)),
    Verb(("gate", "HEAD~1", "--no-counts", *_QUICK), 2.0, codes=(0, 2)),
    Verb(("bisect", "HEAD~1", "HEAD", "--bench", "toys.time_work"), 4.0, codes=(0, 2)),
    # Enough for forty restarts, of which five must fit for an exit code of 0, however busy it is.
    Verb(("calibrate", "--bench", "toys.time_steady", "--budget", "60"), 8.0),
    Verb(("publish",), 1.0, writes=("asv_bench/pages",)),
    Verb(("publish", "site"), 1.0, writes=("site",)),
    Verb(("cmp", "p13", "--sizes", "n_envs=4", "--restarts", "5"), 2.5),
    Verb(("ladder", "ppo"), 1.0),
    Verb(("test", "p5", "--planted"), 1.0),
    Verb(("peers", "ppo", "--runs", "2"), 1.0),
    Verb(("new", "p30", "A toy of an optimisation"), 0.7, codes=(0, 2),
         writes=("crates", "optimizations")),
    Verb(("profile", "script.py", "--sampler", "none", "--out", "out/it"), 2.0, codes=(0, 2),
         project=True),
    Verb(("profile", "script.py"), 3.0, project=True),
    Verb(("profile", "ppo", "--tools", "none", "--total-timesteps", "1024"), 8.0, project=True),
)  # fmt: skip


def trial(seed: int, folder: Path) -> Trial:
    """Kill a verb two to four times, then let it end."""
    rng = random_of(NAME, seed)
    verb = VERBS[seed % len(VERBS)]
    repository = workbench.make(folder / "a user's")
    found = Trial(seed, "rlox-opt " + " ".join(verb.words))
    before = users_repository.fingerprint(repository)
    after = _when_done(verb, folder) if verb.words[0] == "new" else {}
    ended = False
    for _ in range(rng.randint(*_KILLS)):
        mark, how, ended = _killed(verb, repository, rng)
        found.counts["ended before the kill" if ended else "kills"] += 1
        for problem in _harm(verb, repository, before, after, mark):
            found.fault(f"killed {how}: {problem}")
        if ended:
            break
    if not (ended and verb.words[0] == "new"):
        for problem in _run_again(verb, repository, before, after):
            found.fault(f"the same command after it: {problem}")
    return found


def _killed(verb: Verb, repository: Path, rng: random.Random) -> tuple[str, str, bool]:
    """Start the verb and kill it. Returns its mark, how it was killed, and whether it had ended."""
    mark = f"RLOX_FAULTS_MARK={uuid.UUID(int=rng.getrandbits(128))}"
    more = dict([mark.split("=")])
    if rng.random() < 0.4:
        more[workbench.SLOW] = f"{_SLOW_S:.0f}"
    seconds = rng.uniform(0.3, 1.3) * verb.seconds
    how = f"after {seconds:.2f} s"
    if rng.random() < 0.7:
        number = int(math.exp(rng.uniform(0, math.log(_WRITES))))
        group = rng.random() < 0.4
        delay = rng.choice((0, rng.randint(10, 3000), rng.randint(10, 20_000)))
        more[workbench.KILL_AT] = f"{number},{delay},{group:d}"
        how = f"{delay} µs after write {number}{', with its group' if group else ''}"
        seconds += 4 * verb.seconds
    process = _start(verb, repository, more)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        (os.killpg if rng.random() < 0.3 else os.kill)(process.pid, signal.SIGKILL)
        process.wait()
    return mark, how, process.returncode != -signal.SIGKILL


def _start(verb: Verb, repository: Path, more: Mapping[str, str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        workbench.command(repository, [*verb.words]),
        cwd=cwd(verb, repository),
        env=workbench.environment(repository, **more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def cwd(verb: Verb, repository: Path) -> Path:
    """The folder in which a verb is run."""
    return repository.parent / "project" if verb.project else repository


def _harm(
    verb: Verb,
    repository: Path,
    before: Mapping[str, str],
    after: Mapping[str, str],
    mark: str,
) -> Iterator[str]:
    """What a killed verb left behind and must not."""
    left = outlived(mark, _GONE_S)
    yield from (f"{words[:100]} runs on" for words in left.values())
    yield from changes(repository, before, verb.writes, after)
    yield from halves(repository)


def changes(
    repository: Path,
    before: Mapping[str, str],
    writes: tuple[str, ...] = (),
    after: Mapping[str, str] | None = None,
) -> Iterator[str]:
    """What changed of the user's files. New files may lie among the records and in `writes`; a file
    may be as in `after` instead."""
    now = users_repository.fingerprint(repository)
    for path in before.keys() | now.keys():
        if before.get(path) == now.get(path) or (after and after.get(path) == now.get(path)):
            continue
        new = path not in before
        allowed = new and is_in(path, (*_RECORDS, *writes))
        if after and not Path(path).name.startswith(_UNDER_WAY):
            allowed = False
        if not allowed:
            what = "is new" if new else "has changed" if path in now else "is gone"
            yield f"{path} {what}"


def is_in(path: str, folders: tuple[str, ...]) -> bool:
    """Whether a path is one of these folders, lies in one, or contains one."""
    return any(
        path == folder or path.startswith(f"{folder}/") or folder.startswith(f"{path}/")
        for folder in folders
    )


def halves(repository: Path) -> Iterator[str]:
    """Records that exist and cannot be read."""
    for folder in (*(repository / of for of in _RECORDS), repository.parent / "project"):
        for path in folder.rglob("*.json"):
            if any(part.startswith(".") for part in path.relative_to(folder).parts):
                continue  # not there yet: what is under way has such a name
            try:
                json.loads(path.read_text(encoding="utf-8"))
            except ValueError as error:
                yield f"{path.relative_to(repository.parent)} is half: {error}"


def _run_again(
    verb: Verb, repository: Path, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[str]:
    """What is wrong with the same command when it is not killed."""
    try:
        done = subprocess.run(
            workbench.command(repository, [*verb.words]),
            cwd=cwd(verb, repository),
            env=workbench.environment(repository),
            capture_output=True,
            text=True,
            timeout=_LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        yield f"does not end within {_LIMIT_S:.0f} s"
        return
    yield from complaints(done.returncode, done.stdout, done.stderr, verb.codes)
    yield from changes(repository, before, verb.writes, after)
    yield from halves(repository)
    project = repository.parent / "project"
    parts = [path.name for path in project.rglob(".*") if path.is_dir()]
    if done.returncode == 0 and parts:
        yield f"{', '.join(parts)} of the killed ones lies there for ever"


def _when_done(verb: Verb, folder: Path) -> dict[str, str]:
    """The fingerprint after the verb ran without being killed."""
    repository = workbench.make(folder / "another's")
    command = workbench.command(repository, [*verb.words])
    subprocess.run(
        command, cwd=repository, env=workbench.environment(repository),
        capture_output=True, check=True,
    )  # fmt: skip
    found = users_repository.fingerprint(repository)
    shutil.rmtree(repository.parent)
    return found
