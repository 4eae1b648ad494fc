"""`rlox-opt gate` from two commits to an exit code: toys are built, timed and judged."""

import argparse
import json
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import small_projects
import toy_history
from command_line import rlox_opt
from users_repository import git

from rlox_opt.cli import gate
from rlox_opt.harness import packages
from rlox_opt.harness.packages import Reading
from rlox_opt.harness.sequential import Comparison
from rlox_opt.project.artefacts import Artefact
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.project.side_by_side import ComparedBuilds

# A hundred times the work, so that no neighbour on the machine can hide it: beside a compiler and a
# second run of these tests the interval of forty times the work began at 1.6.
COMMITS: list[dict[str, Any]] = [{"passes": 1}, {"passes": 100}, {"name": "raises"}]
QUICK = ("--restarts", "10", "--no-counts", "--json")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The history, whose builds the tests share, and its commits."""
    folder = tmp_path_factory.mktemp("gate")
    return folder, toy_history.commits(folder, COMMITS)


@pytest.fixture
def commits(made: tuple[Path, list[str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    folder, commits = made
    toy_history.patch(folder, monkeypatch.chdir, monkeypatch.setattr)
    monkeypatch.setattr(packages, "_CONTEST_S", 0.05)
    return commits


def test_a_regression_fails_the_gate_also_as_a_hook(commits: list[str]) -> None:
    light, heavy, _ = commits
    done = rlox_opt("gate", light, heavy, "--bench", "time_work", *QUICK, "--hook")
    told = json.loads(done.stdout)
    (row,) = told["results"]
    assert (told["base"], told["head"]) == (light, heavy)
    assert row["verdict"] == "slower"
    assert row["restarts"] in (5, 10)
    assert row["ci99"][0] < row["ratio"] < row["ci99"][1]
    assert row["ratio"] > 10  # the mean; where its interval begins is up to the neighbours
    assert (done.returncode, told["exit_code"]) == (1, 1)
    assert (told["reason"], told.get("why", [])) == ("regression: 1 slower or larger", [])
    assert done.stderr.endswith("rlox-opt gate: regression: 1 slower or larger\n")


@pytest.mark.usefixtures("commits")
def test_a_branch_is_not_blamed_for_what_main_has_gained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The branch leaves the slow commit, and changes nothing; main then goes on to a fast one."""
    _, slow = toy_history.commits(tmp_path, COMMITS[:2])
    here = tmp_path / "repository"
    monkeypatch.chdir(here)
    (here / "toy.json").write_text(json.dumps(COMMITS[0]))
    git(here, "commit", "--quiet", "--all", "-m", "faster")
    git(here, "checkout", "--quiet", "-b", "branch", slow)
    git(here, "commit", "--quiet", "--allow-empty", "-m", "of the branch")
    bench = ("--bench", "time_work")
    assert rlox_opt("gate", "main", "branch", *bench, *QUICK).returncode == 1
    git(here, "checkout", "--quiet", "main")  # what HEAD is does not matter
    done = rlox_opt("gate", "main...branch", *bench, *QUICK)
    told = json.loads(done.stdout)
    assert (told["base"], told["head"]) == (slow, git(here, "rev-parse", "branch"))
    assert done.returncode == 0
    assert done.stderr.endswith("no regression: both packages are byte for byte the same\n")


def test_what_became_faster_passes(commits: list[str]) -> None:
    light, heavy, _ = commits
    done = rlox_opt("gate", heavy, light, "--bench", "time_work", *QUICK)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["verdict"], done.returncode) == ("faster", 0)
    assert row["ratio"] < 1 / 2
    assert row["ci99"][1] < 1
    assert done.stderr.endswith("rlox-opt gate: no regression\n")


@pytest.mark.parametrize(("hook", "code"), [((), 2), (("--hook",), 0)])
def test_what_cannot_be_measured_is_no_pass_but_as_a_hook_a_warning(
    commits: list[str], hook: tuple[str, ...], code: int
) -> None:
    light, _, raises = commits
    done = rlox_opt("gate", light, raises, "--bench", "time_raises", *QUICK, *hook)
    assert (done.returncode, json.loads(done.stdout)["exit_code"]) == (code, 2)
    assert "cannot tell: 1 benchmark could not be measured" in done.stderr
    assert ("warning: " in done.stderr) == bool(hook)


