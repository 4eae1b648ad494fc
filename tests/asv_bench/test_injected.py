"""Injected regressions: the list fits the sources, commits leave no trace, the counts are right."""

import re
import subprocess
from pathlib import Path
from typing import Any

import projects
import pytest
from injected_toy import TOY
from projects import ROOT
from rlox_opt.harness.packages import Packages
from rlox_opt.harness.side_processes import Side, Suite
from rlox_opt.system.exits import CANNOT_TELL
from rlox_opt.system.files import NotReadError
from rlox_opt.system.usage import UsageError

from asv_bench.injected import __main__ as command
from asv_bench.injected import commits, scores, tools, trials
from asv_bench.injected.regressions import LIST, Regression, exchanged, load

EVERY = load()


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One commit, a staged change and a change that is not staged. Tests add commits on no branch,
    which change none of these."""
    root = tmp_path_factory.mktemp("repository")
    files = {
        TOY.file: "start();\nwork();\n",
        **{file: "\n" for file, _ in commits.INNOCENT.values()},
    }
    for file, text in files.items():
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)
    git(root, "init", "--quiet", "--initial-branch=main")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "-m", "first")
    (root / "staged").write_text("")
    git(root, "add", "staged")
    (root / TOY.file).write_text("being written\n")
    return root


@pytest.mark.parametrize("regression", EVERY, ids=lambda regression: regression.id)
def test_each_regression_of_the_list_changes_its_file_with_every_k(regression: Regression) -> None:
    text = (ROOT / regression.file).read_text()
    found = {exchanged(text, regression.find, regression.at(k), "") for k in (0, 1, 20)}
    assert len({text, *found}) == 4


def test_all_regressions_of_the_list_fit_into_one_commit_and_can_be_set_to_work() -> None:
    head = git(ROOT, "rev-parse", "HEAD").strip()
    idle = commits.idle(head, EVERY)
    for regression in EVERY:
        changed = git(ROOT, "diff", "--unified=0", idle, commits.slowed(idle, regression, 7))
        lines = [line for line in changed.splitlines() if line[0] in "+-"][2:]
        assert len(lines) == 2
        assert lines[0][1:] in regression.at(0).splitlines()
        assert lines[1][1:] in regression.at(7).splitlines()


def test_each_regression_is_found_by_a_benchmark_and_spares_others() -> None:
    side = Side(ROOT, ("rlox",))
    with_rlox = Packages({"base": side}, Suite(ROOT / "asv_bench/benchmarks"), 120)
    there = [*with_rlox.names("time")]
    for regression in EVERY:
        assert regression.benchmark in there
        assert trials.beside(regression, 3, 0, there, 2)


def test_every_bound_has_a_regression() -> None:
    assert {regression.bound for regression in EVERY} == {"compute", "python", "memory", "torch"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("probe =", "prob =", r"unknown key `regression\[0\].prob`"),
        ('layer = "rust"', 'layer = "iron"', r"`regression\[0\].layer` is 'iron'; it takes"),
        (
            'bound = "compute"',
            'bound = "luck"',
            r"`regression\[0\].bound` is 'luck'; it takes",
        ),
        ("{k}_usize", "3", r"`regression\[0\].replace` has no {k}"),
        (
            'affects = "(?i)gae|trainers"',
            'affects = "nothing"',
            "must find its own benchmark",
        ),
    ],
)
def test_a_mistake_in_the_list_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    wrong = tmp_path / "wrong.toml"
    wrong.write_text(LIST.read_text().replace(old, new, 1))
    with pytest.raises(NotReadError, match=message):
        load(wrong)


def test_a_text_that_is_not_there_once_is_refused() -> None:
    with pytest.raises(UsageError, match="stands there 2 times"):
        exchanged("work();\nwork();\n", TOY.find, TOY.at(0), "toy")


def test_commits_leave_working_tree_index_and_branches_as_they_are(repository: Path) -> None:
    def seen() -> list[str]:
        asked = (
            ["status", "--porcelain"],
            ["for-each-ref"],
            ["rev-parse", "HEAD"],
            ["ls-files", "-s"],
        )
        return [git(repository, *question) for question in asked]

    before = seen()
    idle = commits.idle("HEAD", [TOY], repository)
    slow = commits.slowed(idle, TOY, 5, repository)
    assert seen() == before
    assert commits.content(idle, TOY.file, repository) == "start();\nwork(); extra(0);\n"
    assert commits.content(slow, TOY.file, repository) == "start();\nwork(); extra(5);\n"
    assert git(repository, "diff", "--name-only", idle, slow) == f"{TOY.file}\n"


def test_the_same_content_is_the_same_commit(repository: Path) -> None:
    one, other = (commits.idle("HEAD", [TOY], repository) for _ in range(2))
    assert one == other
    assert commits.slowed(one, TOY, 1, repository) != commits.slowed(one, TOY, 2, repository)


@pytest.mark.parametrize("seed", range(5))
def test_a_history_has_one_slow_commit_and_it_is_the_guilty_one(
    repository: Path, seed: int
) -> None:
    idle = commits.idle("HEAD", [TOY], repository)
    history = commits.history(idle, TOY, 5, 4, seed, repository)
    parents = git(repository, "rev-list", "--reverse", f"{idle}..{history.commits[-1]}").split()
    assert parents == [*history.commits]
    works = ["extra(5)" in commits.content(c, TOY.file, repository) for c in history.commits]
    at = history.commits.index(history.guilty)
    assert works == [False] * at + [True] * (4 - at)
    assert history == commits.history(idle, TOY, 5, 4, seed, repository)


def cell(verdict: str, ci99: list[float] | None = None) -> tools.Cell:
    return tools.Cell(verdict=verdict, ratio=1.0, ci99=ci99)


def trial(percent: float, verdict: str, ci99: list[float] | None, beside: str) -> dict[str, Any]:
    cells = {TOY.benchmark: cell(verdict, ci99), "toys.time_other": cell(beside)}
    return {
        "regression": "toy", "percent": percent, "truth": 1 + percent / 100, "seconds": 10.0,
        "cells": {"diff": cells},
    }  # fmt: skip


def test_only_slower_is_found_and_any_flag_on_what_nothing_touched_is_a_false_alarm() -> None:
    rows = [
        trial(3, "slower", [1.02, 1.04], "same"),
        trial(3, "undecided", [0.9, 1.1], "slower"),
        trial(3, "same", [1.00, 1.01], "undecided"),
        trial(3, "faster", None, "faster"),
        trial(0, "undecided", [0.99, 1.02], "same"),
        trial(0, "faster", [0.97, 0.98], "same"),
    ]
    score = scores.scored(rows, [TOY])["diff"]
    assert str(score.found[3]) == "1/4"
    assert str(score.unchanged) == "1/4"
    assert str(score.beside) == "2/4"
    assert str(score.inside) == "3/5"
    in_all, of_each = "\n".join(scores.score_tables(rows, [TOY])).split("\n\n")
    # The bounds are those of printed tables.
    for part in ("all", "compute"):
        assert f"| {part} | diff | 1/4 | 1/4 (< 75.1 %) | 2/4 (< 90.2 %) | 3/5 | 10 |" in in_all
    assert "| a toy (`toy`) | compute | 3.0 | diff | 1/4 | 1/4 |" in of_each


def test_a_slowdown_of_another_size_is_no_example_of_the_one_it_was_meant_to_be() -> None:
    """Extra work comes in whole steps: the smallest may be three times what was asked."""
    rows = [trial(1, "slower", [1.03, 1.04], "same") | {"truth": truth} for truth in (1.034, 1.011)]
    rows[1]["cells"]["diff"][TOY.benchmark] = cell("undecided", [1.0, 1.02])
    score = scores.scored(rows, [TOY])["diff"]
    assert str(score.found[1]) == "0/1"
    assert str(score.beside) == "0/2"


def test_a_run_over_unchanged_commits_has_a_flag_where_any_benchmark_has() -> None:
    rows = [
        {"threshold": 3.0, "seconds": 4.0, "cells": {"diff": {"a": cell(a), "b": cell(b)}}}
        for a, b in (("same", "undecided"), ("slower", "faster"), ("same", "slower"))
    ]
    assert "| diff, threshold 3 % | 3/6 (< 84.7 %) | 2/3 (< 98.3 %) | 4 |" in [
        *scores.aa_table(rows)
    ]


ASV_TABLE = """\
All benchmarks:

