"""The ladders of this repository."""

import projects
from rlox_opt.history import ledger


def test_the_ladders_of_the_repository_reach_the_cards() -> None:
    found = {line.card.id: line for line in ledger.lines(projects.HERE)}
    assert set(found["P2"].ladders) == {"ppo", "sac"}
    assert set(found["R1"].ladders) == {"ppo"}
    assert found["R10"].ladders == {}, "what it changes is no step of the ladder"
