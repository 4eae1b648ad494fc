"""Submodules, at any depth, of a checkout of this program. They come from the user's clone if it
has them, so that no network is needed, and are otherwise fetched into a folder of this program.

Addresses that git itself would refuse for a submodule are refused: an address stands in a commit,
which may be a stranger's.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from rlox_opt.system import git
from rlox_opt.system.commands import run
from rlox_opt.system.git import Checkout, GitError, Repository
from rlox_opt.system.scratch import scratch

_LINK = "160000"  # git's file mode of a submodule
_FILE = ".gitmodules"
_LIMIT_S = 120.0  # of a fetch
# Nobody is asked for a password, and settings in a commit are not treated as the user's.
_UNATTENDED = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS": "true",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_LFS_SKIP_SMUDGE": "1",
    "LANGUAGE": "C",
}
_SILENT: dict[str, str] = {}  # addresses that gave this process nothing, and why
_USER = re.compile(r"(?<=//)[^/@\s]+@")  # in an address, perhaps with a password


@dataclass(frozen=True)
class _Submodule:
    """A submodule of a commit, at the `commit` that it asks for."""

    path: str
    commit: str
    name: str
    url: str


def moved(place: Checkout, source: Repository, commit: str, kept: Path) -> tuple[str, ...]:
    """Make a checkout contain a commit of `source` with its submodules. Fetched submodules are kept
    in the folder `kept`. Returns a sentence on each that is missing. Raises GitError or OSError as
    `Checkout.move` does."""
    _forget(place, source, commit)
    place.move(source, commit)
    return _filled(place, source, commit, kept)


def made(place: Checkout, source: Repository, commit: str, kept: Path) -> tuple[str, ...]:
    """The same for a new checkout. Raises GitError."""
    place.make(source, commit)
    return _filled(place, source, commit, kept)


def _forget(place: Checkout, source: Repository, commit: str) -> None:
    """Remove submodules that the next commit does not have, since git would leave them."""
    if not os.path.lexists(place.folder / _FILE):
        return
    kept = _links(source.run("ls-tree", "-r", "-z", commit))
    for path in {*_links(place.listed())} - {*kept}:
        if _is_within(place.folder, path):
            shutil.rmtree(place.folder / path, ignore_errors=True)


def _filled(place: Checkout, source: Repository, commit: str, kept: Path) -> tuple[str, ...]:
    if not os.path.lexists(place.folder / _FILE):
        return ()
    lacking: list[str] = []
    for of in _of(source, commit):
        try:
            lacking += (f"{of.path}/{told}" for told in _fill(place, source, of, kept))
        except (GitError, OSError) as error:
            lacking.append(f"{of.path}: {_USER.sub('', str(error))}")
    return tuple(lacking)


def _of(source: Repository, commit: str) -> Iterator[_Submodule]:
    """The submodules of a commit that have an address and that no setting leaves out."""
    links = _links(source.run("ls-tree", "-r", "-z", commit))
    told = git.settings(source.maybe("show", f"{commit}:{_FILE}") or "")
    for key, path in told.items():
        name = key.removeprefix("submodule.").removesuffix(".path")
        if key != f"submodule.{name}.path" or path not in links:
            continue
        ours = {what: source.setting(f"submodule.{name}.{what}") for what in ("url", "update")}
        if "none" not in (ours["update"], told.get(f"submodule.{name}.update")):
            url = ours["url"] or told.get(f"submodule.{name}.url", "")
            yield _Submodule(path, links[path], name, url)


def _links(listed: str) -> dict[str, str]:
    """Paths and commits of submodules, from the output of `ls-tree -z` or `ls-files --stage -z`."""
    found = {}
    for row in listed.split("\0"):
        about, _, path = row.partition("\t")
        if about.startswith(_LINK):
            found[path] = next(word for word in about.split() if len(word) >= 40)
    return found


def _fill(place: Checkout, source: Repository, of: _Submodule, kept: Path) -> tuple[str, ...]:
    """Check a submodule out. If it cannot be had, raises GitError with the remedy."""
    if not _is_within(place.folder, of.path):
        raise GitError("lies behind a link, where nothing is checked out")
    inner = Checkout(place.folder / of.path, place.lock)
    for store in _stores(source, of):
        if store.maybe("cat-file", "-e", f"{of.commit}^{{commit}}") is not None:
            with contextlib.suppress(GitError):  # a partial clone may lack objects
                return _put(inner, store, of.commit, kept)
    url = _absolute(of.url, source)
    try:
        store = _fetched(url, of.commit, kept)
    except GitError as error:
        raise GitError(
            f"{error}; `git submodule update --init --recursive` in your clone brings it"
        ) from None
    return _put(inner, store, of.commit, kept)


def _put(inner: Checkout, store: Repository, commit: str, kept: Path) -> tuple[str, ...]:
    try:
        return moved(inner, store, commit, kept)
    except (GitError, OSError):
        shutil.rmtree(inner.folder, ignore_errors=True)
        return made(inner, store, commit, kept)


def _is_within(folder: Path, path: str) -> bool:
    """Whether a path leads into a folder without passing a symbolic link."""
    parts = PurePosixPath(path).parts
    steps = [folder.joinpath(*parts[: n + 1]) for n in range(len(parts))]
    return ".." not in parts and not any(step.is_symlink() for step in steps)


def _stores(source: Repository, of: _Submodule) -> Iterator[Repository]:
    """The places where a clone keeps a submodule's repository: in its git folder, in that of all
    its worktrees, or in the submodule itself, as old versions of git did."""
    if ".." in PurePosixPath(of.name).parts:  # would lead outside
        return
    homes = [top / "modules" / of.name for top in (source.git_dir, source.objects.parent)]
    for home in dict.fromkeys([*homes, source.folder / of.path / ".git"]):
        if (home / "objects").is_dir() and (home / "HEAD").is_file():
            yield Repository(home, home, home / "objects")


def _absolute(url: str, source: Repository) -> str:
    """The full address. One with ./ or ../ is relative to where the repository comes from."""
    if not re.match(r"\.\.?/", url):
        return url
    base = (source.setting("remote.origin.url") or str(source.folder)).rstrip("/")
    between = "/"
    while step := re.match(r"\.\.?/", url):
        url = url[step.end() :]
        if step[0] == "../" and (last := re.search(r"[/:][^/:]*$", base)):
            base, between = base[: last.start()], last[0][0]
    return f"{base}{between}{url}"


def _fetched(url: str, commit: str, kept: Path) -> Repository:
    """A submodule's commit, fetched now or earlier. Raises GitError."""
    folder = kept / hashlib.sha256(f"{url}\0{commit}".encode()).hexdigest()[:16]
    if not folder.is_dir():
        if not url or url.startswith("-"):
            raise GitError(f"has no address that could be fetched from: {url!r}")
        if url in _SILENT:
            raise GitError(_SILENT[url])
        with scratch(kept) as making:
            try:
                _fetch(making / "new", url, commit)
            except GitError as error:
                _SILENT[url] = str(error)
                raise
            with contextlib.suppress(OSError):  # another process was faster
                (making / "new").rename(folder)
    return Repository(folder, folder, folder / "objects")


def _fetch(folder: Path, url: str, commit: str) -> None:
    """Make a new repository with a commit from an address: that commit alone if the host allows it,
    otherwise all branches."""
    digest = ("--object-format=sha256",) if len(commit) == 64 else ()
    fetch = ("fetch", "--quiet", "--no-recurse-submodules")
    folder.mkdir(parents=True)
    steps: dict[str, tuple[str, ...]] = {
        "init": ("init", "--quiet", "--bare", "--template=", *digest),
        "name": ("config", "remote.origin.url", url),
        "one": (*fetch, "--depth=1", "--no-tags", "origin", commit),
        "all": (*fetch, "origin", "+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"),
    }
    for step, words in steps.items():
        done = run(git.on_a_store(folder, *words), folder, _UNATTENDED, limit_s=_LIMIT_S)
        if done.late:
            raise GitError(f"nothing came from {url} within {_LIMIT_S:.0f} s")
        if step == "one" and not done.status:
            return
        if step != "one" and done.status:
            said = " ".join(done.output.split())
            raise GitError(f"cannot be fetched from {url}: {said}")
    if Repository(folder, folder, folder / "objects").maybe("cat-file", "-e", commit) is None:
        raise GitError(f"cannot be fetched from {url}: it has no {commit}")