def test_a_budget_that_ends_before_a_verdict_is_no_pass(commits: list[str]) -> None:
    light, heavy, _ = commits
    asked = ("--bench", "time_work", "--budget", "0.001")
    done = rlox_opt("gate", light, heavy, *asked, *QUICK)
    (row,) = json.loads(done.stdout)["results"]
    assert (row["verdict"], done.returncode) == ("undecided", 2)
    assert row["restarts"] < 5


def compared(shift: float = 0, commit: str = "1" * 40, **broken: dict[str, str]) -> ComparedBuilds:
    """A comparison of one benchmark, with the parts of the suite that a side cannot read."""
    times = Comparison([])
    spread = (-1e-4, 1e-4, 0.0, 2e-4, -2e-4)
    times.readings["work.time_it"] = [Reading(shift + x, 0.0, 1.0, 1.0) for x in spread]
    times.look()
    base, head = (Artefact(Revision(of, of), Path(), (), {}, 0.0) for of in (commit, "2" * 40))
    return ComparedBuilds(base, head, times, Comparison([]), {}, broken, complete=True)


def test_what_base_or_both_cannot_read_is_no_pass_unless_it_is_new_or_skipped() -> None:
    lost, skips = {"benchmarks.io": "ImportError: no"}, {"tests/test_it.py": "skipped: no GPU"}
    for broken in ({"base": lost}, {"head": lost}, {"base": lost, "head": lost}):
        code, why = gate.decision(compared(**broken))
        assert (code, why) == (2, "cannot tell: 1 benchmark could not be measured, or not be read")
    assert gate.decision(compared(base=lost), {"benchmarks.io"}) == (0, "no regression")
    assert gate.decision(compared(base=skips, head=skips)) == (0, "no regression")


def test_what_base_cannot_read_is_new_where_its_commit_does_not_have_it(tmp_path: Path) -> None:
    files = {"asv/benchmarks/__init__.py": "", "asv/benchmarks/io.py": "", "tests/test_it.py": ""}
    commit, _ = small_projects.repository(
        tmp_path / "thing", files, {"asv/benchmarks/later.py": "", "tests/test_later.py": ""}
    )
    parts = (
        "benchmarks.io", "benchmarks.io.Load", "benchmarks.later", "benchmarks.later.Load",
        "tests/test_it.py::TestIt", "tests/test_later.py",
    )  # fmt: skip
    new = {of for of in parts if "later" in of}
    commits = Commits(tmp_path / "thing", tmp_path / "kept")

    def spared(pattern: str, **broken: dict[str, str]) -> set[str]:
        asked = argparse.Namespace(
            bench=re.compile(pattern), project=SimpleNamespace(commits=commits)
        )
        return gate._spared(compared(commit=commit, **broken), asked)

    lost = dict.fromkeys(parts, "ImportError: no")
    assert spared("", base=lost) == new
    assert spared("", base=lost, head=lost) == set(), "head should read what it adds"
    assert spared(r"^io\.", base=lost, head=lost) == {*parts} - {"benchmarks.io", parts[1]}
    assert spared("Load", base=lost, head=lost) == set(), "a part of a name may be in any module"
    pythonic = {"benchmarks.python_io": "ImportError: no"}
    assert spared(r"^python_io\.", base=pythonic, head=pythonic) == set()


def test_slower_by_benches_that_are_not_the_same_is_no_regression_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert gate.decision(compared(0.1))[0] == 1
    monkeypatch.setattr(gate, "own_benches", lambda of: "its own" * of.revision.commit.count("1"))
    code, why = gate.decision(compared(0.1))
    assert (code, "the suite does not compile in base, where" in why) == (2, True)
    assert gate.decision(compared())[0] == 0
    monkeypatch.setattr(gate, "own_benches", lambda of: "the same")
    assert gate.decision(compared(0.1))[0] == 1
