"""All calls of git. A user's repository is read and never written.

A repository is looked for in the folder that is named, not above it. Every call names the folders
that it works on. Otherwise git would follow variables, which it sets for hooks, or search upwards.
What has to be written, such as a commit of the working tree, goes into an index and an object
folder of this program. Files are only checked out in a `Checkout`, which this program made.
"""

from __future__ import annotations

import dataclasses
import functools
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from rlox_opt.system import files
from rlox_opt.system.scratch import scratch

# Variables that say where git and the user's settings are. Others may lead git into another
# repository or change its answers: those of hooks, settings from a command line, dates, pathspecs.
_KEPT = {"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}
_OURS = {
    "GIT_OPTIONAL_LOCKS": "0",  # keeps `status` from writing the index
    "GIT_NO_LAZY_FETCH": "1",  # keeps a partial clone from downloading missing objects
    "GIT_LFS_SKIP_SMUDGE": "1",  # keeps Git LFS from downloading at a checkout
    "LANGUAGE": "C",  # errors are recognised by their English words
}
_SETTINGS = (
    "core.hooksPath=/dev/null",  # writing an index would call a hook
    "core.fsmonitor=false",  # would start a daemon with a socket in the git folder
    "init.defaultRefFormat=files",  # the format in which tags are written into our checkouts
    "core.splitIndex=false",  # would put a part of our index into the git folder
    "log.showSignature=false",  # would put gpg's output into the answer
    "i18n.logOutputEncoding=UTF-8",
    "submodule.recurse=false",  # submodules of our checkouts are checked out by `submodules`
)
_READING = {
    *("cat-file", "diff-tree", "for-each-ref", "grep", "log", "ls-files", "ls-tree"),
    *("merge-base", "rev-list", "rev-parse", "show", "status"),
}
_BESIDE = {"add", "commit-tree", "hash-object", "read-tree", "update-index", "write-tree"}
_DATE = "2000-01-01T00:00:00Z"
_LOAD = "\nThe clone is partial; `git fetch --refetch --no-filter` loads what it lacks"
_MADE = "made-by-rlox-opt"  # a file that marks the git folder of a checkout of this program


class GitError(Exception):
    """git is missing, refuses or fails; the message says which, and the remedy."""


def environment() -> dict[str, str]:
    """This process's variables for programs that may call git, without those that redirect git."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }


def trusting(folder: Path) -> dict[str, str]:
    """Variables with which git reads a folder whoever owns it."""
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": str(folder),
    }


@dataclass(frozen=True)
class Repository:
    """The checkout `folder` with its git folder and its `objects`. `beside` is a further object
    folder of this program, which is read as well; with an `index` of this program, new objects are
    written there. A git process that outlives this one keeps `lock`, the descriptor of a lock file,
    locked until it ends."""

    folder: Path
    git_dir: Path
    objects: Path
    beside: Path | None = None
    index: Path | None = None
    lock: int | None = None

    def run(
        self, verb: str, *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> str:
        """Git's output, with U+FFFD for what is not UTF-8.

        Raises:
            GitError: there is no git, or it fails.
        """
        done = self._done(verb, *arguments, env=env, stdin=stdin)
        if done.returncode:
            raise _failed(done, self.folder, verb, *arguments)
        return done.stdout.decode(errors="replace")

    def maybe(self, verb: str, *arguments: str) -> str | None:
        """Git's output, or None if it fails. Raises GitError if there is no git."""
        done = self._done(verb, *arguments)
        return None if done.returncode else done.stdout.decode(errors="replace")

    def setting(self, name: str) -> str:
        """The value of a setting, of this repository or otherwise of the user; "" without one.
        Raises GitError if there is no git."""
        command = _command(self.folder, self.git_dir, "config", "--get", name)
        done = _ran(command, self.folder, environment() | _OURS)
        return done.stdout.decode(errors="replace").strip()

    def stream(self, verb: str, *arguments: str) -> subprocess.Popen[str]:
        """A running git with pipes for its input and output. Raises OSError without git."""
        return subprocess.Popen(
            self._command(verb, *arguments),
            cwd=self.folder,
            env=self._environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
        )

    def commit(
        self,
        parent: str,
        message: str,
        maker: str,
        change: Callable[[Repository], object],
        within: Path | None = None,
    ) -> str:
        """A commit after `parent` that is on no branch, with `change` applied to its index. It is
        made in a folder of `within` and kept in `beside`. The same content gives the same commit.

        Raises:
            GitError: git fails, or there is none.
        """
        if self.beside is None:
            raise ValueError(f"{self.folder}: has no folder beside it for a commit of ours")
        env = {
            f"GIT_{who}_{what}": value
            for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", maker), ("EMAIL", f"{maker}@localhost"), ("DATE", _DATE))
        }
        with scratch(within) as folder:
            index, objects = folder / "index", folder / "objects"
            objects.mkdir()
            ours = dataclasses.replace(self, index=index, beside=objects)
            ours.run("read-tree", parent)
            change(ours)
            tree = ours.run("write-tree").strip()
            made = ours.run("commit-tree", tree, "-p", parent, "-m", message, env=env).strip()
            # Objects that exist are replaced too, since they may be broken.
            for path in sorted(objects.rglob("*"), reverse=True):
                if path.is_file():
                    kept = self.beside / path.relative_to(objects)
                    kept.parent.mkdir(parents=True, exist_ok=True)
                    shutil.move(path, kept)
        return made

    def _done(
        self, verb: str, *arguments: str, env: Mapping[str, str] | None = None, stdin: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        command, where = self._command(verb, *arguments), self._environment()
        return _ran(command, self.folder, {**where, **(env or {})}, stdin, self.lock)

    def _command(self, verb: str, *arguments: str) -> list[str]:
        if verb not in (_READING | _BESIDE if self.index and self.beside else _READING):
            raise ValueError(f"git {verb}: may write to {self.folder}, which is the user's")
        return _command(self.folder, self.git_dir, verb, *arguments)

    def _environment(self) -> dict[str, str]:
        variables = environment() | _OURS
        if self.beside and (self.index or self.beside.is_dir()):
            variables["GIT_OBJECT_DIRECTORY"] = str(self.beside)
            variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = _quoted(self.objects)
        if self.index:
            variables["GIT_INDEX_FILE"] = str(self.index)
        return variables


@functools.cache
def of(root: Path) -> Repository:
    """The repository whose checkout is `root`: also a linked worktree, or a submodule.

    Raises:
        GitError: there is none, it belongs to another user, or there is no git.
    """
    root = root.resolve()
    if not (root / ".git").exists():
        raise GitError(f"{root}: is no git checkout; clone the repository and work there")
    # git finds the folder, so that it checks the owner. It does not search above root.
    ceiling = {"GIT_CEILING_DIRECTORIES": str(root.parent)}
    answers = []  # one question at a time, since a path may contain line breaks
    for question in (("--absolute-git-dir",), ("--git-path", "objects"), ("--show-toplevel",)):
        done = _ran(["git", "rev-parse", *question], root, environment() | _OURS | ceiling)
        if done.returncode:
            raise _failed(done, root, "rev-parse", *question)
        answers.append(os.fsdecode(done.stdout).removesuffix("\n"))
    git_dir, objects, top = answers
    if Path(top) != root:
        raise GitError(f"{root / '.git'}: is no repository; git takes {top} for its checkout")
    return Repository(root, Path(git_dir), root / objects)


def settings(text: str) -> dict[str, str]:
    """The values in a text of git settings, by name; empty if the text is none. Raises GitError if
    there is no git."""
    command = ["git", "config", "--file", "-", "--null", "--list"]
    done = _ran(command, Path("/"), environment() | _OURS, text)
    rows = done.stdout.decode(errors="replace").split("\0") if not done.returncode else []
    return {name: value for name, _, value in (row.partition("\n") for row in rows) if name}


@dataclass(frozen=True)
class Checkout:
    """A checkout of this program in `folder`, which uses the objects of another repository. It is
    the only kind whose files git may overwrite and delete. `lock` is as in `Repository`."""

    folder: Path
    lock: int

    def make(self, source: Repository, commit: str) -> None:
        """Make a new repository at a commit of `source`. Raises GitError if that fails."""
        self.folder.mkdir()
        digest = ("--object-format=sha256",) if len(commit) == 64 else ()
        self._run(source, "init", "--quiet", "--template=", *digest)
        (self.folder / ".git" / _MADE).touch()
        self.move(source, commit)

    def move(self, source: Repository, commit: str) -> None:
        """Make it contain a commit of `source` and nothing else. Unchanged files keep their time
        stamps. Raises GitError or OSError if it is broken, or not this program's."""
        git_dir = self.folder / ".git"
        if not re.fullmatch("[0-9a-f]{40,64}", commit):
            raise GitError(f"{commit!r}: is no commit's hash")
        if self.folder.is_symlink() or git_dir.is_symlink() or not (git_dir / _MADE).is_file():
            raise GitError(f"{self.folder}: is no checkout of ours")
        beside = [source.beside] if source.beside and source.beside.is_dir() else []
        lines = "".join(f"{_quoted(objects)}\n" for objects in [source.objects, *beside])
        (git_dir / "objects" / "info" / "alternates").write_bytes(os.fsencode(lines))
        self._tag(source)
        self._run(source, "checkout", "--quiet", "--force", "--detach", commit, "--")
        self._run(source, "clean", "--quiet", "-ffdx")

    def listed(self) -> str:
        """Its index as `ls-files --stage -z` prints it. Raises GitError if it is broken."""
        return self._run(None, "ls-files", "--stage", "-z")

    def _tag(self, source: Repository) -> None:
        """Copy the tags of `source`, from which a build may take its version, and the mark where a
        shallow clone ends."""
        git_dir = self.folder / ".git"
        tags = source.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
        files.write(git_dir / "packed-refs", tags)
        shallow = source.objects.parent / "shallow"
        if shallow.is_file():
            files.write(git_dir / "shallow", shallow.read_bytes())
        else:
            (git_dir / "shallow").unlink(missing_ok=True)

    def _run(self, source: Repository | None, *arguments: str) -> str:
        command = _command(self.folder, self.folder / ".git", *arguments)
        done = _ran(command, self.folder, environment() | _OURS, lock=self.lock)
        if done.returncode:
            partial = source is not None and any(source.objects.glob("pack/*.promisor"))
            where = source.folder if source else self.folder
            raise _failed(done, where, *arguments, remedy=_LOAD if partial else "")
        return done.stdout.decode(errors="replace")


def on_a_store(folder: Path, *arguments: str) -> list[str]:
    """The words for git on a repository of this program that has no files checked out; git leaves
    nothing running."""
    settings = (*_SETTINGS, "gc.auto=0", "maintenance.auto=false")
    told = (part for setting in settings for part in ("-c", setting))
    return ["git", f"--git-dir={folder}", *told, *arguments]


def _command(folder: Path, git_dir: Path, *arguments: str) -> list[str]:
    settings = (part for setting in _SETTINGS for part in ("-c", setting))
    return ["git", f"--git-dir={git_dir}", f"--work-tree={folder}", *settings, *arguments]


def _ran(
    command: list[str],
    cwd: Path,
    env: Mapping[str, str],
    stdin: str = "",
    lock: int | None = None,
) -> subprocess.CompletedProcess[bytes]:
    kept = () if lock is None else (lock,)
    try:
        return subprocess.run(
            command, cwd=cwd, env=env, input=stdin.encode(), capture_output=True, pass_fds=kept
        )
    except OSError as error:
        if shutil.which("git") is None:
            raise GitError("git: is not on PATH; install it from https://git-scm.com") from None
        raise GitError(f"{error.filename}: {error.strerror}") from None


def _failed(
    done: subprocess.CompletedProcess[bytes], folder: Path, *arguments: str, remedy: str = ""
) -> GitError:
    said = done.stderr.decode(errors="replace").strip()
    if "dubious ownership" in said or "unsafe repository" in said:
        return GitError(
            f"{folder}: belongs to another user, whose settings git would follow, so it does not "
            "read it. If you trust that user: "
            f"git config --global --add safe.directory {shlex.quote(str(folder))}"
        )
    return GitError(f"{folder}: git {' '.join(arguments)} failed: {said}{remedy}")


def _quoted(path: Path) -> str:
    """A path for git's list of object folders, in which colons and line breaks separate entries."""
    text = str(path).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
