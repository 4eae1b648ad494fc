"""The catalogue: every card, what it predicts, and what its records say came of it."""

import io
import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import measured
import projects
import pytest
from command_line import rlox_opt
from msgspec import structs
from rich.console import Console
from rlox_opt.cli import list as verb
from rlox_opt.project import cards
from rlox_opt.project.installed import Installed
from rlox_opt.system.machine import machine

from rlox._core import build_info
from rlox.learner import switchboard

BUILD = "on" if "opt-p5" in build_info()["features"] else "off"
KEYS = ["id", "title", "feature", "layer", "active", "status", "predicted", "realised"]

card = partial(measured.card, project=projects.HERE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "optimizations" / "record"


def shown(rows: list[dict[str, Any]], width: int) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width, highlight=False).print(verb.table(rows))
    return [line.rstrip() for line in text.getvalue().splitlines()]


def test_json_is_the_catalogue_and_nothing_else() -> None:
    done = rlox_opt("list", "--json")
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert [row["id"] for row in rows] == [card.id for card in cards.load(projects.HERE)]
    assert all(list(row) == KEYS for row in rows)
    p5 = next(row for row in rows if row["id"] == "P5")
    assert p5["predicted"] == [4.5, 6.7]
    assert p5["feature"] == "opt-p5"
    assert next(row for row in rows if row["id"] == "R2")["predicted"] == [2.0, 3.0]


def test_a_pipe_gets_one_line_an_optimisation_whole() -> None:
    done = rlox_opt(
        "list",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    for found in cards.load(projects.HERE):
        (line,) = [line for line in lines if line.split(" ")[0] == found.id]
        assert found.title in line
        assert found.status in line
    assert "\x1b" not in done.stdout


def test_active_is_what_this_build_has_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Installed, "build_info", lambda _: {"features": ["opt-p5"]})
    rows = verb.catalogue(projects.HERE, cards.load(projects.HERE))
    active = {row["id"] for row in rows if row["active"]}
    assert active == {"P5"} | switchboard.ACCEPTED


def test_without_a_record_nothing_is_realised(folder: Path) -> None:
    assert verb.catalogue(projects.of(folder.parents[1]), [card("P5")])[0]["realised"] is None


def test_realised_is_the_newest_record_at_the_size_of_the_prediction(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    path = measured.p5(folder, "2026-11-21T10:00:00Z")
    (row,) = verb.catalogue(projects.of(folder.parents[1]), [card("P5")])
    assert row["realised"] == {
        "ratio": 5.31,
        "ci95": [5.12, 5.58],
        "record": f"optimizations/record/amd-epyc-7b13-4c/{path.name}",
    }


def test_a_record_of_this_machine_goes_before_a_newer_one_of_another(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z", machine())
    measured.p5(folder, "2026-11-21T10:00:00Z")
    (row,) = verb.catalogue(projects.of(folder.parents[1]), [card("P5")])
    assert "2026-11-20" in row["realised"]["record"]


def test_the_record_that_a_card_names_goes_before_all(folder: Path) -> None:
    path = measured.p5(folder, "2026-11-20T10:00:00Z")
    measured.p5(folder, "2026-11-21T10:00:00Z", machine())
    name = str(path.relative_to(folder.parents[1]))
    (row,) = verb.catalogue(projects.of(folder.parents[1]), [card("P5", record=name)])
    assert row["realised"]["record"] == name


def test_a_record_that_a_card_names_and_that_is_not_there_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    named = card("P5", record="optimizations/record/gone.json")
    assert verb.catalogue(projects.of(folder.parents[1]), [named])[0]["realised"] is None
    assert "gone.json: cannot be read" in capsys.readouterr().err


def test_p6_is_realised_over_all_workloads(folder: Path) -> None:
    results = [measured.result("all", {}, 1.04, (1.02, 1.06), "faster")]
    measured.p5(folder, "2026-11-20T10:00:00Z", id="P6", results=results)
    assert (
        verb.catalogue(projects.of(folder.parents[1]), [card("P6")])[0]["realised"]["ratio"] == 1.04
    )


def test_a_wide_terminal_shows_all_in_one_line(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    lines = shown(verb.catalogue(projects.of(folder.parents[1]), [card("P5")]), 120)
    cells = ["rust", BUILD, "candidate", "4.5–6.7×", "5.31×", "(5.1–5.6)"]
    assert lines[1].split()[-6:] == cells


def test_eighty_columns_hold_every_card_whole(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    # As `card` has them, which reads all of them for each one.
    unmeasured = {"status": "candidate", "finding": "", "record": ""}
    every = [structs.replace(found, **unmeasured) for found in cards.load(projects.HERE)]
    rows = verb.catalogue(projects.of(folder.parents[1]), every)
    lines = shown(rows, 80)
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert all(f"{row['id']} {row['title']} layer {row['layer']}" in text for row in rows)
    (at,) = [n for n, line in enumerate(lines) if line.startswith("P5")]
    assert lines[at].endswith(f"instead of a scan  layer rust · build {BUILD}")
    assert lines[at + 1] == "    status candidate"
    assert lines[at + 2] == "    predicted 4.5–6.7× · realised 5.31× (5.1–5.6)"


def test_help_has_examples() -> None:
    done = rlox_opt("list", "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout


@pytest.mark.parametrize("arguments", [[], ["--json"]])
def test_a_reader_that_has_enough_gets_no_complaint(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "rlox_opt.cli.main", "list", *arguments]
    done = subprocess.run(
        command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=projects.ROOT
    )
    os.close(writer)
    assert done.stderr == ""


def test_an_unknown_option_exits_2_with_one_line() -> None:
    done = rlox_opt("list", "--yaml")
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
