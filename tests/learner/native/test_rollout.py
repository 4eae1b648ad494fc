"""The rollout in one call into Rust: torch's own, and torch's where Rust cannot."""

import copy
import warnings
from itertools import pairwise

import gymnasium as gym
import in_python
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import rlox
from rlox import _core
from rlox.learner.callbacks import BaseCallback, TimingCallback
from rlox.learner.native.networks import actor_critic_networks
from rlox.learner.native.rollout import vector
from rlox.learner.policies import CategoricalActorCritic, GaussianActorCritic, mlp

ENV_IDS = sorted(_core.builtin_envs())
CORES = {env_id: _core.VecEnv(env_id, 1, 0) for env_id in ENV_IDS}


def acts_by_index(env):
    return isinstance(CORES[env].action_space, int)


def made(env, hidden=(64, 64), activation=nn.Tanh, **arguments):
    """A trainer that collects natively, with a policy whose logits and means differ."""
    obs_dim = CORES[env].obs_dim
    if acts_by_index(env):
        kind, n_out = CategoricalActorCritic, CORES[env].action_space
    else:
        kind, n_out = GaussianActorCritic, len(CORES[env].action_space[0])
    torch.manual_seed(arguments.get("seed", 0))
    policy = kind(obs_dim, n_out)
    policy.actor = mlp([obs_dim, *hidden, n_out], activation)
    policy.critic = mlp([obs_dim, *hidden, 1], activation)
    if not acts_by_index(env):
        nn.init.normal_(policy.log_std)
    return rlox.PPO(env, policy=policy, optimizations=["R4"], **arguments)


def rollouts_of(model, total_timesteps, **arguments):
    """What `learn` hands to the update, which is left out."""
    rollouts = []
    model.train = rollouts.append
    model.learn(total_timesteps, **arguments)
    return rollouts


def with_noise(model, noise, threads=None):
    """The columns that Rust makes of the trainer's policy in its environments, from a reset."""
    core = model.vector_env.backend.core
    core.reset(list(range(model.n_envs)))
    actor, critic, log_std, *_ = actor_critic_networks(model.policy)
    return _core.collect_rollout(
        core,
        (actor.widths, actor.activation, vector(actor.params)),
        (critic.widths, critic.activation, vector(critic.params)),
        vector(log_std),
        len(noise),
        model.gamma,
        model.gae_lambda,
        stream=(0, 0),
        running=(np.zeros(model.n_envs), np.zeros(model.n_envs, np.int64)),
        noise=noise,
        threads=threads,
    )


def scripted(policy, noise):
    """The policy, with its samples taken from `noise`, step by step."""
    policy, rows = copy.deepcopy(policy), iter(torch.from_numpy(noise))

    def act(obs, deterministic=False, generator=None):
        row = next(rows)
        if isinstance(policy, GaussianActorCritic):
            actions = policy.actor(obs) + policy.log_std.exp() * row
        else:
            cumulative = torch.softmax(policy.actor(obs), dim=-1).cumsum(dim=-1)
            actions = (row >= cumulative).sum(dim=-1)
        return actions, policy.evaluate_actions(obs, actions)[1]

    policy.get_action_and_logprob = act
    return policy


