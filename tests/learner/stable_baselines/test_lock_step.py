"""A whole training in lock step with Stable-Baselines3: it is given the weights, the actions and
the permutations of ours, and does everything else by itself, with environments of its own."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv

import rlox

N_ENVS, N_STEPS, ROLLOUTS = 4, 64, 3
SETTINGS = {"n_steps": N_STEPS, "batch_size": 64, "n_epochs": 4, "seed": 5}
# Episodes of at most so many steps: they end by time limits, in CartPole also by themselves.
LIMITS = {"CartPole-v1": 30, "Pendulum-v1": 30}
COLUMNS = {"observations": 0, "actions": 0, "episode_starts": 0, "rewards": 1e-5, "values": 1e-5,
           "log_probs": 1e-5, "advantages": 1e-4, "returns": 1e-4}  # fmt: skip


class Rollouts(BaseCallback):
    """Keeps copies of all rollouts."""

    def __init__(self):
        super().__init__()
        self.kept = []

    def _on_step(self):
        return True

    def _on_rollout_end(self):
        buffer = self.model.rollout_buffer
        shape = (N_STEPS, N_ENVS, -1)
        self.kept.append({n: np.array(getattr(buffer, n)).reshape(shape) for n in COLUMNS})


def trained_by_us(envs, optimizations, monkeypatch):
    """The trainer, its weights before the training, its rollouts and its permutations."""
    permutations, draw = [], torch.randperm

    def drawn(*args, **kwargs):
        permutations.append(draw(*args, **kwargs))
        return permutations[-1]

    model = rlox.PPO("MlpPolicy", envs, optimizations=optimizations, **SETTINGS)
    before = {name: value.clone() for name, value in model.policy.state_dict().items()}
    rollouts = Rollouts()
    with monkeypatch.context() as patched:
        patched.setattr(torch, "randperm", drawn)
        model.learn(ROLLOUTS * N_STEPS * N_ENVS, callback=rollouts)
    return model, before, rollouts.kept, permutations


def trained_by_them(envs, weights, rollouts, permutations, monkeypatch):
    """The trainer, and its rollouts, with the actions and permutations of ours."""
    model = TheirPPO("MlpPolicy", DummyVecEnv(envs), device="cpu", **SETTINGS)
    model.policy.load_state_dict(weights)
    steps = (actions for one in rollouts for actions in one["actions"])

    def forward(obs, deterministic=False):
        actions = torch.as_tensor(next(steps).reshape(N_ENVS, *model.action_space.shape))
        values, log_prob, _ = model.policy.evaluate_actions(obs, actions)
        return actions, values, log_prob

    # Ours are of rows (step, environment), theirs of rows (environment, step).
    orders = (one.numpy() % N_ENVS * N_STEPS + one.numpy() // N_ENVS for one in permutations)
    kept = Rollouts()
    with monkeypatch.context() as patched:
        patched.setattr(model.policy, "forward", forward)
        patched.setattr(np.random, "permutation", lambda _: next(orders))
        model.learn(ROLLOUTS * N_STEPS * N_ENVS, callback=kept)
    return model, kept.kept


@pytest.mark.parametrize("optimizations", [None, []], ids=["native", "torch"])
@pytest.mark.parametrize("env_id", LIMITS)
def test_a_training_takes_the_steps_of_theirs(env_id, optimizations, monkeypatch):
    envs = [partial(gym.make, env_id, max_episode_steps=LIMITS[env_id])] * N_ENVS
    ours, before, rollouts, permutations = trained_by_us(envs, optimizations, monkeypatch)
    theirs, expected = trained_by_them(envs, before, rollouts, permutations, monkeypatch)
    way = "native" if optimizations is None else "torch"
    assert ours.rollout_path.startswith(way) and ours.update_path.startswith(way)
    for found, one in zip(rollouts, expected, strict=True):
        for name, tolerance in COLUMNS.items():
            scale = max(1.0, np.abs(one[name]).max())
            np.testing.assert_allclose(
                found[name], one[name], rtol=0, atol=tolerance * scale, err_msg=name
            )
    for name, value in theirs.policy.state_dict().items():
        moved = (value - before[name]).abs().max().item()
        apart = (ours.policy.state_dict()[name] - value).abs().max().item()
        assert apart < 1e-4 * moved, name
