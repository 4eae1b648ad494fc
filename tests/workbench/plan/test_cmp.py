"""`rlox-opt cmp`: what it prints, what it refuses, what an interruption leaves."""

import argparse
import json
import math
import subprocess
from pathlib import Path
from typing import Any

import projects
import pytest
from command_line import rlox_opt
from rich.console import Console
from rlox_opt.harness import restarts
from rlox_opt.history import records
from rlox_opt.plan import comparing, counts, end_to_end
from rlox_opt.project import cards
from rlox_opt.system import plugins
from rlox_opt.system.progress import Lines

ALSO_MEASURED = plugins.load(projects.HERE.cards / "also_measured.py")


def assert_found(result: dict[str, Any], least: float) -> None:
    """An optimisation that is so many times as fast, or more, was found so, and its baseline as
    fast as itself."""
    assert result["ratio"] > least
    assert result["ci95"][0] < result["ratio"] < result["ci95"][1]
    assert result["verdict"] == "faster"
    assert result["baseline_s"] > least * result["optimized_s"]
    assert abs(math.log(result["aa"]["ratio"])) < math.log(result["ratio"]) / 2


def test_json_has_the_ratio_its_interval_and_the_verdict_and_nothing_else_is_printed() -> None:
    quick = ("--restarts", "10", "--no-counts", "--no-record")
    done = rlox_opt("cmp", "p13", "--sizes", "n_envs=4", *quick, "--json")
    assert done.returncode == 0, done.stderr
    printed = json.loads(done.stdout)
    (result,) = printed["results"]
    assert printed["id"] == "P13"
    assert (result["workload"], result["size"]) == ("refresh", {"n_envs": 4})
    assert_found(result, 2)  # some eight times as fast, which no neighbour hides
    assert result["restarts"] in (5, 10)  # ten where a neighbour disturbs one of five
    assert result["instructions"] == {"baseline": None, "optimized": None}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("cmp", "p99"), "ID: is 'p99', expected all or some of p1, "),
        (("cmp", "r1", "--sizes", "n=3"), "--sizes: is 'n=3', expected R1's n_envs=N"),
        (("cmp", "p7", "--sizes", "n=3"), "--sizes: is 'n=3', expected P7's n_steps=N"),
        (("cmp", "p7", "--sizes", "n_steps=0"), "--sizes: is 'n_steps=0'"),
        (("cmp", "p7", "--sizes", "many"), "--sizes: is 'many', expected NAME=N"),
        (("cmp", "p8", "--end-to-end", "ppo"), "P8's seam does not lie on its path, on no trainer"),
        (("cmp", "p5", "--end-to-end", "ppo"), "P5's seam does not lie on its path, only on that"),
    ],
)
def test_what_cannot_be_compared_is_said_in_one_line(
    arguments: tuple[str, ...], message: str
) -> None:
    done = rlox_opt(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def arguments(**changed: Any) -> argparse.Namespace:
    values: dict[str, Any] = {
        "project": projects.HERE,
        "sizes": None,
        "restarts": 5,
        "no_counts": True,
        "no_record": False,
    }
    return argparse.Namespace(**values | changed)


def card(id_: str) -> cards.Card:
    return next(card for card in cards.load(projects.HERE) if card.id == id_)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), restarts.ProcessEndedError("SIGSEGV")])
def test_an_interruption_or_a_crash_leaves_a_record_of_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    twins = restarts.twins
    calls = 0

    def interrupted(*of: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise error
        return twins(*of)

    monkeypatch.setattr(restarts, "twins", interrupted)
    (tmp_path / "crates").symlink_to(projects.ROOT / "crates")
    (tmp_path / "also_measured.py").symlink_to(projects.HERE.cards / "also_measured.py")
    project = projects.of(tmp_path, cards=".")
    cells = comparing.cells_of(card("P13"), None, pytest.fail)[:2]
    assert len(cells) == 2
    quiet = Lines(Console(quiet=True))
    record = comparing.compare(card("P13"), cells, arguments(project=project), quiet)
    assert record["complete"] is False
    assert {row["restarts"] for row in record["results"]} == {2}
    (path,) = project.comparisons.glob("*/*.json")
    assert json.loads(path.read_text())["complete"] is False
    assert record.get("failed") == (str(error) or None)
    assert records.records("P13", project.comparisons) == [], (
        "an incomplete record is nobody's figure"
    )


def test_what_cannot_be_counted_keeps_its_times(monkeypatch: pytest.MonkeyPatch) -> None:
    def cannot(*_: Any) -> Any:
        raise subprocess.CalledProcessError(101, "count")

    monkeypatch.setattr(counts, "count", cannot)
    cells = comparing.cells_of(card("P13"), ["n_envs=4", "n_envs=04"], pytest.fail)
    assert len(cells) == 1  # of one size that is named twice
    told = arguments(no_counts=False, no_record=True)
    found = comparing.compare(card("P13"), cells, told, Lines(Console(quiet=True)))
    assert found["complete"]
    assert [row["restarts"] for row in found["results"]] == [5]
    assert "exit status 101" in found["also"]["counting skipped"]


def test_growth_is_the_exponent_of_the_time() -> None:
    rows = [
        {"workload": "w", "size": {"n": n}, "baseline_s": 2e-9 * n, "optimized_s": 5e-6}
        for n in (1_000, 10_000, 100_000)
    ]
    found = ALSO_MEASURED.growth(rows)["w"]
    assert found["baseline"] == pytest.approx(1)
    assert found["optimized"] == pytest.approx(0)


def test_bytes_copied_are_those_of_the_record_and_of_the_row() -> None:
    row = {
        "workload": "push",
        "size": {"obs_dim": 3, "act_dim": 1},
        "allocated_bytes": {"baseline": 28, "optimized": 0},
    }
    assert ALSO_MEASURED.copied(row)["baseline"] == 56
    assert ALSO_MEASURED.copied(row)["optimized"] == 28


@pytest.mark.slow  # each restart imports torch: a minute
def test_the_training_loops_are_timed_as_the_data_planes_are() -> None:
    quick = ("--restarts", "5", "--no-record", "--json")
    done = rlox_opt("cmp", "r5", "--sizes", "hidden=4,layers=1", *quick)
    assert done.returncode == 0, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    assert (result["workload"], result["size"]) == ("polyak", {"hidden": 4, "layers": 1})
    assert result["restarts"] == 5
    assert_found(result, 1.3)  # some twice as fast
    assert result["instructions"] == {"baseline": None, "optimized": None}


def test_what_this_machine_cannot_run_is_skipped_with_its_reason() -> None:
    done = rlox_opt("cmp", "r10", "--restarts", "5", "--no-record")
    assert "mps skipped: torch finds no mps device here" in done.stderr


def test_trainings_with_and_without_an_optimisation_of_the_loop_share_a_build() -> None:
    before, after = end_to_end.variants_of(projects.HERE, card("R1"))
    assert before.features == after.features == ("opt-p6",)
    assert (before.optimizations, after.optimizations) == ((), ("R1",))


def test_an_optimisation_is_measured_in_training_against_a_build_with_what_it_needs() -> None:
    before, after = end_to_end.variants_of(projects.HERE, card("P3"))
    assert set(before.features) == {"opt-p6", "opt-p12"}
    assert set(after.features) == {"opt-p3", "opt-p6", "opt-p12"}
    before, after = end_to_end.variants_of(projects.HERE, card("P6"))
    assert (before.profile, after.profile) == ("release-baseline", "release")
