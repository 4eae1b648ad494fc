"""The pairs of the training loop: for each of R1 to R24, the work that it changes, at its sizes.

Each side is a real part of a trainer that was made with or without the optimisation, so what the
switchboard chooses is tested as well. As in `rlox._laboratory.pairs` for the data plane, twins are
compared first and then timed.
"""

import copy
import math
from collections.abc import Callable, Collection
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlox.learner import switchboard
from rlox.learner.native.sac_update import why_not_amx, why_not_bfloat16
from rlox.learner.pairing import Arm, Pair, Size, Workload
from rlox.learner.policies import SquashedGaussianActor, TwinCritic
from rlox.learner.ppo import PPO, Rollout
from rlox.learner.rollout_pairs import (
    ENVS,
    eager_rollout,
    rollout,
    rollout_around_steps,
    rollout_evaluated_at_its_end,
    step_in_python,
)
from rlox.learner.sac import SAC
from rlox.learner.torch_settings import SMALL_PRODUCT, torch_settings, why_not_numpy, why_not_onednn


def _act(on: Collection[str], size: Size, seed: int) -> Arm:
    """R1: actions, log-probabilities and values for one step of all environments."""
    model = PPO(ENVS[seed % 2], n_envs=size["n_envs"], seed=seed, optimizations=on)
    obs = model._tensor(model._reset_env())
    act = switchboard.ACT.of(model.optimizations)(model.policy)

    @torch.no_grad()
    def call() -> tuple[Tensor, Tensor, Tensor]:
        return act(obs, model._act_generator, model.timing)

    return Arm(call)


def _ppo_update(
    on: Collection[str], size: Size, seed: int, device: str | None = None, rows: int | None = None
) -> Arm:
    """PPO's epochs over a rollout, of random observations in place of an environment's."""
    model = PPO(
        ENVS[seed % 2],
        seed=seed,
        n_envs=size.get("n_envs", 1),
        n_steps=size.get("n_steps", 1),
        batch_size=size["batch_size"],
        optimizations=on,
        device=device,
    )
    n = rows or model.n_envs * model.n_steps
    rng = torch.Generator().manual_seed(seed)
    space = model.action_space
    if isinstance(space, spaces.Discrete):
        actions = torch.randint(int(space.n), (n,), generator=rng)
    else:  # not the mode, at which gradients are zero up to rounding
        actions = torch.randn(n, math.prod(space.shape or ()), generator=rng)
    epochs = _epochs(model, torch.randn(n, model.obs_dim, generator=rng), actions, rng)
    return Arm(epochs, lambda _: list(model.policy.parameters()))


def _epochs(model: PPO, obs: Tensor, actions: Tensor, rng: torch.Generator) -> Callable[[], None]:
    """PPO's epochs over a rollout of these observations and actions."""
    noise, advantages, returns = torch.randn(3, len(obs), generator=rng)
    obs, actions, noise, advantages, returns = (
        x.to(model.device) for x in (obs, actions, noise, advantages, returns)
    )
    with torch.no_grad():
        _, log_probs, _ = model.policy.evaluate_actions(obs, actions)
    rollout = Rollout(obs, actions, log_probs + 0.2 * noise, advantages, returns)
    model._log = lambda figures: None  # type: ignore[method-assign]
    settings = model._torch_settings()

    def call() -> None:
        with torch_settings(*settings):
            model.train(rollout)

    return call


class _Frames(gym.Env[Any, Any]):
    """Has the spaces of an Atari game, and is never stepped."""

    observation_space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    action_space = spaces.Discrete(6)


