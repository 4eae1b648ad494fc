"""Draws actor-critics of any shape that Rust can run, and rollouts for them."""

from itertools import pairwise
from typing import Any

import torch
from gymnasium import spaces
from hypothesis import strategies as st
from torch import nn

from rlox.learner.featured import FeaturesActorCritic, kwargs_for
from rlox.learner.policies import ActorCritic, CategoricalActorCritic, GaussianActorCritic
from rlox.learner.ppo import Rollout


def make_rollout(policy: ActorCritic, obs_dim: int, n: int, seed: int) -> Rollout:
    """A rollout that `policy` could have collected, by an old policy that differs a little."""
    generator = torch.Generator().manual_seed(seed)
    obs = torch.randn(n, obs_dim, generator=generator)
    if isinstance(getattr(getattr(policy, "shown", None), "space", None), spaces.MultiDiscrete):
        obs = (obs > 0).float()
    with torch.no_grad():
        actions, log_probs = policy.get_action_and_logprob(obs, generator=generator)
    moved = log_probs + 0.2 * torch.randn(n, generator=generator)
    advantages, returns = torch.randn(2, n, generator=generator)
    return Rollout(obs, actions, moved, advantages, returns)


@st.composite
def policies(draw: st.DrawFn) -> tuple[ActorCritic, int]:
    """An actor-critic with networks of any shape, and the width of its observations."""
    widths = st.lists(st.integers(1, 70), max_size=3).map(tuple)
    obs_dim, n_out = draw(st.integers(1, 20)), draw(st.integers(1, 7))
    kinds = [CategoricalActorCritic, GaussianActorCritic, FeaturesActorCritic]
    kind = draw(st.sampled_from(kinds))
    torch.manual_seed(draw(st.integers(0, 2**31)))
    if kind is FeaturesActorCritic:
        return draw(features_policies(obs_dim, widths)), obs_dim
    policy = kind(obs_dim, n_out)
    for name, outputs in (("actor", n_out), ("critic", 1)):
        sizes = [obs_dim, *draw(widths), outputs]
        activation = draw(st.sampled_from([nn.Tanh, nn.ReLU]))
        layers: list[nn.Module] = []
        for n_in, out in pairwise(sizes):
            layers += [nn.Linear(n_in, out), activation()]
        setattr(policy, name, nn.Sequential(*layers[:-1]))
    if isinstance(policy, GaussianActorCritic):
        nn.init.uniform_(policy.log_std, -1, 1)
    return policy, obs_dim


@st.composite
def features_policies(draw: st.DrawFn, obs_dim: int, widths: Any) -> FeaturesActorCritic:
    """A policy with one or several choices, whose observations are used as they are, one-hot, or
    key by key; its logits are not small."""
    line = spaces.Box(-1, 1, (obs_dim,))
    space = draw(
        st.sampled_from(
            [
                ("MlpPolicy", line),
                ("MlpPolicy", spaces.MultiDiscrete([2] * obs_dim)),
                ("MultiInputPolicy", spaces.Dict(a=line)),
            ]
        )
    )
    several = spaces.MultiDiscrete(draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    others = [spaces.Discrete(3), spaces.Box(-1, 1, (2,)), spaces.MultiBinary(3)]
    action_space = draw(st.sampled_from([several, *others]))
    arch = {"pi": list(draw(widths)), "vf": list(draw(widths))}
    activation = draw(st.sampled_from([nn.Tanh, nn.ReLU]))
    given = {"net_arch": arch, "activation_fn": activation, "ortho_init": False}
    return FeaturesActorCritic(space[1], action_space, kwargs_for(*space, given))


def networks(policy: ActorCritic) -> list[list[nn.Module]]:
    """The layers of actor and critic."""
    if not isinstance(policy, FeaturesActorCritic):
        return [list(policy.actor), list(policy.critic)]
    both = policy.mlp_extractor
    return [[*both.policy_net, policy.action_net], [*both.value_net, policy.value_net]]


def at_an_edge(policy: ActorCritic, obs: torch.Tensor) -> bool:
    """Whether a ReLU's input is 0 up to rounding, which then decides whether its gradient is 0 or
    1."""
    if isinstance(policy, FeaturesActorCritic):
        obs = policy._seen(obs)
    for network in networks(policy):
        x = obs
        for layer in network:
            if isinstance(layer, nn.ReLU) and x.abs().min() < 1e-6 * x.abs().max():
                return True
            x = layer(x)
    return False
