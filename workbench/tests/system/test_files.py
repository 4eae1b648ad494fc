"""Files are written whole or not at all, and read with care: of what goes wrong a line tells the
path and the cause."""

import contextlib
import errno
import os
import resource
import stat
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from rlox_opt.system import files
from rlox_opt.system.files import NotReadError, NotWrittenError


@contextlib.contextmanager
def full_disk(room: int = 0) -> Iterator[None]:
    """No file of this process can grow beyond so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The temporary folder of this process."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_a_file_takes_the_place_of_another_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    assert files.write(path, "old") == path
    with pytest.raises(NotWrittenError, match="File too large") as told, full_disk(100):
        files.write(path, "x" * 1000)
    assert str(told.value) == f"cannot write {path}: File too large"
    with pytest.raises(ZeroDivisionError), files.writing(path) as file:
        file.write(b"half")
        raise ZeroDivisionError
    assert path.read_text() == "old"
    assert list(path.parent.iterdir()) == [path]
    files.write(path, b"new")
    assert path.read_text() == "new"


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o644)])
def test_who_may_read_it_the_umask_says(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        written = [files.write(tmp_path / "a", ""), files.write_new("", tmp_path, "b")]
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in written] == [mode, mode]


def test_a_link_stays_a_link_and_a_device_a_device(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "target")
    files.write(tmp_path / "link", "through")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == "through"
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/null"), tmp_path):
        with pytest.raises(NotWrittenError, match=f"cannot write {path}: is no regular file"):
            files.write(path, "never")
    assert Path("/dev/null").is_char_device()


def test_a_name_as_long_as_a_name_may_be_can_be_written(tmp_path: Path) -> None:
    assert files.write(tmp_path / ("x" * 255), "x").exists()
    with pytest.raises(NotWrittenError, match="File name too long"):
        files.write(tmp_path / ("x" * 256), "x")


def test_what_cannot_be_written_where_it_should_lies_in_the_temporary_folder(
    tmp_path: Path, temporary: Path
) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(NotWrittenError) as told:
        files.write_new('{"seconds": 1}', tmp_path / "file", "record")
    (kept,) = temporary.iterdir()
    assert kept.read_text() == '{"seconds": 1}'
    where = f"cannot write {tmp_path}/file/record.json: "
    assert str(told.value).startswith(where)
    assert str(told.value).endswith(f"; what it should hold is in {kept}")
    assert not told.value.unkept


def test_where_that_goes_nowhere_either_it_is_left_to_be_printed(
    tmp_path: Path, temporary: Path
) -> None:
    with pytest.raises(NotWrittenError, match="is printed") as told, full_disk():
        files.write_new("a record", tmp_path / "records", "record")
    assert told.value.unkept == "a record"
    assert told.value.errno == errno.EFBIG
    assert not list(temporary.iterdir())
    assert not list((tmp_path / "records").iterdir())


def test_a_row_that_cannot_be_added_is_kept(tmp_path: Path, temporary: Path) -> None:
    files.add_row({"a": 1}, tmp_path / "new" / "rows.jsonl")
    files.add_row({"a": 2}, tmp_path / "new" / "rows.jsonl")
    assert (tmp_path / "new" / "rows.jsonl").read_text() == '{"a": 1}\n{"a": 2}\n'
    with pytest.raises(NotWrittenError, match="Is a directory"):
        files.add_row({"a": 3}, tmp_path / "new")
    (kept,) = temporary.iterdir()
    assert kept.read_text() == '{"a": 3}\n'


def test_a_row_that_a_killed_process_did_not_finish_costs_no_other_row(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    assert files.read_rows(path) == []
    files.add_row({"a": 1}, path)
    with path.open("a") as file:
        file.write('{"a": "not fin')
    assert files.read_rows(path) == [{"a": 1}]
    files.add_row({"a": 2}, path)
    assert files.read_rows(path) == [{"a": 1}, {"a": 2}]


def test_rows_of_several_processes_do_not_mix(tmp_path: Path) -> None:
    """A reader that comes in between changes nothing, either."""
    path = tmp_path / "rows.jsonl"

    def add(writer: int) -> None:
        for number in range(50):
            files.add_row({"writer": writer, "number": number, "text": "x" * 20_000}, path)
            files.read_rows(path)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add, range(4)))
    found = {(row["writer"], row["number"]) for row in files.read_rows(path)}
    assert len(found) == 200


@pytest.mark.parametrize("where", ["/proc/x", "/dev/null/x", "/proc/self", "file", "file/x"])
def test_a_folder_that_cannot_be_written_is_found_before_the_work(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(NotWrittenError, match=rf"^cannot write {where}: [A-Z]\w+"):
        files.check_folder(Path(where))


def test_a_full_disk_is_found_before_the_work(tmp_path: Path) -> None:
    with pytest.raises(NotWrittenError, match="File too large"), full_disk():
        files.check_folder(tmp_path / "a" / "b")
    assert not list(tmp_path.iterdir())


def test_a_check_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "a" / "b", Path(), Path("c/d")):
        files.check_folder(folder)
    assert not list(tmp_path.iterdir())


def test_checks_at_once_do_not_disturb_one_another(tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(files.check_folder, [tmp_path / "a" / "b"] * 1_000))


def test_what_is_no_text_file_is_refused_with_its_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "latin").write_bytes(b"ab\xff")
    for path, says in {
        tmp_path: "is a folder; name a file",
        tmp_path / "fifo": "is no regular file; name a file",
        Path("/dev/zero"): "is no regular file; name a file",
        tmp_path / "none": "cannot be read: No such file or directory",
        tmp_path / ("x" * 300): "cannot be read: File name too long",
        tmp_path / "latin" / "x": "cannot be read: Not a directory",
        tmp_path / "latin": "is not UTF-8: byte 2 is no text",
    }.items():
        with pytest.raises(NotReadError) as told:
            files.read_text(path)
        assert str(told.value) == f"{path}: {says}"
        assert told.value.why == says


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "_MOST_BYTES", 1 << 20)
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)  # holes alone
    with pytest.raises(NotReadError, match="large: is larger than 1 MiB"):
        files.read_text(tmp_path / "large")


def test_what_a_file_lacks_is_told_with_its_name() -> None:
    said = r"^f: is no report .* \(KeyError: 'sps'\)$"
    with pytest.raises(NotReadError, match=said), files.understood(Path("f"), "report"):
        raise KeyError("sps")
