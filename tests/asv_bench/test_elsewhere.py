"""Other people's projects: what the list may say, what is counted, and what asv is given."""

import json
import re
import subprocess
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from rich.console import Console
from rlox_opt.project import kinds
from rlox_opt.system.files import NotReadError
from rlox_opt.system.progress import Lines
from rlox_opt.system.usage import UsageError

from asv_bench.elsewhere import __main__ as elsewhere
from asv_bench.elsewhere import projects, rivals, scoreboard, trials
from asv_bench.elsewhere.beside import Beside
from asv_bench.elsewhere.installed import Run
from asv_bench.elsewhere.tables import tables
from asv_bench.injected.journal import Journal, Step

PROJECTS = projects.load()


def test_the_list_can_be_read_and_says_why_of_all_that_it_chose() -> None:
    before = {"networkx", "shapely", "multidict", "pydantic-core", "chrono", "pest"}
    assert len({project.name for project in PROJECTS} - before) >= 6
    for project in PROJECTS:
        chosen = [project.asv, *project.pair, project.unchanged, project.bisect, project.record]
        assert all(part.why for part in chosen if part)
        assert project.pair
        assert project.unchanged.part
        assert all(pair.reported for pair in project.pair)


def test_the_scoreboards_page_is_what_its_records_come_to() -> None:
    page = scoreboard.PAGE.read_text(encoding="utf-8")
    newest = re.search(r"^Date: (\S+);", page, re.MULTILINE)
    assert newest, "no date"
    assert page == scoreboard.page(scoreboard.records(until=newest[1]))


def test_the_supplied_suite_has_what_is_expected_to_be_flagged() -> None:
    supplied = [
        (project.suite(pair.suite), pair)
        for project in PROJECTS
        for pair in project.pair
        if project.suite(pair.suite)
    ]
    assert len(supplied) >= 3
    for folder, pair in supplied:
        kind = kinds.taking(folder, PurePosixPath()) or kinds.ASV
        there = kind.benchmarks(folder)
        assert any(re.search(pair.expected, name) for name in there)
        assert all(re.search(pair.bench, name) for name in there)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("budget = 220", "budget = 0", "budget"),
        ("budget = 220", 'budget = 220\nseconds = "9"', "seconds"),
        ("expected = 'Graph", "expected = '(Graph", "regular expression"),
        ('base = "1760d25f6c"', 'base = "1760d25"', "base"),
        ('source = "networkx#5796"', 'source = ""', "source"),
        ('kind = "asv"', 'kind = "criterion"', "add [project.criterion]"),
        ('kind = "asv"', 'kind = "conbench"', "kind"),
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
        .startswith("python -m asv_bench.elsewhere: --only: 'numpy' is no project of the list: net")
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
    networkx = PROJECTS[0]
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
        "create('Graph')": _cell("slower", 2.0),
        "create('DiGraph')": _cell("faster", 0.5),
        "copy('Graph')": _cell("faster", 0.9),
        "copy('DiGraph')": _cell("undecided"),
    }
    row = {"project": "networkx", "what": "pair", "cells": {"diff": cells}, "seconds": 150.0,
           "expected": "create", "reported": "2 ×",
           "parts": {"base": 20.0, "head": 10.0}}  # fmt: skip
    told = "\n".join(tables([row]))
    assert "| networkx | 2 × | diff | found | 2.00 | 1/2 | 0.5 | 2.0 |" in told


def test_a_reason_is_named_where_the_first_function_told_is_the_one_that_is_known() -> None:
    def part(name: str, low: float = 0.5) -> dict[str, Any]:
        return {"place": "graph.py", "name": name, "low": low}

    def of(touched: list[dict[str, Any]], functions: list[dict[str, Any]]) -> dict[str, Any]:
        return {"benchmark": "create('Graph')", "ratio": 2.0, "seconds": 14.0,
                "touched": touched, "functions": functions}  # fmt: skip

    known, other, unsure = part("Graph.__init__"), part("Graph.adj"), part("Graph.__init__", -0.1)
    why = [of([known, other], []), of([], [known]), of([other, known], [other]), of([unsure], [])]
    row = {"project": "networkx", "what": "why", "expected": "create", "seconds": 60.0,
           "function": "Graph.__init__", "why": [*why, {"benchmark": "copy"}]}  # fmt: skip
    told = "\n".join(tables([row]))
    assert "| create('Graph') | 2.00 | yes | graph.py:Graph.__init__ | – | 14 |" in told
    assert "| create('Graph') | 2.00 | no | graph.py:Graph.adj | graph.py:Graph.adj | 14 |" in told
    assert "is named for 2/4 benchmarks" in told


