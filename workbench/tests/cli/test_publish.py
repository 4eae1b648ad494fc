"""The verb that makes the pages of the history."""

import json
from pathlib import Path

import pytest
from command_line import rlox_opt
from toy_entries import history, written


def test_the_pages_are_made_and_their_first_is_named(tmp_path: Path) -> None:
    store, out = written(history({}, 12), tmp_path / "history"), tmp_path / "pages"
    done = rlox_opt("publish", out, "--history", store)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"12 commits, 1 series: {out}/index.html\n"
    assert "data_plane.Gae.time_gae" in (out / "index.html").read_text().replace("<wbr>", "")


def test_json_is_what_was_done_and_nothing_else(tmp_path: Path) -> None:
    store, out = written(history({}, 3), tmp_path / "history"), tmp_path / "pages"
    rlox_opt("publish", out, "--history", store)
    done = rlox_opt("publish", out, "--history", store, "--json")
    found = json.loads(done.stdout)
    assert found.pop("kept") > 10
    assert found == {
        "commits": 3, "series": 1, "written": 0, "removed": 0, "index": f"{out}/index.html",
    }  # fmt: skip


def test_a_folder_with_other_files_is_refused_with_a_remedy(tmp_path: Path) -> None:
    store, out = written(history({}, 3), tmp_path / "history"), tmp_path / "pages"
    out.mkdir()
    (out / "thesis.txt").touch()
    done = rlox_opt("publish", out, "--history", store)
    assert done.returncode == 2
    assert "holds files that were not published; name an empty or a new one" in done.stderr
    assert [path.name for path in out.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("mistyped", ["missing", "file", "empty", "above"])
def test_a_mistyped_history_is_an_error_and_leaves_the_pages(tmp_path: Path, mistyped: str) -> None:
    out = tmp_path / "pages"
    rlox_opt("publish", out, "--history", written(history({}, 3), tmp_path / "above/a/history"))
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    done = rlox_opt("publish", out, "--history", tmp_path / mistyped)
    assert done.returncode == 2, done.stdout
    assert f"--history {tmp_path / mistyped}: holds no recordings" in done.stderr
    assert "`rlox-opt record` makes them" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    assert rlox_opt("publish", tmp_path / "new", "--history", tmp_path / mistyped).returncode == 2
    assert not (tmp_path / "new").exists()


def test_a_list_that_names_somebody_elses_file_is_refused(tmp_path: Path) -> None:
    store, out = written(history({}, 3), tmp_path / "history"), tmp_path / "pages"
    (tmp_path / "victim.txt").touch()
    rlox_opt("publish", out, "--history", store)
    manifest = out / ".published.json"
    table = json.loads(manifest.read_text())
    table["files"]["../victim.txt"] = ""
    manifest.write_text(json.dumps(table))
    done = rlox_opt("publish", out, "--history", store)
    assert done.returncode == 2
    assert f"OUT {out}: '../victim.txt' is not a file within it" in done.stderr
    assert (tmp_path / "victim.txt").exists()


def test_a_recording_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    store = written(history({}, 2), tmp_path / "history")
    broken = next(store.glob("*/*.json"))
    broken.write_text("{")
    done = rlox_opt("publish", tmp_path / "pages", "--history", store)
    assert done.returncode == 2
    assert str(broken) in done.stderr
    assert not (tmp_path / "pages").exists()