def _frames_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R18: PPO's epochs over a rollout of random frames. Outputs of the learnt policy are compared,
    and cases may be `smooth`, both as for R13."""
    model = PPO(
        "CnnPolicy",
        [_Frames] * size["n_envs"],
        seed=seed,
        n_steps=size["n_steps"],
        batch_size=size["batch_size"],
        optimizations=on,
    )
    model._choose_for(1)
    if "smooth" in size:
        _smooth(model.policy)
    rng = torch.Generator().manual_seed(seed)
    n = model.n_envs * model.n_steps
    obs, actions = torch.rand(n, model.obs_dim, generator=rng), torch.arange(n) % 6

    @torch.no_grad()
    def learnt(_: object) -> list[Tensor]:
        values, log_probs, _ = model.policy.evaluate_actions(obs, actions)
        return [values, log_probs]

    return Arm(_epochs(model, obs, actions, rng), learnt)


def _on_device(device: str) -> Workload:
    """R10: an update on that device and on the CPU. An epoch is one minibatch, since the devices
    shuffle differently."""

    def make(on: Collection[str], size: Size, seed: int) -> Arm:
        return _ppo_update(on, size, seed, device if "R10" in on else "cpu", size["batch_size"])

    def missing() -> str | None:
        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        return None if there[device] else f"torch finds no {device} device here"

    sizes = ({"batch_size": 512}, {"batch_size": 4096})
    return Workload(device, sizes, make, missing)


def _sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """One update of SAC from a buffer of random transitions."""
    call, model = _sac_updates(on, size, seed)
    learnt = (model.policy, model.critic, model.critic_target, model.temperature)
    return Arm(call, lambda _: [p for m in learnt for p in m.parameters()])


def _sac_update_by_values(on: Collection[str], size: Size, seed: int) -> Arm:
    """R13: the same, but the outputs of the learnt networks are compared and not their parameters.
    Where a gradient is zero up to rounding, Adam's first steps are as large as elsewhere, but
    change the outputs little. Cases that are `smooth` have no ReLU: its gradient jumps where
    rounding moves an input across 0, which happens in 1 of 100 cases with products this large."""
    call, model = _sac_updates(on, size, seed)
    if "smooth" in size:
        for module in (model.policy, model.critic, model.critic_target):
            _smooth(module)
    rng = torch.Generator().manual_seed(seed)
    obs, noise = torch.randn(64, 3, generator=rng), torch.randn(64, 1, generator=rng)

    @torch.no_grad()
    def values(_: object) -> list[Tensor]:
        assert isinstance(model.policy, SquashedGaussianActor)
        of_policy = model.policy.from_noise(obs, noise)
        critics = (model.critic, model.critic_target)
        return [*of_policy, *(q for critic in critics for q in critic(obs, noise.tanh()))]

    return Arm(call, values)


def _sac_update_in_bfloat16(on: Collection[str], size: Size, seed: int) -> Arm:
    """R20: an update in Rust, with R22. Outputs of the learnt networks are compared, as for R13."""
    return _sac_update_by_values({"R9", "R22", *on}, size, seed)


def _sac_update_by_amx(on: Collection[str], size: Size, seed: int) -> Arm:
    """R22: as R20, which is on in both forms."""
    return _sac_update_by_values({"R9", "R20", *on}, size, seed)


def _native_ppo_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R23: an update in Rust."""
    return _ppo_update({"R9", *on}, size, seed)


def _update_of_choices(on: Collection[str], size: Size, seed: int) -> Arm:
    """R24: the same for actions by index, which every second seed has."""
    return _native_ppo_update(on, size, 2 * seed)


def _native_sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R23: an update in Rust."""
    return _sac_update({"R9", *on}, size, seed)


def _smooth(module: nn.Module) -> None:
    for name, part in module.named_children():
        if isinstance(part, nn.ReLU):
            setattr(module, name, nn.SiLU())
        _smooth(part)


def _sac_updates(on: Collection[str], size: Size, seed: int) -> tuple[Callable[[], None], SAC]:
    model = SAC("Pendulum-v1", seed=seed, batch_size=size["batch_size"], buffer_size=4096,
                optimizations=on)  # fmt: skip
    rng = np.random.default_rng(seed)
    n, columns = 4096, (3, 3, 1)
    obs, next_obs, actions = (rng.uniform(-1, 1, (n, d)).astype(np.float32) for d in columns)
    rewards, ended = rng.normal(size=n).astype(np.float32), rng.random(n) < 0.1
    model.replay_buffer.push_batch(obs, next_obs, actions, rewards, ended, ~ended)
    settings = model._torch_settings()

    def call() -> None:
        with torch_settings(*settings):
            model.train_once()

    return call, model


def _compiled_ppo_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R16: with R2."""
    return _ppo_update({"R2", *on}, size, seed)


