"""Repositories with names, commits and files that nobody would choose."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from pathlib import Path

import users_repository
from campaign import Trial, complaints, random_of

import workbench

NAME, SHORT, LONG = "odd-names", range(4, 5), 14
_LIMIT_S = 280.0
_QUICK = ("--bench", "toys.time_steady", "--budget", "0.01")
_FOLDERS = (
    "a b", "it's", 'quo"ted', "ünï cödé \U0001f980", "$HOME `touch X` $(touch X)", "semi;colon&|",
    "%s {} [red]", "-dash", "line\nbreak", "tab\tbed", "back\\slash", "#hash", "a" * 200,
    "caf\udce9",  # not UTF-8
)  # fmt: skip
_PAYLOAD = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'><svg/onload=alert(3)>"
_SUBJECTS = (
    b"caf\xe9 in Latin-1", b"\xff\xfe\xfd", b"bell \x07 escape \x1b[31m red \x1b]0;title\x07",
    _PAYLOAD.encode(), b"</title></script><script>alert(4)</script>", b"x" * 5000, b"-",
    "\u202eright to left".encode(), b"{{}} %s $(touch X)", b"javascript:alert(5)", b"[red]a[/red]",
)  # fmt: skip
_FILES = (
    b"n" * 255, b"new\nline", b"caf\xe9", b"quo\"te'", _PAYLOAD.replace("/", "|").encode(),
    b" leading", b"-rf", b"*", b"tab\t", b"back\\slash", b"deep/" * 60 + b"er",
)  # fmt: skip


def trial(seed: int, folder: Path) -> Trial:
    """Make such a repository, record and compare its commits, and search the pages for markup."""
    rng = random_of(NAME, seed)
    # So that a few seeds have them all.
    name = _FOLDERS[seed % len(_FOLDERS)]
    subjects = [_SUBJECTS[(3 * seed + k) % len(_SUBJECTS)] for k in range(3)]
    files = rng.sample(_FILES, 4)
    found = Trial(seed, f"{name!r}, subjects {subjects}, files {files}"[:300])
    repository = workbench.make(folder / name)
    for subject in subjects:
        _committed(repository, subject, files, rng.randbytes(40) + _PAYLOAD.encode())
    slower = workbench.PACKAGE.format(passes=600).encode()
    _committed(repository, subjects[-1], [b"rlox/__init__.py"], slower)
    before = users_repository.fingerprint(repository)
    commands: list[tuple[tuple[str, ...], tuple[int, ...]]] = [
        (("record", "HEAD~3..HEAD", *_QUICK), (0,)),
        (("diff", "HEAD~1", ".", "--no-counts", *_QUICK), (0,)),
        (("regressions",), (0, 1)),
        (("publish", str(folder / "pages")), (0,)),
    ]
    if seed % 2:  # tells the subject
        commands.append((("bisect", "HEAD~1", "HEAD", "--bench", "toys.time_work"), (0,)))
    for words, codes in commands:
        done = subprocess.run(
            workbench.command(repository, [*words]),
            cwd=repository,
            env=workbench.environment(repository),
            capture_output=True,
            timeout=_LIMIT_S,
        )
        out, err = (text.decode(errors="replace") for text in (done.stdout, done.stderr))
        found.counts[words[0]] += 1
        for problem in complaints(done.returncode, out, err, codes):
            found.fault(f"{words[0]}: {problem}")
        if "\x1b" in out + err or "\x07" in out + err:
            found.fault(f"{words[0]}: control characters of a commit reach the terminal")
    now = users_repository.fingerprint(repository)
    if wrong := [path for path in before if now.get(path) != before[path]]:
        found.fault(f"the repository has changed: {wrong[:3]}")
    if [*folder.rglob("X")]:
        found.fault("something in a name was run")
    for problem in injected(folder / "pages"):
        found.fault(problem)
    found.counts["pages"] += len([*(folder / "pages").rglob("*.html")])
    return found


def _committed(repository: Path, subject: bytes, files: Sequence[bytes], text: bytes) -> None:
    """A commit with this subject that puts `text` into these files; git's own `commit` would
    correct what is not UTF-8. Index and working tree are not touched."""
    env = {**os.environ, "GIT_INDEX_FILE": str(repository.parent / "index")}

    def git(*words: str, text: bytes = b"") -> bytes:
        command = ["git", *words]
        done = subprocess.run(command, cwd=repository, env=env, input=text, capture_output=True)
        assert not done.returncode, done.stderr
        return done.stdout.strip()

    git("read-tree", "HEAD")
    blob = git("hash-object", "-w", "--stdin", text=text)
    listed = b"".join(b"100644 %s\t%s\0" % (blob, path) for path in files)
    git("update-index", "-z", "--index-info", text=listed)
    tree, parent = git("write-tree"), git("rev-parse", "HEAD")
    who = b"".join(b"%s A <a@b> 1700000000 +0000\n" % role for role in (b"author", b"committer"))
    content = b"tree %s\nparent %s\n%s\n%s\n" % (tree, parent, who, subject)
    commit = git("hash-object", "-w", "-t", "commit", "--stdin", text=content)
    git("update-ref", "refs/heads/main", commit.decode())


def injected(pages: Path) -> Iterator[str]:
    """Markup from names that would run in the pages."""
    for path in pages.rglob("*.html"):
        parser = _Elements()
        parser.feed(path.read_text(encoding="utf-8"))
        yield from (f"{path.relative_to(pages)}: {what}" for what in parser.wrong)


class _Elements(HTMLParser):
    """Collects elements and attributes that no page of ours has."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_script = tag == "script"
        for name, value in attrs:
            if name.startswith("on") or (value or "").strip().lower().startswith("javascript:"):
                self.wrong.append(f"<{tag} {name}={value!r}>")
        if tag == "img":
            self.wrong.append("<img>")

    def handle_endtag(self, tag: str) -> None:
        self._in_script = False

    def handle_data(self, data: str) -> None:
        if self._in_script and data.strip().startswith("alert("):
            self.wrong.append(f"<script>{data[:40]}")
