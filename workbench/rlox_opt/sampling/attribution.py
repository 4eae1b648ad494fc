"""From samples to seconds per layer.

A tool slows the program, and some phases more than others. So the samples do not say how long a
phase takes, which the plain run's clock measures; they say what a phase consists of. The estimator
is the post-stratified mean (Cochran, Sampling Techniques, 5A.9). With W_p the phase's share of the
plain run, q_pl the layer's share of the phase's samples and n_p their number, share_l = sum_p W_p
q_pl, and its variance is sum_p W_p^2 q_pl (1 - q_pl) / n_p.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Mapping
from math import sqrt
from typing import NamedTuple

from rlox_opt.sampling.layers import LAYERS
from rlox_opt.sampling.samples import MAIN_THREAD, Sample, Samples
from rlox_opt.stats import rate


class LayerShare(NamedTuple):
    """A layer's seconds in the plain run, its share, and the share's 95 % interval (low, high)."""

    name: str
    seconds: float
    share: float
    ci95: tuple[float, float]


class _Stratum:
    """The weighted samples of one phase."""

    def __init__(self) -> None:
        self.layers: dict[str, float] = defaultdict(float)
        self.total = self.squares = 0.0

    def add(self, layer: str, weight: float) -> None:
        self.layers[layer] += weight
        self.total += weight
        self.squares += weight * weight

    def size(self) -> float:
        """Kish's effective size: how many samples of equal weight say as much as these."""
        return self.total * self.total / self.squares


def attribute(
    samples: Samples, self_seconds: Mapping[str, float], thread: str = MAIN_THREAD
) -> list[LayerShare]:
    """Seconds and share of each layer in the plain run, largest first; the shares sum to 1.

    Args:
        samples: what a sampling tool recorded, with phases and layers filled in.
        self_seconds: the plain run's time in each phase without its inner phases; the time outside
            all phases under "".
        thread: the thread whose time is divided.

    A phase without samples is assumed to consist of the same layers as the phase around it, or as
    the whole run.

    Raises:
        ValueError: there is no sample of the thread, or no time to divide.
    """
    return divide(samples, self_seconds, lambda sample: sample.layer, LAYERS, thread)


def divide(
    samples: Samples,
    self_seconds: Mapping[str, float],
    label: Callable[[Sample], str],
    labels: Iterable[str] = (),
    thread: str = MAIN_THREAD,
) -> list[LayerShare]:
    """As `attribute`, for any `label` of a sample. `labels` are in the result even without
    samples."""
    strata: dict[str, _Stratum] = defaultdict(_Stratum)
    whole = _Stratum()
    for sample in samples.samples:
        if sample.thread == thread and sample.weight > 0:
            name = label(sample)
            strata[sample.phase].add(name, sample.weight)
            whole.add(name, sample.weight)
    seconds = {phase: max(0.0, value) for phase, value in self_seconds.items()}
    total = sum(seconds.values())
    if not whole.total:
        raise ValueError(f"samples of {samples.tool} hold none of thread {thread!r}")
    if not total:
        raise ValueError("self_seconds sum to 0; run the program with its timing enabled")

    # Phases that use the same stratum are one stratum: their weights are added, then squared.
    weights: dict[str | None, float] = defaultdict(float)
    for phase, value in seconds.items():
        weights[nearest(phase, strata)] += value / total
    share = dict.fromkeys((*labels, *whole.layers), 0.0)
    variance = dict.fromkeys(share, 0.0)
    for phase_or_whole, weight in weights.items():
        stratum = whole if phase_or_whole is None else strata[phase_or_whole]
        n = stratum.size()
        for layer in share:
            q = stratum.layers.get(layer, 0.0) / stratum.total
            share[layer] += weight * q
            # A layer that no sample has gets no interval; otherwise every absent layer would.
            if layer in whole.layers:
                variance[layer] += weight**2 * rate.variance(q * n, n)
    share = {layer: min(1.0, value) for layer, value in share.items()}  # 1 + rounding is 1
    return sorted(
        (
            LayerShare(layer, share[layer] * total, share[layer], _interval(share[layer], var))
            for layer, var in variance.items()
        ),
        key=lambda layer: -layer.share,
    )


def nearest(phase: str, strata: Container[str]) -> str | None:
    """The phase, or the nearest one around it, with samples; None if even "" has none."""
    while phase not in strata:
        if not phase:
            return None
        phase = phase.rpartition("/")[0]
    return phase


def _interval(share: float, variance: float) -> tuple[float, float]:
    half = rate.Z95 * sqrt(variance)
    return max(0.0, share - half), min(1.0, share + half)
