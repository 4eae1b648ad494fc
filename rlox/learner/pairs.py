"""The pairs of the training loop: for each of R1 to R24, the work that it changes, at its sizes.

Each side is a real part of a trainer that was made with or without the optimisation, so what the
switchboard chooses is tested as well. As in `rlox._laboratory.pairs` for the data plane, twins are
compared first and then timed.
"""

import copy
import math
from collections.abc import Callable, Collection
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlox.learner import switchboard
from rlox.learner.native.sac_update import why_not_amx, why_not_bfloat16
from rlox.learner.pairing import Arm, Pair, Size, Workload
from rlox.learner.policies import TwinCritic
from rlox.learner.ppo import PPO
from rlox.learner.rollout_pairs import (
    ENVS,
    eager_rollout,
    rollout,
    rollout_around_steps,
    rollout_evaluated_at_its_end,
    step_in_python,
)
from rlox.learner.sac import SAC
from rlox.learner.torch_settings import SMALL_PRODUCT, why_not_numpy, why_not_onednn
from rlox.learner.update_pairs import (
    compiled_ppo_update,
    compiled_sac_update,
    frames_update,
    native_ppo_update,
    native_sac_update,
    on_device,
    ppo_update,
    sac_update,
    sac_update_by_amx,
    sac_update_by_values,
    sac_update_in_bfloat16,
    update_of_choices,
)


def _act(on: Collection[str], size: Size, seed: int) -> Arm:
    """R1: actions, log-probabilities and values for one step of all environments."""
    model = PPO(ENVS[seed % 2], n_envs=size["n_envs"], seed=seed, optimizations=on)
    obs = model._tensor(model._reset_env())
    act = switchboard.ACT.of(model.optimizations)(model.policy)

    @torch.no_grad()
    def call() -> tuple[Tensor, Tensor, Tensor]:
        return act(obs, model._act_generator, model.timing)

    return Arm(call)


def _polyak(on: Collection[str], size: Size, seed: int) -> Arm:
    """R5: one step of the target networks."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        critic = TwinCritic(3, 1, (size["hidden"],) * size["layers"])
    target = copy.deepcopy(critic)
    for parameter in target.parameters():
        parameter.data.neg_()
    update = switchboard.POLYAK.of(on)
    return Arm(
        lambda: update(critic.parameters(), target.parameters(), 0.005),
        lambda _: list(target.parameters()),
    )


def _step(on: Collection[str], size: Size, seed: int) -> Arm:
    """R7: passing actions on, and a step of the environments."""
    model = PPO("CartPole-v1", n_envs=size["n_envs"], seed=seed, optimizations=on)
    model._reset_env()
    actions = np.random.default_rng(seed).integers(2, size=model.n_envs)
    step = model.vector_env.step
    return Arm(lambda: step(model._env_actions(actions)), lambda stepped: list(stepped[:4]))


def _store(on: Collection[str], size: Size, seed: int) -> Arm:
    """R8: storing a rollout's steps, and making its columns of them."""
    n = size["n_envs"]
    rng = torch.Generator().manual_seed(seed)
    rewards = np.random.default_rng(seed).normal(size=n)
    step = (
        torch.randn(n, 4, generator=rng),
        torch.randint(2, (n,), generator=rng),
        torch.randn(n, generator=rng),
        torch.randn(n, generator=rng),
        rewards,
        rewards > 0,
    )

    def call() -> list[Tensor]:
        storage = switchboard.STORAGE.of(on)(size["n_steps"])
        for _ in range(size["n_steps"]):
            storage.append(*step)
        return storage.stacked()

    return Arm(call)


def _train(
    algorithm: type[PPO] | type[SAC], id_: str, least: int, n_steps: int
) -> Callable[[Collection[str], Size, int], Arm]:
    """R6 and R11: the same number of environment steps, from `least` environments or from more.
    What is learnt differs; the number of steps does not."""

    def make(on: Collection[str], size: Size, seed: int) -> Arm:
        n_envs = size["n_envs"] if id_ in on else least
        arguments: dict[str, Any] = {"learning_starts": 0} if algorithm is SAC else {}
        model = algorithm(
            ENVS[algorithm is SAC], n_envs=n_envs, seed=seed, optimizations=(), **arguments
        )
        steps = math.lcm(size["n_envs"], least) * n_steps
        return Arm(lambda: model.learn(steps), lambda _: [model.num_timesteps])

    return make


def _sizes(name: str, *numbers: int, **others: int) -> tuple[Size, ...]:
    return tuple({name: number} | others for number in numbers)


