"""Rollouts in Rust around steps in Python: they are those that Rust takes alone."""

import copy
import warnings

import gymnasium as gym
import in_python
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import rlox
from rlox import _core
from rlox.learner.callbacks import BaseCallback
from rlox.learner.policies import mlp

ENV_IDS = sorted(_core.builtin_envs())
COLUMNS = ("obs", "actions", "log_probs", "values", "rewards", "dones", "advantages", "returns")
ON = ["R1", "R7", "R8", "R14", "R17", "R19"]


def network(widths, seed):
    torch.manual_seed(seed)
    params = nn.utils.parameters_to_vector(mlp(widths, nn.Tanh).parameters())
    return widths, "tanh", params.detach().numpy()


def policy_for(core, seed):
    """Actor, critic and log-deviations for environments in Rust."""
    discrete = isinstance(core.action_space, int)
    outputs = core.action_space if discrete else len(core.action_space[0])
    log_std = np.zeros(0 if discrete else outputs, np.float32)
    hidden = [core.obs_dim, 8]
    return network([*hidden, outputs], seed), network([*hidden, 1], seed + 1), log_std


def stepping(core, n_steps=1 << 30):
    """A `step` over environments in Rust, as a trainer steps them; it stops after `n_steps`."""
    taken = []

    def step(actions):
        taken.append(actions)
        if len(taken) > n_steps:
            return None
        if actions.ndim == 2:
            actions = np.clip(actions, *core.action_space)
        obs, rewards, terminated, truncated, infos = core.step(actions)
        rows = np.flatnonzero(truncated & ~terminated)
        last = [infos["final_obs"][row] for row in rows]
        return obs, rewards, terminated | truncated, (rows, np.stack(last)) if last else None

    step.taken = taken
    return step


@settings(max_examples=40)
@given(
    env_id=st.sampled_from(ENV_IDS),
    n_envs=st.integers(1, 12),
    n_steps=st.integers(1, 40),
    seed=st.integers(0, 2**16),
)
def test_a_rollout_is_that_which_rust_takes_alone(env_id, n_envs, n_steps, seed):
    """To the bit, also where time limits end episodes."""
    rng = np.random.default_rng(seed)
    limit = gym.spec(env_id).max_episode_steps
    rollouts = []
    for collect in ("alone", "around"):
        core = _core.VecEnv(env_id, n_envs, seed)
        obs = core.reset()
        late = np.random.default_rng(seed).integers(limit - 30, limit, n_envs)
        for env in range(n_envs):
            core.set_state(env, core.state(env)[0], int(late[env]))
        parts = (*policy_for(core, seed), n_steps, 0.99, 0.95, (seed, 3))
        if collect == "alone":
            running = (rng.random(n_envs), np.zeros(n_envs, np.int64))
            rollouts.append(_core.collect_rollout(core, *parts, running=running))
        else:
            rollouts.append(_core.collect_python_rollout(stepping(core), obs, *parts))
    for name in COLUMNS:
        np.testing.assert_array_equal(rollouts[0][name], rollouts[1][name], err_msg=name)
    assert len(rollouts[1]["episode_steps"]) == 0


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_training_around_steps_is_training_in_rust(env_id):
    """A trainer learns the same to the bit, and counts the same episodes."""
    models = [
        rlox.PPO(env_id, n_envs=5, n_steps=64, batch_size=64, seed=3, optimizations=[*ON, *more])
        for more in ([], ["R4"])
    ]
    paths = ("native, with steps in Python: R4 is not among the optimisations", "native")
    assert tuple(model.rollout_path for model in models) == paths
    for model in models:
        model.learn(5 * 64 * 4)
    ours, alone = models
    assert len(ours.episode_returns) > 4
    assert (ours.episode_returns, ours.episode_lengths) == (
        alone.episode_returns,
        alone.episode_lengths,
    )
    for one, other in zip(ours.policy.parameters(), alone.policy.parameters(), strict=True):
        assert torch.equal(one, other)


