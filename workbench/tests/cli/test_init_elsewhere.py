"""What `rlox-opt init` finds where the suite lies beside its project, or names it from outside."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from asv_projects import FILES, PYPROJECT, SUITE, conf, make
from command_line import rlox_opt

from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suites

BESIDE: Mapping[str, str] = {
    "package/pyproject.toml": PYPROJECT,
    "package/my_thing.py": "def work():\n    return 1\n",
    "benchmarks/asv.conf.json": conf(repo="..", repo_subdir="package"),
    "benchmarks/benchmarks/__init__.py": "",
    "benchmarks/benchmarks/all.py": SUITE,
}
ANOTHER: Mapping[str, str] = {
    "other/asv.conf.json": conf(repo="..", repo_subdir="package"),
    "other/benchmarks/all.py": SUITE,
}


@pytest.mark.parametrize("folder", ["benchmarks", "package"])
def test_a_suite_beside_its_project_is_found(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path / "thing", {**BESIDE, "more/asv.conf.json": conf(repo="..")})
    monkeypatch.chdir(root / folder)
    said = json.loads(rlox_opt("init", "--json").stdout)
    assert (said["root"], said["lacking"]) == (str(root / "package"), [])
    assert said["benchmarks"] == ["all.Work.time_work"]
    project = Project.here()
    suite = Suites(project).of(project.commits.resolve("HEAD"))
    assert suite.configuration == project.configuration


def test_of_several_beside_it_one_is_asked_for_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(make(tmp_path / "thing", {**BESIDE, **ANOTHER}) / "package")
    done = rlox_opt("init")
    assert done.returncode == 2
    assert "suite is: benchmarks/asv.conf.json, other/asv.conf.json; rlox-opt init" in done.stderr
    assert "rlox-opt init --suite ../benchmarks/asv.conf.json there, or suite = " in done.stderr
    done = rlox_opt("init", "--suite", "../benchmarks/asv.conf.json")
    assert done.returncode == 0, done.stderr
    assert 'suite = "../benchmarks/asv.conf.json"' in Path("pyproject.toml").read_text()
    assert rlox_opt("init").returncode == 0


@pytest.mark.parametrize("clone", ["thing", "a clone"])
def test_the_repository_may_be_named_from_outside(
    clone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = conf(repo="../../thing", install_command="pip install {wheel_file}[more] alpha")
    monkeypatch.chdir(make(tmp_path / clone, {**FILES, "benchmarks/asv.conf.json": table}))
    said = json.loads(rlox_opt("init", "--json").stdout)
    assert said["lacking"] == []
    noted = any("`repo` is ../../thing; what is built is the" in note for note in said["notes"])
    assert noted == (clone != "thing")
    assert said["known"]["environment"]["is"] == "by uv: the package's extra more, alpha"
    assert said["known"]["build"]["is"] == "flit_core.buildapi"
