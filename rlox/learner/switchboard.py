"""Chooses the planned optimisations of the training loop that a trainer runs with, and lists the
two forms of each.

An id names a card of `optimizations/`. Where an optimisation is not chosen, its baseline runs.
R4, R9, R19, R20, R22, R23 and R24 have no line here: their optimised form is in the native path of
`rlox.learner.native`, which is taken where it applies.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from rlox.env.in_turn import step_by_gymnasium, step_in_turn
from rlox.learner import joined, seams
from rlox.learner.compiled import products_as_they_are, products_by_shape
from rlox.learner.compiled_ppo import CompiledMinibatch, EagerMinibatch
from rlox.learner.compiled_sac import CompiledUpdate, EagerUpdate
from rlox.learner.features import frames_as_given, frames_with_channels_last
from rlox.learner.torch_settings import (
    precision_as_asked,
    precision_of_onednn,
    tanh_of_numpy,
    tanh_of_torch,
)

T = TypeVar("T")

OPTIMIZATIONS = tuple(f"R{n}" for n in range(1, 25))
# All but those that were refused, or are candidates.
ACCEPTED = frozenset(OPTIMIZATIONS) - {"R6", "R10", "R11", "R20"}

# R2 and R3, which are accepted, are used by default in runs of at least so many environment steps.
# Compiling PPO's update took 12 s and saved 4.6 µs a step (63,000 to 89,000 steps a second).
# Compiling SAC's took 16 s and saved some 0.8 ms a step. They are repaid after some 2.7 million and
# 20,000 steps. Twice as many are required, so that a slower machine does not lose by it. (AMD EPYC,
# 2 cores, torch 2.15, nothing cached.)
COMPILED_FROM = {"R2": 5_500_000, "R3": 40_000}


@dataclass(frozen=True)
class Twins(Generic[T]):
    """The two forms of one step, or the two values of one setting."""

    id: str
    baseline: T
    optimized: T

    def of(self, chosen: Collection[str]) -> T:
        """The form that runs if `chosen` are on."""
        return self.optimized if self.id in chosen else self.baseline


Storage = type[seams.ListStorage] | type[seams.PreallocatedStorage]

ACT: Twins[type[seams.ActInTwoCalls]] = Twins("R1", seams.ActInTwoCalls, seams.ActAtOnce)
MINIBATCH: Twins[type[EagerMinibatch]] = Twins("R2", EagerMinibatch, CompiledMinibatch)
UPDATE: Twins[type[EagerUpdate]] = Twins("R3", EagerUpdate, CompiledUpdate)
POLYAK = Twins("R5", seams.polyak_by_pairs, seams.polyak_at_once)
SAC_ENVS = Twins("R6", 1, 4)  # environments of an id, if `n_envs` is not given
ENV_ACTIONS = Twins("R7", seams.actions_by_list, seams.actions_as_array)
STORAGE: Twins[Storage] = Twins("R8", seams.ListStorage, seams.PreallocatedStorage)
DEVICE = Twins("R10", "cpu", "auto")  # if `device` is not given
PPO_ENVS = Twins("R11", 8, 32)  # as SAC_ENVS
STEP: Twins[type[seams.StepByParameter]] = Twins("R12", seams.StepByParameter, seams.StepAtOnce)
PRODUCTS = Twins("R13", precision_as_asked, precision_of_onednn)
EVALUATE: Twins[type[seams.EvaluateByStep]] = Twins(
    "R14", seams.EvaluateByStep, seams.EvaluateByRollout
)
TANH = Twins("R15", tanh_of_torch, tanh_of_numpy)
COMPILED_PRODUCTS = Twins("R16", products_as_they_are, products_by_shape)
ACTOR: Twins[seams.MakesActor] = Twins("R17", joined.actor_in_torch, joined.actor_in_rust)
FRAMES = Twins("R18", frames_as_given, frames_with_channels_last)
STEP_ENVS = Twins("R21", step_by_gymnasium, step_in_turn)


def choose(optimizations: Collection[str] | None) -> frozenset[str]:
    """The ids in `optimizations`, in upper or lower case; None stands for `ACCEPTED`.

    Raises ValueError for an unknown id.
    """
    if optimizations is None:
        return ACCEPTED
    chosen = frozenset(name.upper() for name in optimizations)
    if unknown := sorted(chosen.difference(OPTIMIZATIONS)):
        raise ValueError(
            f"optimizations holds {', '.join(unknown)}; there are {', '.join(OPTIMIZATIONS)}"
        )
    return chosen


def for_run(asked: bool, chosen: frozenset[str], total_timesteps: int) -> frozenset[str]:
    """Those of `chosen` that pay in a run of so many steps. Compiling must be `asked` for by name,
    or the run must be long enough to repay it."""
    if asked:
        return chosen
    return frozenset(id_ for id_ in chosen if total_timesteps >= COMPILED_FROM.get(id_, 0))