@settings(max_examples=10)
@given(
    env=st.sampled_from(ENV_IDS),
    hidden=st.lists(st.integers(1, 70), max_size=3),
    activation=st.sampled_from([nn.Tanh, nn.ReLU]),
    n_envs=st.integers(1, 11),
    n_steps=st.integers(1, 40),
    seed=st.integers(0, 2**16),
)
def test_it_is_the_torch_path_s_rollout(env, hidden, activation, n_envs, n_steps, seed):
    """With the same noise: actions, log-probabilities, advantages and returns, to rounding."""
    arguments = {"n_envs": n_envs, "n_steps": n_steps, "seed": seed}
    model = made(env, hidden, activation, **arguments)
    assert model.rollout_path == "native"
    rng = np.random.default_rng(seed)
    if acts_by_index(env):
        # No draw lies where two probabilities meet: torch's rounding and ours may differ there.
        noise = rng.integers(0, 64, (n_steps, n_envs, 1)).astype(np.float32) / 64 + 1 / 128
    else:
        noise = rng.standard_normal((n_steps, n_envs, 1), dtype=np.float32)
    found = with_noise(model, noise)

    torch_model = rlox.PPO(env, policy=scripted(model.policy, noise), optimizations=(), **arguments)
    assert torch_model.rollout_path == "torch"
    torch_model._env_seed = 0  # as `with_noise`
    (expected,) = rollouts_of(torch_model, n_steps * n_envs)
    for name in ("actions", "log_probs", "advantages", "returns"):
        ours = torch.from_numpy(found[name]).flatten(0, 1)
        theirs = getattr(expected, name)
        assert ours.dtype == theirs.dtype, name
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4, msg=lambda m, n=name: n + m)
    obs = torch.from_numpy(found["obs"][:-1]).flatten(0, 1)
    torch.testing.assert_close(obs, expected.obs, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        values = model.policy.get_value(obs)
    torch.testing.assert_close(torch.from_numpy(found["values"]).flatten(), values)


@pytest.mark.parametrize("env", ENV_IDS)
def test_threads_do_not_change_it(env):
    model = made(env, n_envs=37, n_steps=30)
    noise = np.random.default_rng(0).random((30, 37, 1), dtype=np.float32)
    one, three = with_noise(model, noise, threads=1), with_noise(model, noise, threads=3)
    for name, column in one.items():
        np.testing.assert_array_equal(column, three[name], err_msg=name)


def test_same_seed_same_rollouts():
    runs = [rollouts_of(made("CartPole-v1", seed=s, n_steps=20), 480) for s in (1, 1, 2)]
    for first, second in zip(runs[0], runs[1], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(first, second, strict=True))
    assert not torch.equal(runs[0][0].actions, runs[2][0].actions)
    assert not torch.equal(runs[0][0].actions, runs[0][1].actions)


@pytest.mark.parametrize("env", ENV_IDS)
def test_the_smallest_rollout(env):
    model = made(env, n_envs=1, n_steps=1)
    (rollout,) = rollouts_of(model, 1)
    assert [len(column) for column in rollout] == [1] * 5
    assert model.num_timesteps == 1


def test_the_next_rollout_goes_on_where_this_one_ends():
    first, second = rollouts_of(made("Pendulum-v1", n_envs=2, n_steps=4, seed=0), 16)
    theta = [np.arctan2(o[:, 1], o[:, 0]) for o in (first.obs.numpy(), second.obs.numpy())]
    # theta' = theta + 0.05 theta_dot', from the last row of one to the first of the other
    turned = theta[0][-2:] + 0.05 * second.obs[:2, 2].numpy()
    np.testing.assert_allclose(np.cos(turned), second.obs[:2, 0], atol=1e-5)


def test_the_ratio_is_one_before_the_first_step():
    (rollout,) = rollouts_of(model := made("Pendulum-v1", n_envs=3, n_steps=50, seed=0), 150)
    _, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
    torch.testing.assert_close(log_probs, rollout.log_probs)


def test_truncation_bootstraps_from_the_final_observation():
    """Pendulum ends at step 200 alone; with lambda = 1, returns are rewards until then plus V."""
    model = made("Pendulum-v1", n_envs=1, n_steps=201, gamma=1.0, gae_lambda=1.0, seed=0)
    nn.init.zeros_(model.policy.critic[-1].weight)
    nn.init.constant_(model.policy.critic[-1].bias, 5.0)
    (rollout,) = rollouts_of(model, 201)
    assert model.episode_lengths == [200]
    assert rollout.returns[0].item() == pytest.approx(model.episode_returns[0] + 5, rel=1e-5)


def test_episodes_are_counted_as_ever():
    model = made("CartPole-v1", n_envs=4, n_steps=64, seed=0)
    rollouts_of(model, 1024)
    assert model.num_timesteps == 1024
    assert model.episode_returns == model.episode_lengths  # reward 1 a step
    under_way = int(model._running_length.sum())
    assert len(model.episode_lengths) > 10
    assert sum(model.episode_lengths) + under_way == 1024


def test_on_step_sees_what_it_would_have_seen():
    class Watches(BaseCallback):
        def on_training_start(self):
            self.seen = []

        def on_step(self):
            self.seen.append((self.num_timesteps, sum(self.model.episode_lengths)))
            return self.num_timesteps < 300

    watches = Watches()
    model = made("CartPole-v1", n_envs=4, n_steps=64, seed=0)
    assert len(rollouts_of(model, 10_000, callback=watches)) == 1  # the second is stopped
    assert [steps for steps, _ in watches.seen] == list(range(4, 301, 4))
    finished = [length for _, length in watches.seen]
    assert finished == sorted(finished)
    assert len(set(finished)) > 5
    assert model.num_timesteps == 300
    assert model.learn(256).num_timesteps == 256


def test_the_profile_says_which_path_was_taken():
    model = made("CartPole-v1", n_steps=16)
    model.learn(256, callback=TimingCallback())
    calls = {phase.name: phase.calls for phase in model.timing.phases()}
    assert calls["native_rollout"] == 2
    assert "policy_forward" not in calls


def ordinary():
    return CategoricalActorCritic(4, 2)


def double():
    return ordinary().double()


def with_own_sampling():
    class Greedy(CategoricalActorCritic):
        def get_action_and_logprob(self, obs, deterministic=False, generator=None):
            return super().get_action_and_logprob(obs, True, generator)

    return Greedy(4, 2)


def with_own_value():
    policy = ordinary()
    policy.get_value = lambda obs: obs.sum(dim=1)
    return policy


def with_hook():
    policy = ordinary()
    policy.critic[1].register_forward_hook(lambda module, inputs, output: None)
    return policy


def with_actor(*layers):
    policy = ordinary()
    policy.actor = nn.Sequential(*layers)
    return policy


TORCH_ONLY = {
    "float64": double,
    "own sampling": with_own_sampling,
    "own value": with_own_value,
    "hook": with_hook,
    "other activation": lambda: with_actor(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 2)),
    "two activations": lambda: with_actor(
        nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2)
    ),
    "no bias": lambda: with_actor(nn.Linear(4, 2, bias=False)),
    "activation at the end": lambda: with_actor(nn.Linear(4, 2), nn.Tanh()),
    "spectral norm": lambda: with_actor(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 2))),
    "shared input": lambda: with_actor(nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 2)),
}


