"""A commit of this repository and its working tree: built, compared and judged."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import projects
import pytest
from rlox_opt.cli import sides
from rlox_opt.project import cards

from asv_bench.injected.regressions import exchanged, load


@pytest.fixture
def slowed(tmp_path: Path) -> Path:
    """A checkout of this commit, in whose working tree the sum of the token KL does its work and
    some twice as much; its rlox-opt works on itself."""
    root = tmp_path / "a checkout"
    clone = (
        "git",
        "-c",
        "advice.detachedHead=false",
        "clone",
        "--quiet",
        str(projects.ROOT),
        str(root),
    )
    subprocess.run(clone, check=True)
    shutil.copy2(projects.HERE.installed.extension(), root / "rlox")
    (slow,) = [regression for regression in load() if regression.id == "kl-loop"]
    file = root / slow.file
    file.write_text(exchanged(file.read_text(), slow.find, slow.at(2_000), slow.id))
    return root


@pytest.mark.parametrize(
    ("bench", "built"),
    [
        (re.compile("P5"), True),
        (re.compile("n=10000,"), False),
        (re.compile(r"P5 .* n=10000'"), True),
        (re.compile("'baseline'"), True),
        (re.compile(r"^pairs\.Pairs\.time_ten_calls\('P5"), True),
        (re.compile("time_ten_calls"), True),
        (re.compile(r"data_plane\.Gae"), False),
        (projects.HERE.compared, False),
        ("P5 sample_256", True),
        ("pairs.Pairs.time_ten_calls('P5 sample_256 n=3', 'baseline')", True),
        ("data_plane.Gae.time_gae(128)", False),
    ],
    ids=str,
)
def test_the_laboratory_is_built_where_what_is_asked_for_may_be_one_of_its_benchmarks(
    bench: re.Pattern[str] | str, built: bool
) -> None:
    assert sides.builds_for(projects.HERE, bench).twins is built


def test_the_cards_name_every_benchmark_of_the_laboratory() -> None:
    calls = projects.HERE.settings.twins.benchmark
    of_laboratory = {
        cards.benchmark(calls, id_, workload, size, "optimized")
        for id_, workload, sizes in projects.HERE.installed.pairs()
        for size in sizes
    }
    assert of_laboratory
    assert of_laboratory <= {*cards.benchmarks_of_twins(projects.HERE)}


def test_a_card_that_is_being_written_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "optimizations"
    shutil.copytree(projects.HERE.cards, folder, ignore=shutil.ignore_patterns("record"))
    (folder / "half.toml").write_text("id = ")
    settings = msgspec.structs.replace(projects.HERE.settings, cards=str(folder))
    project = dataclasses.replace(projects.HERE, settings=settings)
    assert sides.builds_for(project, re.compile("P5")).twins


@pytest.mark.slow  # builds from nothing
@pytest.mark.timeout(1200)
def test_a_commit_and_the_working_tree_are_built_compared_and_judged(slowed: Path) -> None:
    def gate(base: str, head: str, pattern: str) -> tuple[int, dict[str, Any]]:
        done = subprocess.run(
            [
                *(sys.executable, "-m", "rlox_opt.cli.main", "gate", base, head, "--json"),
                *("--bench", pattern, "--threshold", "3", "--restarts", "10", "--no-counts"),
            ],
            capture_output=True,
            text=True,
            cwd=slowed,
            env=os.environ | {"PYTHONPATH": str(slowed)},
        )
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    kl = r"TokenKl\.time_token_kl\(\(1, 2048\)\)|track_extension"
    code, told = gate("HEAD", ".", rf"{kl}|Gae\.time_gae\(128\)")
    ask = ["git", "rev-parse", "HEAD"]
    head = subprocess.run(ask, cwd=slowed, capture_output=True, text=True, check=True).stdout
    assert told["base"] == head.strip() != told["head"]
    assert told["identical"] == ["python"]
    rows = {row["benchmark"].split("(")[0]: row for row in told["results"]}
    slower, spared = (rows[f"data_plane.{n}"] for n in ("TokenKl.time_token_kl", "Gae.time_gae"))
    assert slower["verdict"] == "slower"
    assert 1.2 < slower["ci99"][0] < slower["ratio"] < slower["ci99"][1]
    assert slower["head"] / slower["base"] == pytest.approx(slower["ratio"], rel=0.5)
    assert spared["ratio"] == pytest.approx(1, abs=0.3)
    assert {row["restarts"] for row in rows.values()} <= {5, 10}
    (size,) = told["memory"]
    assert (size["verdict"], size["ratio"]) == ("same", pytest.approx(1, abs=0.03))
    assert (code, told["exit_code"], told["complete"]) == (1, 1, True)
    assert "regression: 1 slower" in told["why"]

    code, told = gate(".", "HEAD", kl)
    (faster,) = told["results"]
    assert (faster["verdict"], code, told["why"]) == ("faster", 0, "no regression")
    assert faster["ratio"] == pytest.approx(1 / slower["ratio"], rel=0.5)
