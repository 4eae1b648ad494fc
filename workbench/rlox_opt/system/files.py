"""Files that users name: they are checked before reading, and written completely or not at all.

An error in reading or writing is one line that names the path and the cause.
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

_MOST_BYTES = 256 << 20  # of a file that is read; all files of this program are smaller
_BLOCK = b"\0" * 4096
_MOST_OF_ONE_NAME = 1000


class NotReadError(ValueError):
    """A file cannot be read, or its contents are wrong; `why` says what is wrong."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.why = why


class NotWrittenError(OSError):
    """A file cannot be written. The message names it, the cause, and where its text is now.

    `unkept` is the text if it could not be kept anywhere, so that the error's reporter can print
    it.
    """

    unkept = ""
    instead = ""

    def __init__(self, path: object, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error), str(path))

    def __str__(self) -> str:
        return f"cannot write {self.filename}: {self.strerror}{self.instead}"

    def keeping(self, text: str, suffix: str = ".json") -> NotWrittenError:
        """This error, after keeping the text in the temporary folder, if that works."""
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
    """Check that new files can be written in a folder, by writing one; finding out after the work
    would lose the work. Of a missing folder the nearest one above it that is there is checked: if
    it were made and removed again, it could vanish while another process writes to it.

    Raises:
        NotWrittenError: files cannot be written there.
    """
    try:
        there = next(
            part for part in (folder, *folder.parents) if part.exists() or part.is_symlink()
        )
        with _beside(there) as trial:
            trial.write_bytes(_BLOCK)
    except OSError as error:
        raise NotWrittenError(folder, error) from error


def write(path: Path, content: str | bytes) -> Path:
    """Write a file completely or not at all, replacing an existing one; returns its path.

    Raises:
        NotWrittenError: it cannot be written, or something is there that is no regular file.
    """
    with writing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return path


@contextlib.contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """The block writes the file's new contents into a temporary file beside it. Only if the block
    ends without an error does that file take the place, so that nobody reads half a file.

    Raises:
        NotWrittenError: it cannot be written, or something is there that is no regular file.
    """
    try:
        target = Path(os.path.realpath(path))  # a symbolic link is kept
        if target.exists() and not target.is_file():
            raise OSError("is no regular file")
        target.parent.mkdir(parents=True, exist_ok=True)
        with _beside(target.parent) as part:
            with part.open("wb") as file:
                yield file
            part.replace(target)
    except NotWrittenError:  # of another file that the block writes
        raise
    except OSError as error:
        raise NotWrittenError(path, error) from error


def write_new(text: str, directory: Path, stem: str, suffix: str = ".json") -> Path:
    """Write a new file completely or not at all, and return its path; a used name gets -2, -3, ….

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
                    os.link(part, target)  # unlike rename, it fails if the name is used
                except FileExistsError:
                    continue
                return target
        raise OSError(f"{_MOST_OF_ONE_NAME} of that name are there already")
    except OSError as error:
        raise NotWrittenError(directory / f"{stem}{suffix}", error).keeping(text, suffix) from error


def add_row(row: Any, path: Path) -> None:
    """Append a line of JSON to a file.

    Raises:
        NotWrittenError: it cannot be written; the line is kept elsewhere.
    """
    line = json.dumps(row) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+", buffering=0) as file:  # one write: processes may share the file
            if file.seek(0, os.SEEK_END):
                file.seek(-1, os.SEEK_END)
            broken_off = file.read(1) not in (b"", b"\n")  # by a process that was killed
            file.write(("\n" * broken_off + line).encode())
    except OSError as error:
        raise NotWrittenError(path, error).keeping(line, path.suffix) from error


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows that `add_row` appended, the oldest first; none without a file. A line that a killed
    process did not finish is skipped. Raises NotReadError."""
    lines = read_text(path).splitlines() if path.exists() else []
    return [row for line in lines if (row := _whole(line))]


def _whole(line: str) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except ValueError:
        return {}
    return row if isinstance(row, dict) else {}


@contextlib.contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """An empty file in a folder, with a new name, which is removed after the block. Its permissions
    follow the umask."""
    part = folder / f".writing-{secrets.token_hex(8)}"
    os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    try:
        yield part
    finally:
        part.unlink(missing_ok=True)


def read_text(path: Path, errors: str = "strict") -> str:
    """The text of a regular file of at most 256 MiB, in UTF-8. Raises NotReadError."""
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe or device may never end
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


def readable_text(path: Path) -> str:
    """The same, whatever is no UTF-8 in it replaced; "" where nothing can be read."""
    try:
        return read_text(path, errors="replace")
    except NotReadError:
        return ""


@contextlib.contextmanager
def understood(path: Path, what: str) -> Iterator[None]:
    """The block parses the contents of a file. An error in it means that the file is no `what`.

    Raises:
        NotReadError: in place of the error in the block.
    """
    try:
        yield
    except NotReadError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        why = f"{type(error).__name__}: {error}"
        raise NotReadError(path, f"is no {what} as rlox-opt writes it ({why})") from error
