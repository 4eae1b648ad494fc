"""Actors and critics of the trainers: small torch modules that a user may replace.

`PPO(policy=…)` takes an `ActorCritic`, `SAC(policy=…)` a `StochasticPolicy` whose actions lie in
[-1, 1], `SAC(critic=…)` any module with `forward(obs, actions) -> (q1, q2)`, or more or fewer. Only
the methods matter, not the base class. Observations are flat, `[B, obs_dim]` float32. Noise must be
drawn from the `generator` that is passed: the trainer's `seed` does not determine what is drawn
from torch's global one. A `StochasticPolicy` that also has `from_noise(obs, noise)`, as
`SquashedGaussianActor` has, can be compiled into SAC's update (R3).
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Self, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributions import Categorical, Normal

from rlox.learner.acting import Acting, Predicted
from rlox.learner.distributions import (
    HALF_LOG_2PI,
    ActionDistribution,
    gaussian_log_prob,
    log_slope_of_tanh,
)
from rlox.learner.names import ACTOR_CRITIC, SQUASHED, TWO_CRITICS, use_their_names
from rlox.learner.their_names import TheirNames

LOG_STD_MIN, LOG_STD_MAX = -20.0, 2.0


class StochasticPolicy(TheirNames, nn.Module):
    """A policy that can be sampled from: what `predict` and the collectors need.

    Called with a batch of observations, as they come from the environment, it does the same as in
    Stable-Baselines3. Its trainer sets how observations become its input (`acting`).
    """

    acting: Acting | None = None
    made_from: tuple[str, Mapping[str, Any]] | None = None  # a name and policy_kwargs

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """Actions (`[B]` int64, or `[B, act_dim]` float32) and their log-probabilities `[B]`.

        `deterministic` takes the mode instead of a sample.
        """
        raise NotImplementedError

    def reset_noise(self, n: int = 1, generator: torch.Generator | None = None) -> None:
        """Draw new noise for `n` environments, if the noise depends on the state (gSDE); otherwise
        ValueError."""
        raise ValueError("policy.reset_noise: belongs to a policy that was made with use_sde=True")

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        """Actions in [-1, 1], as SAC's actor gives them."""
        return self.get_action_and_logprob(self._rows(obs), deterministic)[0]

    def _rows(self, obs: Any) -> Tensor:
        return obs.flatten(1) if self.acting is None else self.acting.rows_of(obs)

    def predict(
        self,
        observation: Any,
        state: tuple[Any, ...] | None = None,
        episode_start: Any = None,
        deterministic: bool = False,
    ) -> Predicted:
        """As the trainer's `predict`, but without the trainer."""
        if self.acting is None:
            raise ValueError("policy.predict: the policy belongs to no trainer yet")
        return self.acting.predict(self, observation, deterministic, None, self.device)

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        """One observation, or a batch, as a batch of tensors (for a Dict, a dictionary of them);
        and whether it was a batch."""
        if self.acting is None:
            raise ValueError("policy.obs_to_tensor: the policy belongs to no trainer yet")
        return self.acting.tensors(observation, self.device)

    @property
    def device(self) -> torch.device:
        """The device of its parameters."""
        return next((p.device for p in self.parameters()), torch.device("cpu"))

    def set_training_mode(self, mode: bool) -> None:
        """As `train`."""
        self.train(mode)

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Write the weights, and how the policy was made, for `load`. ValueError for a policy that
        a trainer has not made from a name."""
        from rlox.learner.policy_arguments import write_policy  # imports this module

        write_policy(self, path)

    @classmethod
    def load(
        cls,
        path: str | Path | IO[bytes],
        device: str | torch.device = "auto",
        policy_kwargs: Mapping[str, Any] | None = None,
    ) -> Self:
        """The policy that `save` wrote, for acting without a trainer. No code is run from the file.
        `policy_kwargs` replace those in the file."""
        from rlox.learner.policy_arguments import read_policy

        return read_policy(cls, path, device, policy_kwargs)


class SacPolicy(StochasticPolicy):
    """SAC's actor, which is the whole policy here. Stable-Baselines3's policy contains actor and
    critics; they can be reached under its names, but are no submodules of this one."""

    critics: tuple[nn.Module, nn.Module] | None = None  # the trainer's, and their targets

    @property
    def actor(self) -> Self:
        """The policy itself."""
        return self

    @property
    def critic(self) -> nn.Module:
        """The trainer's critic."""
        return self._critics()[0]

    @property
    def critic_target(self) -> nn.Module:
        """The trainer's target critic."""
        return self._critics()[1]

    def _critics(self) -> tuple[nn.Module, nn.Module]:
        if self.critics is None:
            raise AttributeError("the policy belongs to no trainer, which would have its critics")
        return self.critics


