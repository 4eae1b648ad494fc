"""A published folder: files that are made anew only where what they are made of has changed.

`.published.json` in the folder holds the key of each file, a digest of what it was made of, and
`made_by`, a digest of the program. Files that are no longer made are removed; what somebody else
put there is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).resolve().parents[2]
_SOURCES = ("history", "report", "profiling")  # whose change makes all pages anew
_MANIFEST = ".published.json"


class ForeignFolderError(ValueError):
    """A folder that holds something, and nothing that was published."""


class Writer:
    """Writes into `out`; as a context manager, removes at its end what was not asked for again.

    `written`, `kept` and `removed` count files. An exception, or Ctrl-C, leaves whole files and
    removes none: the next run goes on from there.
    """

    def __init__(self, out: Path) -> None:
        self.out = out
        self.written = self.kept = self.removed = 0
        self._made_by = _digest_of_sources()
        self._old = self._read()
        self._new: dict[str, str] = {}

    def file(self, path: str, key: str, make: Callable[[], str | bytes]) -> None:
        """Have the file `path`, which `make` makes of what `key` is a digest of."""
        if path in self._new:
            raise ValueError(f"{path} is made twice")
        if self.has(path, key):
            self.kept += 1
        else:
            made = make()
            self._write(self.out / path, made.encode() if isinstance(made, str) else made)
        self._new[path] = key

    def has(self, path: str, key: str) -> bool:
        """Whether the file is there, made of the same by the same program."""
        return self._old.get(path) == key and (self.out / path).exists()

    def text(self, path: str, text: str | bytes) -> None:
        """Have the file `path` hold `text`: for what is quickly made."""
        content = text.encode() if isinstance(text, str) else text
        self.file(path, digest([hashlib.sha256(content).hexdigest()]), lambda: content)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            for path in self._old.keys() - self._new.keys():
                self._remove(self.out / path)
        kept = self._new if kind is None else self._old | self._new
        manifest = {"made_by": self._made_by, "files": dict(sorted(kept.items()))}
        _replace(self.out / _MANIFEST, json.dumps(manifest, indent=0).encode())

    def _read(self) -> dict[str, str]:
        """The keys of the files that are there; of another program's files, none counts."""
        try:
            manifest = json.loads((self.out / _MANIFEST).read_text(encoding="utf-8"))
            files: dict[str, str] = manifest["files"]
        except (FileNotFoundError, NotADirectoryError):
            if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
                raise ForeignFolderError(
                    f"{self.out}: holds files that were not published"
                ) from None
            return {}
        except (ValueError, KeyError, TypeError):
            raise ForeignFolderError(f"{self.out / _MANIFEST}: is not a list of files") from None
        return files if manifest.get("made_by") == self._made_by else dict.fromkeys(files, "")

    def _write(self, target: Path, content: bytes) -> None:
        try:
            if target.read_bytes() == content:
                self.kept += 1
                return
        except FileNotFoundError:
            target.parent.mkdir(parents=True, exist_ok=True)
        _replace(target, content)
        self.written += 1

    def _remove(self, target: Path) -> None:
        try:
            target.unlink()
        except FileNotFoundError:
            return
        self.removed += 1
        if target.parent != self.out and not any(target.parent.iterdir()):
            target.parent.rmdir()


def digest(parts: Iterable[object]) -> str:
    """A digest of the texts of `parts`: the same for the same parts."""
    return hashlib.sha256("\0".join(map(str, parts)).encode()).hexdigest()[:20]


def _replace(target: Path, content: bytes) -> None:
    """Write beside the path, then move into place: a reader finds no half file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    descriptor, part = tempfile.mkstemp(prefix=".writing-", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
        Path(part).chmod(0o644)
        Path(part).replace(target)
    finally:
        Path(part).unlink(missing_ok=True)


def _digest_of_sources() -> str:
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((_PACKAGE / folder).rglob("*")):
            if path.is_file() and path.suffix != ".pyc":
                found.update(path.read_bytes())
    return found.hexdigest()[:20]
