"""Files that people name: read with care, and written whole or not at all.

What cannot be read or written is told in one line that names the path and the cause.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

_MOST_BYTES = 256 << 20  # of a file that is read: all of ours are smaller
_BLOCK = b"\0" * 4096
_MOST_OF_ONE_NAME = 1000


class NotReadError(ValueError):
    """A file that cannot be read or holds something else; `why` tells what is wrong with it."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.why = why


class NotWrittenError(OSError):
    """A file that cannot be written; the message names it, the cause, and where its text is now.

    `unkept` is that text where it could not be kept anywhere, for whoever tells the error.
    """

    unkept = ""
    instead = ""

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error), str(path))

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {self.strerror}{self.instead}"

    def keeping(self, text: str, suffix: str = ".json") -> NotWrittenError:
        """This error, with what was to be written kept in the temporary folder, if that goes."""
        try:
            descriptor, path = tempfile.mkstemp(prefix="rlox-opt-kept-", suffix=suffix)
            try:
                with os.fdopen(descriptor, "w", encoding="utf-8", errors="surrogateescape") as file:
                    file.write(text)
            except OSError:
                Path(path).unlink()
                raise
            self.instead = f"; what it should hold is in {path}"
        except OSError:
            self.unkept = text
            self.instead = "; what it should hold is printed"
        return self


def check_folder(folder: Path) -> None:
    """See that new files can be written in a folder, by writing one: to find out after the work
    would cost the work. A folder that is not there is made, and removed again.

    Raises:
        NotWrittenError: they cannot.
    """
    made: list[Path] = []
    try:
        for part in (*reversed(folder.parents), folder):
            if not part.exists():
                part.mkdir(exist_ok=True)
                made.append(part)
        with _beside(folder) as trial:
            trial.write_bytes(_BLOCK)
    except OSError as error:
        raise NotWrittenError(folder, error) from error
    finally:
        for part in reversed(made):
            with contextlib.suppress(OSError):  # somebody else has put something there
                part.rmdir()


def write(path: Path, content: str | bytes) -> Path:
    """Write a file, whole or not at all, over the one that is there; returns its path.

    Raises:
        NotWrittenError: it cannot be written, or something is there that is no regular file.
    """
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """What a file shall hold is written in the block, beside it; only when the block ends well does
    it take the file's place, so that nobody finds half a file.

    Raises:
        NotWrittenError: it cannot be written, or something is there that is no regular file.
    """
    try:
        target = Path(os.path.realpath(path))  # a link stays a link
        if target.exists() and not target.is_file():
            raise OSError("is no regular file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target.parent) as part:
            with part.open("wb") as file:
                yield file
            part.replace(target)
    except NotWrittenError:  # of another file, written in the block
        raise
    except OSError as error:
        raise NotWrittenError(path, error) from error


def write_new(text: str, directory: Path, stem: str, suffix: str = ".json") -> Path:
    """Write a new file, whole or not at all, and return its path; a name taken gets -2, -3, ….

    Raises:
        NotWrittenError: it cannot be written; the text is kept elsewhere.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with _beside(directory) as part:
            with part.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            for number in range(1, _MOST_OF_ONE_NAME + 1):
                target = directory / f"{stem}{f'-{number}' if number > 1 else ''}{suffix}"
                try:
                    os.link(part, target)  # unlike a rename, never puts itself over another
                except FileExistsError:
                    continue
                return target
        raise OSError(f"{_MOST_OF_ONE_NAME} of that name are there already")
    except OSError as error:
        raise NotWrittenError(directory / f"{stem}{suffix}", error).keeping(text, suffix) from error


def add_row(row: Any, path: Path) -> None:
    """Add a line of JSON to a file, at once.

    Raises:
        NotWrittenError: it cannot be written; the line is kept elsewhere.
    """
    line = json.dumps(row) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as error:
        raise NotWrittenError(path, error).keeping(line, path.suffix) from error


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """An empty file in a folder, under a name of its own, which is gone after the block. Who may
    read it, the umask says."""
    part = folder / f".writing-{secrets.token_hex(8)}"
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of a regular file of at most 256 MiB, in UTF-8. Raises NotReadError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # what is none may never end, or never begin
            what = "a folder" if path.is_dir() else "no regular file"
            raise NotReadError(path, f"is {what}; name a file")
        with path.open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise NotReadError(path, f"cannot be read: {error.strerror}") from error
    if len(content) > _MOST_BYTES:
        raise NotReadError(path, f"is larger than {_MOST_BYTES >> 20} MiB; name another file")
    try:
        return content.decode("utf-8", errors)
    except UnicodeDecodeError as error:
        raise NotReadError(path, f"is not UTF-8: byte {error.start} is no text") from error


@contextlib.contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """What a file holds is taken apart in the block: where that fails, it is no `what`.

    Raises:
        NotReadError: in the place of the error that says how.
    """
    try:
        yield
    except NotReadError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = f"{type(error).__name__}: {error}"
        raise NotReadError(path, f"is no {what} as rlox-opt writes it ({why})") from error
