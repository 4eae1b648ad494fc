"""Writing fails: disks that fill up, folders that are read-only or belong to another user, and
files in place of folders."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import kills
import users_repository
from campaign import Trial, complaints, random_of
from kills import Verb

import workbench

NAME, SHORT, LONG = "full-disk", range(7, 11), 150
_LIMIT_S = 280.0
# uid 0 as others are: it may not write what its owner may not.
_AS_OTHERS = ("setpriv", "--bounding-set", "-dac_override,-dac_read_search,-fowner", "--")
_NOBODY = 65534
_DISK_MIB = 48
_OTHERS = re.compile(
    r"\bgit .*failed|does not build|^fatal:", re.MULTILINE
)  # another program could not
# Where a verb's words say what to write: places that cannot take it.
_NOWHERE = ("/proc/x", "/dev/full", "/dev/null/x", "/dev/null", "/sys/x", "a/file/x")
_NAMED = (
    Verb(("publish", "{}"), 1.0),
    Verb(("profile", "script.py", "--sampler", "none", "--out", "{}"), 2.0, project=True),
    Verb(("profile", "ppo", "--tools", "none", "--total-timesteps", "1024", "--out", "{}"), 8.0,
         project=True),
    Verb(("profile", "diff", "profiles/a", "profiles/b", "--page", "{}"), 1.0, codes=(0, 1, 2)),
)  # fmt: skip
_PRINTING = (("list",), ("show", "p5"), ("regressions",), ("--help",), ("--version",), ("publish",),
             ("diff", "--help"), ("list", "--json"), ("peers", "primitives", "--list"))  # fmt: skip
# Folders that a verb would make or write into.
_FOLDERS = ("target", "target/revisions", "asv_bench/history", "asv_bench/record",
            "asv_bench/pages", "optimizations/record", "peers/record", "../project/profiles",
            "../project/out", "target/ladder", "target/peers", "target/planted")  # fmt: skip


@dataclass(frozen=True)
class Way:
    """How writing fails: the words before the command, the exit codes that it may have besides the
    verb's, and where its stdout goes."""

    what: str
    before: tuple[str, ...] = ()
    codes: tuple[int, ...] = (3,)
    stdout: str = ""


def trial(seed: int, folder: Path) -> Trial:
    """Run a verb where it cannot write, or where writing fails after a while."""
    rng = random_of(NAME, seed)
    ways: list[Callable[[Path, random.Random], contextlib.AbstractContextManager[_Case | None]]] = [
        _file_size, _small_disk, _read_only, _of_another_user, _no_folder, _nowhere, _full_stdout,
    ]  # fmt: skip
    # As many of each way, and of each verb.
    way = ways[seed % len(ways)]
    with way(folder / "a user's", rng) as case:
        if case is None:
            what = " ".join((way.__doc__ or "").split())
            return Trial(seed, what, counts=Counter(["not to be had here"]))
        return _tried(seed, case)


@dataclass(frozen=True)
class _Case:
    verb: Verb
    repository: Path
    way: Way


def _tried(seed: int, case: _Case) -> Trial:
    verb, repository, way = case.verb, case.repository, case.way
    found = Trial(seed, f"{way.what}: rlox-opt {' '.join(verb.words)}")
    before = users_repository.fingerprint(repository)
    with Path(way.stdout or os.devnull).open("w") as stdout:
        done = subprocess.run(
            [*way.before, *workbench.command(repository, [*verb.words])],
            cwd=kills.cwd(verb, repository),
            env=workbench.environment(repository),
            stdin=subprocess.DEVNULL,
            stdout=stdout if way.stdout else subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
            timeout=_LIMIT_S,
        )
    failed = done.returncode not in verb.codes
    found.counts["failed, and said so" if failed else "ended well"] += 1
    codes = (*verb.codes, *way.codes)
    if _OTHERS.search(done.stderr):  # and whether that is for want of room, rlox-opt cannot tell
        codes = (*codes, 2)
    for problem in complaints(done.returncode, done.stdout or "", done.stderr, codes):
        found.fault(problem)
    if done.returncode == 0:  # then it may have edited what it is for; else nothing is changed
        before = {path: of for path, of in before.items() if not kills.is_in(path, verb.writes)}
    for problem in kills.changes(repository, before, verb.writes):
        found.fault(problem)
    for problem in kills.halves(repository):
        found.fault(problem)
    return found


