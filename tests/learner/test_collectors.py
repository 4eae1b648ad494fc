"""Rollouts of the background thread: those of the synchronous loop, one policy behind."""

import numpy as np
import pytest
import torch

import rlox
from rlox.learner.callbacks import TimingCallback
from rlox.learner.policies import CategoricalActorCritic


def collected(collector, env="CartPole-v1", steps=600, update=False):
    """The rollouts of a training, and the policy as it was after each of them."""
    settings = {"n_envs": 3, "n_steps": 50, "batch_size": 50, "seed": 3, "optimizations": ()}
    model = rlox.PPO(env, **settings, collector=collector)
    rollouts, policies, train = [], [model.policy.state_dict()], model.train

    def spy(rollout):
        rollouts.append(rollout)
        if update:
            train(rollout)
        policies.append({name: x.clone() for name, x in model.policy.state_dict().items()})

    policies[0] = {name: x.clone() for name, x in policies[0].items()}
    model.train = spy
    model.learn(steps)
    return rollouts, policies, model


@pytest.mark.parametrize("env", ["CartPole-v1", "Pendulum-v1"])
def test_background_rollouts_are_those_of_the_synchronous_loop(env):
    """With a policy that does not change, lag makes no difference: 200-step limits included."""
    sync, _, first = collected("sync", env, steps=1200)
    background, _, second = collected("async", env, steps=1200)
    assert first.num_timesteps == second.num_timesteps == 1200
    assert len(sync) == len(background) == 8
    for ours, theirs in zip(sync, background, strict=True):
        for name, a, b in zip(ours._fields, ours, theirs, strict=True):
            assert a.dtype == b.dtype, name
            torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-4, msg=lambda m, n=name: n + m)
    np.testing.assert_allclose(first.episode_returns, second.episode_returns, rtol=1e-5)
    assert len(first.episode_returns) > 0


def test_rollouts_are_collected_with_the_policy_before_the_update():
    rollouts, policies, _ = collected("async", update=True)
    assert len(rollouts) == 4
    acting = [policies[max(0, k - 1)] for k in range(4)]  # one update behind, from the second on
    for k, (rollout, weights) in enumerate(zip(rollouts, acting, strict=True)):
        policy = CategoricalActorCritic(4, 2)
        policy.load_state_dict(weights)
        _, log_probs, _ = policy.evaluate_actions(rollout.obs, rollout.actions)
        torch.testing.assert_close(log_probs, rollout.log_probs)
        if k > 0:
            policy.load_state_dict(policies[k])
            _, log_probs, _ = policy.evaluate_actions(rollout.obs, rollout.actions)
            assert not torch.allclose(log_probs, rollout.log_probs)


def test_no_rollout_is_collected_in_vain():
    calls = []

    class Counts(CategoricalActorCritic):
        def get_action_and_logprob(self, obs, deterministic=False, generator=None):
            calls.append(len(obs))
            return super().get_action_and_logprob(obs, deterministic, generator)

    arguments = {"n_envs": 2, "n_steps": 10, "collector": "async"}
    rlox.PPO("CartPole-v1", policy=Counts(4, 2), **arguments).learn(60)
    assert len(calls) == 30


def test_a_policy_that_fails_fails_training():
    class Breaks(CategoricalActorCritic):
        def get_value(self, obs):
            raise RuntimeError("no value today")

    model = rlox.PPO("CartPole-v1", collector="async", policy=Breaks(4, 2))
    with pytest.raises(RuntimeError, match="no value today"):
        model.learn(1000)
    model.policy = CategoricalActorCritic(4, 2)
    assert model.learn(100).num_timesteps == 1024


def test_a_policy_that_has_diverged_is_told():
    model = rlox.PPO("CartPole-v1", n_steps=4, collector="async")
    torch.nn.init.constant_(model.policy.actor[-1].bias, float("nan"))
    with pytest.raises(ValueError, match="policy: gives log-probabilities that are not finite"):
        model.learn(32)


def test_phases_of_the_two_threads():
    settings = {"n_envs": 2, "n_steps": 16, "seed": 0, "optimizations": ()}
    model = rlox.PPO("CartPole-v1", **settings, collector="async")
    model.learn(64, callback=TimingCallback())
    main = {phase.name: phase.calls for phase in model.timing.phases()}
    assert main["wait_rollout"] == main["store"] == main["gradient_update"] == 2
    assert "policy_forward" not in main
    (collector,) = [tree for tree in model.timing.trees().values() if tree != model.timing.phases()]
    calls = {phase.name: phase.calls for phase in collector}
    assert calls["policy_forward/action"] == calls["policy_forward/value"] == 32
    assert calls["gae_compute/value"] >= 2


def test_learns_with_the_background_collector():
    model = rlox.PPO(
        "CartPole-v1",
        seed=0,
        n_steps=32,
        batch_size=256,
        n_epochs=10,
        learning_rate=1e-3,
        collector="async",
    )
    model.learn(16_000)
    assert np.mean(model.episode_returns[-20:]) > 80  # random: 22


def test_environments_that_step_otherwise_are_not_stepped_in_rust():
    """A subclass of ours may change rewards; the thread would not ask it."""

    class Shaped(rlox.VecEnv):
        def step(self, actions):
            obs, rewards, *rest = super().step(actions)
            return obs, rewards - 1, *rest

    with pytest.raises(ValueError, match="this one runs in Python"):
        rlox.PPO(Shaped("CartPole-v1", 2), collector="async")
