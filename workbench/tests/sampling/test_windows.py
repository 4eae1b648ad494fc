"""A tool records as long as its interval demands, and the interval holds as often as it says."""

import random

import pytest

from rlox_opt.sampling import windows
from rlox_opt.sampling.attribution import LayerShare, attribute
from rlox_opt.sampling.samples import MAIN_THREAD, Sample, Samples

PHASES = {"env_step": 0.6, "update": 0.4}  # seconds of each
MADE_OF = {"env_step": {"rust": 0.9, "python": 0.1}, "update": {"rust": 0.3, "numpy": 0.7}}


def section(seconds: float, half_width: float) -> dict[str, float]:
    return {"seconds": seconds, "half_width": half_width}


def sampled(tool: str, n: int, rng: random.Random) -> Samples:
    """`n` samples of a program with these phases and shares."""
    phases = rng.choices([*PHASES], [*PHASES.values()], k=n)
    layers = [rng.choices([*MADE_OF[p]], [*MADE_OF[p].values()])[0] for p in phases]
    seen = [
        Sample((), phase, layer, 0.01, MAIN_THREAD)
        for phase, layer in zip(phases, layers, strict=True)
    ]
    return Samples(tool, seen)


@pytest.mark.parametrize(
    ("tool", "seconds", "why"),
    [
        ("perf", 20, "±0.7 points for any shares"),
        ("py-spy", 57, "±1.3 points for any shares"),
        ("scalene", 57, "±1.3 points for any shares"),
    ],
)
def test_the_tool_that_ranks_is_ready_for_the_worst_shares(
    tool: str, seconds: float, why: str
) -> None:
    assert windows.planned(tool, None, {}) == (seconds, why)


def test_what_is_asked_for_is_recorded() -> None:
    asked = windows.planned("py-spy", 8.5, {"perf": section(20, 0.007)})
    assert asked == (8.5, "as long as asked for")


def test_a_witness_records_as_long_as_the_shares_that_are_known_demand() -> None:
    # An interval that may be 20/6 times as wide takes (6/20)² of perf's 997 × 20 samples: 1,795.
    planned = windows.planned("py-spy", None, {"perf": section(20, 0.006)})
    assert planned == (18, "±2 points for the shares that perf saw")


def test_a_witness_takes_a_thousand_samples_where_fewer_would_do() -> None:
    planned = windows.planned("scalene", None, {"perf": section(20, 0.001)})
    assert planned == (10, "1,000 samples, the fewest of a witness")


def test_a_witness_records_no_longer_than_for_the_worst_shares() -> None:
    planned = windows.planned("scalene", None, {"py-spy": section(3, 0.2)})
    assert planned.seconds == 25  # 2,401 samples: a layer with half of the time


def test_torch_is_given_a_minute_for_its_updates() -> None:
    assert windows.planned("torch.profiler", None, {"perf": section(20, 0.001)}).seconds == 60


def test_the_widest_interval_counts_also_where_it_is_cut_off_at_nothing() -> None:
    layers = [
        LayerShare("rust", 1.0, 0.99, (0.97, 1.0)),
        LayerShare("numpy", 0.01, 0.005, (0.0, 0.01)),
    ]
    assert windows.half_width(layers) == pytest.approx(0.02)


def test_intervals_of_planned_windows_hold_as_often_as_they_say() -> None:
    rng = random.Random(0)
    truth = {"rust": 0.66, "python": 0.06, "numpy": 0.28}
    half = windows.half_width(attribute(sampled("perf", 20_000, rng), PHASES))
    seconds = windows.planned("py-spy", None, {"perf": section(20, half)}).seconds
    held = trials = 0
    for _ in range(200):
        for layer in attribute(sampled("py-spy", round(100 * seconds), rng), PHASES):
            if layer.name in truth:
                low, high = layer.ci95
                assert high - low < 2 * 0.022  # 0.02 was aimed at
                held += low <= truth[layer.name] <= high
                trials += 1
    assert trials == 600
    assert 0.92 < held / trials < 0.98
