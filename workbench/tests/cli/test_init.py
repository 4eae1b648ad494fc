"""What `rlox-opt init` finds, writes, and asks for."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from asv_projects import BUILD, FILES, PYPROJECT, SUITE, commit, conf, make, write
from command_line import rlox_opt
from users_repository import fingerprint, git

from rlox_opt.project import interpreters
from rlox_opt.project.interpreters import Interpreter, running
from rlox_opt.project.project import Project

TWO: Mapping[str, str] = {
    **FILES,
    "other/asv.conf.json": conf(repo=".."),
    "other/benchmarks/all.py": SUITE,
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "a project"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def test_what_is_found_is_told_with_what_says_so_and_nothing_is_written(here: Path) -> None:
    table = conf(repo="..", matrix={"numpy": []}, pythons=[running().version])
    make(here, {**FILES, "benchmarks/asv.conf.json": table})
    before = fingerprint(here)
    done = rlox_opt("init")
    assert done.returncode == 0, done.stderr
    lines = {line[:13].strip(): line[13:] for line in done.stdout.splitlines()}
    assert lines["project"] == str(here)
    assert lines["package"] == "my_thing  (pyproject.toml, [project] name)"
    assert lines["repository"].startswith("git, main at ")
    assert lines["build"] == "flit_core.buildapi  (pyproject.toml, [build-system])"
    where = "(benchmarks/asv.conf.json)"
    assert lines["suite"] == f"benchmarks/benchmarks, 1 benchmark function  {where}"
    assert lines["environment"] == f"by uv: numpy  {where}"
    assert lines["python"] == f"{running().version}  {where}"
    assert lines["run next:"] == "rlox-opt diff HEAD . --bench '^all.Work.time_work'"
    assert fingerprint(here) == before


def test_the_command_to_run_next_compares_two_commits_and_names_a_benchmark_that_is_not_left_out(
    here: Path,
) -> None:
    table = f"{PYPROJECT}\n[tool.rlox-opt]\nleft-out.compared = '^all'\n"
    make(here, {**FILES, "pyproject.toml": table, "benchmarks/benchmarks/b.py": SUITE})
    git(here, "commit", "--allow-empty", "-m", "another")
    said = json.loads(rlox_opt("init", "--json").stdout)
    assert said["next"] == "rlox-opt diff HEAD~1 HEAD --bench '^b.Work.time_work'"
    assert said["benchmarks"] == ["all.Work.time_work", "b.Work.time_work"]
    assert said["known"]["package"] == {"is": "my_thing", "from": "pyproject.toml, [project] name"}
    assert (said["lacking"], said["written"]) == ([], None)


def test_a_suite_that_is_in_no_commit_is_taken_of_the_working_tree(here: Path) -> None:
    make(here, {name: text for name, text in FILES.items() if "benchmarks/" not in name})
    commit(here)
    write(here, FILES)
    said = json.loads(rlox_opt("init", "--json").stdout)
    assert said["next"] == "rlox-opt diff HEAD~1 HEAD --bench '^all.Work.time_work' --suite ."
    commit(here)
    assert "--suite" not in rlox_opt("init").stdout
    write(here, {"benchmarks/benchmarks/b.py": SUITE})
    assert rlox_opt("init").stdout.endswith(" --suite .\n")


def test_the_newest_commit_that_changes_what_is_measured_is_compared(here: Path) -> None:
    make(here)
    changed = commit(here, {"my_thing.py": "def work():\n    return 2\n"})[:10]
    assert "rlox-opt diff HEAD~1 HEAD --bench" in rlox_opt("init").stdout
    commit(here, {".github/workflows/tests.yml": "a: 1\n", "docs/a.md": "A page\n"})
    assert f"rlox-opt diff {changed}~1 {changed} --bench" in rlox_opt("init").stdout


@pytest.mark.parametrize("source", ["my_thing.py", "src/my_thing/inner.py", "extension/lib.rs"])
def test_a_commit_that_changes_sources_comes_before_one_that_may_change_no_build(
    here: Path, source: str
) -> None:
    files = {name: text for name, text in FILES.items() if name != "my_thing.py"}
    package = "src/my_thing/__init__.py" if "src" in source else "my_thing.py"
    make(here, {**files, package: ""})
    changed = commit(here, {source: "x = 1\n"})[:10]
    beside = {"CHANGES": "More.\n", "requirements/test.txt": "pytest\n", "tests/data.c": "int x;"}
    commit(here, beside)
    assert f"rlox-opt diff {changed}~1 {changed} --bench" in rlox_opt("init").stdout
    table = f"{PYPROJECT}\n[tool.rlox-opt]\nmeasured = ['CHANGES']\n"
    write(here, {"pyproject.toml": table})
    assert "rlox-opt diff HEAD~1 HEAD --bench" in rlox_opt("init").stdout


def test_the_folder_that_maturin_takes_packages_from_has_sources(here: Path) -> None:
    files = {name: text for name, text in FILES.items() if name != "my_thing.py"}
    table = f"{PYPROJECT}\n[tool.maturin]\npython-source = 'py_src'\n"
    make(here, {**files, "pyproject.toml": table, "py_src/my_thing/__init__.py": ""})
    changed = commit(here, {"py_src/my_thing/inner.py": "x = 1\n"})[:10]
    commit(here, {"CHANGES": "More.\n"})
    assert f"rlox-opt diff {changed}~1 {changed} --bench" in rlox_opt("init").stdout


def test_where_no_commit_changes_sources_one_that_changes_anything_measured_is_taken(
    here: Path,
) -> None:
    make(here)
    changed = commit(here, {"data.txt": "1\n"})[:10]
    commit(here, {"README.md": "A thing.\n"})
    assert f"rlox-opt diff {changed}~1 {changed} --bench" in rlox_opt("init").stdout


def test_the_python_is_the_one_that_a_comparison_takes(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(here, {**FILES, "pyproject.toml": f"{PYPROJECT}requires-python = '>=3.99'\n"})
    monkeypatch.setattr(interpreters, "installed", lambda: (running(),))
    (line,) = told_of()
    assert "the package asks for Python >=3.99, and there are" in line
    new = Interpreter(Path("/new/python"), "3.99.1", "cpython-3.99")
    monkeypatch.setattr(interpreters, "installed", lambda: (running(), new))
    said = json.loads(rlox_opt("init", "--json").stdout)
    of_project = {"is": "3.99.1", "from": "the project's requires-python, >=3.99"}
    assert (said["known"]["python"], said["lacking"]) == (of_project, [])
    assert any(note.startswith("Python 3.99.1 runs it: ") for note in said["notes"])


def test_a_project_with_a_build_of_its_own_runs_by_the_python_of_this_process(here: Path) -> None:
    build = "[tool.rlox-opt]\nbuild = { by = 'command', command = ['make'] }\n"
    make(here, {**FILES, "pyproject.toml": f"{PYPROJECT}requires-python = '>=3.99'\n{build}"})
    said = json.loads(rlox_opt("init", "--json").stdout)
    own = {"is": running().version, "from": "what rlox-opt runs by"}
    assert (said["known"]["python"], said["lacking"]) == (own, [])
    assert said["known"]["environment"]["is"] == "that of rlox-opt itself"


def test_from_a_folder_within_the_same_is_found(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(here)
    (here / "benchmarks" / "pyproject.toml").symlink_to("../pyproject.toml")
    told = rlox_opt("init").stdout
    for inner in ("benchmarks", "benchmarks/benchmarks"):
        monkeypatch.chdir(here / inner)
        assert rlox_opt("init").stdout.replace(", with changes that are in no commit", "") == (
            told.replace(", with changes that are in no commit", "")
        )


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_of_two_suites_one_is_asked_for_and_written_once(here: Path, line_end: str) -> None:
    make(here, TWO)
    text = PYPROJECT.replace("\n", line_end) + f"# the end, without one{line_end}".rstrip()
    (here / "pyproject.toml").write_bytes(text.encode())
    done = rlox_opt("init")
    assert done.returncode == 2
    assert "several files say where the suite is: benchmarks/asv.conf.json, other/" in done.stderr
    assert done.stderr.count("\n") == 1
    dry = rlox_opt("init", "--suite", "other", "--dry-run")
    assert "would write  suite = 'other' in [tool.rlox-opt]" in dry.stdout
    assert (here / "pyproject.toml").read_bytes() == text.encode()
    done = rlox_opt("init", "--suite", "other/asv.conf.json")
    assert done.returncode == 0, done.stderr
    assert "all.Work.time_work" in done.stdout
    written = (here / "pyproject.toml").read_bytes().decode()
    added = 'suite = "other/asv.conf.json"'
    assert written == text + line_end * 2 + f"[tool.rlox-opt]{line_end}{added}{line_end}"
    assert Project.find(here).suite == here / "other" / "benchmarks"
    for words in (
        ["init"],
        ["init", "--suite", "other/asv.conf.json"],
        ["init", "--suite", "other"],
    ):
        assert rlox_opt(*words).returncode == 0
        assert (here / "pyproject.toml").read_bytes().decode() == written
    done = rlox_opt("init", "--suite", "benchmarks")
    assert done.returncode == 2
    assert 'has suite = "other/asv.conf.json" under [tool.rlox-opt]; write suite = ' in done.stderr
    assert (here / "pyproject.toml").read_bytes().decode() == written


def test_a_table_that_is_there_gets_a_line_and_keeps_its_own(here: Path) -> None:
    text = f'{PYPROJECT}\n[tool.rlox-opt] # ours\npackage = "my_thing"\n[tool.other]\nx = 1\n'
    make(here, {**TWO, "pyproject.toml": text})
    assert rlox_opt("init", "--suite", "benchmarks").returncode == 0
    expected = text.replace("# ours\n", '# ours\nsuite = "benchmarks"\n')
    assert (here / "pyproject.toml").read_text() == expected


def test_a_table_that_cannot_be_added_to_is_left_alone(here: Path) -> None:
    text = f'{BUILD}[tool]\nrlox-opt = {{ package = "my_thing" }}\n# [tool.rlox-opt]\n'
    make(here, {**TWO, "pyproject.toml": text})
    done = rlox_opt("init", "--suite", "benchmarks")
    assert done.returncode == 2
    assert 'cannot be added to; write suite = "benchmarks" under [tool.rlox-opt]' in done.stderr
    assert (here / "pyproject.toml").read_text() == text


def test_a_project_without_pyproject_gets_one_where_it_must(here: Path) -> None:
    files = {name: text for name, text in TWO.items() if name != "pyproject.toml"}
    make(here, {**files, "setup.py": "from setuptools import setup\nsetup(name='My.Thing')\n"})
    done = rlox_opt("init", "--suite", "other")
    assert done.returncode == 0, done.stderr
    assert "my_thing  (setup.py)" in done.stdout
    assert (here / "pyproject.toml").read_text() == '[tool.rlox-opt]\nsuite = "other"\n'
    assert Project.find(here / "other").root == here


@pytest.mark.parametrize(
    ("suite", "told"),
    [
        ("nothing", "--suite 'nothing': is not there; name an asv.conf.json, a folder of"),
        ("", "--suite '': is not there"),
        ("my_thing.py", "--suite my_thing.py: is no suite; name an asv.conf.json, a folder of asv"),
        ("..", r"--suite ..: lies outside"),
        ("empty", "empty: has no benchmark: no function there begins with time_"),
    ],
)
def test_a_suite_that_is_none_is_refused(here: Path, suite: str, told: str) -> None:
    make(here)
    (here / "empty").mkdir()
    done = rlox_opt("init", "--suite", suite)
    assert done.returncode == 2
    assert told in done.stderr
    assert done.stderr.count("\n") == 1
    assert "[tool.rlox-opt]" not in (here / "pyproject.toml").read_text()


def told_of(*words: str) -> list[str]:
    done = rlox_opt("init", *words)
    assert done.returncode == 2, done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith("rlox-opt") for line in lines), lines
    return lines


def test_without_a_repository_or_a_commit_that_is_told(here: Path) -> None:
    write(here, FILES)
    (line,) = told_of()
    assert "is no git checkout; clone the repository and work there" in line
    git(here, "init", "--quiet")
    (line,) = told_of()
    assert "which has no commit yet; `git commit` in " in line


def test_a_bare_repository_is_told(here: Path) -> None:
    git(here, "init", "--quiet", "--bare")
    assert any("is no git checkout; clone the repository and work there" in of for of in told_of())


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"this = is no TOML\n[project]\n", "pyproject.toml: is not TOML"),
        (b"[project]\nname = '\xe9'\n", "pyproject.toml: is not UTF-8"),
        ("\ufeff[project]\nname = 'x'\n".encode(), "begins with a byte order mark"),
        (b"[tool.rlox-opt]\nsweet = 'x'\n", "unknown field `sweet`"),
        (b"[tool.rlox-opt]\nsuite = '\xe9'\n", "pyproject.toml: is not UTF-8"),
    ],
)
def test_a_pyproject_that_cannot_be_read_is_told_once(
    here: Path, content: bytes, told: str
) -> None:
    make(here)
    (here / "pyproject.toml").write_bytes(content)
    (line,) = told_of()
    assert told in line


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "benchmarks/asv.conf.json: is no JSON as asv reads it: Empty"),
        (b'{"project": "\xe9"}', "benchmarks/asv.conf.json: is not UTF-8: byte 13 is no text"),
        (b'{"benchmark_dir": "../../x"}', "`benchmark_dir` is '../../x', outside the repository"),
        (b" " * 200_000, "asv.conf.json: has 200000 characters"),
        (b'{"benchmark_dir": "gone"}', "gone: is no folder, and benchmarks/asv.conf.json names it"),
    ],
)
def test_an_asv_conf_json_that_cannot_be_read_is_told_once(
    here: Path, content: bytes, told: str
) -> None:
    make(here)
    (here / "benchmarks" / "asv.conf.json").write_bytes(content)
    (line,) = told_of()
    assert told in line


def test_an_asv_conf_json_that_is_no_file_is_told(here: Path) -> None:
    make(here)
    path = here / "benchmarks" / "asv.conf.json"
    path.unlink()
    path.symlink_to("nowhere")
    (line,) = told_of()
    assert "benchmarks/asv.conf.json: cannot be read: No such file" in line
    path.unlink()
    path = here / "asv.conf.json"
    path.mkdir()
    (line,) = told_of()
    assert "asv.conf.json: is a folder; name a file" in line


def test_a_suite_that_is_not_there_is_told_with_the_remedy(here: Path) -> None:
    make(here, {"pyproject.toml": PYPROJECT})
    (line,) = told_of()
    assert "no benchmarks are known: there is no asv.conf.json" in line
    assert 'write suite = "…"' in line


def test_what_builds_it_is_asked_for_where_nothing_says_it(here: Path) -> None:
    files = {"benchmarks/asv.conf.json": conf(), "benchmarks/benchmarks/all.py": SUITE}
    make(here, files)
    assert any("nothing says how it is built" in line for line in told_of())
    write(here, {"benchmarks/asv.conf.json": conf(build_command=["make {build_cache_dir}"])})
    done = rlox_opt("init")
    assert "asv's commands: make {build_cache_dir}  (benchmarks/asv.conf.json)" in done.stdout


def test_notes_and_what_is_never_collected_are_told(here: Path) -> None:
    suite = SUITE + "    def test_other(self):\n        pass\n"
    make(here, {**FILES, "benchmarks/benchmarks/all.py": suite})
    write(here, {"benchmarks/asv.conf.json": conf(environment_type="conda", benchmark="x")})
    said = json.loads(rlox_opt("init", "--json").stdout)
    (one,) = said["uncovered"]
    assert one.startswith("benchmarks/all.py:7: Work.test_other is never collected")
    assert any("its packages are taken from PyPI by uv" in note for note in said["notes"])
    assert any("`benchmark` is no setting of asv's" in note for note in said["notes"])


def test_benchmarks_of_pytest_beside_an_asv_suite_are_told_until_one_is_chosen(here: Path) -> None:
    suite = "tests/speed/test_it.py"
    make(here, {**FILES, suite: "def test_it(benchmark): ...\n"})
    note = f"benchmarks by pytest are in {suite} too; rlox-opt init --suite {suite} takes them"
    assert note in json.loads(rlox_opt("init", "--json").stdout)["notes"]
    chosen = rlox_opt("init", "--suite", suite, "--dry-run").stdout
    assert f"would write  suite = '{suite}'" in chosen
    assert note not in chosen


def test_a_file_that_cannot_be_written_is_told(here: Path) -> None:
    make(here, TWO)
    (here / "pyproject.toml").unlink()
    (here / "pyproject.toml").symlink_to("/proc/nowhere/pyproject.toml")
    done = rlox_opt("init", "--suite", "other")
    assert done.returncode in (2, 3)
    assert done.stderr.count("\n") == 1
    assert os.path.lexists(here / "pyproject.toml")
