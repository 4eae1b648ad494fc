"""Environments and networks so small that their results are known in closed form."""

import gymnasium as gym
import numpy as np
import torch
from gymnasium import spaces

from rlox.learner.policies import ActorCritic


class Clock(gym.Env):
    """Observes the time step; reward 1; after `length` steps it terminates or is truncated."""

    observation_space = spaces.Box(0, 100, (1,), np.float32)

    def __init__(self, length=3, truncates=True, action_space=None):
        self.length, self.truncates = length, truncates
        self.action_space = action_space or spaces.Discrete(2)
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.actions.append(action)
        self.t += 1
        ended = self.t == self.length
        truncated = ended and self.truncates
        return np.full(1, self.t, np.float32), 1.0, ended and not truncated, truncated, {}


class Seen(Clock):
    """Observes samples of a space."""

    def __init__(self, space, action_space=None):
        super().__init__(length=5, action_space=action_space)
        self.observation_space = space
        self.observation_space.seed(0)

    def reset(self, **kwargs):
        return self.observation_space.sample(), super().reset(**kwargs)[1]

    def step(self, action):
        return self.observation_space.sample(), *super().step(action)[1:]


class TenPerStep(ActorCritic):
    """Takes action 0; V(s) = 10 t, with a parameter that is never changed."""

    def __init__(self):
        super().__init__()
        self.unused = torch.nn.Parameter(torch.zeros(1))

    def get_action_and_logprob(self, obs, deterministic=False, generator=None):
        return torch.zeros(len(obs), dtype=torch.int64), torch.zeros(len(obs))

    def get_value(self, obs):
        return 10 * obs[:, 0]

    def evaluate_actions(self, obs, actions):
        zero = 0 * self.unused.expand(len(obs))
        return self.get_value(obs) + zero, zero, zero
