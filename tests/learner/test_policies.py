"""Networks and distributions, against torch.distributions."""

import pytest
import torch
from torch.distributions import Categorical, Normal, TanhTransform, TransformedDistribution

from rlox.learner.policies import (
    CategoricalActorCritic,
    GaussianActorCritic,
    SquashedGaussianActor,
    Temperature,
)


@pytest.fixture
def obs():
    return torch.randn(32, 3, generator=torch.Generator().manual_seed(0))


def test_tanh_gaussian_log_prob_is_that_of_the_transformed_distribution(obs):
    actor = SquashedGaussianActor(3, 2).double()
    obs = obs.double()
    actions, log_probs = actor.get_action_and_logprob(obs, generator=torch.Generator())
    features = actor.trunk(obs)
    normal = Normal(actor.mean(features), actor.log_std(features).exp())
    expected = TransformedDistribution(normal, TanhTransform(cache_size=1)).log_prob(actions)
    torch.testing.assert_close(log_probs, expected.sum(-1))


def test_tanh_gaussian_log_prob_stays_finite_where_tanh_has_rounded_to_one():
    actor = SquashedGaussianActor(3, 2)
    torch.nn.init.constant_(actor.mean.bias, 40.0)
    actions, log_probs = actor.get_action_and_logprob(torch.zeros(4, 3))
    assert (actions == 1).all()
    assert log_probs.isfinite().all()


def test_categorical_policy_agrees_with_torch(obs):
    policy = CategoricalActorCritic(3, 4)
    torch.nn.init.normal_(policy.actor[-1].weight)  # far from the uniform start
    actions, log_probs = policy.get_action_and_logprob(obs, generator=torch.Generator())
    values, again, entropy = policy.evaluate_actions(obs, actions)
    expected = Categorical(logits=policy.actor(obs))
    torch.testing.assert_close(log_probs, expected.log_prob(actions))
    torch.testing.assert_close(again, log_probs)
    torch.testing.assert_close(entropy, expected.entropy())
    torch.testing.assert_close(values, policy.get_value(obs))


def test_gaussian_policy_agrees_with_torch(obs):
    policy = GaussianActorCritic(3, 2)
    torch.nn.init.constant_(policy.log_std, -0.7)
    actions, log_probs = policy.get_action_and_logprob(obs, generator=torch.Generator())
    _, again, entropy = policy.evaluate_actions(obs, actions)
    expected = Normal(policy.actor(obs), policy.log_std.exp())
    torch.testing.assert_close(log_probs, expected.log_prob(actions).sum(-1))
    torch.testing.assert_close(again, log_probs)
    torch.testing.assert_close(entropy, expected.entropy().sum(-1))


@pytest.mark.parametrize(
    "policy", [CategoricalActorCritic(3, 4), GaussianActorCritic(3, 2), SquashedGaussianActor(3, 2)]
)
def test_samples_come_from_the_generator_and_modes_from_none(policy, obs):
    draw = policy.get_action_and_logprob
    first, _ = draw(obs, generator=torch.Generator().manual_seed(1))
    same, _ = draw(obs, generator=torch.Generator().manual_seed(1))
    other, _ = draw(obs, generator=torch.Generator().manual_seed(2))
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    before = torch.get_rng_state()
    assert torch.equal(draw(obs, deterministic=True)[0], draw(obs, deterministic=True)[0])
    assert torch.equal(torch.get_rng_state(), before)


def test_samples_have_the_frequencies_of_the_policy():
    policy = CategoricalActorCritic(1, 3)
    policy.actor[-1].bias.data = torch.tensor([0.5, 0.2, 0.3]).log()
    torch.nn.init.zeros_(policy.actor[-1].weight)
    generator = torch.Generator().manual_seed(0)
    actions, _ = policy.get_action_and_logprob(torch.zeros(20_000, 1), generator=generator)
    shares = actions.bincount(minlength=3) / len(actions)
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.2, 0.3]), atol=0.015, rtol=0)


def test_initial_weights_are_those_of_stable_baselines3():
    sb3 = pytest.importorskip("stable_baselines3")
    theirs = sb3.PPO("MlpPolicy", "CartPole-v1", device="cpu").policy
    ours = CategoricalActorCritic(4, 2)
    pairs = [
        (theirs.mlp_extractor.policy_net[0], ours.actor[0]),
        (theirs.mlp_extractor.policy_net[2], ours.actor[2]),
        (theirs.action_net, ours.actor[4]),
        (theirs.mlp_extractor.value_net[0], ours.critic[0]),
        (theirs.mlp_extractor.value_net[2], ours.critic[2]),
        (theirs.value_net, ours.critic[4]),
    ]
    for their, our in pairs:
        # Orthogonal matrices are equal up to a rotation: compare their singular values.
        torch.testing.assert_close(
            torch.linalg.svdvals(our.weight), torch.linalg.svdvals(their.weight)
        )
        assert not our.bias.any()
    assert sum(p.numel() for p in ours.parameters()) == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize(
    ("ent_coef", "alpha", "learned"),
    [("auto", 1.0, True), ("auto_0.1", 0.1, True), (0.2, 0.2, False), (0.0, 0.0, False)],
)
def test_temperature_starts_where_asked(ent_coef, alpha, learned):
    temperature = Temperature(ent_coef)
    assert temperature().item() == pytest.approx(alpha)
    assert temperature.log_alpha.requires_grad is learned


@pytest.mark.parametrize("ent_coef", ["aut", "auto_x", "auto_0", "0.1", -0.1])
def test_temperature_that_makes_no_sense_is_named(ent_coef):
    with pytest.raises(ValueError, match="ent_coef must be"):
        Temperature(ent_coef)
