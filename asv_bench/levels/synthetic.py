"""Synthetic histories: noise of several kinds, without a change or with changes of known size and
place. All are log-ratios of `COMMITS` commits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asv_bench.project import PROJECT

COMMITS = 100
_MIDDLE, _LATE = COMMITS // 2, COMMITS - 10
_RESTARTS = 5  # of a commit, if noise is drawn from a calibration
_TELLS = 1.03  # a benchmark is drawn from if its machine can find this ratio

Floats = NDArray[np.float64]
Generator = np.random.Generator


def gauss(rng: Generator) -> Floats:
    """Standard deviation 1 %."""
    return rng.normal(0, 0.01, COMMITS)


def outliers(rng: Generator) -> Floats:
    """The same, with one commit in twenty slower by 5–15 %."""
    hit = rng.random(COMMITS) < 0.05
    return gauss(rng) + hit * rng.uniform(0.05, 0.15, COMMITS)


def ar1(rng: Generator, phi: float = 0.6) -> Floats:
    """Standard deviation 1 %, with an autocorrelation of 0.6."""
    noise = gauss(rng)
    for index in range(1, COMMITS):
        noise[index] = phi * noise[index - 1] + np.sqrt(1 - phi * phi) * noise[index]
    return noise


def ar1_strong(rng: Generator) -> Floats:
    """The same with an autocorrelation of 0.8."""
    return ar1(rng, 0.8)


def bimodal(rng: Generator) -> Floats:
    """Two modes, 4 % apart, at random: standard deviation 2 %."""
    return rng.normal(0, 0.005, COMMITS) + 0.04 * (rng.random(COMMITS) < 0.5)


def machines(rng: Generator) -> Floats:
    """From the middle on measured on another machine, where the ratio differs by up to 10 %."""
    noise = gauss(rng)
    noise[_MIDDLE:] = 1.5 * noise[_MIDDLE:] + rng.uniform(-0.1, 0.1)
    return noise


def own(rng: Generator) -> Floats:
    """Real noise: means of five A/A restarts from the newest calibration, of a benchmark for which
    it can find 3 %."""
    measured = _calibration()
    names = [n for n, of in measured["benchmarks"].items() if of["detectable"] <= _TELLS]
    restarts = measured["log_ratios"][names[rng.integers(len(names))]]
    return np.asarray(rng.choice(restarts, (COMMITS, _RESTARTS)).mean(axis=1))


@cache
def _calibration() -> Any:
    newest = max(PROJECT.records.glob("*/*_calibration*.json"), key=lambda path: path.name)
    return json.loads(newest.read_text(encoding="utf-8"))


NOISES: dict[str, Callable[[Generator], Floats]] = {
    noise.__name__: noise for noise in (gauss, outliers, ar1, ar1_strong, bimodal, machines, own)
}


@dataclass(frozen=True)
class Shape:
    """`jumps` are log-ratios, by the commit at which each begins."""

    name: str
    jumps: dict[int, float]

    def levels(self) -> Floats:
        """The level at each commit."""
        out = np.zeros(COMMITS)
        for at, jump in self.jumps.items():
            out[at:] += jump
        return out


SHAPES = [
    Shape("flat", {}),
    Shape("+3 % in the middle", {_MIDDLE: 0.03}),
    Shape("-3 % in the middle", {_MIDDLE: -0.03}),
    Shape("+3 % late", {_LATE: 0.03}),
    Shape("+5 % in the middle", {_MIDDLE: 0.05}),
    Shape("-5 % in the middle", {_MIDDLE: -0.05}),
    Shape("+5 % late", {_LATE: 0.05}),
    Shape("+5 % for 20 commits", {_MIDDLE: 0.05, _MIDDLE + 20: -0.05}),
]


def shapes(noise: str) -> list[Shape]:
    """The shapes for a noise. At the move to another machine, a change cannot be distinguished from
    the move, so there the changes are before or after it."""
    if noise != "machines":
        return SHAPES
    quarter = COMMITS // 4
    return [
        SHAPES[0],
        Shape("+3 % before the move", {quarter: 0.03}),
        Shape("+3 % after the move", {COMMITS - quarter: 0.03}),
        Shape("-3 % after the move", {COMMITS - quarter: -0.03}),
        SHAPES[3],
    ]


def places(noise: str) -> list[int]:
    """The place (machine) at which each commit was measured."""
    return [int(noise == "machines" and index >= _MIDDLE) for index in range(COMMITS)]


def drawn(noise: str, shape: Shape, seed: Sequence[int]) -> Floats:
    """A history. With the same seed every detector gets the same one."""
    return NOISES[noise](np.random.default_rng(seed)) + shape.levels()