def _compiled_sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R16: with R3, and R13 where it applies."""
    return _sac_update({"R3", "R13", *on}, size, seed)


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
        Pair("R2", 1e-4, [Workload("update", _UPDATES, _ppo_update)]),
        Pair("R3", 1e-4, [Workload("update", _SAC_SIZES, _sac_update)]),
        Pair("R4", 1e-4, [Workload("rollout", _STORES, rollout)]),
        Pair("R5", 1e-6, [Workload("polyak", _sizes("hidden", 256, layers=2), _polyak)]),
        Pair("R6", 0, [Workload("train", _MORE_SAC_ENVS, _train(SAC, "R6", 1, 4))]),
        Pair("R7", 0, [Workload("step", _sizes("n_envs", 8), _step)]),
        Pair("R8", 0, [Workload("store", _STORES, _store)]),
        Pair(
            "R9",
            1e-4,
            [
                Workload("ppo_update", _UPDATES, _ppo_update),
                Workload("sac_update", _SAC_SIZES, _sac_update),
            ],
        ),
        Pair("R10", 1e-3, [_on_device("cuda"), _on_device("mps")]),
        Pair("R11", 0, [Workload("train", _MORE_ENVS, _train(PPO, "R11", 8, 128))]),
        Pair(
            "R12",
            1e-5,
            [
                Workload("update", _UPDATES, _ppo_update),
                Workload("sac_update", _SAC_SIZES, _sac_update),
            ],
        ),
        Pair(
            "R13",
            1e-5,
            [
                Workload(
                    "update",
                    _SAC_SIZES,
                    _sac_update_by_values,
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
                Workload("update", _UPDATES, _ppo_update, why_not_numpy),
                Workload("rollout", _STORES, rollout_evaluated_at_its_end, why_not_numpy),
            ],
        ),
        Pair(
            "R16",
            1e-4,
            [
                Workload("ppo_update", _UPDATES, _compiled_ppo_update),
                Workload("sac_update", _SAC_SIZES, _compiled_sac_update),
            ],
        ),
        Pair("R17", 1e-4, [Workload("rollout", _ROLLOUTS, rollout_evaluated_at_its_end)]),
        Pair("R18", 2e-2, [Workload("update", _FRAMES, _frames_update, cases=_ONE_MINIBATCH)]),
        Pair("R19", 1e-4, [Workload("rollout", _ROLLOUTS, rollout_around_steps)]),
        Pair(
            "R20",
            5e-2,
            [
                Workload(
                    "update",
                    _SAC_SIZES,
                    _sac_update_in_bfloat16,
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
                    _sac_update_by_amx,
                    why_not_amx,
                    {"batch_size": (32, 256)},  # fewer rows stay float32
                )
            ],
        ),
        Pair(
            "R23",
            0,
            [
                Workload("sac_update", _SAC_SIZES, _native_sac_update),
                Workload("ppo_update", _UPDATES, _native_ppo_update),
            ],
        ),
        Pair("R24", 0, [Workload("update_of_choices", _SMALL_UPDATES, _update_of_choices)]),
    )
}


def workload_of(id_: str, name: str) -> tuple[Pair, Workload]:
    """A pair and its workload. KeyError if there is none."""
    pair = PAIRS[id_]
    return pair, {workload.name: workload for workload in pair.workloads}[name]
