"""A report's folder appears whole, and never in place of another."""

import tempfile
from pathlib import Path

import pytest
import toy_projects

import rlox_opt.views.report_folder
from rlox_opt.cli import profile_train as profile
from rlox_opt.sampling import results
from rlox_opt.sampling.driver import Findings
from rlox_opt.sampling.spec import Spec
from rlox_opt.system.files import NotWrittenError


@pytest.fixture
def found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    spec = Spec(
        "child_of.py", "plain", "sac", "Pendulum-v1", 1, 0, "cpu", 1, 0, 0.0, "", {"n_envs": 1}
    )
    report = results.skeleton(toy_projects.PROJECT, spec, ())
    report["date"] = "2026-01-02"
    report["machine"] |= {"cpu": "Some CPU @ 1GHz", "cores": 3}
    return Findings(report)


def test_runs_of_one_day_lie_side_by_side(found: Findings) -> None:
    names = [profile.write(toy_projects.PROJECT, found, None) for _ in range(3)]
    first = "profiles/2026-01-02_some-1ghz-3c_sac"
    assert [str(name) for name in names] == [first, f"{first}-2", f"{first}-3"]
    for name in names:
        assert (name / "report.json").stat().st_size > 100
        assert name.stat().st_mode & 0o777 == 0o755
    assert len(list(Path("profiles").iterdir())) == 3


def test_a_report_that_cannot_be_written_leaves_nothing(
    found: Findings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(rlox_opt.views.report_folder, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        profile.write(toy_projects.PROJECT, found, Path("out/run"))
    assert list(Path("out").iterdir()) == []


def test_an_existing_folder_is_kept(found: Findings) -> None:
    mine = Path("out/run/mine")
    mine.parent.mkdir(parents=True)
    mine.write_text("mine")
    with pytest.raises(NotWrittenError, match=r"out/run: is there already.*the report is in ") as e:
        profile.write(toy_projects.PROJECT, found, Path("out/run"))
    kept = str(e.value).rpartition("the report is in ")[2]
    assert (Path(kept) / "report.json").exists()
    assert mine.read_text() == "mine"
    assert list(Path("out").iterdir()) == [Path("out/run")]