def evaluated_again(model, rollout):
    with torch.no_grad():
        values, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
    torch.testing.assert_close(rollout.log_probs, log_probs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(rollout.returns - rollout.advantages, values, rtol=1e-4, atol=1e-4)


class Drifts(gym.Env):
    """Observations and actions of any shape and dtype; the reward is the step of the episode."""

    def __init__(self, observations, actions, length=7, ends="limit"):
        self.observation_space, self.action_space = observations, actions
        self.length, self.ends = length, ends

    def _obs(self):
        space = self.observation_space
        return self.np_random.uniform(space.low, space.high).astype(space.dtype)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.at = 0
        return self._obs(), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.at += 1
        over = self.at == self.length
        return self._obs(), float(self.at), over and self.ends == "goal", over, {"at": self.at}


SPACES = {
    "float64 in a table": (spaces.Box(-1, 1, (2, 3), np.float64), spaces.Discrete(3, start=-1)),
    "a box of actions": (spaces.Box(-1, 1, (3,), np.float32), spaces.Box(-0.1, 0.1, (2, 2))),
    "integers": (spaces.Box(-5, 5, (3,), np.int64), spaces.Discrete(2)),
}


@pytest.mark.parametrize("ends", ["limit", "goal"])
@pytest.mark.parametrize("shape", SPACES)
def test_environments_in_python_are_learnt_from_as_torch_does(shape, ends):
    """Advantages are those of the rollout's own rewards, with the value after a time limit."""
    make = lambda: Drifts(*SPACES[shape], ends=ends)  # noqa: E731
    model = rlox.PPO("MlpPolicy", [make] * 3, n_steps=20, seed=1, optimizations=ON)
    assert model.rollout_path == "native, with steps in Python: R4 is not among the optimisations"
    rollouts = []
    model.train = rollouts.append
    model.learn(2 * 60)
    for rollout in rollouts:
        evaluated_again(model, rollout)
    assert model.episode_lengths == [7] * 15
    assert model.episode_returns == [28.0] * 15
    # Of the step that ended the first episode of environment 0, the return is its reward, and the
    # value after a time limit.
    obs, returns = (column.view(20, 3, -1) for column in (rollouts[0].obs, rollouts[0].returns))
    ended = returns[6, 0].item()
    if ends == "goal":
        assert ended == pytest.approx(7.0)
    else:
        assert ended != pytest.approx(7.0)
        assert abs(ended - 7.0) < 2.0
    assert not torch.equal(obs[6], obs[7])


def test_steps_that_only_begin_an_episode_are_not_learnt_from():
    make = lambda: Drifts(*SPACES["a box of actions"], length=4)  # noqa: E731
    env = SyncVectorEnv([make] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    model = rlox.PPO("MlpPolicy", env, n_steps=25, batch_size=10, optimizations=ON)
    rollouts = []
    model.train = rollouts.append
    model.learn(50)
    # Every fifth step only resets.
    assert len(rollouts[0].obs) == 2 * 20
    evaluated_again(model, rollouts[0])
    assert set(model.episode_lengths) == {4}


class Told(BaseCallback):
    def __init__(self, most=10**9):
        super().__init__()
        self.most, self.seen = most, []

    def _on_step(self):
        self.seen.append((self.num_timesteps, dict(self.locals)))
        return len(self.seen) < self.most


def test_a_callback_is_told_of_each_step_and_may_stop():
    model = rlox.PPO("CartPole-v1", n_envs=3, n_steps=8, seed=0, optimizations=[*ON, "R4"])
    told = Told(most=11)
    model.learn(48, callback=told)
    why = "Told has an _on_step, which is called at each step"
    assert [steps for steps, _ in told.seen] == [3 * (i + 1) for i in range(11)]
    assert model.num_timesteps == 33
    for _, step in told.seen:
        assert step["new_obs"].shape == (3, 4)
        assert len(step["infos"]) == 3
    told.most = 10**9
    paths = []
    told._on_rollout_end = lambda: paths.append(model.rollout_path)
    model.learn(48, callback=told)
    assert paths == [f"native, with steps in Python: {why}"] * 2


class Fails(Drifts):
    def step(self, action):
        if getattr(self, "fail", False):
            raise KeyboardInterrupt
        return super().step(action)


def test_what_a_step_raises_passes_through_and_training_can_go_on():
    env = Fails(*SPACES["integers"])
    model = rlox.PPO("MlpPolicy", env, n_steps=16, batch_size=8, seed=0, optimizations=ON)
    model.learn(16)
    before = copy.deepcopy(model.policy.state_dict())
    env.fail = True
    with pytest.raises(KeyboardInterrupt):
        model.learn(16, reset_num_timesteps=False)
    for name, value in model.policy.state_dict().items():
        assert torch.equal(value, before[name])
    env.fail = False
    assert model.learn(16, reset_num_timesteps=False).num_timesteps == 32


def test_a_number_that_is_none_is_told_with_its_step():
    class Breaks(Drifts):
        def step(self, action):
            obs, reward, *rest = super().step(action)
            return obs, float("nan") if self.at == 3 else reward, *rest

    make = lambda: Breaks(*SPACES["integers"])  # noqa: E731
    model = rlox.PPO("MlpPolicy", [make] * 2, n_steps=16, batch_size=8, optimizations=ON)
    with pytest.raises(ValueError, match=r"gave a reward that is not finite: nan, at step 3 of"):
        model.learn(32)


def test_nothing_is_said_where_rust_collects_around_steps():
    model = rlox.PPO(
        in_python.ACROBOT, n_envs=2, n_steps=4, batch_size=8, optimizations=[*ON, "R4"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(16)
    assert model.rollout_path == "native, with steps in Python: the environments run in Python"


def returned(**changed):
    """A `step` for two environments of three numbers that returns something else than it should."""
    right = {
        "obs": np.zeros((2, 3), np.float32),
        "rewards": np.zeros(2),
        "dones": np.array([True, False]),
        "cut_short": (np.array([0]), np.zeros((1, 3), np.float32)),
    }
    return lambda _: tuple((right | changed).values())


@pytest.mark.parametrize(
    ("step", "error", "says"),
    [
        (returned(obs=np.zeros((2, 4), np.float32)), ValueError, "obs of step: has shape"),
        (returned(obs=np.zeros((2, 3))), TypeError, "obs of step: has dtype float64"),
        (returned(rewards=[0.0, 0.0]), TypeError, "rewards of step"),
        (returned(rewards=np.zeros(3)), ValueError, "rewards of step: has shape"),
        (returned(dones=np.zeros(2)), TypeError, "dones of step: has dtype"),
        (returned(cut_short=(np.array([1]), np.zeros((1, 3), np.float32))), ValueError, "rows of"),
        (returned(cut_short=(np.array([2]), np.zeros((1, 3), np.float32))), ValueError, "rows of"),
        (returned(cut_short=(np.array([-1]), np.zeros((1, 3), np.float32))), ValueError, "rows of"),
        (returned(cut_short=(np.array([0, 0]), np.zeros((2, 3), np.float32))), ValueError, "rows"),
        (
            returned(cut_short=(np.array([0]), np.zeros((2, 3), np.float32))),
            ValueError,
            "final_obs",
        ),
        (lambda _: (1, 2), ValueError, "tuple"),
        (lambda _: 1, TypeError, "int"),
        (None, TypeError, "not callable"),
    ],
)
def test_a_step_that_returns_something_else_is_named(step, error, says):
    policy = network([3, 4, 2], 0), network([3, 4, 1], 1), np.zeros(0, np.float32)
    obs = np.zeros((2, 3), np.float32)
    with pytest.raises(error, match=says):
        _core.collect_python_rollout(step, obs, *policy, 4, 0.99, 0.95, (0, 0))


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"obs": np.zeros((0, 3), np.float32)}, "obs"),
        ({"obs": np.zeros((2, 4), np.float32)}, "actor: maps 3"),
        ({"n_steps": 0}, "n_steps: is 0"),
        ({"n_steps": 2**31}, "n_steps: is 2147483648"),
        ({"gamma": 1.5}, "gamma: is 1.5"),
        ({"log_std": np.zeros(3, np.float32)}, "actor: maps 3 to 2 numbers, expected 3 to 3"),
    ],
)
def test_a_bad_argument_is_named_before_any_step(changed, says):
    arguments = {
        "obs": np.zeros((2, 3), np.float32),
        "actor": network([3, 4, 2], 0),
        "critic": network([3, 4, 1], 1),
        "log_std": np.zeros(0, np.float32),
        "n_steps": 4,
        "gamma": 0.99,
        "gae_lambda": 0.95,
        "stream": (0, 0),
    }
    with pytest.raises(ValueError, match=says):
        _core.collect_python_rollout(lambda _: pytest.fail("stepped"), **arguments | changed)


