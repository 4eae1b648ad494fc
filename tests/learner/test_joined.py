"""Actor and critic in one pass, and the actor alone: what they say as they are, and which policies
are left as they are."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from rlox.learner.joined import actor_in_torch, join
from rlox.learner.policies import CategoricalActorCritic, GaussianActorCritic, mlp

widths = st.lists(st.integers(1, 9), max_size=3)


@settings(max_examples=50)
@given(widths, st.integers(1, 5), st.booleans(), st.sampled_from([nn.Tanh, nn.ReLU]), st.data())
def test_one_pass_says_what_two_say(hidden, n_out, discrete, activation, data):
    """Any widths, those of the critic its own."""
    kind = CategoricalActorCritic if discrete else GaussianActorCritic
    policy = kind(3, n_out, hidden)
    others = data.draw(st.lists(st.integers(1, 9), min_size=len(hidden), max_size=len(hidden)))
    policy.actor = mlp([3, *hidden, n_out], activation)
    policy.critic = mlp([3, *others, 1], activation)
    joined = join(policy)
    assert joined is not None
    obs = torch.randn(7, 3)
    actions, log_probs, values = joined(obs, torch.Generator().manual_seed(0))
    apart = policy.get_action_and_logprob(obs, generator=torch.Generator().manual_seed(0))
    for one, two in zip((actions, log_probs, values), (*apart, policy.get_value(obs)), strict=True):
        torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-5)
    assert actions.dtype == apart[0].dtype

    by_itself = actor_in_torch(policy)(obs, torch.Generator().manual_seed(0))
    torch.testing.assert_close(by_itself, apart[0], rtol=1e-4, atol=1e-5)


class Overrides(CategoricalActorCritic):
    def get_value(self, obs):
        return super().get_value(obs) + 1


def deeper_critic(policy):
    policy.critic = mlp([3, 4, 4, 4, 1], nn.Tanh)


def other_activation(policy):
    policy.critic = mlp([3, 4, 4, 1], nn.ReLU)


def unknown_activation(policy):
    policy.actor, policy.critic = mlp([3, 4, 2], nn.GELU), mlp([3, 4, 1], nn.GELU)


def no_bias(policy):
    policy.critic[0] = nn.Linear(3, 4, bias=False)


def hook(policy):
    policy.actor[0].register_forward_hook(lambda *_: None)


def own_value(policy):
    policy.get_value = lambda obs: obs[:, 0]


def own_draw(policy):
    policy.draw_actions = lambda logits, generator=None: logits.argmax(-1)


@pytest.mark.parametrize(
    "change",
    [deeper_critic, other_activation, unknown_activation, no_bias, hook, own_value, own_draw],
)
def test_networks_that_do_not_fit_together_are_left_alone(change):
    policy = CategoricalActorCritic(3, 2, (4, 4))
    assert join(policy) is not None
    change(policy)
    assert join(policy) is None
    assert (actor_in_torch(policy) is not None) == (change in (deeper_critic, other_activation))


def test_a_subclass_is_left_as_it_is():
    assert join(Overrides(3, 2)) is None
    assert actor_in_torch(Overrides(3, 2)) is None