class ActorCritic(StochasticPolicy):
    """A policy and a value function, which PPO learns together."""

    def forward(self, obs: Any, deterministic: bool = False) -> Any:
        """Actions, values and log-probabilities, as Stable-Baselines3's policies give them."""
        rows = self._rows(obs)
        actions, log_probs = self.get_action_and_logprob(rows, deterministic)
        return actions, self.get_value(rows).unsqueeze(-1), log_probs

    def predict_values(self, obs: Any) -> Tensor:
        """Values `[B, 1]` of observations as they come from the environment."""
        return self.get_value(self._rows(obs)).unsqueeze(-1)

    def get_distribution(self, obs: Any) -> ActionDistribution:
        """How likely each action is for observations as they come from the environment."""
        return ActionDistribution(self.torch_distribution(self._rows(obs)))

    def torch_distribution(self, obs: Tensor) -> Any:
        """The same, as one of `torch.distributions` or a list of independent ones."""
        raise NotImplementedError

    def get_value(self, obs: Tensor) -> Tensor:
        """State values, `[B]`."""
        raise NotImplementedError

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Values, log-probabilities of `actions` and the policy's entropy, `[B]` each."""
        raise NotImplementedError


def learning_part(critic: nn.Module) -> nn.Module:
    """The part of the critic that its loss changes: all but a features extractor that it shares
    with the actor."""
    return cast(nn.Module, getattr(critic, "learning_part", critic))


@contextmanager
def frozen(critic: nn.Module) -> Iterator[None]:
    """In this block the part that the critic's loss changes gets no gradient."""
    learning = [p for p in learning_part(critic).parameters() if p.requires_grad]
    for p in learning:
        p.requires_grad_(False)
    try:
        yield
    finally:
        for p in learning:
            p.requires_grad_(True)


