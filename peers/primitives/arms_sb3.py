"""Stable-Baselines3: its replay and rollout buffers and its DummyVecEnv."""

from functools import partial

import gymnasium
import inputs
import numpy as np
import torch
from arm import KNOWN, SHOWN_STEPS, THREADS, Arm, drawing, rollout_answer, stepping, storing
from stable_baselines3.common.buffers import ReplayBuffer, RolloutBuffer
from stable_baselines3.common.vec_env import DummyVecEnv

torch.set_num_threads(THREADS)


def _ring(n, obs_dim):
    box = gymnasium.spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
    return ReplayBuffer(n, box, gymnasium.spaces.Box(-1, 1, (1,), np.float32), device="cpu")


def _filled(n, obs_dim):
    """A full buffer. Its arrays are written directly, since `add` takes one transition at a
    time."""
    buffer = _ring(n, obs_dim)
    at = 0
    for obs, next_obs, action, reward, terminated, _ in inputs.chunks(n, obs_dim):
        rows = slice(at, at + len(reward))
        buffer.observations[rows, 0], buffer.next_observations[rows, 0] = obs, next_obs
        buffer.actions[rows, 0], buffer.rewards[rows, 0] = action, reward
        buffer.dones[rows, 0] = terminated
        at += len(reward)
    buffer.full = True
    return buffer


def _add(buffer, obs, next_obs, action, reward, terminated, truncated):
    return partial(
        buffer.add,
        obs[None],
        next_obs[None],
        action[None],
        np.array([reward], np.float32),
        np.array([terminated]),
        [{"TimeLimit.truncated": truncated}],
    )


def _drawn(buffer, batch):
    found = buffer.sample(batch)
    return {
        "obs": found.observations,
        "next_obs": found.next_observations,
        "action": found.actions,
        "reward": found.rewards,
        "terminated": found.dones,
    }


def push(obs_dim, steps):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)

    def known():
        small = _ring(KNOWN, obs_dim)
        for number in range(KNOWN):
            _add(small, *inputs.one(obs_dim, number))()
        return _drawn(small, KNOWN)

    return storing(_add(buffer, *inputs.one(obs_dim, steps=steps)), known)


def sample(batch, obs_dim):
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    arm = drawing(partial(_drawn, buffer, batch))
    return arm._replace(call=partial(buffer.sample, batch))


def _envs(n_envs):
    return DummyVecEnv([partial(gymnasium.make, "CartPole-v1")] * n_envs)


def env_step(n_envs):
    env = _envs(n_envs)
    return stepping(env.step, env.reset(), n_envs, read=lambda stepped: stepped[:3])


def rollout(n_envs, n_steps):
    env = _envs(n_envs)
    pushes = inputs.pushes(n_envs)
    values = inputs.values(n_steps + 1, n_envs)
    tensors = torch.from_numpy(values)
    log_probs = torch.zeros(n_envs)
    buffer = RolloutBuffer(
        n_steps,
        env.observation_space,
        env.action_space,
        device="cpu",
        gae_lambda=inputs.GAE_LAMBDA,
        gamma=inputs.GAMMA,
        n_envs=n_envs,
    )
    dones = np.zeros((n_steps, n_envs), np.float32)

    def call():
        buffer.reset()
        obs, starts = env.reset(), np.ones(n_envs, np.float32)
        for t in range(n_steps):
            next_obs, rewards, done, _ = env.step(pushes[t % 2])
            buffer.add(obs, pushes[t % 2], rewards, starts, tensors[t], log_probs)
            obs, starts = next_obs, done
        dones[:-1], dones[-1] = buffer.episode_starts[1:], starts
        buffer.compute_returns_and_advantage(tensors[n_steps], starts)

    def answer():
        call()
        columns = (buffer.rewards, dones, values, buffer.advantages, buffer.returns)
        actions = buffer.actions.reshape(n_steps, n_envs)[:SHOWN_STEPS]
        return rollout_answer(buffer.observations, actions, *columns)

    return Arm(call, answer)
