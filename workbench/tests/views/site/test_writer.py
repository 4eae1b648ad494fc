"""A published folder: what has changed is written, what is gone is removed, the rest is left."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.views.site.writer import ForeignFolderError, Writer

OWN = [".published.json", ".published.lock"]


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
    assert {path.name for path in tmp_path.iterdir()} == {".published.json", ".published.lock"}


def test_a_full_disk_leaves_whole_files_and_the_same_again_goes_on(tmp_path: Path) -> None:
    program = f"""
import resource, signal
from pathlib import Path
from rlox_opt.views.site.writer import Writer
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
with Writer(Path({str(tmp_path)!r})) as writer:
    writer.text("folder/a.html", "a" * 9_000)
    writer.text("folder/b.html", "b" * 11_000)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "OSError: [Errno 27] File too large" in done.stderr
    assert {path.name: path.stat().st_size for path in tmp_path.rglob("*.html")} == {"a.html": 9000}
    writer = publish(tmp_path, a="a" * 9_000, b="b" * 11_000)
    assert (writer.written, writer.kept) == (1, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*OWN, "folder"]


def killed(out: Path, moment: int) -> bool:
    """Publish in a process that ends at the `moment`-th change it makes to the folder; whether it
    came so far."""
    pid = os.fork()
    if pid == 0:
        left = moment

        def hear(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal left
            if event in ("open", "os.rename", "os.mkdir", "os.remove") and str(out) in str(
                arguments
            ):
                left -= 1
                if left == 0:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(hear)
        publish(out, a="new a", b="new b", c="new c")
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(pid, 0)[1])


def test_a_first_publication_that_was_killed_at_any_moment_can_be_repeated(tmp_path: Path) -> None:
    moment = 1
    while killed(out := tmp_path / str(moment), moment):
        publish(out, a="new a", b="new b")
        assert sorted(path.name for path in out.iterdir()) == [*OWN, "folder"], moment
        assert (out / "folder/a.html").read_text() == "new a"
        moment += 1
    assert moment > 20


def test_a_page_of_a_publication_that_was_killed_is_not_taken_for_an_older_one(
    tmp_path: Path,
) -> None:
    going, moment = True, 1
    while going:
        publish(out := tmp_path / str(moment), a="old a", b="old b")
        going = killed(out, moment)
        publish(out, a="old a", b="old b")
        assert (out / "folder/a.html").read_text() == "old a", moment
        moment += 1
    assert moment > 20


@pytest.mark.parametrize(
    "listed",
    [
        "../victim.txt", "/victim.txt", "folder/../../victim.txt", "linked/victim.txt", "link",
        "folder", "", ".", "folder/", "folder//a.html", "./folder/a.html", "a\0b", "\ud800",
        "x" * 300, "folder/a.html/x", ".published.json", ".published.lock",
    ],
)  # fmt: skip
def test_a_list_that_names_what_is_no_file_within_the_folder_is_refused_as_a_whole(
    tmp_path: Path, listed: str
) -> None:
    victim, out = tmp_path / "victim.txt", tmp_path / "out"
    victim.write_text("years of work")
    publish(out, a="a", b="b")
    (out / "link").symlink_to(victim)
    (out / "linked").symlink_to(tmp_path)
    manifest = out / ".published.json"
    table = json.loads(manifest.read_text())
    absolute = str(victim) if listed == "/victim.txt" else listed
    manifest.write_text(json.dumps(table | {"files": table["files"] | {absolute: ""}}))
    before = manifest.read_text()
    with pytest.raises(ForeignFolderError, match="is not a file within it"):
        publish(out)
    assert victim.read_text() == "years of work"
    assert (out / "folder/a.html").read_text() == "a"
    assert manifest.read_text() == before


@pytest.mark.parametrize("there", ["folder", "folder/a.html"])
@pytest.mark.parametrize("kind", ["link", "folder or pipe"])
def test_a_page_is_not_written_through_what_somebody_put_in_its_place(
    tmp_path: Path, there: str, kind: str
) -> None:
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (elsewhere / "a.html").write_text("years of work")
    publish(out)
    (out / there).parent.mkdir(exist_ok=True)
    if kind == "link":
        (out / there).symlink_to(elsewhere / Path(there).relative_to("folder"))
    elif there == "folder":
        os.mkfifo(out / there)
    else:
        (out / there).mkdir()
    with pytest.raises(ForeignFolderError, match="is not a file within it"):
        publish(out, a="a")
    assert (elsewhere / "a.html").read_text() == "years of work"


@pytest.mark.parametrize(
    "listed",
    [[], "files", {"files": []}, {"files": {"a": 1}}, {"files": {"a": None}}, {}, None, 1,
     {"files": {"a": {}}}],
)  # fmt: skip
def test_a_list_of_another_shape_is_told(tmp_path: Path, listed: Any) -> None:
    (tmp_path / ".published.json").write_text(json.dumps(listed))
    with pytest.raises(ForeignFolderError, match="is not a list of files"):
        Writer(tmp_path)


@pytest.mark.parametrize("content", [b"\xff", b"[" * 100_000, b"", b"\0"])
def test_a_list_that_is_no_text_of_json_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / ".published.json").write_bytes(content)
    with pytest.raises(ForeignFolderError, match="is not a list of files"):
        Writer(tmp_path)


@pytest.mark.parametrize("name", [".published.json", ".published.lock", ".published.part"])
@pytest.mark.parametrize("kind", ["link", "folder", "pipe"])
def test_own_files_that_are_none_are_told(tmp_path: Path, name: str, kind: str) -> None:
    victim, out = tmp_path / "victim.txt", tmp_path / "out"
    victim.write_text("years of work")
    publish(out, a="a")
    (out / name).unlink(missing_ok=True)
    if kind == "link":
        (out / name).symlink_to(victim)
    else:
        (os.mkfifo if kind == "pipe" else os.mkdir)(out / name)
    with pytest.raises(ForeignFolderError, match="is not a file within it"):
        publish(out, a="other")
    assert victim.read_text() == "years of work"
    assert (out / "folder/a.html").read_text() == "a"


@pytest.mark.parametrize("name", [".published.lock", ".published.part"])
def test_a_file_of_ours_does_not_make_a_folder_ours(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(ForeignFolderError, match="holds files that were not published"):
        Writer(tmp_path)


def test_two_do_not_publish_into_one_folder_at_once(tmp_path: Path) -> None:
    with Writer(tmp_path) as writer:
        writer.text("a.html", "first")
        with pytest.raises(ForeignFolderError, match="another process is publishing there"):
            Writer(tmp_path)
        writer.text("b.html", "first")
    assert publish(tmp_path, c="second").removed == 2


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
