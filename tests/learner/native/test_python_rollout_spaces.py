"""Rollouts in Rust around steps in Python, for all spaces of observations and actions."""

from itertools import pairwise

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

import rlox
from rlox import _core
from rlox.learner.native import networks
from rlox.learner.spaces import flatten_obs

ON = ["R1", "R7", "R8", "R14", "R19"]
NATIVE = "native, with steps in Python: R4 is not among the optimisations"
LINE = spaces.Box(-1, 1, (3,))
OBSERVATIONS = {
    "a vector": LINE,
    "bytes": spaces.Box(0, 255, (3,), np.uint8),
    "an image": spaces.Box(0, 255, (4, 5, 3), np.uint8),
    "an image, channels first": spaces.Box(0, 255, (2, 4, 5), np.uint8),
    "a choice": spaces.Discrete(5, start=2),
    "choices": spaces.MultiDiscrete([2, 3], start=[0, 1]),
    "bits": spaces.MultiBinary(4),
    "by key": spaces.Dict(a=LINE, b=spaces.Discrete(3), c=spaces.MultiBinary(2)),
}
ACTIONS = {
    "a choice": spaces.Discrete(3, start=-1),
    "one of several": spaces.MultiDiscrete([4]),
    "choices": spaces.MultiDiscrete([2, 3], start=[1, -1]),
    "a table of choices": spaces.MultiDiscrete([[2, 3], [4, 1]]),
    "bits": spaces.MultiBinary(3),
    "a table of bits": spaces.MultiBinary((2, 2)),
    "a box": spaces.Box(-1, 1, (2,)),
}


class Samples(gym.Env):
    """Gives samples of its space, in episodes of seven steps, and keeps what it gave."""

    def __init__(self, observations, actions):
        self.observation_space, self.action_space = observations, actions
        self.given, self.taken, self.last = [], [], []

    def _obs(self, to):
        to.append(self.observation_space.sample())
        return to[-1]

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:  # each later episode would begin a stream of its own by chance
            self.observation_space.seed(seed)
        self.at = 0
        return self._obs(self.given), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.taken.append(np.array(action))
        self.at += 1
        cut = self.at == 7
        return self._obs(self.last if cut else self.given), float(self.at), False, cut, {}


