"""Two sides of training: what is a change, and what is the noise between two runs of the same."""

import random

import pytest

from rlox_opt.history.compared import Change, Compared, Run, mean
from rlox_opt.history.store import Profile
from rlox_opt.views import compared_page

FOLDED = "learn;step 20\nlearn 80\n"


def run(seconds: dict[str, float], folded: str | None = FOLDED) -> Run:
    """A profile whose layers take so many microseconds of a step each."""
    step = sum(seconds.values())
    shares = {name: value / step for name, value in seconds.items()}
    functions = {f"{name}:{name}()": share for name, share in shares.items()}
    return Run(Profile(1000, shares, shares, functions, folded), step * 1e-6)


def compared(
    before: list[Run], after: list[Run], rounds: bool = True, steps: bool = True
) -> Compared:
    return Compared(tuple(before), tuple(after), ("A", "B"), rounds, steps, 0.02)


def by_name(found: Compared, kind: str) -> dict[str, Change]:
    return {change.name: change for change in found.changes if change.kind == kind}


def noisy(draw: random.Random, rust: float, noise: float = 0.003) -> Run:
    layers = {"rust": rust, "python": 60.0, "torch_forward": 20.0}
    return run({name: value * draw.gauss(1, noise) for name, value in layers.items()})


def test_only_what_grew_has_grown() -> None:
    draw = random.Random(1)
    found = compared([noisy(draw, 20) for _ in range(5)], [noisy(draw, 40) for _ in range(5)])
    (whole,) = by_name(found, "training").values()
    assert (whole.verdict, whole.before) == ("more", 1.0)
    assert whole.after == pytest.approx(1.2, abs=0.01)
    layers = by_name(found, "layer")
    assert layers["rust"].verdict == "more"
    assert layers["rust"].change == pytest.approx(0.2, abs=0.01)
    assert {layers[name].verdict for name in ("python", "torch_forward")} == {"same"}
    assert next(c.name for c in found.changes if c.kind == "layer") == "rust"


def test_what_the_machine_does_to_a_round_is_in_neither_side() -> None:
    draw = random.Random(2)
    slow = [draw.uniform(1, 3) for _ in range(5)]

    def side(rust: float) -> list[Run]:
        return [run({"rust": rust * s * draw.gauss(1, 0.002), "python": 80 * s}) for s in slow]

    before, after = side(20), side(20)
    assert by_name(compared(before, after), "training")["a step of training"].verdict == "same"
    apart = by_name(compared(before, after, rounds=False), "training")["a step of training"]
    assert apart.verdict == "undecided"


@pytest.mark.parametrize("rounds", [True, False])
def test_nothing_changed_is_seldom_told_to_have(rounds: bool) -> None:
    draw = random.Random(3)
    alarms = 0
    for _ in range(300):
        sides = [[noisy(draw, 20, 0.03) for _ in range(5)] for _ in range(2)]
        found = compared(*sides, rounds=rounds)
        alarms += any(change.verdict in ("more", "less") for change in found.changes)
    assert alarms <= 18  # four families at 1 %: 12 of 300 expected, 4 a standard deviation


def test_of_one_run_a_side_the_whole_is_undecided_and_layers_are_judged_by_their_samples() -> None:
    found = compared([run({"rust": 20, "python": 80})], [run({"rust": 60, "python": 80})])
    (whole,) = by_name(found, "training").values()
    assert (whole.ci99, whole.verdict) == (None, "undecided")
    assert by_name(found, "layer")["rust"].verdict == "more"
    assert by_name(found, "phase")["rust"].verdict == "undecided"


def test_where_steps_cannot_be_compared_shares_are() -> None:
    found = compared(
        [run({"rust": 20, "python": 80})], [run({"rust": 20, "python": 20})], steps=False
    )
    assert not by_name(found, "training")
    assert by_name(found, "layer")["rust"].change == pytest.approx(0.3)


def test_every_run_weighs_as_much_in_the_stacks() -> None:
    texts = ("a 1\n", "b 300\n")
    pooled = mean([Profile(10, {"rust": 1.0}, {}, {}, text) for text in texts])
    assert pooled.folded == "a 500000.0\nb 500000.0\n"
    assert pooled.samples == 20
    assert mean([Profile(1, {}, {}, {}, "a 1\n"), Profile(1, {}, {})]).folded is None


def test_the_page_and_the_markdown_tell_the_same_figures() -> None:
    draw = random.Random(4)
    found = compared([noisy(draw, 20) for _ in range(3)], [noisy(draw, 40) for _ in range(3)])
    page, text = compared_page.page(found), compared_page.markdown(found)
    for change in found.changes:
        assert compared_page.points(change.change) in text
        assert compared_page.points(change.change) in page
    assert "http" not in page.replace("http-equiv", "")
    assert "Differential flamegraph" in page
    assert '"of":"a step before"' in page


def test_what_was_not_kept_is_said() -> None:
    bare = Run(Profile(0, {"rust": 1.0}, {"": 1.0}), 1e-6)
    assert "earlier version" in compared_page.markdown(compared([bare], [bare]))
    assert "no stacks of both sides" in compared_page.page(compared([bare], [bare]))
