"""Other people's projects: what the list may say, what is counted, and what asv is given."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rlox_opt.project import suite_source
from rlox_opt.system.files import NotReadError
from rlox_opt.system.progress import Lines
from rlox_opt.system.usage import UsageError

from asv_bench.elsewhere import __main__ as elsewhere
from asv_bench.elsewhere import projects, trials
from asv_bench.elsewhere.beside import Beside
from asv_bench.elsewhere.installed import Run
from asv_bench.elsewhere.tables import tables
from asv_bench.injected.journal import Journal, Step

PROJECTS = projects.load()


def test_the_list_can_be_read_and_says_why_of_all_that_it_chose() -> None:
    assert {project.name for project in PROJECTS} == {"networkx", "shapely"}
    for project in PROJECTS:
        chosen = [project.asv, project.pair, project.unchanged, project.bisect, project.record]
        assert all(part.why for part in chosen if part)


def test_the_supplied_suite_has_what_is_expected_to_be_flagged() -> None:
    (shapely,) = (project for project in PROJECTS if project.name == "shapely")
    folder = shapely.suite(shapely.pair.suite)
    there = suite_source.benchmarks(folder)
    assert any(re.search(shapely.pair.expected, name) for name in there)
    assert all(re.search(shapely.pair.bench, name) for name in there)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("budget = 220", "budget = 0", "budget"),
        ("budget = 220", 'budget = 220\nseconds = "9"', "seconds"),
        ("expected = 'Graph", "expected = '(Graph", "regular expression"),
        ('name = "shapely"', 'name = "networkx"', "two projects share a `name`"),
        ('name = "shapely"', 'name = "../shapely"', "name"),
    ],
)
def test_a_wrong_list_is_refused_by_the_name_of_what_is_wrong(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    text = projects.LIST.read_text(encoding="utf-8")
    assert old in text
    wrong = tmp_path / "projects.toml"
    wrong.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(NotReadError, match=re.escape(said)):
        projects.load(wrong)


def test_a_project_that_is_not_in_the_list_is_refused_in_one_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as stopped:
        elsewhere.main(["--only", "numpy"])
    assert stopped.value.code == 2
    assert (
        capsys.readouterr()
        .err.splitlines()[-1]
        .endswith("--only: 'numpy' is no project of the list: networkx, shapely")
    )


def test_the_parts_of_a_comparison_are_told_by_when_its_lines_came() -> None:
    lines = (
        (0.1, "1/2 build of 1760d25f6c … about a minute left"),
        (4.0, "1/2 build of 1760d25f6c: ready (4 s)"),
        (9.0, "2/2 build of f50fc70b8c: ready (5 s)"),
        (9.5, "the budget has 18 s of timing: 5 restarts"),
        (20.0, "timing …"),
        (33.0, "timing: 3 verdicts (13 s)"),
    )
    run = Run("{}", lines, 0, 35.0)
    assert run.parts() == {"base": 4.0, "head": 5.0, "listing": 11.0, "measuring": 15.0}


def _repository(folder: Path) -> str:
    suite = folder / "bench" / "benchmarks"
    suite.mkdir(parents=True)
    (suite / "__init__.py").write_text("")
    (suite / "some.py").write_text("def time_some():\n    pass\n")
    (folder / "thing.py").write_text("# a thing\n")
    config = {"version": 1, "project": "thing", "repo": "..", "environment_type": "conda",
              "pythons": ["3.11", "3.12"], "matrix": {"numpy": [], "geos": []}}  # fmt: skip
    text = "// comments are asv's own\n" + json.dumps(config)
    (folder / "bench" / "asv.conf.json").write_text(text)
    for words in (
        ("init", "-q", "-b", "trunk"),
        ("add", "-A"),
        ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "one"),
    ):
        subprocess.run(["git", "-C", str(folder), *words], check=True)
    told = subprocess.run(
        ["git", "-C", str(folder), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    )
    return told.stdout.strip()


def test_asv_is_given_the_projects_configuration_but_what_cannot_run(tmp_path: Path) -> None:
    (tmp_path / "clone").mkdir()
    (tmp_path / "ours").mkdir()
    commit = _repository(tmp_path / "clone")
    (shapely,) = (project for project in PROJECTS if project.name == "shapely")
    beside = Beside(shapely, tmp_path / "clone", tmp_path / "ours")
    config = json.loads(beside._configured(commit).read_text(encoding="utf-8"))
    assert config["matrix"] == {"numpy": []}
    assert "--no-deps" in config["build_command"][0]
    assert config["environment_type"] == "virtualenv"
    assert config["pythons"] == ["3.11"]
    assert config["repo"] == str(tmp_path / "clone")
    assert config["benchmark_dir"].endswith(f"{commit}/bench/benchmarks")
    tree = tmp_path / "ours" / "trees" / commit
    (tree / "bench" / "asv.conf.json").unlink()
    with pytest.raises(UsageError, match=r"shapely: .* has no asv\.conf\.json"):
        beside._configured(commit)


def test_what_is_measured_against_itself_differs_in_a_comment_that_no_branch_knows(
    tmp_path: Path,
) -> None:
    commit = _repository(tmp_path)
    (networkx, _) = PROJECTS
    unchanged = projects.Unchanged("", commit, "thing.py", ())
    of = trials.Trials(networkx, tmp_path, None)
    before = [(path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.py")]
    made = of._commented(unchanged)
    said = subprocess.run(
        ["git", "-C", str(tmp_path), "diff", "--numstat", commit, made],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert said.stdout.split() == ["1", "0", "thing.py"]
    assert of._commented(unchanged) == made
    assert [(path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*.py")] == before


def test_a_step_that_is_done_is_not_taken_again_whatever_it_tells(tmp_path: Path) -> None:
    taken = []

    def does() -> dict[str, Any]:
        taken.append(1)
        return {"base": "1760d25f6c056fbed39843db7523d597670fe35d", "said": "done"}

    step = Step("diff", "a pair", {"what": "pair", "base": "1760d25f6c"}, does)
    for _ in range(2):
        journal = Journal(tmp_path / "rows.jsonl", ())
        journal.run([step], Lines(Console(quiet=True)))
    assert taken == [1]


def _cell(verdict: str, ratio: float = 1.0) -> dict[str, Any]:
    return {"verdict": verdict, "ratio": ratio, "ci99": None}


def test_what_is_expected_is_found_where_it_is_slower_and_anything_else_is_flagged() -> None:
    cells = {
        "benchmark_classes.GraphBenchmark.time_graph_create('Graph')": _cell("slower", 2.0),
        "benchmark_classes.GraphBenchmark.time_graph_create('DiGraph')": _cell("faster", 0.5),
        "benchmark_classes.GraphBenchmark.time_copy('Graph')": _cell("faster", 0.9),
        "benchmark_classes.GraphBenchmark.time_copy('DiGraph')": _cell("undecided"),
    }
    row = {"project": "networkx", "what": "pair", "cells": {"diff": cells}, "seconds": 150.0,
           "parts": {"base": 20.0, "head": 10.0}}  # fmt: skip
    told = "\n".join(tables([row], PROJECTS))
    assert "| networkx | diff | 1/2 | 0.50–2.00 | 1/2 | 0.5 | 2.0 |" in told


def test_flags_on_what_did_not_change_are_summed_over_runs_with_their_bound() -> None:
    rows = [
        {"project": "shapely", "what": "unchanged", "seconds": 60.0,
         "cells": {"diff": {"a": _cell("same"), "b": _cell(verdict)}}}
        for verdict in ("faster", "undecided")
    ]  # fmt: skip
    told = "\n".join(tables(rows, PROJECTS))
    assert re.search(r"\| shapely \| diff \| 1/4 \(< 75\.1 %\) \| 1 \| 2\.0 \|", told)
