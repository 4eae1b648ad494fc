"""Detectors of level changes, ours and others'. Each turns log-ratios into changes: the index of
the first commit at the new level, and the log-ratio of the two levels."""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rlox_opt.stats import levels
from rlox_opt.stats.levels import Readings

Floats = NDArray[np.float64]
Jumps = list[tuple[int, float]]


@dataclass(frozen=True)
class Series:
    """Log-ratios, and the standard error of each (0: not known)."""

    logs: Floats
    errors: Floats


Family = dict[str, Series]

_PERMUTATIONS = 999
_LEVEL = 0.005
_LEAST = 0.025  # the smallest change of detectors without a test of their own
_SHORTEST = 10


def ours(logs: Floats) -> Jumps:
    """`rlox_opt.stats.levels`."""
    readings = Readings([*np.exp(logs)], [None] * len(logs))
    return [(change.index, math.log(change.ratio)) for change in levels.changes(readings)]


def ours_together(family: Family, suspected: Mapping[str, Sequence[int]]) -> dict[str, Jumps]:
    """The same for series that were measured together."""
    changes = levels.family(
        {
            name: Readings(
                [*np.exp(of.logs)], [*of.errors], like="", suspected=suspected.get(name, ())
            )
            for name, of in family.items()
        }
    )
    return {name: [(c.index, math.log(c.ratio)) for c in of] for name, of in changes.items()}


def asv(logs: Floats, least: float) -> Jumps:
    """asv's fit of a piecewise constant function, and its threshold."""
    return [(at, jump) for at, jump in _fitted(tuple(logs)) if abs(jump) >= math.log1p(least)]


@cache  # all thresholds use the same fit
def _fitted(logs: Sequence[float]) -> Jumps:
    from asv.step_detect import detect_steps

    steps = detect_steps([*np.exp(logs)])
    return [(new[0], math.log(new[2] / old[2])) for old, new in itertools.pairwise(steps)]


def proposed(logs: Floats) -> list[int]:
    """The cuts of ruptures' PELT with the rbf kernel and a penalty of 5."""
    import ruptures

    fitted = ruptures.Pelt(model="rbf", min_size=2, jump=1).fit(logs)
    return list(fitted.predict(pen=5)[:-1])


def pelt(logs: Floats) -> Jumps:
    """The changes of these cuts that are large enough."""
    cuts = proposed(logs) if len(logs) >= _SHORTEST else []
    return [(at, jump) for at, jump in jumps(logs, cuts) if abs(jump) >= _LEAST]


def pelt_confirmed(logs: Floats) -> Jumps:
    """The changes of these cuts that a block permutation between their neighbours confirms."""
    cuts = proposed(logs) if len(logs) >= _SHORTEST else []
    edges = [0, *cuts, len(logs)]
    sides = zip(edges, edges[2:], strict=False)
    kept = [
        cut for cut, (low, high) in zip(cuts, sides, strict=True)
        if permuted(logs[low:high])[1] <= _LEVEL
    ]  # fmt: skip
    return jumps(logs, kept)


def rank_cusum(logs: Floats) -> Jumps:
    """The largest sum of ranks, confirmed by block permutation; then the same on either side."""
    cuts: list[int] = []
    left = [(0, len(logs))]
    while left:
        low, high = left.pop()
        if high - low >= _SHORTEST:
            cut, p = permuted(logs[low:high])
            if p <= _LEVEL:
                cuts.append(low + cut)
                left += [(low, low + cut), (low + cut, high)]
    return jumps(logs, sorted(cuts))


def jumps(logs: Floats, cuts: Sequence[int]) -> Jumps:
    """The changes at these cuts, between the medians of neighbouring levels."""
    middles = [float(np.median(of)) for of in np.split(logs, cuts)]
    return [
        (at, new - old) for at, (old, new) in zip(cuts, itertools.pairwise(middles), strict=True)
    ]


def permuted(logs: Floats) -> tuple[int, float]:
    """The index at which the rank CUSUM is largest, and its p by a permutation of blocks whose
    length follows the autocorrelation (Andrews' rule for AR(1), Econometrica 59, 1991)."""
    n = len(logs)
    ranks = logs.argsort().argsort() - (n - 1) / 2
    cut = int(np.argmax(_cusum(ranks))) + 1
    rest = np.concatenate([part - part.mean() for part in (logs[:cut], logs[cut:])])
    phi = max(0.0, float(rest[1:] @ rest[:-1] / (rest @ rest)))
    length = max(1, round(1.8171 * n ** (1 / 3) * (phi / (1 - phi * phi)) ** (2 / 3)))
    rng = np.random.default_rng(0)
    blocks = -(-n // length)
    starts = np.argsort(rng.random((_PERMUTATIONS, blocks)), axis=1) * length
    at = (starts[:, :, None] + np.arange(length)).reshape(_PERMUTATIONS, -1)
    turned = np.concatenate([ranks, np.full(blocks * length - n, np.nan)])[at]
    orders = turned[~np.isnan(turned)].reshape(_PERMUTATIONS, n)
    larger = (_cusum(orders).max(axis=1) >= _cusum(ranks).max()).sum()
    return cut, float((larger + 1) / (_PERMUTATIONS + 1))


def _cusum(ranks: Floats) -> Floats:
    n = ranks.shape[-1]
    k = np.arange(1, n)
    return np.asarray(np.abs(np.cumsum(ranks, axis=-1)[..., :-1]) / np.sqrt(k * (n - k)))


@dataclass(frozen=True)
class Detector:
    """`version` is that of its code: scores of another version are computed anew. `family` gets
    several series together, with the indices of each at which counts say that the code changed."""

    name: str
    version: str
    detect: Callable[[Floats], Jumps]
    family: Callable[[Family, Mapping[str, Sequence[int]]], dict[str, Jumps]] | None = None

    def changes(self, logs: Floats, places: Sequence[int]) -> Jumps:
        """The changes of a history; each place (machine) is searched separately."""
        jumps: Jumps = []
        for place in sorted(set(places)):
            at = [index for index, of in enumerate(places) if of == place]
            jumps += [(at[index], jump) for index, jump in self.detect(logs[at])]
        return jumps


def every() -> list[Detector]:
    """All detectors that can run here. ruptures, which the library does not need, is left out if it
    is not installed."""
    asv_, here = _version("asv"), _digest(__file__)
    detectors = [
        Detector("levels", _digest(levels.__file__), ours, ours_together),
        Detector("asv, 5 %", f"{asv_}", partial(asv, least=0.05)),
        Detector("asv, 3 %", f"{asv_}", partial(asv, least=0.03)),
        Detector("asv, 2 %", f"{asv_}", partial(asv, least=0.02)),
        Detector("rank CUSUM, block permutation", here, rank_cusum),
    ]
    if ruptures := _version("ruptures"):
        detectors += [
            Detector("ruptures PELT rbf, 2.5 %", ruptures, pelt),
            Detector("ruptures PELT rbf, block permutation", f"{ruptures} {here}", pelt_confirmed),
        ]
    return detectors


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12]
