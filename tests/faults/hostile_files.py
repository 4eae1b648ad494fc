"""Files that the tool reads, broken in every known way."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import command_lines
from campaign import Trial, complaints, random_of
from server import LIMIT_S, REPORT, Server

NAME, SHORT, LONG = "hostile-files", range(12), 1200
_QUICK = ("--bench", "toys.time_steady", "--budget", "0.01", "--no-counts", "--restarts", "5")


@dataclass(frozen=True)
class Format:
    """A kind of file: where such files are, in a repository or beside it; the commands that read
    them; the exit codes that these may have besides 0, 2 and 3; and a function that makes the files
    once for each server."""

    name: str
    where: str
    commands: tuple[tuple[str, ...], ...]
    codes: tuple[int, ...] = ()
    made_by: tuple[str, ...] = ()
    pipes: bool = True  # git waits for what may come out of one, and so do we for git
    cut_alone: bool = False  # all that a kill or a full disk does to a file that nobody edits
    ours: bool = False  # of the sources: may be torn, but whoever edits it knows what it takes


_DIFF = ("diff", "HEAD~1", "HEAD", *_QUICK)
_SITE = ("publish", "{beside}/site")
_SCRIPT = ("profile", "{beside}/project/script.py", "--sampler", "none", "--out", "{beside}/made")
_PROFILES = "{beside}/repository/profiles"
FORMATS = (
    Format("history", "asv_bench/history/*/*.json",
           (("regressions",), _SITE, ("record", "HEAD", "--budget", "0.01", "--bench", "steady")),
           codes=(1,)),
    Format("record", "optimizations/record/*/*_p5.json", (("list",), ("show", "p5"), _SITE)),
    Format("record of a ladder", "optimizations/record/*/*_ladder_*.json", (("list",), _SITE),
           made_by=("ladder", "ppo")),
    Format("calibration", "asv_bench/record/*/*_calibration.json",
           (_SITE, _DIFF, ("regressions",)),
           made_by=("calibrate", "--bench", "toys.time_steady", "--budget", "{seconds}")),
    Format("card", "optimizations/*.toml",
           (("list",), ("show", "p5"), ("cmp", "p5", "--sizes", "no_such=1"), _SITE,
            ("new", "p30", "a title", "--in", "no such"), ("test", "p5", "--planted"))),
    Format("acknowledgements", "asv_bench/acknowledged.toml", (("regressions",), _SITE),
           codes=(1,)),
    Format("settings", "pyproject.toml", (("list",), ("regressions",), _SITE, _DIFF), codes=(1,)),
    Format("planted bugs", "tests/pairs/planted.toml", (("test", "p5", "--planted"),), codes=(1,)),
    Format("list of pages", "../site/.published.json", (_SITE,), made_by=_SITE),
    Format("peers", "peers/peers.toml", (("peers", "ppo", "--runs", "1", "--time-limit", "5"),),
           codes=(1,), ours=True),
    Format("operations", "peers/primitives/primitives.toml", (("peers", "primitives", "--list"),),
           ours=True),
    Format("report", "profiles/*/report.json",
           (("profile", "diff", f"{_PROFILES}/a", f"{_PROFILES}/b"),
            ("profile", "diff", f"{_PROFILES}/c", f"{_PROFILES}/c"), ("ladder", "ppo")),
           codes=(1,)),
    Format("features", "crates/rlox-core/Cargo.toml",
           (("test", "--builds", "--only", "none"), ("ladder", "ppo"), ("list",)), codes=(1,),
           ours=True),
    Format("build", "target/revisions/????????????-*/rlox/*", (_DIFF,), made_by=_DIFF),
    Format("extension", "target/revisions/extension-*", (_DIFF,), made_by=_DIFF),
    Format("checkout", "target/revisions/checkout/.git/*", (_DIFF,), made_by=_DIFF,
           pipes=False),
    Format("spans", "../made/run/*.jsonl", ((REPORT, "{beside}/made/run"),), made_by=_SCRIPT,
           cut_alone=True),
)  # fmt: skip


def trial(seed: int, folder: Path) -> Trial:
    """Break a file, run a command that reads it, and restore it."""
    rng = random_of(NAME, seed)
    of = FORMATS[seed % len(FORMATS)]
    server = command_lines.here()
    path = rng.choice(_files(of, server, folder))
    command = _words(rng.choice(of.commands), server)
    with broken(path, of, rng) as how:
        found = Trial(seed, f"{of.name} {path.name}, {how}: {' '.join(command)}")
        done = server.run(command, folder)
    found.counts[f"exit {done.code}" if done.code is not None else "hang"] += 1
    shutil.rmtree(server.repository / "target", ignore_errors=True)  # of a broken build may be left
    if done.code is None:
        found.fault(f"does not end within {LIMIT_S:.0f} s")
    else:
        for problem in complaints(done.code, done.out, done.err, (0, 2, 3, *of.codes)):
            found.fault(problem)
    for problem in command_lines.changed(server):
        found.fault(problem)
    return found


def _words(words: tuple[str, ...], server: Server) -> list[str]:
    return [word.replace("{beside}", str(server.repository.parent)) for word in words]


def _files(of: Format, server: Server, folder: Path) -> list[Path]:
    """The files of a format; they are made if they do not exist."""

    def there() -> list[Path]:
        found = server.repository.glob(of.where)
        return sorted(path for path in found if path.is_file() and not path.is_symlink())

    done = None
    for seconds in ("2", "60"):  # five restarts may take a busy machine more than two
        if of.made_by and not there():
            words = [word.replace("{seconds}", seconds) for word in _words(of.made_by, server)]
            done = server.run(words, folder)
    assert there() or not of.made_by, f"{of.made_by} has made no {of.where}: {done}"
    return there()


@contextlib.contextmanager
def broken(path: Path, of: Format, rng: random.Random) -> Iterator[str]:
    """The file is broken in this block; gives how, in words."""
    content, mode = path.read_bytes(), path.stat().st_mode
    stamp = path.stat().st_mtime_ns
    ways = (_cut,) if of.cut_alone else (_replaced, _mangled, _mangled)
    if not (of.cut_alone or of.ours):
        ways += (_mistyped, _mistyped)
    try:
        said = rng.choice(ways)(path, content, rng)
        if not of.pipes and path.is_fifo():
            path.unlink()
            said = "gone"
        yield said
    finally:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        path.unlink(missing_ok=True)
        if path.parent.exists():  # the tool takes broken builds away
            path.write_bytes(content)
            path.chmod(mode)
            os.utime(path, ns=(stamp, stamp))


def _replaced(path: Path, content: bytes, rng: random.Random) -> str:
    """Replace the file by something else."""
    path.unlink()
    what = rng.choice(("gone", "a folder", "a pipe", "a loop", "/dev/zero", "/dev/null",
                       "/dev/full", "/proc/self/mem", "nowhere"))  # fmt: skip
    if what == "a folder":
        path.mkdir()
    elif what == "a pipe":
        os.mkfifo(path)
    elif what == "a loop":
        path.symlink_to(path.name)
    elif what != "gone":
        path.symlink_to(what)
    return what if what.startswith(("a ", "gone")) else f"a link to {what}"


def _cut(path: Path, content: bytes, rng: random.Random) -> str:
    """Cut bytes off, or replace them by zeros."""
    at = rng.randint(0, len(content))
    zeros = rng.random() < 0.3
    path.write_bytes(content[:at] + (b"\0" * (len(content) - at) if zeros else b""))
    return f"{'zeros from' if zeros else 'cut at'} byte {at}"


def _mangled(path: Path, content: bytes, rng: random.Random) -> str:
    """Change bytes."""
    at = rng.randint(0, len(content))
    what, found = rng.choice((
        ("empty", b""),
        (f"cut at byte {at}", content[:at]),
        (f"without its first {at} bytes", content[at:]),
        (f"zeros from byte {at}", content[:at] + b"\0" * (len(content) - at)),
        (f"random bytes at {at}", content[:at] + rng.randbytes(rng.randint(1, 64)) + content[at:]),
        (f"no UTF-8 at {at}", content[:at] + b"caf\xe9 \xff\xfe" + content[at:]),
        ("in UTF-16", b"\xff\xfe" + content.decode("latin-1").encode("utf-16-le")),
        ("with a mark of the order of bytes", b"\xef\xbb\xbf" + content),
        (f"twice from byte {at}", content + content[at:]),
        ("nested deeply", b"[" * 200_000 + b"]" * 200_000),
        ("nested deeply as a value", b"a = " + b"[" * 50_000 + b"]" * 50_000),
        ("null", b"null"), ("a number", b"17"), ("a text", b'"text"'), ("a list", b"[]"),
        ("a table", b"{}"), ("NaN", b"NaN"), ("a long number", b"9" * 10_000),
        (f"a bit at {at}", _flipped(content, rng)),
        ("some bits", functools.reduce(lambda c, _: _flipped(c, rng), range(8), content)),
    ))  # fmt: skip
    path.write_bytes(found)
    return what


def _flipped(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


_STRANGE: tuple[Any, ...] = (
    None, True, 0, -1, 1, 2**63, 10**400, 0.0, -0.5, 1e308, float("nan"), float("inf"), "", "x",
    "x" * 10_000, "a\nb", "\0", "<script>", "../../x", "{}", "\ud800", "nan", [], [None], [[]],
    [1, "a"], {}, {"a": None}, {"": {}},
)  # fmt: skip


def _mistyped(path: Path, content: bytes, rng: random.Random) -> str:
    """Change a value's type, or add or remove a key."""
    try:
        table = json.loads(content)
    except ValueError:
        return _mistyped_text(path, content, rng)
    holders = [*_holders(table)]
    if not holders:
        return _mangled(path, content, rng)
    holder = rng.choice(holders)
    key = rng.choice([*holder] if isinstance(holder, dict) else range(len(holder)))
    what = rng.random()
    value = rng.choice(_STRANGE)
    if what < 0.2:
        del holder[key]
        said = f"without {key!r}"
    elif what < 0.3 and isinstance(holder, dict):
        holder[rng.choice(("", "x", "__class__", "schema"))] = value
        said = f"{repr(value)[:30]} too many"
    else:
        holder[key] = value
        said = f"{repr(value)[:30]} at {key!r}"
    path.write_text(json.dumps(table), encoding="utf-8")
    return said


