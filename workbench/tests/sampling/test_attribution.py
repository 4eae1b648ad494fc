"""Beliefs about the estimator: closed forms, sums, intervals that mean what they say."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlox_opt.sampling.attribution import LayerShare, attribute
from rlox_opt.sampling.layers import LAYERS
from rlox_opt.sampling.samples import MAIN_THREAD, Sample, Samples


def samples(*counted: tuple[str, str, int], weight: float = 0.01) -> Samples:
    """Samples from (phase, layer, how many)."""
    return Samples(
        "test",
        [
            Sample((), phase, layer, weight, MAIN_THREAD)
            for phase, layer, count in counted
            for _ in range(count)
        ],
    )


def by_name(shares: list[LayerShare]) -> dict[str, LayerShare]:
    return {share.name: share for share in shares}


def test_seconds_come_from_the_plain_run_and_composition_from_the_tool() -> None:
    # The tool saw the update four times as often as the rest: it slowed it, and that cancels.
    seen = samples(("step", "rust", 30), ("step", "python", 10), ("update", "torch_forward", 160))
    shares = by_name(attribute(seen, {"step": 2.0, "update": 2.0}))
    assert shares["rust"].seconds == pytest.approx(1.5)
    assert shares["python"].seconds == pytest.approx(0.5)
    assert shares["torch_forward"].share == pytest.approx(0.5)


def test_weights_count_not_samples() -> None:
    waits = Samples("perf", [Sample((), "a", "idle", 0.3, MAIN_THREAD)])
    waits.samples += samples(("a", "rust", 100), weight=0.001).samples
    assert by_name(attribute(waits, {"a": 4.0}))["idle"].seconds == pytest.approx(3.0)


def test_other_threads_are_not_divided() -> None:
    seen = samples(("a", "rust", 10))
    seen.samples += [Sample((), "a", "idle", 1.0, "worker")] * 10
    assert by_name(attribute(seen, {"a": 1.0}))["rust"].share == 1.0
    assert by_name(attribute(seen, {"a": 1.0}, thread="worker"))["idle"].share == 1.0


def test_a_phase_without_samples_is_made_like_the_one_around_it() -> None:
    seen = samples(("a", "rust", 10), ("", "python", 10))
    shares = by_name(attribute(seen, {"a": 1.0, "a/b/c": 1.0, "d": 1.0}))
    assert shares["rust"].seconds == pytest.approx(2.0)
    assert shares["python"].seconds == pytest.approx(1.0)


def test_without_samples_outside_phases_the_whole_stands_in() -> None:
    seen = samples(("a", "rust", 10), ("b", "numpy", 10))
    shares = by_name(attribute(seen, {"a": 1.0, "b": 1.0, "": 2.0}))
    assert shares["rust"].seconds == pytest.approx(2.0)


def test_a_phase_that_the_plain_run_did_not_have_counts_nothing() -> None:
    seen = samples(("a", "rust", 10), ("b", "numpy", 10))
    assert by_name(attribute(seen, {"a": 1.0}))["numpy"].share == 0.0


@given(
    st.lists(
        st.tuples(st.sampled_from(["", "a", "a/b"]), st.sampled_from(LAYERS), st.integers(1, 9)),
        min_size=1,
    ),
    st.dictionaries(st.sampled_from(["", "a", "a/b", "c"]), st.floats(0.01, 10), min_size=1),
)
def test_shares_sum_to_one_and_lie_in_their_intervals(
    counted: list[tuple[str, str, int]], self_seconds: dict[str, float]
) -> None:
    shares = attribute(samples(*counted), self_seconds)
    assert sum(share.share for share in shares) == pytest.approx(1)
    assert sum(share.seconds for share in shares) == pytest.approx(sum(self_seconds.values()))
    assert {share.name for share in shares} == set(LAYERS)
    assert [s.share for s in shares] == sorted((s.share for s in shares), reverse=True)
    for share in shares:
        low, high = share.ci95
        assert 0 <= low <= share.share <= high <= 1


def test_the_interval_shrinks_with_the_root_of_the_samples() -> None:
    def width(scale: int) -> float:
        seen = samples(("a", "rust", 30 * scale), ("a", "python", 70 * scale))
        low, high = by_name(attribute(seen, {"a": 1.0}))["rust"].ci95
        return high - low

    assert width(100) == pytest.approx(width(1) / 10, rel=0.05)


def test_the_interval_covers_the_truth_nineteen_times_in_twenty() -> None:
    draw = random.Random(0)
    truth = 0.3 * 0.2 + 0.7 * 0.6
    covered = 0
    for _ in range(400):
        rust_a = sum(draw.random() < 0.2 for _ in range(200))
        rust_b = sum(draw.random() < 0.6 for _ in range(50))
        seen = samples(
            *(("a", "rust", rust_a), ("a", "python", 200 - rust_a)),
            *(("b", "rust", rust_b), ("b", "python", 50 - rust_b)),
        )
        low, high = by_name(attribute(seen, {"a": 3.0, "b": 7.0}))["rust"].ci95
        covered += low <= truth <= high
    assert 0.92 <= covered / 400 <= 0.98


def test_samples_or_seconds_that_say_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match="samples"):
        attribute(Samples("perf"), {"a": 1.0})
    with pytest.raises(ValueError, match="self_seconds"):
        attribute(samples(("a", "rust", 1)), {"a": 0.0})
