"""The commits of a project, named as users name them, and what git knows of each."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.project import checkouts
from rlox_opt.system import git
from rlox_opt.system.moments import moment
from rlox_opt.system.usage import UsageError

WORKING_TREE = "."
RELEASE = "pypi:"
"""The beginning of a release's name as a side."""

_FEATURE = re.compile(r"[a-z0-9-]+")
_BRANCHED = "..."  # git's: A...B is the commit at which A and B parted
_SPAN = re.compile(r"(?<!\.)\.\.(?!\.)")
_END = "--end-of-options"  # what follows comes from files and people, and is none


@dataclass(frozen=True)
class Revision:
    """A side as it was asked for: a commit, the working tree, or a release."""

    text: str
    """As asked: "main", ".", "pypi:networkx==3.2"."""

    commit: str
    """The commit's hash; for a release, the text itself."""

    features: tuple[str, ...] | None = None
    """The cargo features to build it with; None: those of its own pyproject.toml."""

    python: str = ""
    """A version ("3.11") or the path of an interpreter; "": the project's choice."""

    extra: tuple[str, ...] = ()
    """Further requirements of its environment: ("numpy==1.26",)."""

    @property
    def is_release(self) -> bool:
        """Whether it is a release and not a commit."""
        return self.text.startswith(RELEASE)

    @property
    def needs_environment(self) -> bool:
        """Whether it asks for something that needs an environment of its own."""
        return bool(self.is_release or self.python or self.extra)

    @property
    def title(self) -> str:
        """The revision for users: as it was asked for, with its commit."""
        if self.commit == self.text:  # a release
            return self.text
        name, plus, listed = self.text.partition("+")
        short = self.commit[:10]
        return f"{short}{plus}{listed}" if name.startswith(short) else f"{self.text} ({short})"


