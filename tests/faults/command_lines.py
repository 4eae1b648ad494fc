"""Hostile command lines: options and values that nobody would use, drawn from the parser itself."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import functools
import os
import random
import shutil
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import users_repository
from campaign import Trial, complaints, random_of
from server import LIMIT_S, Done, Server

import workbench

NAME, SHORT, LONG = "command-lines", range(60), 2400
# Where a verb may put what it measured, in the repository that it belongs to.
_OUTPUTS = ("asv_bench/history", "asv_bench/record", "asv_bench/pages", "optimizations/record",
            "peers/record", ".git/objects")  # fmt: skip
_QUICK = ("--no-counts", "--restarts", "5", "--budget", "0.01")
# Words that end a verb before work of minutes, behind all others: the last of an option counts.
_ENDED_BY: dict[tuple[str, ...], tuple[str, ...]] = {
    ("profile", "train"): ("--device", "none"),
    ("profile", "bench"): ("--at", "no such"),
    ("profile", "script"): (),
    ("profile", "diff"): ("--device", "none"),
    ("cmp",): ("--sizes", "no_such=1"),
    ("peers", "ppo"): ("--only", "no such"),
    ("peers", "sac"): ("--only", "no such"),
    ("peers", "primitives"): ("--only", "no such"),
    ("peers", "growth"): ("--only", "no such"),
    ("peers", "backends"): ("--runs", "0"),
    ("new",): ("--in", "no such"),
    ("diff",): _QUICK,
    ("gate",): _QUICK,
    ("bisect",): ("--bench", "no such"),
    ("calibrate",): ("--bench", "no such"),
    ("record",): ("--budget", "0.01"),
}
_NOT_DRAWN = ("-m",)  # runs a module of this interpreter, whose tracebacks are its own
VALUES = (
    "", " ", "\t", "\n", "a\nb", "\r", "\x1b[31m", "\x7f", "0", "-0", "-1", "1", "2", "1e999",
    "nan", "-inf", "1e-320", "9" * 30, "9" * 5000, "0x10", "1_000", "\u0663", "½", "²",
    "\uff11\uff12",
    os.fsdecode(b"\xff\xfe"), os.fsdecode(b"caf\xe9"), "é" * 200, "x" * 300, "x" * 100_000,
    "a/" * 2000 + "a", "--", "-", "-x", "--json", "--help=1", "--no-such", "$(touch X)",
    "`touch X`", "; touch X", "| touch X", "&& touch X #", "../..", "../../no/such", "/",
    "/proc/self/mem", "/proc/x", "/dev/null", "/dev/full", "/dev/null/x", ".", "..", "~", "~root",
    "{}", "{{}}", "{0.__class__}", "%s", "%n", "%(prog)s", "<script>alert(1)</script>", "'", '"',
    "\\", "(", "[", "*", "(?P<", "(a+)+$", "a{99999999}", "(?i)(?-i:x)", "HEAD", "HEAD~999999",
    "@{-1}", "@{999999}", ":/", ":/.*", "^", "HEAD^{tree}", "--upload-pack=touch X",
    "-oProxyCommand",
    "ext::sh -c touch% X", "HEAD..", "..HEAD", "...", "HEAD~1..HEAD", "HEAD+", "HEAD+opt-p5",
    "HEAD+none", "+", ".+none", "p5", "P5", "r1", "all", "p0", "p5,p5", ",", ",,", "n=3", "n=",
    "=", "n=1=2", "n_envs=4", "n_envs=-4", "n_envs=" + "9" * 30, "ppo", "sac", "shipped", "none",
    "opt-p5", "CartPole-v1", "CartPole", "nosuchmodule:Env-v0", "cpu", "cuda", "cuda:99999999999",
    "[red]bold[/red]", "\u202e", "\ufeff", "\U0001f980", "con", "train.py", "x.py/", "a b",
)  # fmt: skip


@dataclass(frozen=True)
class Verb:
    """A verb's words, and its parser's arguments."""

    words: tuple[str, ...]
    options: tuple[argparse.Action, ...]
    positional: tuple[argparse.Action, ...]


@functools.cache
def _verbs() -> tuple[Verb, ...]:
    """All verbs, from the command line's parser."""
    from rlox_opt.cli import main as cli

    met: list[argparse.ArgumentParser] = []

    def meet(parser: argparse.ArgumentParser, *_: Any) -> None:
        met.append(parser)
        raise SystemExit

    patched = mock.patch.object(argparse.ArgumentParser, "parse_args", meet)
    with patched, contextlib.suppress(SystemExit):
        cli.main([])
    return tuple(_walked(met[0], ()))


def verbs() -> tuple[Verb, ...]:
    """All verbs; collected once, by one thread."""
    with _lock:
        return _verbs()