def _verb(rng: random.Random) -> Verb:
    return rng.choice(kills.VERBS[:-1])  # trainings are dear, and write as scripts do


@contextlib.contextmanager
def _file_size(folder: Path, rng: random.Random) -> Iterator[_Case]:
    """No file may exceed a size, which looks like a full disk from some file on."""
    size = rng.choice((0, 100, 4096, 20_000, 100_000))
    before = ("prlimit", f"--fsize={size}")
    yield _Case(_verb(rng), workbench.make(folder), Way(f"files of at most {size} bytes", before))


@contextlib.contextmanager
def _small_disk(folder: Path, rng: random.Random) -> Iterator[_Case | None]:
    """A disk of its own with little room left."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MIB}m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        yield None
        return
    try:
        repository = workbench.make(folder / "disk")
        left = rng.choice((0, 4, 64, 512)) << 10
        filler = folder / "disk" / "filler"
        with contextlib.suppress(OSError), filler.open("wb") as file:
            while True:
                file.write(b"\0" * (1 << 16))
        with contextlib.suppress(OSError):
            os.truncate(filler, max(0, filler.stat().st_size - left))
        yield _Case(_verb(rng), repository, Way(f"a disk with {left >> 10} KiB left"))
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextlib.contextmanager
def _read_only(folder: Path, rng: random.Random) -> Iterator[_Case | None]:
    """Folders that nobody may write into."""
    repository = workbench.make(folder)
    yield _case_without_rights(
        repository, rng, "read-only folders", lambda path: path.chmod(path.stat().st_mode & 0o555)
    )
    for path in folder.rglob("*"):
        if path.is_dir():
            path.chmod(0o755)


@contextlib.contextmanager
def _of_another_user(folder: Path, rng: random.Random) -> Iterator[_Case | None]:
    """Folders that belong to another user; git refuses to work there too."""
    if os.getuid():
        yield None
        return
    repository = workbench.make(folder)
    yield _case_without_rights(
        repository, rng, "another user's folders", lambda path: os.chown(path, _NOBODY, _NOBODY)
    )


def _case_without_rights(
    repository: Path, rng: random.Random, what: str, take: Callable[[Path], None]
) -> _Case | None:
    before = () if os.getuid() else _AS_OTHERS
    if before and subprocess.run([*before, "true"], capture_output=True, check=False).returncode:
        return None
    for root in (repository, repository.parent / "project"):
        for path in (root, *root.rglob("*")):
            if path.is_dir() and not path.is_symlink():
                take(path)
    # To name such a folder is to ask wrongly.
    return _Case(_verb(rng), repository, Way(what, before, codes=(2, 3)))


@contextlib.contextmanager
def _no_folder(folder: Path, rng: random.Random) -> Iterator[_Case]:
    """A file where a folder should be."""
    repository = workbench.make(folder)
    name = rng.choice(_FOLDERS)
    path = repository / name
    if path.is_dir():
        shutil.rmtree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("a file of the user's\n")
    # What is asked wrongly, and what cannot be read, is 2.
    yield _Case(_verb(rng), repository, Way(f"{name} is a file", codes=(2, 3)))


@contextlib.contextmanager
def _nowhere(folder: Path, rng: random.Random) -> Iterator[_Case]:
    """Arguments that name a place where no file can be."""
    repository = workbench.make(folder)
    verb, place = rng.choice(_NAMED), rng.choice(_NOWHERE)
    for home in (repository.parent / "project", repository):
        (home / "a").mkdir()
        (home / "a" / "file").touch()
    words = tuple(word.replace("{}", place) for word in verb.words)
    codes = verb.codes if place == "/dev/null" else ()  # may be written to
    yield _Case(replace(verb, words=words, codes=codes), repository, Way(place, codes=(2, 3)))


@contextlib.contextmanager
def _full_stdout(folder: Path, rng: random.Random) -> Iterator[_Case]:
    """Nothing can be printed."""
    verb = Verb(rng.choice(_PRINTING), 1.0, codes=(), writes=("asv_bench/pages",))
    yield _Case(verb, workbench.make(folder), Way("stdout to /dev/full", stdout="/dev/full"))
