"""Generalised state-dependent exploration (gSDE), beside its formulas and Stable-Baselines3."""

import math
from typing import ClassVar

import gymnasium as gym
import numpy as np
import pytest
import stable_baselines3
import torch
from stable_baselines3.common.distributions import StateDependentNoiseDistribution
from stable_baselines3.common.policies import ActorCriticPolicy

import rlox
from rlox.learner.callbacks import BaseCallback
from rlox.learner.state_dependent import StateDependent

ID = "Pendulum-v1"


def drawn(full_std=True, use_expln=False, squashes=False, n=1):
    """A head with random deviations, and what the layers say of eleven observations."""
    torch.manual_seed(3)
    head = StateDependent(4, 2, -1.0, full_std, use_expln, squashes)
    torch.nn.init.uniform_(head.log_std, -2, 0.5)
    head.reset_noise(n)
    mean, latent = 0.3 * torch.randn(11, 2), torch.randn(11, 4).tanh()
    return head, torch.cat([mean, latent], dim=1)


@pytest.mark.parametrize("full_std", [True, False])
def test_an_action_is_normal_around_its_mean_with_the_deviation_of_the_paper(full_std):
    head, said = drawn(full_std)
    mean, latent = said[:, :2].double(), said[:, 2:].double()
    std = head.log_std.detach().double().exp().expand(4, 2)
    deviation = (latent.square() @ std.square() + 1e-6).sqrt()
    actions = head.draw(said, deterministic=False, generator=None)
    z = (actions.double() - mean) / deviation
    expected = -(z.square() / 2 + deviation.log() + math.log(2 * math.pi) / 2).sum(dim=1)
    near = {"rtol": 1e-4, "atol": 1e-5, "check_dtype": False}
    torch.testing.assert_close(head.log_prob(said, actions), expected, **near)
    entropy = (deviation.log() + math.log(2 * math.pi * math.e) / 2).sum(dim=1)
    torch.testing.assert_close(head.entropy(said), entropy, **near)
    assert torch.equal(head.draw(said, deterministic=True, generator=None), said[:, :2])


def test_noise_follows_from_the_state_until_it_is_drawn_anew():
    head, said = drawn()
    first, second = (head.draw(said, False, None) for _ in range(2))
    assert torch.equal(first, second)
    head.reset_noise()
    assert not torch.equal(head.draw(said, False, None), first)
    weights = (head.get_std() * head.normals)[0]
    expected = said[:, :2] + said[:, 2:] @ weights
    torch.testing.assert_close(head.draw(said, False, None), expected)


def test_over_many_draws_the_noise_has_the_deviation_that_is_said():
    head, said = drawn()
    one = said[:1].expand(20_000, -1)
    head.reset_noise(20_000, torch.Generator().manual_seed(0))
    found = head.draw(one, False, None).std(dim=0)
    torch.testing.assert_close(found, head._log_deviation(said[:1])[0].exp(), rtol=0.02, atol=0)


@pytest.mark.parametrize("n", [1, 11])
@pytest.mark.parametrize("squashes", [False, True])
@pytest.mark.parametrize("use_expln", [False, True])
@pytest.mark.parametrize("full_std", [False, True])
def test_the_distribution_is_theirs(full_std, use_expln, squashes, n):
    head, said = drawn(full_std, use_expln, squashes, n)
    theirs = StateDependentNoiseDistribution(2, full_std, use_expln, squashes, learn_features=True)
    theirs.latent_sde_dim = 4
    weights = head.get_std() * head.normals
    theirs.exploration_mat, theirs.exploration_matrices = weights[0], weights
    theirs.proba_distribution(said[:, :2], head.log_std, said[:, 2:])
    torch.testing.assert_close(head.get_std(), theirs.get_std(head.log_std))
    actions = theirs.sample()
    torch.testing.assert_close(head.draw(said, False, None), actions)
    torch.testing.assert_close(head.draw(said, True, None), theirs.mode())
    # Theirs adds 1e-6 to tanh's slope.
    near = {"rtol": 1e-3, "atol": 1e-2} if squashes else {}
    ours, other = head.log_prob(said, actions.detach()), theirs.log_prob(actions.detach())
    torch.testing.assert_close(ours, other, **near)
    gradients = [torch.autograd.grad(one.sum(), head.log_std)[0] for one in (ours, other)]
    torch.testing.assert_close(*gradients, **near)
    assert squashes == (head.entropy(said) is None) == (theirs.entropy() is None)
    if not squashes:
        torch.testing.assert_close(head.entropy(said), theirs.entropy())


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_a_policy_with_their_weights_says_what_theirs_says(name):
    kwargs = {"net_arch": [8], "use_expln": True, "log_std_init": -1.0}
    models = [
        getattr(library, name)("MlpPolicy", ID, use_sde=True, policy_kwargs=kwargs, seed=1)
        for library in (rlox, stable_baselines3)
    ]
    ours, theirs = (model.policy if name == "PPO" else model.policy.actor for model in models)
    theirs.load_state_dict(ours.state_dict())
    obs = torch.randn(6, 3)
    head = ours.head
    weights = head.get_std() * head.normals
    noise = theirs.action_dist
    noise.exploration_mat, noise.exploration_matrices = weights[0], weights
    if name == "SAC":
        found, expected = ours.get_action_and_logprob(obs), theirs.action_log_prob(obs)
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-3)
        return
    actions, values, log_probs = ours(obs)
    for found, expected in zip((actions, values, log_probs), theirs(obs), strict=True):
        torch.testing.assert_close(found, expected)
    found, expected = ours.evaluate_actions(obs, actions), theirs.evaluate_actions(obs, actions)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other.reshape(-1))