@dataclass(frozen=True)
class Commits:
    """The commits of the checkout in `root`. Commits made of its working tree are kept in `beside`,
    and nothing is written into the checkout.

    All methods raise UsageError where git is missing or fails.
    """

    root: Path
    beside: Path

    def resolve(self, text: str) -> Revision:
        """The revision that `text` names: REV, or REV+FEATURE,… (`main+opt-p5`, `HEAD+none`); the
        working tree is ".". As in git, A...B is the merge base of A and B, and an end that is left
        out is HEAD.

        Raises:
            UsageError: there is no such commit, or no such checkout.
        """
        name, plus, listed = text.partition("+")
        features: tuple[str, ...] | None = None
        if plus:
            features = () if listed == "none" else tuple(sorted(listed.split(",")))
            for feature in features:
                if not _FEATURE.fullmatch(feature):
                    raise UsageError(
                        f"{text!r}: {feature!r} is no cargo feature; write {name}+opt-p5"
                    )
        one, dots, other = name.partition(_BRANCHED)
        commit = self._merge_base(one, other) if dots and (one or other) else self._commit(name)
        return Revision(text, commit, features)

    def _merge_base(self, one: str, other: str) -> str:
        ends = [self._commit(name or "HEAD") for name in (one, other)]
        if (commit := self._maybe("merge-base", *ends)) is None:
            remedy = self.unshallow() or "; name a base that the later side came from"
            raise UsageError(
                f"{one or 'HEAD'} and {other or 'HEAD'} have no commit in common{remedy}"
            )
        return commit

    def _commit(self, name: str) -> str:
        if name == WORKING_TREE:
            return self._snapshot()
        if commit := self._maybe("rev-parse", "--verify", "--quiet", _END, f"{name}^{{commit}}"):
            return commit
        if ".." in name.strip("."):
            raise UsageError(f"{name!r}: is a range, not a commit; write its ends, A B or A...B")
        remedy = self.unshallow() or "; name a branch, a tag or a hash that it has"
        if self._maybe("rev-parse", "--verify", "--quiet", "HEAD") is None:
            remedy = f", which has no commit yet; `git commit` in {self.root} makes the first"
        raise UsageError(f"{name!r}: is no commit of this repository{remedy}")

    def unshallow(self) -> str:
        """What brings commits that a shallow clone lacks; "" where the clone is whole, and outside
        a checkout."""
        with contextlib.suppress(UsageError):
            if self._maybe("rev-parse", "--is-shallow-repository") == "true":
                return "; the clone is shallow: `git fetch --unshallow`"
        return ""

    def between(self, good: Revision, bad: Revision) -> list[str]:
        """The commits after `good` up to `bad`, in order: `bad` and its first parents, as far as
        `good` does not contain them. Each is the first parent of the next. A merge stands for all
        that it brought in.

        Raises:
            UsageError: `bad` does not descend from `good`.
        """
        if self._maybe("merge-base", "--is-ancestor", good.commit, bad.commit) is None:
            remedy = self._instead(good, bad)
            raise UsageError(f"{bad.title} does not descend from {good.title}{remedy}")
        if good.commit == bad.commit:
            raise UsageError(f"{good.title} and {bad.title} are one commit")
        span = f"{good.commit}..{bad.commit}"
        return self._run("rev-list", "--reverse", "--topo-order", "--first-parent", span).split()

    def _instead(self, good: Revision, bad: Revision) -> str:
        """What to name instead of `good`, from which `bad` does not descend."""
        if self._maybe("merge-base", "--is-ancestor", bad.commit, good.commit) is not None:
            return "; name the older one first"
        parted = self._maybe("merge-base", good.commit, bad.commit)
        if parted is None:
            return f", and they have no commit in common{self.unshallow()}"
        name, plus, listed = good.text.partition("+")
        other = bad.text.partition("+")[0]
        dots = name == WORKING_TREE or ".." in name or ".." in other
        place = parted[:10] if dots else f"{name}{_BRANCHED}{other}"
        return (
            f": they parted at {parted[:10]}; name {place}{plus}{listed} in place of {good.text}"
            f"{self.unshallow()}"
        )

    def since(self, base: str, head: str) -> list[str]:
        """The commits that `head` contains and `base` does not."""
        return self._run("rev-list", _END, f"{base}..{head}").split()

    def line(self, tip: str = "HEAD", *paths: str) -> list[str]:
        """A commit and its first parents, the oldest first; with paths, only those that changed one
        of them. Empty outside a checkout. Raises UsageError for paths that git does not take."""
        try:
            there = self._maybe("rev-parse", "--verify", "--quiet", _END, f"{tip}^{{commit}}")
        except UsageError:
            return []
        said = ("rev-list", "--first-parent", "--reverse", _END, tip, "--", *paths)
        return self._run(*said).split() if there else []

    def newest(self, tip: str, *paths: str) -> str:
        """The newest commit of a line of first parents that changed a path; "" without one."""
        said = ("rev-list", "--first-parent", "--max-count=1", _END, tip, "--", *paths)
        return self._maybe(*said) or ""

    def lacks(self, commit: str, path: str) -> bool:
        """Whether a commit lacks a file or folder of the working tree, or a source in it that git
        does not leave out."""
        if not self.tree(commit, path):
            return True
        told = self._run("status", "--porcelain", "--untracked-files=all", "-z", "--", path)
        new = [of for of in told.split("\0") if of.startswith(("??", "A"))]
        return any(of.endswith((".py", ".rs")) for of in new)

    def described(self, commit: str) -> str:
        """A commit in one line: hash, date and subject, without terminal control characters."""
        said = self._run("show", "--no-patch", "--format=%h %as %s", _END, commit)
        return "".join(of if of.isprintable() else "\N{REPLACEMENT CHARACTER}" for of in said)

    def span(self, text: str) -> list[Revision]:
        """The revisions that `text` names: REV, or FROM..TO along the first parents, oldest
        first; each with features as `resolve` takes them.

        Raises:
            UsageError: there is no such commit, or nothing lies between the two.
        """
        name, plus, listed = text.partition("+")
        if not is_span(name):
            return [self.resolve(text)]
        ends = [self.resolve(f"{end or 'HEAD'}{plus}{listed}") for end in _SPAN.split(name, 1)]
        return [
            dataclasses.replace(ends[1], text=f"{commit}{plus}{listed}", commit=commit)
            for commit in self.between(*ends)
        ]

    def about(self, commit: str) -> tuple[str | None, datetime.datetime, str]:
        """A commit's first parent (None without one), its time and its subject."""
        first, _, subject = self._run(
            "show", "--no-patch", "--format=%cI %P%n%s", _END, commit
        ).partition("\n")
        when, *parents = first.split()
        return next(iter(parents), None), moment(when), subject

    def ancestors(self, commit: str, most: int) -> list[str]:
        """The commits before it along the first parents, the nearest first."""
        return self._run(
            "rev-list", "--first-parent", f"--max-count={most + 1}", _END, commit
        ).split()[1:]

    def text(self, commit: str, path: str) -> str:
        """The text of a file in a commit; "" if the commit lacks it."""
        repository = self.repository()
        with as_usage_error():
            return repository.maybe("show", _END, f"{commit}:{path}") or ""

    def holding(self, commit: str, text: str, *paths: str) -> list[str]:
        """The files of a commit that contain a text, among those that match git's patterns."""
        named = ("--name-only", "-z", "-I", "--fixed-strings", "-e", text, commit, "--", *paths)
        said = self._maybe("grep", *named) or ""
        return [path.removeprefix(f"{commit}:") for path in said.split("\0") if path]

    def changed(self, base: str, head: str) -> list[tuple[str, str]]:
        """The files that differ between two commits, by their paths in both; "" for a commit that
        lacks the file."""
        fields = self._run(
            "diff-tree", "-r", "--name-status", "--find-renames", "-z", _END, base, head
        ).split("\0")
        left, found = iter(fields), []
        for status in left:
            if not status:
                continue
            path = next(left)
            later = next(left) if status[0] in "RC" else path
            found.append(("" if status[0] == "A" else path, "" if status[0] == "D" else later))
        return found

    def dirty(self, *left_out: str) -> bool:
        """Whether the working tree differs from HEAD; some paths from the top may be left out."""
        but = (f":(exclude,top,literal){path}" for path in left_out)
        return bool(self._run("status", "--porcelain", "--untracked-files=all", "--", ".", *but))

    def tree(self, commit: str, *paths: str) -> str | None:
        """Git's ids of these parts of a commit; None if there is no such commit."""
        return self._maybe("ls-tree", _END, commit, "--", *paths)

    def has(self, commit: str, *paths: str) -> bool:
        """Whether a commit has a file at one of these paths, from whichever of its folders."""
        listed = self._maybe("ls-tree", "-r", "-z", "--name-only", _END, commit) or ""
        ends = tuple(f"/{path}" for path in paths)
        return any(f"/{path}".endswith(ends) for path in listed.split("\0"))

    def folders_of(self, name: str, commit: str) -> list[str] | None:
        """The folders of a commit below its root that have a file of this name; None if there is no
        such commit."""
        listed = self._maybe("ls-tree", "-r", "-z", "--name-only", _END, commit)
        if listed is None:
            return None
        return [at[: -len(name) - 1] for at in listed.split("\0") if at.endswith(f"/{name}")]

    def repository(self) -> git.Repository:
        """The checkout's repository, with the commits made of its working tree."""
        with as_usage_error():
            return dataclasses.replace(git.of(self.root), beside=self.beside / "objects")

    def _snapshot(self) -> str:
        """The working tree as a commit."""
        repository = self.repository()
        with as_usage_error(), checkouts.alone(self.beside) as lock:
            held = dataclasses.replace(repository, lock=lock)
            return held.commit(
                "HEAD", "working tree", "rlox-opt", lambda to: to.run("add", "--all"), self.beside
            )

    def _run(self, *arguments: str) -> str:
        repository = self.repository()
        with as_usage_error():
            return repository.run(*arguments).strip()

    def _maybe(self, *arguments: str) -> str | None:
        repository = self.repository()
        with as_usage_error():
            said = repository.maybe(*arguments)
        return said if said is None else said.strip()


def is_span(text: str) -> bool:
    """Whether `text` names the commits FROM..TO, and not one."""
    return _SPAN.search(text) is not None


def later(base: str) -> str:
    """What a base is compared with where only the base is named: of A...B it is B, which branched
    off there; of others HEAD."""
    name, plus, listed = base.partition("+")
    other = name.partition(_BRANCHED)[2] or "HEAD"
    return f"{other}{plus}{listed}" if _BRANCHED in name else "HEAD"


@contextlib.contextmanager
def as_usage_error() -> Iterator[None]:
    """Raises errors of git and of the repository as UsageError."""
    try:
        yield
    except git.GitError as error:
        raise UsageError(f"{error}") from None