@pytest.mark.filterwarnings("ignore:observations of shape")
@settings(max_examples=60)
@given(
    seen=st.sampled_from(sorted(OBSERVATIONS)),
    done=st.sampled_from(sorted(ACTIONS)),
    share=st.booleans(),
    seed=st.integers(0, 2**16),
)
def test_a_rollout_has_what_torch_would_compute_of_its_steps(seen, done, share, seed):
    """Observations and actions are those of the environment; torch finds the log-probabilities and
    values again, also that of the observation after a time limit."""
    space, actions = OBSERVATIONS[seen], ACTIONS[done]
    env = Samples(space, actions)
    kind = "MultiInputPolicy" if isinstance(space, spaces.Dict) else "MlpPolicy"
    kwargs = {"share_features_extractor": share, "net_arch": {"pi": [9, 5], "vf": [7]}}
    how = {"n_steps": 20, "batch_size": 10, "seed": seed, "optimizations": ON}
    model = rlox.PPO(kind, env, policy_kwargs={**kwargs, "ortho_init": False}, **how)
    assert model.rollout_path == NATIVE
    rollouts = []
    model.train = rollouts.append
    model.learn(40)

    as_torch = lambda given: model._tensor(flatten_obs(_batch(given, space), space))  # noqa: E731
    obs = torch.cat([rollout.obs for rollout in rollouts])
    assert torch.equal(obs, as_torch(env.given[:40]))
    drawn = torch.cat([rollout.actions for rollout in rollouts])
    np.testing.assert_array_equal(model._env_actions(drawn.numpy()), np.stack(env.taken))
    with torch.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(obs, drawn)
        after = model.policy.get_value(as_torch(env.last))
    torch.testing.assert_close(
        torch.cat([rollout.log_probs for rollout in rollouts]), log_probs, rtol=1e-4, atol=1e-5
    )
    returns = torch.cat([rollout.returns for rollout in rollouts])
    advantages = torch.cat([rollout.advantages for rollout in rollouts])
    torch.testing.assert_close(returns - advantages, values, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(returns[6::7], 7 + model.gamma * after, rtol=1e-4, atol=1e-4)


def _batch(given, space):
    if isinstance(space, spaces.Dict):
        return {key: np.stack([one[key] for one in given]) for key in space.spaces}
    return np.stack(given)


@pytest.mark.parametrize(("done", "best"), [("choices", [2, 0]), ("bits", [1, 0, 1])])
def test_it_learns_from_choices_and_bits(done, best):
    """In 6,000 steps a policy finds the best action, where the reward is the number of parts of an
    action that are the best."""

    class Pays(Samples):
        def step(self, action):
            obs, _, *rest = super().step(action)
            return obs, float((action == best).sum()), *rest

    make = lambda: Pays(spaces.Discrete(2), ACTIONS[done])  # noqa: E731
    how = {"n_steps": 64, "batch_size": 64, "learning_rate": 3e-3, "gamma": 0.0, "seed": 0}
    model = rlox.PPO("MlpPolicy", [make] * 4, **how, optimizations=[*ON, "R9"])
    assert (model.rollout_path, model.update_path) == (NATIVE, "native")
    model.learn(6_000)
    found = [model.predict(np.array(i % 2), deterministic=False)[0] for i in range(200)]
    assert (np.stack(found) == best).mean() > 0.95


def network(widths, rng):
    sizes = sum(n * m + m for n, m in pairwise(widths))
    return widths, "tanh", rng.normal(0, 0.5, sizes).astype(np.float32)


def drawn(n_envs, n_steps, outputs, seed, **kind):
    """A rollout whose observations are all the same, and the actor's outputs for them."""
    rng = np.random.default_rng(seed)
    obs = np.tile(rng.normal(size=3).astype(np.float32), (n_envs, 1))
    actor, critic = network([3, 6, outputs], rng), network([3, 1], rng)
    stays = (obs, np.zeros(n_envs), np.zeros(n_envs, bool), None)
    rollout = _core.collect_python_rollout(
        lambda actions: stays, obs, actor, critic, np.zeros(0, np.float32), n_steps, 0.99, 0.95,
        (seed, 0), **kind,
    )  # fmt: skip
    params = torch.from_numpy(actor[2])
    hidden = torch.tanh(torch.from_numpy(obs[0]) @ params[:18].view(6, 3).T + params[18:24])
    at = 24 + 6 * outputs
    said = hidden @ params[24:at].view(outputs, 6).T + params[at:]
    return rollout, said.double()


# Six standard deviations of the share of 20,000 draws are at most 0.022.
NEAR = 0.022


@pytest.mark.parametrize("nvec", [[3], [2, 3], [4, 1, 2]])
def test_choices_are_drawn_as_often_as_they_are_likely(nvec):
    rollout, said = drawn(20, 1_000, sum(nvec), seed=1, nvec=nvec)
    assert rollout["actions"].shape == (1_000, 20, len(nvec))
    actions = rollout["actions"].reshape(-1, len(nvec))
    for chosen, logits in zip(actions.T, torch.split(said, nvec), strict=True):
        shares = np.bincount(chosen, minlength=len(logits)) / len(chosen)
        np.testing.assert_allclose(shares, torch.softmax(logits, 0), atol=NEAR)
    if len(nvec) > 1:  # the choices are independent
        found = np.corrcoef(actions[:, 0], actions[:, -1])[0, 1]
        assert abs(found) < 6 / np.sqrt(len(actions))


def test_bits_are_drawn_as_often_as_they_are_likely():
    rollout, said = drawn(20, 1_000, 4, seed=2, bits=True)
    assert rollout["actions"].shape == (1_000, 20, 4)
    bits = rollout["actions"].reshape(-1, 4)
    assert set(np.unique(bits)) == {0.0, 1.0}
    np.testing.assert_allclose(bits.mean(axis=0), torch.sigmoid(said), atol=NEAR)
    assert np.abs(np.corrcoef(bits.T) - np.eye(4)).max() < 6 / np.sqrt(len(bits))


@pytest.mark.parametrize(
    ("log_std", "kind", "says"),
    [
        (0, {"nvec": [2, 2]}, "logits of nvec: has length 4, expected 3"),
        (0, {"nvec": [3, 0]}, "nvec: holds 0"),
        (0, {"nvec": []}, "logits of nvec: has length 0"),
        (3, {"nvec": [3]}, "nvec: belongs to choices"),
        (0, {"nvec": [3], "bits": True}, "nvec: belongs to choices, and bits is true"),
        (3, {"bits": True}, "log_std: belongs to continuous actions, and bits"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(log_std, kind, says):
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match=says):
        _core.collect_python_rollout(
            lambda _: pytest.fail("stepped"), np.zeros((2, 3), np.float32), network([3, 3], rng),
            network([3, 1], rng), np.zeros(log_std, np.float32), 4, 0.99, 0.95, (0, 0), **kind,
        )  # fmt: skip


def test_observations_that_would_become_too_many_numbers_are_left_to_torch(monkeypatch):
    env = lambda: Samples(spaces.Discrete(16), spaces.Discrete(2))  # noqa: E731
    model = rlox.PPO("MlpPolicy", [env] * 3, n_steps=16, batch_size=16, optimizations=[*ON, "R9"])
    most = 3 * 16 * 16
    monkeypatch.setattr(networks, "MOST_NUMBERS", most)
    assert (model.rollout_path, model.update_path) == (NATIVE, "native")
    monkeypatch.setattr(networks, "MOST_NUMBERS", most - 1)
    why = f"torch: the networks' input for a rollout would be {most} numbers"
    assert model.rollout_path == why
    model._choose_update()
    assert model.update_path == why