class Draws(BaseCallback):
    """Keeps the noise of each step."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def _on_step(self):
        self.seen.append(self.model.policy.head.normals)
        return True

    def lengths(self):
        """Of the runs of steps with the same noise."""
        news = [i for i, one in enumerate(self.seen) if i == 0 or one is not self.seen[i - 1]]
        return np.diff([*news, len(self.seen)]).tolist()


@pytest.mark.parametrize(("freq", "lengths"), [(-1, [16, 16]), (6, [6, 6, 4, 6, 6, 4])])
def test_ppo_draws_noise_anew_each_rollout_and_as_often_as_it_is_told(freq, lengths):
    draws = Draws()
    settings = {"n_steps": 16, "batch_size": 16, "n_epochs": 1, "seed": 1, "sde_sample_freq": freq}
    model = rlox.PPO("MlpPolicy", ID, use_sde=True, **settings).learn(32, draws)
    assert draws.lengths() == lengths
    assert not torch.equal(draws.seen[0], draws.seen[-1])
    again = rlox.PPO("MlpPolicy", ID, use_sde=True, **settings).learn(32)
    assert np.array_equal(model.rollout_buffer.actions, again.rollout_buffer.actions)


def test_sac_draws_noise_anew_each_rollout_and_acts_by_it_from_the_start_if_told():
    draws = Draws()
    settings = {"train_freq": 8, "learning_starts": 16, "batch_size": 8, "seed": 1, "use_sde": True}
    rlox.SAC("MlpPolicy", ID, sde_sample_freq=3, **settings).learn(16, draws)
    assert draws.lengths() == [3, 3, 2, 3, 3, 2]
    largest = {}
    for warm in (False, True):
        model = rlox.SAC("MlpPolicy", ID, use_sde_at_warmup=warm, **settings).learn(16)
        largest[warm] = np.abs(model.replay_buffer.transitions()["action"]).max()
    assert largest[True] < 0.5 < largest[False]  # its deviation begins at exp(-3)


def test_sac_learns_the_deviation_through_the_noise():
    settings = {"learning_starts": 10, "batch_size": 8, "seed": 1}
    model = rlox.SAC("MlpPolicy", ID, use_sde=True, **settings)
    before = model.policy.get_std().detach().clone()
    model.learn(30)
    # Of a latent feature that is nought everywhere, as ReLU makes some, nothing is learnt.
    assert (model.policy.get_std() != before).float().mean() > 0.5


@pytest.mark.parametrize("name", ["PPO", "SAC"])
def test_what_explores_by_the_state_is_saved(tmp_path, name):
    settings = {"n_steps": 16} if name == "PPO" else {"learning_starts": 4}
    settings["policy_kwargs"] = {"net_arch": [8], "full_std": False}
    trainer = getattr(rlox, name)
    model = trainer("MlpPolicy", ID, use_sde=True, sde_sample_freq=4, **settings).learn(16)
    model.save(tmp_path / "model")
    loaded = trainer.load(tmp_path / "model")
    assert loaded.use_sde and loaded.sde_sample_freq == 4
    model.policy.save(tmp_path / "policy")
    policy = type(model.policy).load(tmp_path / "policy")
    obs = np.ones((3, 3), np.float32)
    expected = model.predict(obs, deterministic=True)[0]
    for one in (loaded, policy):
        np.testing.assert_array_equal(one.predict(obs, deterministic=True)[0], expected)


def test_squashed_actions_of_ppo_are_scaled_to_the_box(tmp_path):
    class Keeps(gym.Wrapper):
        taken: ClassVar[list] = []

        def step(self, action):
            self.taken.append(action)
            return super().step(action)

    kwargs = {"squash_output": True, "log_std_init": 1.0}
    env = Keeps(gym.make(ID))
    model = rlox.PPO("MlpPolicy", env, n_steps=32, use_sde=True, policy_kwargs=kwargs, seed=1)
    model.learn(32)
    stored = model.rollout_buffer.actions[:, 0]
    assert np.abs(stored).max() <= 1
    np.testing.assert_allclose(np.array(env.taken), 2 * stored, rtol=1e-6)
    assert np.abs(model.predict(np.ones(3))[0]) <= 2
    model.policy.save(tmp_path / "policy")
    assert type(model.policy).load(tmp_path / "policy").acting.squashed


def test_a_policy_class_of_theirs_draws_its_own_noise():
    class Own(ActorCriticPolicy):
        drawn = 0

        def reset_noise(self, n_envs=1):
            self.drawn += 1
            super().reset_noise(n_envs)

    settings = {"n_steps": 16, "batch_size": 16, "sde_sample_freq": 8}
    model = rlox.PPO(Own, ID, use_sde=True, **settings).learn(32)
    assert model.policy.theirs.drawn == 4


@pytest.mark.parametrize(
    ("env", "arguments", "said"),
    [
        ("CartPole-v1", {"use_sde": True}, "use_sde: its noise is for a Box"),
        (ID, {"policy_kwargs": {"squash_output": True}}, "belongs to use_sde=True"),
        (ID, {"use_sde": True, "collector": "async"}, "use_sde: another thread"),
        (ID, {"use_sde": 1}, "use_sde must be True or False"),
        (ID, {"sde_sample_freq": -2}, "sde_sample_freq must be at least -1"),
    ],
)
def test_what_goes_with_no_such_noise_is_refused(env, arguments, said):
    with pytest.raises((ValueError, TypeError), match=said):
        rlox.PPO("MlpPolicy", env, **arguments)


def test_a_policy_without_such_noise_has_none_to_draw():
    made = rlox.SAC(ID).policy
    with pytest.raises(ValueError, match=r"belongs to a policy that was made with use_sde=True"):
        made.reset_noise()
    with pytest.raises(ValueError, match="use_sde: describes a policy by name"):
        rlox.SAC(ID, policy=made, use_sde=True)
