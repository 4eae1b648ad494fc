"""Parts of a change: what they sum to, and how often the interval holds the truth."""

import random

import pytest

from rlox_opt.stats.grown import Tally, grown


def tally(**seconds: float) -> Tally[str]:
    of: Tally[str] = Tally()
    for name, weight in seconds.items():
        of.add(weight, name)
    return of


def test_what_grew_has_the_change_and_what_shrank_in_share_alone_has_none() -> None:
    found = {of.label: of.part for of in grown(tally(a=1, b=3), tally(a=3, b=3), 1.5)}
    assert found == {"a": pytest.approx(1.0), "b": pytest.approx(0.0)}


def test_the_parts_of_what_became_faster_are_those_of_the_gain() -> None:
    found = {of.label: of.part for of in grown(tally(a=3, b=3), tally(a=1, b=3), 4 / 6)}
    assert found == {"a": pytest.approx(1.0), "b": pytest.approx(0.0)}


def test_a_sample_with_two_labels_counts_for_both_and_once_for_the_whole() -> None:
    before, after = Tally[str](), Tally[str]()
    before.add(1, "outer")
    after.add(1, "outer")
    after.add(1, "outer", "inner")
    found = {of.label: of.part for of in grown(before, after, 2.0)}
    assert found == {"outer": pytest.approx(1.0), "inner": pytest.approx(1.0)}


@pytest.mark.parametrize(("ratio", "said"), [(1.0, "ratio"), (0.0, "ratio"), (2.0, "after")])
def test_without_a_change_or_without_samples_there_is_nothing_to_tell(
    ratio: float, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        grown(tally(a=1), Tally(), ratio)


def test_the_interval_holds_the_truth_in_nineteen_of_twenty() -> None:
    rng, ratio, held = random.Random(0), 1.3, 0
    for _ in range(400):
        before, after = Tally[str](), Tally[str]()
        for _ in range(300):
            before.add(0.01, "a" if rng.random() < 0.2 else "b")
            after.add(0.01, "a" if rng.random() < (0.2 + 0.3) / 1.3 else "b")
        of = next(of for of in grown(before, after, ratio) if of.label == "a")
        held += of.low <= 1 <= of.high
    assert 0.92 * 400 <= held <= 0.98 * 400
