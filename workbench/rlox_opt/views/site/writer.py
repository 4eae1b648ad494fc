"""A published folder, in which a file is made anew only if what it is made of has changed.

`.published.json` in the folder has the key of each file, which is a digest of what it was made of,
and `made_by`, a digest of the program. Files that are no longer made are removed. Files that
somebody else put there are not touched. The list is written before any page, so that the folder of
a killed publication is recognised; it has no keys then, so that the next one makes every page anew.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import stat
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO

_PACKAGE = Path(__file__).resolve().parents[2]
_SOURCES = ("history", "project", "sampling", "stats", "views")  # a change in them makes all anew
_MANIFEST, _PART, _LOCK = _OWN = (".published.json", ".published.part", ".published.lock")
_REMEDY = "name an empty or a new one"


class ForeignFolderError(ValueError):
    """A folder with files that were not published, or into which another process publishes."""


class Writer:
    """Writes into `out`. As a context manager it removes at its end the files that were not asked
    for again.

    `written`, `kept` and `removed` count files. An exception, or Ctrl-C, leaves complete files and
    removes none; the next run continues from there.

    Raises:
        ForeignFolderError: `out` has files and no list of them, or a list that names what is not a
            file within it, or another process is publishing into it. Nothing was changed.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.written = self.kept = self.removed = 0
        self._made_by = _digest_of_sources()
        self._read()  # raises before a lock is written into somebody else's folder
        self._lock = self._locked()
        self._old = self._read()
        self._new: dict[str, str] = {}

    def file(self, path: str, key: str, make: Callable[[], str | bytes]) -> None:
        """Write the file `path` if needed; `make` makes its contents, and `key` is their digest.

        Raises:
            ForeignFolderError: a link or a folder is in its place.
        """
        if path in self._new:
            raise ValueError(f"{path} is made twice")
        if self.has(path, key):
            self.kept += 1
        else:
            made = make()
            self._write(self._at(path), made.encode() if isinstance(made, str) else made)
        self._new[path] = key

    def has(self, path: str, key: str) -> bool:
        """Whether the file exists and was made of the same by the same program."""
        return self._old.get(path) == key and self._at(path).exists()

    def text(self, path: str, text: str | bytes) -> None:
        """Write `text` into the file `path`; for what is quickly made."""
        content = text.encode() if isinstance(text, str) else text
        self.file(path, digest([hashlib.sha256(content).hexdigest()]), lambda: content)

    def __enter__(self) -> Writer:
        self._list(dict.fromkeys(self._old, ""))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with self._lock:
            if kind is None:
                for path in self._old.keys() - self._new.keys():
                    self._remove(self._at(path))
            self._list(self._new if kind is None else self._old | self._new)

    def _locked(self) -> IO[bytes]:
        """Lock the folder for this process, until it is closed or the process ends."""
        self.out.mkdir(parents=True, exist_ok=True)
        lock = (self.out / _LOCK).open("ab")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise ForeignFolderError(
                f"{self.out}: another process is publishing there; wait until it has ended"
            ) from None
        except OSError:  # without file locks, two processes at once are not noticed
            pass
        return lock

    def _read(self) -> dict[str, str]:
        """The keys of the existing files; files of another program's version have none."""
        foreign = ForeignFolderError(f"{self.out}: holds files that were not published; {_REMEDY}")
        if self.out.exists() and not self.out.is_dir():
            raise foreign
        for own in _OWN:
            self._at(own)
        try:
            manifest = json.loads((self.out / _MANIFEST).read_text(encoding="utf-8"))
            made_by, files = manifest.get("made_by"), manifest["files"]
            if not all(isinstance(key, str) for key in files.values()):
                raise TypeError
        except FileNotFoundError:
            if self.out.exists() and any(path.name not in _OWN for path in self.out.iterdir()):
                raise foreign from None
            return {}
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise ForeignFolderError(
                f"{self.out / _MANIFEST}: is not a list of files; {_REMEDY}"
            ) from None
        for path in files:
            if path in _OWN:
                raise self._not_within(path)
            self._at(path)
        return files if made_by == self._made_by else dict.fromkeys(files, "")

    def _at(self, path: str) -> Path:
        """The path of a file in the folder. Raises ForeignFolderError if it lies outside, behind a
        link, or if something that is no file is there."""
        target, parts = self.out, path.split("/")
        if {"", ".", ".."}.intersection(parts):
            raise self._not_within(path)
        for number, part in enumerate(parts, 1):
            target /= part
            try:
                mode = target.lstat().st_mode
            except FileNotFoundError:
                return self.out / path
            except (OSError, ValueError) as error:
                if isinstance(error, OSError) and error.errno != errno.ENAMETOOLONG:
                    raise
                raise self._not_within(path) from None  # no file can have such a name
            if not (stat.S_ISREG(mode) if number == len(parts) else stat.S_ISDIR(mode)):
                raise self._not_within(path)
        return target

    def _not_within(self, path: str) -> ForeignFolderError:
        return ForeignFolderError(f"{self.out}: {path!r} is not a file within it; {_REMEDY}")

    def _write(self, target: Path, content: bytes) -> None:
        try:
            if target.read_bytes() == content:
                self.kept += 1
                return
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
        self._replace(target, content)
        self.written += 1

    def _remove(self, target: Path) -> None:
        try:
            target.unlink()
        except FileNotFoundError:
            return
        self.removed += 1
        if target.parent != self.out and not any(target.parent.iterdir()):
            target.parent.rmdir()

    def _list(self, files: Mapping[str, str]) -> None:
        manifest = {"made_by": self._made_by, "files": dict(sorted(files.items()))}
        self._replace(self.out / _MANIFEST, json.dumps(manifest, indent=0).encode())

    def _replace(self, target: Path, content: bytes) -> None:
        """Write another file and move it into place, so that no reader finds half a file."""
        part = self.out / _PART
        part.unlink(missing_ok=True)  # left by a killed process
        try:
            with part.open("xb") as file:
                file.write(content)
            part.replace(target)
        finally:
            part.unlink(missing_ok=True)


def digest(parts: Iterable[object]) -> str:
    """A digest of the texts of `parts`: the same for the same parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:20]


def _digest_of_sources() -> str:
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                found.update(path.read_bytes())
    return found.hexdigest()[:20]