@pytest.mark.parametrize("policy", TORCH_ONLY.values(), ids=TORCH_ONLY)
def test_other_policies_are_collected_by_torch(policy):
    model = rlox.PPO("CartPole-v1", policy=policy(), n_steps=2, optimizations=["R4"])
    assert model.rollout_path.startswith("torch: ")
    if policy is not double:  # which torch itself refuses
        assert len(rollouts_of(model, 16)) == 1


class Shaped(rlox.VecEnv):
    def step(self, actions):
        obs, rewards, *rest = super().step(actions)
        return obs, rewards - 1, *rest


class Bytes(gym.Env):
    observation_space = gym.spaces.Box(0, 255, (4,), np.uint8)
    action_space = gym.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return np.zeros(4, np.uint8), {}

    def step(self, action):
        return np.zeros(4, np.uint8), 0.0, False, False, {}


@pytest.mark.parametrize(
    "env",
    [in_python.ACROBOT, Bytes(), Shaped("CartPole-v1", 2), gym.make("CartPole-v1")],
    ids=["not ours", "bytes", "a vector of one's own", "wrapped"],
)
def test_other_environments_are_stepped_by_torch(env):
    model = rlox.PPO(env, n_envs=2, n_steps=2, optimizations=["R4"])
    assert model.rollout_path == "torch: the environments run in Python"
    assert len(rollouts_of(model, model.n_envs * 2)) == 1


def test_paths_may_change_between_rollouts():
    model = made("CartPole-v1", n_envs=2, n_steps=20)
    rollouts = []

    def swap(rollout):
        rollouts.append(rollout)
        model.policy = [with_own_sampling, ordinary][len(rollouts) % 2]()

    model.train = swap
    model.learn(160)
    assert len(rollouts) == 4
    for before, after in pairwise(rollouts):
        # A step moves the cart by 0.02 of its velocity: nobody was reset in between, or is upright.
        moved = (after.obs[:2, 0] - before.obs[-2:, 0] - 0.02 * before.obs[-2:, 1]).abs()
        assert ((moved < 1e-5) | (after.obs[:2].abs() < 0.05).all(dim=1)).all()