def _holders(value: Any) -> Iterator[Any]:
    """All non-empty tables and lists; outer ones are as frequent as all of one depth."""
    level = [value]
    while level:
        yield from (of for of in level[:40] if isinstance(of, (dict, list)) and of)
        level = [
            inner
            for of in level
            for inner in (
                of.values() if isinstance(of, dict) else of if isinstance(of, list) else ()
            )
        ]


def _mistyped_text(path: Path, content: bytes, rng: random.Random) -> str:
    """The same for TOML, and for lines of JSON: a value, or a line."""
    text = content.decode("utf-8", "surrogateescape")
    values = [
        *re.finditer(r'(?<=[=:,\[] )("[^"\n]*"|-?[\d.]+|true|false)|(?<=[:,\[])-?[\d.]+', text)
    ]
    lines = text.splitlines(keepends=True)
    if values and rng.random() < 0.6:
        match = rng.choice(values)
        new = rng.choice(('""', '"x"', "-1", "0", "1e999", "nan", "true", "[]", "[[]]", "{}",
                          '["x", 1]', "9" * 400, "1979-05-27", '"\\u0000"', '"../x"'))  # fmt: skip
        text = text[: match.start()] + new + text[match.end() :]
        said = f"{new[:20]} for {match[0][:30]}"
    elif lines:
        at = rng.randrange(len(lines))
        twice = rng.random() < 0.4
        said = f"line {at + 1} {'twice' if twice else 'gone'}"
        lines[at : at + 1] = [lines[at]] * 2 if twice else []
        text = "".join(lines)
    else:
        said = "as it was"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    return said