def mlp(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers of the given sizes with `activation` between them, none at the end."""
    layers: list[nn.Module] = []
    for n_in, n_out in pairwise(sizes):
        layers += [nn.Linear(n_in, n_out), activation()]
    return nn.Sequential(*layers[:-1])


def trunk(sizes: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """The same with `activation` at the end; empty if there is only one size."""
    layers = [mlp(sizes, activation), activation()] if len(sizes) > 1 else []
    return nn.Sequential(*layers)


def orthogonal_(net: nn.Sequential, last_gain: float) -> nn.Sequential:
    """Orthogonal weights, gain sqrt(2) within and `last_gain` at the output, biases zero."""
    linears = [layer for layer in net if isinstance(layer, nn.Linear)]
    for layer in linears:
        gain = last_gain if layer is linears[-1] else math.sqrt(2)
        nn.init.orthogonal_(layer.weight, gain)
        nn.init.zeros_(layer.bias)
    return net


class CategoricalActorCritic(ActorCritic):
    """Separate tanh networks for the logits of a `Discrete(n_actions)` and for the value."""

    def __init__(
        self,
        obs_dim: int,
        n_actions: int,
        hidden: tuple[int, ...] = (64, 64),
        critic_hidden: tuple[int, ...] | None = None,
        activation: type[nn.Module] = nn.Tanh,
    ) -> None:
        super().__init__()
        self.actor = orthogonal_(mlp([obs_dim, *hidden, n_actions], activation), 0.01)
        of_critic = hidden if critic_hidden is None else critic_hidden
        self.critic = orthogonal_(mlp([obs_dim, *of_critic, 1], activation), 1.0)
        use_their_names(self, ACTOR_CRITIC)

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.draw(self.actor(obs), deterministic, generator)

    def draw(
        self, logits: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `get_action_and_logprob`, from the actor's output."""
        log_probs = F.log_softmax(logits, dim=-1)
        actions = (
            log_probs.argmax(dim=-1) if deterministic else self.draw_actions(log_probs, generator)
        )
        return actions, log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)

    def draw_actions(self, logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Actions `[B]`, from the actor's output."""
        # The same draw as torch.multinomial's, without its checks, which take longer than the draw.
        waiting = torch.empty_like(logits).exponential_(generator=generator)
        return (logits - waiting.log_()).argmax(dim=-1)

    def torch_distribution(self, obs: Tensor) -> Categorical:
        return Categorical(logits=self.actor(obs))

    def get_value(self, obs: Tensor) -> Tensor:
        return cast(Tensor, self.critic(obs)).squeeze(-1)

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_probs = F.log_softmax(self.actor(obs), dim=-1)
        entropy = -(log_probs.exp() * log_probs).sum(dim=-1)
        log_prob = log_probs.gather(-1, actions.unsqueeze(-1)).squeeze(-1)
        return self.get_value(obs), log_prob, entropy


class GaussianActorCritic(ActorCritic):
    """As `CategoricalActorCritic`, for a `Box`: a diagonal Gaussian whose log_std does not depend
    on the state."""

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...] = (64, 64),
        critic_hidden: tuple[int, ...] | None = None,
        activation: type[nn.Module] = nn.Tanh,
        log_std_init: float = 0.0,
    ) -> None:
        super().__init__()
        self.actor = orthogonal_(mlp([obs_dim, *hidden, act_dim], activation), 0.01)
        of_critic = hidden if critic_hidden is None else critic_hidden
        self.critic = orthogonal_(mlp([obs_dim, *of_critic, 1], activation), 1.0)
        use_their_names(self, ACTOR_CRITIC)
        self.log_std = nn.Parameter(torch.full((act_dim,), float(log_std_init)))

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        return self.draw(self.actor(obs), deterministic, generator)

    def draw(
        self, mean: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        """As `get_action_and_logprob`, from the actor's output."""
        actions = mean if deterministic else self.draw_actions(mean, generator)
        return actions, gaussian_log_prob(actions, mean, self.log_std)

    def draw_actions(self, mean: Tensor, generator: torch.Generator | None = None) -> Tensor:
        """Actions `[B, act_dim]`, from the actor's output."""
        noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        return mean + self.log_std.exp() * noise

    def torch_distribution(self, obs: Tensor) -> Normal:
        return Normal(self.actor(obs), self.log_std.exp())

    def get_value(self, obs: Tensor) -> Tensor:
        return cast(Tensor, self.critic(obs)).squeeze(-1)

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        log_prob = gaussian_log_prob(actions, self.actor(obs), self.log_std)
        entropy = (self.log_std + 0.5 + HALF_LOG_2PI).sum().expand_as(log_prob)
        return self.get_value(obs), log_prob, entropy


class SquashedGaussianActor(SacPolicy):
    """SAC's actor: a Gaussian with state-dependent deviation, squashed into [-1, 1] by tanh.

    Haarnoja et al. 2018b, appendix C: log pi(a|s) = log N(u) - sum log(1 - tanh(u)^2).
    """

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...] = (256, 256),
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.trunk = trunk([obs_dim, *hidden], activation)
        self.mean = nn.Linear([obs_dim, *hidden][-1], act_dim)
        self.log_std = nn.Linear([obs_dim, *hidden][-1], act_dim)
        use_their_names(self, SQUASHED)

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        mean, log_std = self._moments(obs)
        noise = None
        if not deterministic:
            noise = torch.randn(mean.shape, generator=generator, device=mean.device)
        return _squashed(mean, log_std, noise)

    def from_noise(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """As `get_action_and_logprob`, from given standard normals `[B, act_dim]`."""
        return _squashed(*self._moments(obs), noise)

    def _moments(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        features = self.trunk(obs)
        return self.mean(features), self.log_std(features).clamp(LOG_STD_MIN, LOG_STD_MAX)


def _squashed(mean: Tensor, log_std: Tensor, noise: Tensor | None) -> tuple[Tensor, Tensor]:
    u = mean if noise is None else mean + log_std.exp() * noise
    slopes = log_slope_of_tanh(u).sum(dim=-1)
    return torch.tanh(u), gaussian_log_prob(u, mean, log_std) - slopes


class TwinCritic(nn.Module):
    """Two independent Q functions; `forward(obs, actions) -> (q1, q2)`, `[B]` each."""

    def __init__(
        self,
        obs_dim: int,
        act_dim: int,
        hidden: tuple[int, ...] = (256, 256),
        activation: type[nn.Module] = nn.ReLU,
    ) -> None:
        super().__init__()
        self.q1 = mlp([obs_dim + act_dim, *hidden, 1], activation)
        self.q2 = mlp([obs_dim + act_dim, *hidden, 1], activation)
        use_their_names(self, TWO_CRITICS)

    def forward(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.cat([obs, actions], dim=-1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)


class Temperature(nn.Module):
    """SAC's alpha: "auto" learns it, beginning at 1; "auto_0.1" begins at 0.1; a number fixes
    it."""

    def __init__(self, ent_coef: float | str) -> None:
        super().__init__()
        self.learned = isinstance(ent_coef, str)
        try:
            start = float(str(ent_coef).removeprefix("auto").removeprefix("_") or 1.0)
        except ValueError:
            start = -1.0
        named = isinstance(ent_coef, str) and not ent_coef.startswith("auto")
        if named or not 0 <= start < math.inf or (self.learned and start == 0):
            raise ValueError(
                f'ent_coef must be "auto", "auto_<start above 0>" or a number, got {ent_coef!r}'
            )
        self.log_alpha = nn.Parameter(torch.tensor(start).log(), requires_grad=self.learned)

    def forward(self) -> Tensor:
        """alpha."""
        return self.log_alpha.exp()
