"""Why something became slower: the layer that takes more time than before, not a larger share."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rlox_opt.history.cause import cause, parts
from rlox_opt.history.store import Profile
from rlox_opt.sampling.layers import LAYERS

FUNCTIONS = [f"{layer}:{name}" for layer in LAYERS for name in ("one", "other")]
seconds = st.fixed_dictionaries({name: st.floats(0.01, 10) for name in FUNCTIONS})


def profile(of: dict[str, float]) -> Profile:
    """The shares of these seconds by function."""
    total = sum(of.values())
    layers = dict.fromkeys(LAYERS, 0.0)
    for name, took in of.items():
        layers[name.partition(":")[0]] += took / total
    return Profile(1000, layers, {}, {name: took / total for name, took in of.items()})


@given(seconds, st.sampled_from(FUNCTIONS), st.floats(0.02, 50))
def test_extra_work_is_put_where_it_is_done(
    before: dict[str, float], where: str, extra: float
) -> None:
    after = before | {where: before[where] + extra}
    ratio = sum(after.values()) / sum(before.values())
    assume(ratio > 1 + 1e-6)
    slower = cause(profile(before), profile(after), ratio)
    assert f"{slower.layer}:{slower.function}" == where
    assert slower.layers[slower.layer] == pytest.approx(1, abs=1e-3)
    assert slower.function_share == pytest.approx(1, abs=1e-3)
    # And what is taken away again is missed there.
    faster = cause(profile(after), profile(before), 1 / ratio)
    assert f"{faster.layer}:{faster.function}" == where


@given(seconds, seconds)
def test_the_parts_of_a_change_add_up_to_it(
    before: dict[str, float], after: dict[str, float]
) -> None:
    ratio = sum(after.values()) / sum(before.values())
    assume(abs(ratio - 1) > 1e-3)
    of = parts(profile(before).layers, profile(after).layers, ratio)
    assert sum(of.values()) == pytest.approx(1, abs=1e-6)


def test_what_one_layer_gains_is_a_part_below_0() -> None:
    before = Profile(100, {"rust": 0.5, "python": 0.5}, {})
    after = Profile(100, {"rust": 0.8, "python": 0.2}, {})
    found = cause(before, after, 1.5)  # rust from 0.5 to 1.2, python from 0.5 to 0.3
    assert found.layers == {"rust": pytest.approx(1.4), "python": pytest.approx(-0.4)}
    assert (found.layer, found.function) == ("rust", None)


@pytest.mark.parametrize("ratio", [1.0, 0.0, -2.0])
def test_no_change_has_no_cause(ratio: float) -> None:
    nothing = Profile(100, {"rust": 1.0}, {})
    with pytest.raises(ValueError, match="expected a change of time"):
        cause(nothing, nothing, ratio)
