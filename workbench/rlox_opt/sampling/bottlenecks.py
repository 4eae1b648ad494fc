"""Ranks the hot spots of a training run, and bounds what each planned optimisation could gain.

A hot spot is one layer within one phase. The bound of a card is Amdahl's law: if the samples that
its optimisation could remove are a share s of the training thread's time, training without them
would be 1 / (1 - s) times as fast. `attribution` estimates the shares and their intervals.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from rlox_opt.project.cards import Card, Spot
from rlox_opt.sampling.attribution import LayerShare, divide
from rlox_opt.sampling.samples import MAIN_THREAD, OUTSIDE, Frame, Samples

MOST_SPOTS = 12
SMALLEST_SHARE = 0.005  # a spot below half a per cent is no bottleneck
LARGEST_BOUND = 1000.0  # 1 / (1 - s) has no limit, so it is cut here

_Cell = tuple[str, str]  # phase, layer
_Stacks = dict[tuple[_Cell, tuple[Frame, ...]], list[int]]  # distinct stacks: who has them, by id()


def rank(
    samples: Samples,
    self_seconds: Mapping[str, float],
    cards: Sequence[Card],
    algo: str,
    settings: Mapping[str, Any],
    on: Collection[str] = (),
) -> list[dict[str, Any]]:
    """The hot spots, largest first: `rank`, `what` (the phase), `layer`, `share`, `ci95`, and the
    cards that touch the spot, by what has become of them. `optimizations`: [{`id`, `bound`,
    `bound_ci95`}] of each that could still be switched on, largest bound first; `on`: the ids of
    those that are; `rejected`: the ids of those that were found not to help.

    Args:
        samples: those of the tool that the layers are taken from.
        self_seconds: as `attribution.attribute` takes them.
        cards: `cards.load()`.
        on: the ids of those cards whose optimisations this run had.
        algo: the name of the run.
        settings: the run's settings, which the cards' conditions are compared with: `collector`,
            `prioritized`, `n_envs`, `device`, …

    Raises:
        ValueError: as `attribute` does.
    """
    shares = divide(samples, self_seconds, lambda sample: f"{sample.phase}\n{sample.layer}")
    stacks = _stacks(samples)
    reach = [(card, *_reach(card, algo, settings, samples, stacks, self_seconds)) for card in cards]
    touching = [(card, cells, _bounds(share)) for card, cells, share in reach if share is not None]
    touching.sort(key=lambda item: -item[2]["bound"])
    spots = []
    for number, spot in enumerate(shares[:MOST_SPOTS], 1):
        if spot.share < SMALLEST_SHARE:
            break
        phase, layer = spot.name.split("\n")
        here = [(card, most) for card, cells, most in touching if (phase, layer) in cells]
        had = [card.id for card, _ in here if card.id in on]
        rejected = [c.id for c, _ in here if c.id not in had and c.status == "rejected"]
        left = [{"id": c.id, **most} for c, most in here if c.id not in had + rejected]
        spots.append(
            {
                "rank": number,
                "what": phase or OUTSIDE,
                "layer": layer,
                "share": spot.share,
                "ci95": list(spot.ci95),
                "optimizations": left,
                "on": had,
                "rejected": rejected,
            }
        )
    return spots


def bounds(
    samples: Samples,
    self_seconds: Mapping[str, float],
    cards: Sequence[Card],
    algo: str,
    settings: Mapping[str, Any],
) -> list[dict[str, Any]]:
    """The bound of every card on this run: `id title layer status share ci95 bound bound_ci95
    reason`.

    Where the card's optimisation has no place in this run, the figures are None and `reason` says
    why.
    """
    stacks = _stacks(samples)
    rows = []
    for card in cards:
        _, share = _reach(card, algo, settings, samples, stacks, self_seconds)
        row: dict[str, Any] = {
            key: getattr(card, key) for key in ("id", "title", "layer", "status")
        }
        if share is None:
            row |= dict.fromkeys(("share", "ci95", "bound", "bound_ci95"))
            row["reason"] = _reason(card)
        else:
            row |= {"share": share.share, "ci95": list(share.ci95), **_bounds(share)}
            row["reason"] = None
        rows.append(row)
    return rows


def amdahl(share: float) -> float:
    """How many times as fast the whole is without a `share` of it: 1 / (1 - share), at most
    1,000."""
    return min(LARGEST_BOUND, 1 / max(1 - share, 1 / LARGEST_BOUND))


def _bounds(share: LayerShare) -> dict[str, Any]:
    return {"bound": amdahl(share.share), "bound_ci95": [amdahl(end) for end in share.ci95]}


def _stacks(samples: Samples) -> _Stacks:
    """The distinct stacks of the training thread. They are far fewer than the samples."""
    stacks: _Stacks = defaultdict(list)
    for sample in samples.samples:
        if sample.thread == MAIN_THREAD:
            stacks[(sample.phase, sample.layer), sample.frames].append(id(sample))
    return stacks


def _reach(
    card: Card,
    algo: str,
    settings: Mapping[str, Any],
    samples: Samples,
    stacks: _Stacks,
    self_seconds: Mapping[str, float],
) -> tuple[set[_Cell], LayerShare | None]:
    """The cells in which the card could remove samples, and their share of training; None where
    the card's optimisation has no place in this run."""
    spots = [spot for spot in card.spot if spot.applies(algo, settings)]
    if not spots:
        return set(), None
    cells, removed = set(), set()
    for (cell, frames), ids in stacks.items():
        functions = [frame.name for frame in frames]
        if any(spot.holds(*cell, functions) for spot in spots):
            cells.add(cell)
            removed.update(ids)
    parts = divide(samples, self_seconds, lambda s: "in" if id(s) in removed else "out", ["in"])
    share = next(part for part in parts if part.name == "in")
    if not removed:
        # If none of n samples is of a kind, its share is at most 3 / n (Hanley and Lippman-Hand,
        # 1983).
        share = share._replace(ci95=(0.0, min(1.0, 3 / sum(map(len, stacks.values())))))
    return cells, share


def _reason(card: Card) -> str:
    """Why a card has no bound on this run."""
    if not card.spot:
        return (
            "lies on no trainer's path" if "no trainer's path" in card.note else "nothing to remove"
        )
    anywhere = [spot for spot in card.spot if not spot.conditions]
    return "only on " + " or ".join(dict.fromkeys(map(_terms, anywhere or card.spot)))


def _terms(spot: Spot) -> str:
    """The run that the card names, with its conditions: "NAME with prioritized=True"."""
    algos = " and ".join(algo.upper() for algo in spot.algos)
    terms = ", ".join(f"{key}={value}" for key, value in spot.conditions.items())
    return f"{algos} with {terms}" if terms else algos
