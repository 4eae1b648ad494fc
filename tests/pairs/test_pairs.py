"""Every pair through the extension: both forms agree, and are what the cards say."""

import math
import re
import statistics
import tomllib
from typing import Any

import projects
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlox._laboratory import build_info, pairs
from rlox_opt.project import cards

CATALOGUE: list[tuple[str, str, list[dict[str, int]]]] = pairs.catalogue()
IDS = sorted({id_ for id_, _, _ in CATALOGUE}, key=lambda id_: int(id_[1:]))

# What a case is made from: short, so that simple cases come up, or as long as a whole script. Lists
# of any length would have five elements on average, and seldom get as far as a sample.
numbers = st.integers(0, 2**64 - 1)
choices = st.lists(numbers, max_size=12) | st.lists(numbers, min_size=40, max_size=120)

# Pairs of the core, of which cargo's tests draw 512 cases: some show that the extension, which is
# compiled otherwise, does the same. Twins that need an interpreter are compared here alone.
CARGOS = projects.ROOT / "crates" / "rlox-bench" / "src" / "pairs" / "tests.rs"
OF_THE_CORE = set(re.findall(r'_twins_agree "(P\d+)"', CARGOS.read_text()))


@pytest.mark.parametrize("id_", IDS)
def test_the_twins_agree(id_: str) -> None:
    @settings(max_examples=25 if id_ in OF_THE_CORE else 100)
    @given(choices)
    def agree(choices: list[int]) -> None:
        pairs.agree(id_, choices)

    agree()


def test_every_optimisation_of_the_data_plane_has_a_pair() -> None:
    planned = [card for card in cards.load(projects.HERE) if card.id.startswith("P")]
    assert [card.id for card in planned if card.seam.kind != "build"] == IDS


@pytest.mark.parametrize("card", cards.load(projects.HERE), ids=lambda card: card.id)
def test_a_card_names_the_workloads_the_sizes_and_the_tolerance_of_its_pair(card: Any) -> None:
    if card.id in IDS:
        found = {w: sizes for id_, w, sizes in CATALOGUE if id_ == card.id}
        assert card.sizes == found
        assert card.tolerance == pairs.tolerance(card.id)
        assert card.prediction, f"{card.id} has no prediction: write it before it is measured"
        assert card.prediction.size in found[card.prediction.workload]


def test_a_contest_reads_both_arms_and_the_baseline_against_itself() -> None:
    """P13's refresh of four environments is made some eight times as fast, and the same against
    itself is not: no neighbour on the machine hides that, though it may move either by a factor of
    two or three. A contest that it disturbs throughout has few rounds, so there are nine."""
    contests = [pairs.contest("P13", "refresh", {"n_envs": 4}, 0.05, seed) for seed in range(9)]
    log_ratio, aa, baseline_s, optimized_s, rounds = map(
        statistics.median, zip(*contests, strict=True)
    )
    assert log_ratio > math.log(2)
    assert abs(aa) < log_ratio / 2
    assert math.log(baseline_s / optimized_s) > math.log(2)
    assert 1e-9 < baseline_s < 1e-5, "seconds of one call"
    assert rounds >= 7


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("P99", "gae", {"n_steps": 1}), "id: is"),
        (("P7", "gea", {"n_steps": 1}), "workload: is"),
        (("P7", "gae", {"n": 1}), "size: is"),
        (("P7", "gae", {"n_steps": 0}), "size: is"),
    ],
)
def test_a_contest_that_does_not_exist_is_named(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pairs.contest(*arguments, 0.01, 0)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_contest_of_no_length_is_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match=r"seconds: is .*, expected a number from 0"):
        pairs.contest("P7", "gae", {"n_steps": 1}, seconds, 0)


def test_the_build_says_which_optimisations_are_on() -> None:
    info = build_info()
    features = {card.feature for card in cards.load(projects.HERE) if card.id.startswith("P")}
    assert set(info["features"]) <= features
    assert info["profile"] == "release"


def test_what_ships_is_what_the_cards_accepted() -> None:
    manifest = tomllib.loads((projects.ROOT / "crates/rlox-core/Cargo.toml").read_text())
    planned = [card for card in cards.load(projects.HERE) if card.id.startswith("P")]
    shipped = [c.feature for c in planned if c.status in ("accepted", "graduated")]
    assert manifest["features"]["accepted"] == shipped