def _walked(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Iterator[Verb]:
    actions = parser._actions
    below = [action for action in actions if isinstance(action, argparse._SubParsersAction)]
    for action in below:
        for name, of in action.choices.items():
            yield from _walked(of, (*words, name))
    if not below:
        yield Verb(
            words,
            tuple(a for a in actions if a.option_strings and a.option_strings[0] not in _NOT_DRAWN),
            tuple(a for a in actions if not a.option_strings),
        )


def drawn(rng: random.Random) -> list[str]:
    """A command line."""
    verb = rng.choice(verbs())
    words = [*verb.words]
    for action in verb.positional:
        if rng.random() < 0.9:
            words += _values(action, rng)
    options = []
    for action in rng.choices(verb.options, k=rng.randint(0, 4)):
        options.append(rng.choice(action.option_strings))
        values = _values(action, rng) if action.nargs != 0 else []
        if values and rng.random() < 0.2:
            options[-1] += f"={values.pop(0)}"
        options += values
    if rng.random() < 0.2:
        options.insert(rng.randint(0, len(options)), rng.choice(VALUES))
    words += options
    if words[:2] in (["profile", "script"], ["profile", "train"]) and rng.random() < 0.5:
        del words[1]  # as it may be said, too
    # Behind a lone "--" no option is one.
    at = words.index("--") if "--" in words else len(words)
    words[at:at] = _ENDED_BY.get(verb.words, ())
    return words


def _values(action: argparse.Action, rng: random.Random) -> list[str]:
    count = rng.randint(1, 3) if action.nargs in ("+", "*") else 1
    choices: Sequence[Any] = [*(action.choices or ())]
    return [
        str(rng.choice(choices)) if choices and rng.random() < 0.6 else rng.choice(VALUES)
        for _ in range(count)
    ]


_lock = threading.Lock()


class _Here(threading.local):
    """This thread's server, and the fingerprint of its repository."""

    server: Server | None = None
    before: dict[str, str]


_here = _Here()


def trial(seed: int, folder: Path) -> Trial:
    """Run a command line in its own scratch folders, and see which files it wrote."""
    words = drawn(random_of(NAME, seed))
    found = Trial(seed, f"rlox-opt {_shown(words)}")
    server = here()
    canary = folder / "canary"
    canary.write_text("alive")
    done = server.run(words, folder)
    found.counts[f"exit {done.code}" if done.code is not None else "hang"] += 1
    for problem in (*ending(done), *_written(words, folder, server)):
        found.fault(problem)
    return found


def here() -> Server:
    """This thread's server, with a repository that was not changed."""
    if _here.server is None:
        folder = Path(tempfile.mkdtemp(prefix="rlox-faults-server-"))
        _here.server = Server(workbench.make(folder / "a user's"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        atexit.register(_here.server.close)
        _here.before = users_repository.fingerprint(_here.server.repository)
    return _here.server


def ending(done: Done) -> Iterator[str]:
    """What is wrong with how it ended."""
    if done.code is None:
        yield f"does not end within {LIMIT_S:.0f} s"
    else:
        yield from complaints(done.code, done.out, done.err)


def changed(server: Server) -> Iterator[str]:
    """What changed in the repository besides the verbs' outputs. A server whose repository changed
    is not used again."""
    now = users_repository.fingerprint(server.repository)
    before = _here.before
    paths = [p for p in before.keys() | now.keys() if before.get(p) != now.get(p)]
    if wrong := sorted(p for p in paths if p in before or not p.startswith(_OUTPUTS)):
        server.close()
        _here.server = None
        yield f"the repository has changed: {', '.join(wrong[:3])}"


def _written(words: Sequence[str], folder: Path, server: Server) -> Iterator[str]:
    """Files that were written where nobody asked for them."""
    mine = {"canary", "cwd", "home", "tmp"}
    strangers = [path.name for path in folder.iterdir() if path.name not in mine]
    if strangers or (folder / "canary").read_text() != "alive":
        yield f"has written beside its folders: {strangers or 'over a file'}"
    named = {word.partition("=")[2] if word.startswith("--") else word for word in words}
    tops = {Path(name).parts[0] for name in named | {"profiles"} if Path(name).parts}
    for top in (path.name for path in (folder / "cwd").iterdir()):
        if top not in tops:
            yield f"has written {top!r} into the current folder, which nobody has named"
    for place in ("home", "tmp"):
        if left := [path.name for path in (folder / place).iterdir()]:
            yield f"has left {left[0]!r} in {'HOME' if place == 'home' else 'TMPDIR'}"
    yield from changed(server)


def _shown(words: Sequence[str]) -> str:
    return " ".join(repr(w) if len(w) < 80 else f"{w[:30]!r}…({len(w)})" for w in words)
