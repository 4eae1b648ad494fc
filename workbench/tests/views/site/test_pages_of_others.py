"""The pages of projects that are unlike this one: with gaps in their history, in a folder of their
repository, or without features, cargo and profiles."""

import dataclasses
import re
from pathlib import Path

import made_up_history
import toy_entries
import toy_history
import toy_projects
from made_up_history import publish

from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.views.site.layout import benchmark_path, commit_path, diff_path
from rlox_opt.views.site.model import History, read

STEPPED = made_up_history.NAMES[1]


def test_a_change_after_commits_without_a_recording_names_them_all_and_is_meant_by_any(
    tmp_path: Path,
) -> None:
    store, out = tmp_path / "store", tmp_path / "pages"
    names = made_up_history.write(store, 16, 2, moved_at=None, kinds=("instructions",))
    for path in store.glob(f"*/*{names[12][:10]}*"):
        path.unlink()
    known = [Acknowledgement(STEPPED, "instructions", 1.3, "checks its bounds", names[12])]
    publish(out, History.of(read(store), names, acknowledged=known))
    for path in ("index.html", commit_path(names[13])):
        page = (out / path).read_text()
        assert f"after {names[11][:10]}, up to {names[13][:10]} (2 commits)" in page
        assert "meant: checks its bounds" in page


def test_what_changed_beside_the_code_is_told_and_an_environment_explains_counts(
    tmp_path: Path,
) -> None:
    recorded = [
        toy_entries.entry(
            n, toy_entries.cell(9.0 + n, "instructions"), suite="a", toolchain={"numpy": of}
        )
        for n, of in enumerate(("2.1", "2.2"))
    ]
    history = History.of(read(toy_entries.written(recorded, tmp_path / "store")))
    (moved,) = history.moved
    assert not moved.unexplained
    publish(tmp_path / "pages", history, project=toy_projects.of(tmp_path))
    page = (tmp_path / "pages" / commit_path(toy_entries.commit(1))).read_text()
    assert "the environment changed here too: numpy 2.1 → 2.2" in page


def test_a_project_in_a_folder_of_its_repository_shows_the_code_of_commits(tmp_path: Path) -> None:
    (head,) = toy_history.commits(tmp_path, [{"passes": 1}])
    made_up_history.write(tmp_path / "store", hashes=[head], benchmarks=1)
    part = tmp_path / "repository" / "part"
    part.mkdir()
    history = History.of(read(tmp_path / "store"))
    publish(tmp_path / "pages", history, project=toy_projects.of(part))
    assert "diff --git" in (tmp_path / "pages" / diff_path(head)).read_text()


def test_features_cargo_profiles_and_slowdowns_are_spoken_of_only_where_there_are_some(
    pages: Path, history: History, tmp_path: Path
) -> None:
    some = (pages / commit_path(history.commits[12].hash)).read_text()
    assert "<dt>Features</dt><dd>accepted</dd>" in some
    assert "<dt>Build</dt><dd>release; " in some
    built = {"builder": "PEP 517, hatchling.build"}
    recorded = [dataclasses.replace(one, built=built) for one in toy_entries.history({25: 1.05})]
    out = tmp_path / "pages"
    none = History.of(read(toy_entries.written(recorded, tmp_path / "store")))
    publish(out, none, project=toy_projects.of(tmp_path))
    page = (out / commit_path(toy_entries.commit(25))).read_text()
    assert "<dt>Build</dt><dd>rustc 1.90.0</dd>" in page
    assert f"<dt>Control</dt><dd>{toy_entries.commit(0)[:10]}</dd>" in page
    assert not re.search("Features|baseline|flamegraph", page)
    page = (out / benchmark_path(toy_entries.BENCHMARK)).read_text()
    assert diff_path(toy_entries.commit(25)) in page
    assert "profile difference" not in page
    assert "slowdowns" not in (out / "trust.html").read_text()
