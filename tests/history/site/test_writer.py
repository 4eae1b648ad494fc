"""A published folder: what has changed is written, what is gone is removed, the rest is left."""

import json
from pathlib import Path

import pytest

from rlox.history.site.writer import ForeignFolderError, Writer


def publish(out: Path, **texts: str) -> Writer:
    with Writer(out) as writer:
        for name, text in texts.items():
            writer.text(f"folder/{name}.html", text)
    return writer


def never() -> str:
    raise AssertionError("made again")


def test_what_is_made_of_the_same_is_not_made_again(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.file("a.html", "key", lambda: "text")
    with Writer(tmp_path) as writer:
        writer.file("a.html", "key", never)
    assert (writer.written, writer.kept) == (0, 1)
    with Writer(tmp_path) as writer:
        writer.file("a.html", "other key", lambda: "other text")
    assert (tmp_path / "a.html").read_text() == "other text"


def test_a_file_that_somebody_deleted_is_made_again(tmp_path: Path) -> None:
    publish(tmp_path, a="text")
    (tmp_path / "folder/a.html").unlink()
    assert publish(tmp_path, a="text").written == 1


def test_a_file_that_comes_out_the_same_is_not_touched(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.file("a.html", "key", lambda: "text")
    before = (tmp_path / "a.html").stat().st_mtime_ns
    with Writer(tmp_path) as writer:
        writer.file("a.html", "other key", lambda: "text")
    assert (tmp_path / "a.html").stat().st_mtime_ns == before
    assert (writer.written, writer.kept) == (0, 1)


def test_pages_that_no_longer_exist_are_removed_and_other_files_stay(tmp_path: Path) -> None:
    publish(tmp_path, a="a", b="b")
    (tmp_path / "folder/mine.txt").write_text("kept")
    assert publish(tmp_path, b="b").removed == 1
    assert {path.name for path in (tmp_path / "folder").iterdir()} == {"b.html", "mine.txt"}


def test_a_folder_that_becomes_empty_goes(tmp_path: Path) -> None:
    publish(tmp_path, a="a")
    assert publish(tmp_path).removed == 1
    assert not (tmp_path / "folder").exists()


def test_a_folder_of_somebody_else_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ForeignFolderError, match="holds files that were not published"):
        Writer(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_file_where_the_folder_should_be_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ForeignFolderError, match="holds files that were not published"):
        Writer(tmp_path / "thesis.txt")


def test_a_broken_list_of_files_is_told(tmp_path: Path) -> None:
    publish(tmp_path, a="a")
    (tmp_path / ".published.json").write_text("{")
    with pytest.raises(ForeignFolderError, match="is not a list of files"):
        Writer(tmp_path)


def test_an_interruption_removes_nothing_and_the_next_run_goes_on(tmp_path: Path) -> None:
    publish(tmp_path, a="a", b="b", c="c")
    with pytest.raises(KeyboardInterrupt), Writer(tmp_path) as writer:
        writer.text("folder/a.html", "new a")
        raise KeyboardInterrupt
    assert (tmp_path / "folder/a.html").read_text() == "new a"
    assert (tmp_path / "folder/c.html").read_text() == "c"
    writer = publish(tmp_path, a="new a", b="b")
    assert (writer.written, writer.kept, writer.removed) == (0, 2, 1)


def test_an_exception_while_writing_leaves_no_half_file(tmp_path: Path) -> None:
    def fails() -> str:
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"), Writer(tmp_path) as writer:
        writer.file("a.html", "key", fails)
    assert [path.name for path in tmp_path.iterdir()] == [".published.json"]


def test_another_program_makes_all_anew(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.file("a.html", "key", lambda: "by the old program")
    manifest = tmp_path / ".published.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"made_by": "an older one"}))
    with Writer(tmp_path) as writer:
        writer.file("a.html", "key", lambda: "by the new program")
    assert (tmp_path / "a.html").read_text() == "by the new program"


def test_one_page_is_not_made_twice(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is made twice"), Writer(tmp_path) as writer:
        writer.text("a.html", "a")
        writer.text("a.html", "b")
