"""The ladders of this repository."""

import shutil
from pathlib import Path

import projects
from rlox_opt.history import ledger


def test_the_ladders_of_the_repository_reach_the_cards() -> None:
    found = {line.card.id: line for line in ledger.lines(projects.HERE)}
    assert set(found["P2"].ladders) == {"ppo", "sac"}
    assert set(found["R1"].ladders) == {"ppo"}
    assert found["R10"].ladders == {}, "what it changes is no step of the ladder"


def test_a_ladder_is_not_taken_for_another_whose_name_begins_so(tmp_path: Path) -> None:
    ladders = projects.HERE.comparisons.glob("*/*_ladder_ppo.json")
    newest = max(ladders, key=lambda path: path.name)
    found = ledger._newest_ladder("ppo", projects.HERE.comparisons)
    folder = tmp_path / "machine"
    folder.mkdir()
    for name in ("2026-01-01T000000Z_ladder_ppo-2", "2027-01-01T000000Z_ladder_ppo-async"):
        shutil.copy(newest, folder / f"{name}.json")
    assert ledger._newest_ladder("ppo", tmp_path) == found
    (folder / "2026-01-01T000000Z_ladder_ppo-2.json").unlink()
    assert ledger._newest_ladder("ppo", tmp_path) == {}