_UPDATES = _sizes("batch_size", 512, 256, n_envs=8, n_steps=128)
_SMALL_UPDATES = _sizes("batch_size", 256, 64, n_envs=8, n_steps=128)
_STORES = _sizes("n_envs", 8, 64, n_steps=128)
_ROLLOUTS = _sizes("n_envs", 8, 1, 64, n_steps=128)
_SAC_SIZES = _sizes("batch_size", 256)
_LEAST_BATCH_OF_ONEDNN = SMALL_PRODUCT // 256**2 + 1
_FRAMES = _sizes("n_steps", 32, n_envs=8, batch_size=256)
# What many small minibatches learn depends on rounding.
_ONE_MINIBATCH = {"n_steps": (4, 4), "batch_size": (12, 12), "smooth": (1, 1)}
_MORE_SAC_ENVS = _sizes("n_envs", 4, 16)
_MORE_ENVS = _sizes("n_envs", 16, 32, 64, 128)

PAIRS = {
    pair.id: pair
    for pair in (
        Pair("R1", 1e-5, [Workload("act", _sizes("n_envs", 8, 64), _act)]),
        Pair("R2", 1e-4, [Workload("update", _UPDATES, ppo_update)]),
        Pair("R3", 1e-4, [Workload("update", _SAC_SIZES, sac_update)]),
        Pair("R4", 1e-4, [Workload("rollout", _STORES, rollout)]),
        Pair("R5", 1e-6, [Workload("polyak", _sizes("hidden", 256, layers=2), _polyak)]),
        Pair("R6", 0, [Workload("train", _MORE_SAC_ENVS, _train(SAC, "R6", 1, 4))]),
        Pair("R7", 0, [Workload("step", _sizes("n_envs", 8), _step)]),
        Pair("R8", 0, [Workload("store", _STORES, _store)]),
        Pair(
            "R9",
            1e-4,
            [
                Workload("ppo_update", _UPDATES, ppo_update),
                Workload("sac_update", _SAC_SIZES, sac_update),
            ],
        ),
        Pair("R10", 1e-3, [on_device("cuda"), on_device("mps")]),
        Pair("R11", 0, [Workload("train", _MORE_ENVS, _train(PPO, "R11", 8, 128))]),
        Pair(
            "R12",
            1e-5,
            [
                Workload("update", _UPDATES, ppo_update),
                Workload("sac_update", _SAC_SIZES, sac_update),
            ],
        ),
        Pair(
            "R13",
            1e-5,
            [
                Workload(
                    "update",
                    _SAC_SIZES,
                    sac_update_by_values,
                    why_not_onednn,
                    {"batch_size": (_LEAST_BATCH_OF_ONEDNN, 256), "smooth": (1, 1)},
                )
            ],
        ),
        Pair("R14", 1e-4, [Workload("rollout", _STORES, eager_rollout)]),
        Pair(
            "R15",
            1e-5,
            [
                Workload("update", _UPDATES, ppo_update, why_not_numpy),
                Workload("rollout", _STORES, rollout_evaluated_at_its_end, why_not_numpy),
            ],
        ),
        Pair(
            "R16",
            1e-4,
            [
                Workload("ppo_update", _UPDATES, compiled_ppo_update),
                Workload("sac_update", _SAC_SIZES, compiled_sac_update),
            ],
        ),
        Pair("R17", 1e-4, [Workload("rollout", _ROLLOUTS, rollout_evaluated_at_its_end)]),
        Pair("R18", 2e-2, [Workload("update", _FRAMES, frames_update, cases=_ONE_MINIBATCH)]),
        Pair("R19", 1e-4, [Workload("rollout", _ROLLOUTS, rollout_around_steps)]),
        Pair(
            "R20",
            5e-2,
            [
                Workload(
                    "update",
                    _SAC_SIZES,
                    sac_update_in_bfloat16,
                    why_not_bfloat16,
                    {"batch_size": (32, 256)},  # fewer rows stay float32
                )
            ],
        ),
        Pair("R21", 0, [Workload("step", _sizes("n_envs", 8, 1, 64), step_in_python)]),
        Pair(
            "R22",
            1e-2,
            [
                Workload(
                    "update",
                    _SAC_SIZES,
                    sac_update_by_amx,
                    why_not_amx,
                    {"batch_size": (32, 256)},  # fewer rows stay float32
                )
            ],
        ),
        Pair(
            "R23",
            0,
            [
                Workload("sac_update", _SAC_SIZES, native_sac_update),
                Workload("ppo_update", _UPDATES, native_ppo_update),
            ],
        ),
        Pair("R24", 0, [Workload("update_of_choices", _SMALL_UPDATES, update_of_choices)]),
    )
}


def workload_of(id_: str, name: str) -> tuple[Pair, Workload]:
    """A pair and its workload. KeyError if there is none."""
    pair = PAIRS[id_]
    return pair, {workload.name: workload for workload in pair.workloads}[name]
