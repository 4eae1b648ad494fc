"""PPO's loss, its rollouts, and that it learns."""

import gymnasium as gym
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from toys import Clock, TenPerStep

import rlox
from rlox.learner.policies import CategoricalActorCritic
from rlox.learner.ppo import Rollout


def rollouts_of(model, total_timesteps):
    """What `learn` hands to the update, which is left out."""
    rollouts = []
    model.train = rollouts.append
    model.learn(total_timesteps)
    return rollouts


def test_a_rollout_may_be_collected_before_anything_is_learnt():
    assert len(rlox.PPO("CartPole-v1", n_envs=2, n_steps=4).collect_rollout().obs) == 8


@pytest.mark.parametrize("optimizations", [None, ()])
def test_nothing_is_learnt_from_a_rollout_that_only_began_episodes(optimizations):
    env = SyncVectorEnv([Clock] * 2, autoreset_mode=AutoresetMode.NEXT_STEP)
    model = rlox.PPO("MlpPolicy", env, n_steps=1, batch_size=2, optimizations=optimizations)
    model.learn(16)
    assert model.num_timesteps == 16
    assert all(torch.isfinite(weight).all() for weight in model.policy.parameters())


def small_batch(n=16, seed=0):
    rng = torch.Generator().manual_seed(seed)
    return Rollout(
        obs=torch.randn(n, 4, generator=rng),
        actions=torch.randint(2, (n,), generator=rng),
        log_probs=-0.7 + 0.5 * torch.randn(n, generator=rng),  # ratios on both sides of the clip
        advantages=torch.randn(n, generator=rng),
        returns=torch.randn(n, generator=rng),
    )


@pytest.mark.parametrize("normalize", [True, False])
def test_loss_and_gradient_are_those_of_the_paper(normalize):
    model = rlox.PPO("CartPole-v1", ent_coef=0.1, normalize_advantage=normalize)
    model.policy.double()
    batch = Rollout(*(x.double() if x.is_floating_point() else x for x in small_batch()))
    loss, _ = model.loss(batch)
    loss.backward()
    grads = [p.grad.clone() for p in model.policy.parameters()]

    # By hand: the gradient of the clipped surrogate is A ratio grad(log pi) where the ratio is
    # inside the clip or clipping would only flatter, and zero elsewhere.
    policy = model.policy
    log_pi = torch.log_softmax(policy.actor(batch.obs), dim=1)
    chosen = log_pi[torch.arange(16), batch.actions]
    ratio = (chosen - batch.log_probs).exp().detach()
    advantages = batch.advantages
    if normalize:
        advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
    free = torch.where(advantages > 0, ratio <= 1.2, ratio >= 0.8)
    assert 0 < free.sum() < 16
    bound = torch.where(advantages > 0, 1.2, 0.8).double()
    surrogate = torch.where(free, ratio, bound) * advantages
    entropy = -(log_pi.exp() * log_pi).sum(1)
    squares = (policy.critic(batch.obs)[:, 0] - batch.returns) ** 2
    expected = -surrogate.mean() + 0.5 * squares.mean() - 0.1 * entropy.mean()
    torch.testing.assert_close(loss, expected)

    model.optimizer.zero_grad()
    with_gradient = -(free * advantages * ratio * chosen).mean()
    (with_gradient + 0.5 * squares.mean() - 0.1 * entropy.mean()).backward()
    for grad, parameter in zip(grads, policy.parameters(), strict=True):
        torch.testing.assert_close(grad, parameter.grad)


def test_ratio_is_one_before_the_first_step():
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=8, seed=0)
    (rollout,) = rollouts_of(model, 16)
    _, log_probs, _ = model.policy.evaluate_actions(rollout.obs, rollout.actions)
    torch.testing.assert_close(log_probs, rollout.log_probs)


@pytest.mark.parametrize("ends", ["truncated", "terminated"])
def test_truncation_bootstraps_from_the_final_observation(ends):
    """Three steps of reward 1, V = 10 t: with lambda = 1 the returns are the discounted sums."""
    gamma = 0.5
    env = Clock(length=3, truncates=ends == "truncated")
    model = rlox.PPO(env, n_steps=4, gamma=gamma, gae_lambda=1.0, policy=TenPerStep())
    (rollout,) = rollouts_of(model, 4)
    last = 1 + gamma * 30 * (ends == "truncated")  # V(final observation) = 30
    # The fourth step is the first of the next episode: it bootstraps from V(1) = 10.
    expected = [1 + gamma * (1 + gamma * last), 1 + gamma * last, last, 1 + gamma * 10]
    assert rollout.obs[:, 0].tolist() == [0, 1, 2, 0]
    np.testing.assert_allclose(rollout.returns, expected)
    np.testing.assert_allclose(rollout.advantages, np.array(expected) - [0, 10, 20, 0])


def test_truncated_environments_are_told_from_terminated_ones():
    env = SyncVectorEnv(
        [lambda: Clock(2, truncates=True), lambda: Clock(2, truncates=False)],
        autoreset_mode=AutoresetMode.SAME_STEP,
    )
    model = rlox.PPO(env, n_steps=2, gamma=0.5, gae_lambda=1.0, policy=TenPerStep())
    (rollout,) = rollouts_of(model, 4)
    returns = rollout.returns.reshape(2, 2)  # step-major
    np.testing.assert_allclose(returns[1], [1 + 0.5 * 20, 1])


