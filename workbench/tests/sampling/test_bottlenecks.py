"""Hot spots and bounds, against compositions whose shares are known."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.project.cards import Card, Prediction, Seam, Spot
from rlox_opt.sampling.bottlenecks import LARGEST_BOUND, amdahl, bounds, rank
from rlox_opt.sampling.samples import MAIN_THREAD, OUTSIDE, Frame, Sample, Samples

OWN = {"": 1.0, "env_step": 3.0, "gradient_update": 6.0}


def card(id_: str, *spots: Spot, note: str = "") -> Card:
    seam = Seam("function", "crates/toy-core/src/lib.rs")
    return Card(id_, id_, "rust", "f", "candidate", "c", seam, (), (), note=note, spot=spots)


def sample(phase: str, layer: str, frame: str = "f", thread: str = MAIN_THREAD) -> Sample:
    return Sample((Frame(frame, "m"),), phase, layer, 0.01, thread)


def mixture() -> Samples:
    """env_step: a quarter malloc in Rust, a quarter other Rust, half Python; the update: torch.

    env_step has half of the samples, as if the tool slowed it: its 30 % of the time must stand.
    """
    return Samples(
        "perf",
        [sample("", "python")] * 100
        + [sample("env_step", "rust", "malloc")] * 250
        + [sample("env_step", "rust", "step")] * 250
        + [sample("env_step", "python")] * 500
        + [sample("gradient_update", "torch_forward")] * 900
        + [sample("gradient_update", "torch_forward", "malloc", "another")] * 5000,
    )


@given(st.floats(0, 0.99))
def test_a_bound_is_amdahls_law(share: float) -> None:
    assert amdahl(share) == pytest.approx(1 / (1 - share))


def test_a_share_of_everything_is_bounded_by_the_largest_bound() -> None:
    assert amdahl(1.0) == LARGEST_BOUND == amdahl(1.0000001)


def test_hot_spots_are_ranked_by_their_share_of_the_plain_run() -> None:
    spots = rank(mixture(), OWN, [], "ppo", {})
    shares = [spot["share"] for spot in spots]
    assert shares == sorted(shares, reverse=True)
    assert [spot["rank"] for spot in spots] == [1, 2, 3, 4]
    assert {(spot["what"], spot["layer"]): spot["share"] for spot in spots} == {
        ("gradient_update", "torch_forward"): pytest.approx(0.6),
        ("env_step", "python"): pytest.approx(0.15),
        ("env_step", "rust"): pytest.approx(0.15),
        (OUTSIDE, "python"): pytest.approx(0.1),
    }


def test_a_card_stands_beside_the_spots_that_it_touches_with_the_bound_of_all_it_removes() -> None:
    allocation = card("P2", Spot(("ppo",), phases=("env_step",), frames=("malloc",)))
    everything = card("P6", Spot(("ppo",), layers=("rust", "torch_forward")))
    spots = rank(mixture(), OWN, [allocation, everything], "ppo", {})
    beside = {
        (spot["what"], spot["layer"]): [found["id"] for found in spot["optimizations"]]
        for spot in spots
    }
    assert beside["env_step", "rust"] == ["P6", "P2"]
    assert beside["gradient_update", "torch_forward"] == ["P6"]
    assert beside["env_step", "python"] == []
    known = {found["id"]: found for spot in spots for found in spot["optimizations"]}
    assert known["P2"]["bound"] == pytest.approx(1 / (1 - 0.3 * 0.25))
    assert known["P6"]["bound"] == pytest.approx(1 / (1 - 0.15 - 0.6))


def test_what_a_run_had_already_and_what_was_rejected_is_not_told_as_left_to_gain() -> None:
    every = [card(id_, Spot(("ppo",), layers=("torch_forward",))) for id_ in ("R1", "R2", "R3")]
    tried = {"prediction": Prediction("w", {}, (1.0, 2.0), "y"), "finding": "f", "record": "r"}
    every[1] = msgspec.structs.replace(every[1], status="rejected", **tried)
    update = rank(mixture(), OWN, every, "ppo", {}, {"R3"})[0]
    assert [left["id"] for left in update["optimizations"]] == ["R1"]
    assert (update["on"], update["rejected"]) == (["R3"], ["R2"])
    switched_on = rank(mixture(), OWN, every, "ppo", {}, {"R2"})[0]
    assert (switched_on["on"], switched_on["rejected"]) == (["R2"], [])


@given(st.integers(1, 399), st.integers(1, 20))
def test_an_interval_holds_its_point_and_narrows_with_samples(hits: int, more: int) -> None:
    def bound(times: int) -> dict[str, object]:
        drawn = [sample("env_step", "rust", "malloc")] * hits * times
        drawn += [sample("env_step", "rust")] * (400 - hits) * times
        spot = card("P2", Spot(("ppo",), frames=("malloc",)))
        return bounds(Samples("perf", drawn), {"env_step": 1.0}, [spot], "ppo", {})[0]

    few, many = bound(1), bound(1 + more)
    for found in (few, many):
        low, high = found["bound_ci95"]
        assert 1 <= low <= found["bound"] <= high <= LARGEST_BOUND
        assert found["ci95"][0] <= found["share"] <= found["ci95"][1]
    assert many["ci95"][1] - many["ci95"][0] < few["ci95"][1] - few["ci95"][0]


@pytest.mark.parametrize(
    ("spots", "note", "reason"),
    [
        ((), "Lies on no trainer's path.", "lies on no trainer's path"),
        ((), "Done already.", "nothing to remove"),
        ((Spot(("sac",)),), "", "only on SAC"),
        ((Spot(("sac",), {"n_envs": 1}), Spot(("sac",))), "", "only on SAC"),
        (
            (Spot(("ppo",), conditions={"collector": "async"}),),
            "",
            "only on PPO with collector=async",
        ),
    ],
)
def test_a_card_without_a_spot_on_this_run_says_why(
    spots: tuple[Spot, ...], note: str, reason: str
) -> None:
    (found,) = bounds(mixture(), OWN, [card("P1", *spots, note=note)], "ppo", {"collector": "sync"})
    assert found["bound"] is None
    assert found["reason"] == reason


def test_a_card_whose_samples_were_never_seen_may_still_gain_what_so_few_samples_can_miss() -> None:
    (found,) = bounds(mixture(), OWN, [card("P10", Spot(("ppo",), frames=("HashMap",)))], "ppo", {})
    assert found["bound"] == 1
    assert found["bound_ci95"] == [1.0, pytest.approx(1 / (1 - 3 / 2000))]
    assert found["reason"] is None