def test_a_step_may_stop():
    core = _core.VecEnv("CartPole-v1", 3, 0)
    obs = core.reset()
    step = stepping(core, n_steps=5)
    assert (
        _core.collect_python_rollout(step, obs, *policy_for(core, 0), 9, 0.9, 0.9, (0, 0)) is None
    )
    assert len(step.taken) == 6


def with_a_hook(policy):
    policy.actor[0].register_forward_hook(lambda module, inputs, output: None)


def with_another_activation(policy):
    policy.actor[1] = nn.GELU()


def with_a_method(policy):
    policy.get_value = lambda obs: obs.sum(dim=1)


def in_doubles(policy):
    policy.double()


@pytest.mark.parametrize(
    "change", [with_a_hook, with_another_activation, with_a_method, in_doubles]
)
def test_what_changes_in_a_policy_between_rollouts_is_heeded(change):
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=16, optimizations=[*ON, "R4"])
    model.train = lambda rollout: None
    model.learn(32)
    assert model.rollout_path == "native"
    change(model.policy)
    assert model.rollout_path.startswith("torch: ")


@pytest.mark.parametrize("part", ["actor", "critic"])
def test_a_layer_that_is_replaced_between_rollouts_is_the_one_that_acts(part):
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=16, optimizations=[*ON, "R4"])
    rollouts = []
    model.train = rollouts.append
    model.learn(32)
    getattr(model.policy, part)[0] = nn.Linear(4, 64)
    model.learn(32)
    assert model.rollout_path == "native"
    evaluated_again(model, rollouts[1])
