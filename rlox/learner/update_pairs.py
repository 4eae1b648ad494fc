"""The updates of the pairs of the training loop: a trainer's gradient steps from a rollout, or
from a buffer of random transitions."""

import math
from collections.abc import Callable, Collection
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlox.learner.pairing import Arm, Size, Workload
from rlox.learner.policies import SquashedGaussianActor
from rlox.learner.ppo import PPO, Rollout
from rlox.learner.rollout_pairs import ENVS
from rlox.learner.sac import SAC
from rlox.learner.torch_settings import torch_settings


def ppo_update(
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


def frames_update(on: Collection[str], size: Size, seed: int) -> Arm:
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


def on_device(device: str) -> Workload:
    """R10: an update on that device and on the CPU. An epoch is one minibatch, since the devices
    shuffle differently."""

    def make(on: Collection[str], size: Size, seed: int) -> Arm:
        return ppo_update(on, size, seed, device if "R10" in on else "cpu", size["batch_size"])

    def missing() -> str | None:
        there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        return None if there[device] else f"torch finds no {device} device here"

    sizes = ({"batch_size": 512}, {"batch_size": 4096})
    return Workload(device, sizes, make, missing)


def sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """One update of SAC from a buffer of random transitions."""
    call, model = _sac_updates(on, size, seed)
    learnt = (model.policy, model.critic, model.critic_target, model.temperature)
    return Arm(call, lambda _: [p for m in learnt for p in m.parameters()])


def sac_update_by_values(on: Collection[str], size: Size, seed: int) -> Arm:
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


def sac_update_in_bfloat16(on: Collection[str], size: Size, seed: int) -> Arm:
    """R20: an update in Rust, with R22. Outputs of the learnt networks are compared, as for R13."""
    return sac_update_by_values({"R9", "R22", *on}, size, seed)


def sac_update_by_amx(on: Collection[str], size: Size, seed: int) -> Arm:
    """R22: as R20, which is on in both forms."""
    return sac_update_by_values({"R9", "R20", *on}, size, seed)


def native_ppo_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R23: an update in Rust."""
    return ppo_update({"R9", *on}, size, seed)


def update_of_choices(on: Collection[str], size: Size, seed: int) -> Arm:
    """R24: the same for actions by index, which every second seed has."""
    return native_ppo_update(on, size, 2 * seed)


def native_sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R23: an update in Rust."""
    return sac_update({"R9", *on}, size, seed)


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


def compiled_ppo_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R16: with R2."""
    return ppo_update({"R2", *on}, size, seed)


def compiled_sac_update(on: Collection[str], size: Size, seed: int) -> Arm:
    """R16: with R3, and R13 where it applies."""
    return sac_update({"R3", "R13", *on}, size, seed)