def test_interrupting_leaves_a_usable_trainer():
    class Interrupts(BaseCallback):
        def on_rollout_end(self):
            raise KeyboardInterrupt

    model = made("CartPole-v1", n_steps=16)
    with pytest.raises(KeyboardInterrupt):
        model.learn(1024, callback=Interrupts())
    assert model.learn(256).num_timesteps == 256


def test_weights_that_are_no_numbers_are_named():
    model = made("CartPole-v1", n_steps=4)
    nn.init.constant_(model.policy.actor[-1].bias, float("nan"))
    with pytest.raises(ValueError, match=r"actor: gives \[NaN"):
        model.learn(32)


@pytest.mark.parametrize("log_std", [float("nan"), 100.0, -100.0])
def test_deviations_from_which_nothing_can_be_drawn_are_named(log_std):
    model = made("Pendulum-v1", n_steps=4)
    nn.init.constant_(model.policy.log_std, log_std)
    with pytest.raises(ValueError, match="log_std: holds"):
        with_noise(model, np.zeros((4, model.n_envs, 1), np.float32))


def test_noise_that_is_no_number_is_named():
    model = made("Pendulum-v1", n_steps=4)
    noise = np.zeros((4, model.n_envs, 1), np.float32)
    noise[1] = np.nan
    with pytest.raises(ValueError, match=r"noise: holds \[NaN\]"):
        with_noise(model, noise)


def test_weights_are_the_modules_own_also_after_an_update():
    model = made("CartPole-v1", n_envs=2, n_steps=50, seed=0)
    seen, train = [], model.train

    def spy(rollout):
        _, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
        seen.append((log_probs - rollout.log_probs).abs().max().item())
        train(rollout)

    model.train = spy
    before = [p.clone() for p in model.policy.parameters()]
    model.learn(400)
    assert len(seen) == 4
    assert max(seen) < 1e-5
    assert any(
        not torch.equal(a, b) for a, b in zip(before, model.policy.parameters(), strict=True)
    )


def test_parameters_in_one_vector_are_not_copied():
    params = list(mlp([4, 8, 2], nn.Tanh).parameters())
    flat = torch.cat([p.detach().flatten() for p in params])
    copied = vector(params)
    np.testing.assert_array_equal(copied, flat)
    start = 0
    for p in params:
        p.data = flat[start : start + p.numel()].view_as(p)
        start += p.numel()
    viewed = vector(params[2:])
    flat.add_(1)
    np.testing.assert_array_equal(viewed, flat[4 * 8 + 8 :])
    assert not np.array_equal(copied, flat)


def test_what_torch_does_instead_is_said_once_with_its_reason():
    model = rlox.PPO(in_python.ACROBOT, n_envs=2, n_steps=4, optimizations=["R4"])
    with pytest.warns(UserWarning) as said:
        warnings.simplefilter("always")
        model.learn(40)  # five rollouts
        model.learn(8)
    (message,) = (str(one.message) for one in said)
    reason = "R4: rollouts are collected in torch, not in Rust: the environments run in Python; "
    assert message.startswith(reason)
    assert "times as long" in message


class Stepping(BaseCallback):
    def _on_step(self):
        return True


def test_a_reason_that_comes_later_is_said_as_well():
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=4, optimizations=["R4"])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(8)
    with pytest.warns(UserWarning, match="R4: .*: Stepping has an _on_step"):
        model.learn(8, callback=Stepping())


@pytest.mark.parametrize("asked", [[], None])
def test_nothing_is_said_where_rust_has_all_or_was_not_asked(asked):
    env = in_python.ACROBOT if asked == [] else "CartPole-v1"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rlox.PPO(env, n_envs=2, n_steps=4, optimizations=asked).learn(16)


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_updates_that_torch_does_are_said_with_the_reason(algo):
    if algo == "ppo":
        policy = TORCH_ONLY["no bias"]()
        model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=4, policy=policy, optimizations=["R9"])
    else:
        model = rlox.SAC("Pendulum-v1", learning_starts=1, optimizations=["R9"])
        model.critic.register_forward_hook(lambda *_: None)
    with pytest.warns(UserWarning, match="R9: updates run in torch, not in Rust: .+"):
        model.learn(8)