| Change | Before [8d41c0a1] | After [0b2fdbe3] | Ratio | Benchmark (Parameter)           |
|--------|-------------------|------------------|-------|---------------------------------|
| +      | 8.61±0.1μs        | 9.12±0.03μs      |  1.06 | data_plane.Gae.time_gae(2048)   |
|        | 1.27±0.02ms       | 1.31±0.3ms       | ~1.03 | data_plane.T.time_t((32, 2048)) |
| -      | 3.49±0.01μs       | 3.20±0.01μs      |  0.92 | data_plane.Prioritized.time_x   |
|        | n/a               | n/a              |   n/a | data_plane.Gae.time_gae(128)    |
| !      | 3.49±0.01μs       | failed           |   n/a | data_plane.Push.time_push(4)    |
"""


def test_asv_tables_are_read_with_their_marks() -> None:
    found = {name: (cell["verdict"], cell["ratio"]) for name, cell in tools.rows(ASV_TABLE)}
    assert found == {
        "data_plane.Gae.time_gae(2048)": ("slower", 1.06),
        "data_plane.T.time_t((32, 2048))": ("unchanged", 1.03),
        "data_plane.Prioritized.time_x": ("faster", 0.92),
        "data_plane.Gae.time_gae(128)": ("unchanged", None),
        "data_plane.Push.time_push(4)": ("failed", None),
    }


def test_asv_runs_at_the_factor_and_what_it_cannot_compare_is_no_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    codes = iter([1, 0, 0, 2])

    def run(_: object, module: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        asked.append((module, *arguments))
        told = "\n3 times, both commits …: 1 slower, 2 undecided.\n"
        return subprocess.CompletedProcess([], next(codes), ASV_TABLE + told, "")

    monkeypatch.setattr(tools.Asv, "_asv", run)
    asv = tools.Asv(tmp_path)
    cells, verdicts = asv.continuous("a", "b", [], 1.03)
    assert len(cells) == 3  # two of five have no ratio
    assert verdicts == "1 slower, 2 undecided"
    assert asked[0][:6] == ("", "continuous", "a", "b", "--factor", "1.03")
    one = "data_plane.Gae.time_gae(2048)"
    assert [*asv.continuous("a", "b", [one], 1.1)[0]] == [one]
    assert asked[1][4:8] == ("--bench", tools.one_of([one]), "--factor", "1.1")
    with pytest.raises(tools.ToolError, match=r"says nothing of data_plane\.other"):
        asv.continuous("a", "b", ["data_plane.other"], 1.1)
    with pytest.raises(tools.ToolError, match="exit status 2"):
        asv.continuous("a", "b", [one], 1.1)


def test_asvs_default_set_is_asked_of_asv(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["aa", "--default-set", "--tool", "diff"])
    assert ended.value.code == CANNOT_TELL
    assert "--default-set: is of asv, expected --tool asv, got diff" in capsys.readouterr().err


@pytest.mark.parametrize("regression", EVERY, ids=lambda regression: regression.id)
def test_the_functions_that_do_the_extra_work_are_in_the_changed_file_or_called_by_it(
    regression: Regression,
) -> None:
    if regression.layer.startswith("torch"):
        return  # a phase: test_injected_in_torch.py
    own = regression.file.removeprefix("crates/")
    defined = re.findall(r"^\s*(?:pub(?:\([\w ]+\))? )?(?:fn|def) (\w+)", _text(regression), re.M)
    assert any(regression.does(f"crates/{own}:{name}") for name in defined)
    assert not regression.does(f"crates/{own}:main")


def _text(regression: Regression) -> str:
    return (ROOT / regression.file).read_text()


def test_an_unknown_regression_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(["probe", "--only", "nothing"])
    assert ended.value.code == CANNOT_TELL
    assert "--only: 'nothing' is no id, kind or bound" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_diff_finds_a_slowdown_of_ten_per_cent_and_none_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "FOLDER", tmp_path)
    monkeypatch.setattr(command, "PROJECT", projects.of(projects.ROOT, state=str(tmp_path)))
    asked = ("--only", "step-python", "--percent", "0", "10", "--tool", "diff", "--threshold", "3")
    assert command.main(["score", *asked]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("| all"))
    _, _, found, unchanged, *_ = (part.strip() for part in line.strip("|").split("|"))
    assert (found, unchanged) == ("1/1", "0/1")
