"""The pairs of R4, R14, R15, R17, R19 and R21: collecting a rollout, and a step of it."""

from collections.abc import Callable, Collection
from typing import Any

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlox.learner.pairing import Arm, Size
from rlox.learner.ppo import PPO, Rollout
from rlox.learner.torch_settings import torch_settings

ENVS = ("CartPole-v1", "Pendulum-v1")  # the seed chooses one


def _collecting(on: Collection[str], size: Size, seed: int) -> PPO:
    """A trainer that collects rollouts and learns nothing."""
    shape: dict[str, Any] = {name: size[name] for name in ("n_envs", "n_steps")}
    model = PPO(ENVS[seed % 2], seed=seed, optimizations=on, **shape)
    model.train = lambda rollout: None  # type: ignore[method-assign]
    return model.learn(1)


def rollout(on: Collection[str], size: Size, seed: int) -> Arm:
    """R4: a rollout. Each twin draws its own actions. For both, torch computes the
    log-probabilities and the values again, and the differences to those in the rollout must be
    zero."""
    model = _collecting(on, size, seed)
    return Arm(model.collect_rollout, _evaluated_again(model))


def _evaluated_again(model: PPO) -> Callable[[Rollout | None], list[Tensor]]:
    def differences(rollout: Rollout | None) -> list[Tensor]:
        assert rollout is not None
        with torch.no_grad():
            values, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
        return [rollout.log_probs - log_probs, rollout.returns - rollout.advantages - values]

    return differences


def eager_rollout(on: Collection[str], size: Size, seed: int) -> Arm:
    """R14: a rollout in torch, with the same draws. R1, which R14 replaces, is on, and others that
    matter there."""
    on = {"R1", "R7", "R8", *on}
    return Arm(_with_its_settings(_collecting(on, size, seed)))


def _with_its_settings(model: PPO) -> Callable[[], Rollout | None]:
    settings = model._torch_settings()

    def call() -> Rollout | None:
        with torch_settings(*settings):
            return model.collect_rollout()

    return call


def rollout_evaluated_at_its_end(on: Collection[str], size: Size, seed: int) -> Arm:
    """R15 and R17: with R14."""
    return eager_rollout({"R14", *on}, size, seed)


def rollout_around_steps(on: Collection[str], size: Size, seed: int) -> Arm:
    """R19: as for R4, with all that is on where environments run in Python."""
    model = _collecting({"R1", "R7", "R8", "R14", "R15", "R17", *on}, size, seed)
    return Arm(_with_its_settings(model), _evaluated_again(model))


class _Little(gym.Env[Any, Any]):
    """Does little: each third step has infos, and an episode ends after ten."""

    observation_space = spaces.Box(-1, 1, (6,), np.float32)
    action_space = spaces.Discrete(3)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.at = 0
        self.obs = self.np_random.uniform(-1, 1, 6).astype(np.float32)
        return self.obs, {}

    def step(self, action: Any) -> Any:
        self.at += 1
        info = {} if self.at % 3 else {"at": self.at}
        return self.obs, float(action), self.at == 10, False, info


def step_in_python(on: Collection[str], size: Size, seed: int) -> Arm:
    """R21: a step of environments in Python."""
    model = PPO("MlpPolicy", [_Little] * size["n_envs"], seed=seed, optimizations=on)
    model._reset_env()
    actions = np.random.default_rng(seed).integers(3, size=model.n_envs)
    step = model.vector_env.step

    def outcome(stepped: Any) -> list[Any]:
        infos = stepped[4]
        told = [infos[name] for name in ("_at", "at", "_final_obs") if name in infos]
        return [*stepped[:4], *told]

    return Arm(lambda: step(actions), outcome)