def test_rollout_goes_on_where_the_last_one_ended():
    model = rlox.PPO(Clock(length=5), n_steps=3, policy=TenPerStep())
    first, second = rollouts_of(model, 6)
    assert first.obs[:, 0].tolist() == [0, 1, 2]
    assert second.obs[:, 0].tolist() == [3, 4, 0]
    assert model.episode_returns == [5.0]
    assert model.episode_lengths == [5]


def test_continuous_actions_are_clipped_for_the_environment_alone():
    box = spaces.Box(-0.1, 0.1, (2, 3), np.float32)
    env = Clock(length=50, action_space=box)  # asserts that every action lies in the box
    model = rlox.PPO(env, n_steps=32, seed=0)
    (rollout,) = rollouts_of(model, 32)
    assert rollout.actions.shape == (32, 6)
    assert rollout.actions.abs().max() > 1
    assert np.abs(env.actions).max() == np.float32(0.1)


def test_discrete_actions_start_where_the_space_does():
    env = Clock(length=50, action_space=spaces.Discrete(2, start=5))
    model = rlox.PPO(env, n_steps=32, seed=0)
    rollouts_of(model, 32)
    assert set(env.actions) == {5, 6}
    assert int(model.predict(np.zeros(1))[0]) in {5, 6}


def test_every_transition_is_learnt_from_once_an_epoch():
    model = rlox.PPO("CartPole-v1", n_envs=2, n_steps=25, batch_size=20, n_epochs=3, seed=0)
    sizes, seen, loss = [], [], model.loss

    def spy(batch):
        sizes.append(len(batch.obs))
        seen.extend(batch.obs[:, 0].tolist())
        return loss(batch)

    model.loss = spy
    model.learn(50)
    assert sizes == [20, 20, 10] * 3
    assert sorted(seen[:50]) == sorted(seen[50:100])
    assert len(set(seen)) == 50
    assert seen[:50] != seen[50:100]


def test_gradient_is_clipped():
    model = rlox.PPO(
        "CartPole-v1", n_envs=1, n_steps=8, max_grad_norm=1e-3, seed=0, optimizations=()
    )
    model.learn(8)
    norm = torch.cat([p.grad.flatten() for p in model.policy.parameters()]).norm()
    assert norm.item() == pytest.approx(1e-3, rel=1e-3)


def test_beats_the_random_policy_within_seconds():
    model = rlox.PPO(
        "CartPole-v1", seed=0, n_steps=32, batch_size=256, n_epochs=10, learning_rate=1e-3
    )
    model.learn(16_000)
    assert np.mean(model.episode_returns[-20:]) > 80  # random: 22


def test_learns_from_continuous_actions():
    class Target(gym.Env):
        """One step; the reward is minus the distance of the action from the observation."""

        observation_space = spaces.Box(-1, 1, (1,), np.float64)
        action_space = spaces.Box(-1, 1, (1,), np.float32)

        def reset(self, *, seed=None, options=None):
            super().reset(seed=seed)
            self.target = self.np_random.uniform(-1, 1, 1)
            return self.target, {}

        def step(self, action):
            return self.target, -float(abs(action - self.target)[0]), True, False, {}

    model = rlox.PPO(Target(), n_steps=128, batch_size=64, learning_rate=3e-3, seed=0)
    model.learn(5_000)
    before, after = np.mean(model.episode_returns[:200]), np.mean(model.episode_returns[-200:])
    assert before < -0.6
    assert after > -0.45
    targets = np.linspace(-0.8, 0.8, 9)[:, None]
    actions, _ = model.predict(targets, deterministic=True)
    assert np.abs(actions - targets).mean() < 0.25


def test_a_useless_policy_shows_its_own_return():
    """Pushing left all the time fells the pole in 8 to 10 steps, whatever the update says."""

    class Left(CategoricalActorCritic):
        def get_action_and_logprob(self, obs, deterministic=False, generator=None):
            return torch.zeros(len(obs), dtype=torch.int64), torch.zeros(len(obs))

    model = rlox.PPO("CartPole-v1", seed=0, policy=Left(4, 2)).learn(2048)
    assert 8 <= np.mean(model.episode_returns) <= 10.5
    assert model.episode_returns == model.episode_lengths


def test_a_policy_may_give_views_as_values():
    class TwoValues(CategoricalActorCritic):
        def get_value(self, obs):
            return torch.stack([super().get_value(obs), obs[:, 0]], dim=1)[:, 0]

    collected = []
    for policy in (CategoricalActorCritic, TwoValues):
        torch.manual_seed(0)
        model = rlox.PPO(
            "CartPole-v1", n_envs=3, seed=0, n_steps=4, policy=policy(4, 2), optimizations=()
        )
        collected += rollouts_of(model, 12)
    for one, other in zip(*collected, strict=True):
        assert torch.equal(one, other)


def test_a_policy_that_has_diverged_is_told():
    model = rlox.PPO("CartPole-v1", n_steps=4, optimizations=())
    torch.nn.init.constant_(model.policy.actor[-1].bias, float("nan"))
    with pytest.raises(ValueError, match="policy: gives log-probabilities that are not finite"):
        model.learn(32)