def test_what_failed_is_a_row_of_its_own_and_in_no_other_table() -> None:
    row = {"project": "pest", "what": "pair", "tool": "criterion", "failed": "no cargo",
           "expected": "json", "reported": "10 ×"}  # fmt: skip
    told = "\n".join(tables([row, row | {"what": "bisect"}]))
    assert "| pest | 10 × | criterion | failed | – | 0/0 | – | – |" in told
    assert "Search" not in told


def test_a_run_of_pytest_benchmark_is_slower_where_it_says_so_and_nowhere_else() -> None:
    def run(**means: float) -> dict[str, Any]:
        of = {f"tests/test_a.py::test_{name}": mean for name, mean in means.items()}
        return {"benchmarks": [{"fullname": n, "stats": {"mean": m}} for n, m in of.items()]}

    said = (
        "Performance has regressed:\n\ttests/test_a.py::test_add (0001_run) - Field 'mean' has "
        "failed PercentageRegressionCheck: 50.000000000 > 5.000000000\n"
        "ERROR: Performance has regressed.\n"
    )
    told = rivals.compared(
        run(add=2.0, get=1.0, more_test_add=1.0),
        run(add=3.0, get=1.01, more_test_add=1.0, new=1.0),
        said,
    )
    assert {
        name.partition("_a.py::")[2]: (of["verdict"], of["ratio"]) for name, of in told.items()
    } == {
        "test_add": ("slower", 1.5),
        "test_get": ("unchanged", 1.01),
        "test_more_test_add": ("unchanged", 1.0),
    }


def test_what_criterion_says_is_read_with_long_names_and_throughputs() -> None:
    said = """\
http parser             time:   [3.5245 ms 3.5328 ms 3.5464 ms]
                        change: [+1003.6% +1008.2% +1014.4%] (p = 0.00 < 0.05)
                        Performance has regressed.
Found 2 outliers among 100 measurements (2.00%)
parser_bench/\"__finStreamer-proto\"
                        time:   [1.4668 ms 1.4703 ms 1.4755 ms]
                        thrpt:  [60.0 MiB/s 61.0 MiB/s 62.0 MiB/s]
                 change:
                        time:   [-10.928% -10.818% -10.712%] (p = 0.00 < 0.05)
                        thrpt:  [+11.997% +12.130% +12.269%]
                        Performance has improved.
still                   time:   [1.0 ns 1.1 ns 1.2 ns]
                        change: [-0.5% +0.1% +0.6%] (p = 0.80 > 0.05)
                        No change in performance detected.
new                     time:   [1.0 ns 1.1 ns 1.2 ns]
"""
    told = dict(rivals.changes(said))
    assert {name: (of["verdict"], round(of["ratio"], 3)) for name, of in told.items()} == {
        "http parser": ("slower", 11.082),
        'parser_bench/"__finStreamer-proto"': ("faster", 0.892),
        "still": ("unchanged", 1.001),
    }


def test_flags_on_what_did_not_change_are_summed_over_runs_with_their_bound() -> None:
    rows = [
        {"project": "shapely", "what": "unchanged", "seconds": 60.0,
         "cells": {"diff": {"a": _cell("same"), "b": _cell(verdict)}}}
        for verdict in ("faster", "undecided")
    ]  # fmt: skip
    told = "\n".join(tables(rows))
    assert re.search(r"\| shapely \| diff \| 1/4 \(< 75\.1 %\) \| 1 \| 2\.0 \|", told)
