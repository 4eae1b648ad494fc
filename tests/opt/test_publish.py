"""The verb that makes the pages of the history."""

import json
from pathlib import Path

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
    (tmp_path / "thesis.txt").touch()
    done = rlox_opt("publish", tmp_path, "--history", tmp_path / "history")
    assert done.returncode == 2
    assert "holds files that were not published; name an empty or a new one" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_recording_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    store = written(history({}, 2), tmp_path / "history")
    broken = next(store.glob("*/*.json"))
    broken.write_text("{")
    done = rlox_opt("publish", tmp_path / "pages", "--history", store)
    assert done.returncode == 2
    assert str(broken) in done.stderr
    assert not (tmp_path / "pages").exists()
