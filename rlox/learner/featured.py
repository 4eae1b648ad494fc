"""Policies made of a features extractor and layers above it, as `policy_kwargs` describe them.

Where observations are a vector, actions a `Discrete` or a `Box`, and initial weights orthogonal,
the plain policies of `rlox.learner.policies` are used instead. Rust can run both kinds, and
policies with an extractor only if the extractor has no parameters.
"""

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral
from typing import Any, cast

import torch
import torch.nn.functional as F
from gymnasium import spaces
from torch import Tensor, nn

from rlox.learner.arguments import Unsupported, refuse_left_out
from rlox.learner.critics import q_functions
from rlox.learner.features import (
    CombinedExtractor,
    FlattenExtractor,
    NatureCNN,
    Shown,
    features_size,
    is_nature_cnn,
    shown,
    takes_normalized_images,
)
from rlox.learner.heads import Head, head_for
from rlox.learner.names import (
    CRITICS_WITHIN,
    HEAD,
    NOISY,
    NOISY_CLIPPED,
    SQUASHED_WITHIN,
    repeat_features_extractor,
    use_their_names,
)
from rlox.learner.policies import (
    ActorCritic,
    CategoricalActorCritic,
    GaussianActorCritic,
    SacPolicy,
    SquashedGaussianActor,
    trunk,
)
from rlox.learner.state_dependent import StateDependent

EXTRACTORS: dict[str, type[nn.Module]] = {
    "MlpPolicy": FlattenExtractor,
    "CnnPolicy": NatureCNN,
    "MultiInputPolicy": CombinedExtractor,
}


@dataclass
class PolicyKwargs:
    """The keys of `policy_kwargs`, with the defaults of Stable-Baselines3. None: the policy's own
    default, or no arguments."""

    net_arch: list[int] | dict[str, list[int]] | list[dict[str, list[int]]] | None = None
    activation_fn: type[nn.Module] | None = None
    ortho_init: bool = True
    log_std_init: float | None = None  # None: 0, or -3 of SAC, where it belongs to use_sde
    use_sde: bool = False
    full_std: bool = True
    use_expln: bool = False
    squash_output: bool = False
    clip_mean: float = 2.0
    n_critics: int = 2
    features_extractor_class: type[nn.Module] | None = None
    features_extractor_kwargs: Mapping[str, Any] | None = None
    share_features_extractor: bool | None = None
    normalize_images: bool = True
    optimizer_class: type[torch.optim.Optimizer] | None = None
    optimizer_kwargs: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> "PolicyKwargs":
        """The values `given`; TypeError for an unknown key."""
        known = {one.name for one in fields(cls)}
        given = dict(given or {})
        refuse_left_out("policy_kwargs", {k: v for k, v in given.items() if k not in known})
        return cls(**{name: value for name, value in given.items() if name in known})

    def hidden(self, usual: list[int], second: str) -> tuple[list[int], list[int]]:
        """Widths of the policy's layers and of those of `second`: "vf" of PPO, which has none above
        a CNN, or "qf" of SAC."""
        usual = [] if second == "vf" and is_nature_cnn(self.features_extractor_class) else usual
        arch: Any = usual if self.net_arch is None else self.net_arch
        if isinstance(arch, list | tuple) and len(arch) == 1 and isinstance(arch[0], Mapping):
            warnings.warn(
                f"policy_kwargs: net_arch is {arch}, which is the old form; give the dict alone",
                stacklevel=2,
            )
            arch = arch[0]
        if isinstance(arch, Mapping) and (second == "vf" or arch.keys() >= {"pi", "qf"}):
            return [int(n) for n in arch.get("pi", [])], [int(n) for n in arch.get(second, [])]
        if isinstance(arch, Mapping) or any(not isinstance(width, Integral) for width in arch):
            raise ValueError(
                f"policy_kwargs: net_arch is {arch}; give widths, [64, 64], or "
                f"dict(pi=[64, 64], {second}=[64, 64])"
            )
        widths = [int(width) for width in arch]
        return widths, list(widths)

    def extractor(self, space: spaces.Space[Any]) -> nn.Module:
        """A new features extractor for observations of `space`."""
        kind = self.features_extractor_class
        assert kind is not None
        kwargs = dict(self.features_extractor_kwargs or {})
        if not self.normalize_images and takes_normalized_images(kind):
            kwargs["normalized_image"] = True
        return kind(shown(space), **kwargs)

    def optimizer(self, **usual: Any) -> Callable[[nn.Module, float], torch.optim.Optimizer]:
        """A function that makes the optimiser from a module and a learning rate. Adam has the
        `usual` settings, unless others are given."""
        kind: Any = self.optimizer_class or torch.optim.Adam
        settings = usual if kind is torch.optim.Adam else {}
        settings |= self.optimizer_kwargs or {}
        return lambda module, rate: kind(module.parameters(), lr=rate, **settings)

    def noise(self, n_latent: int, act_dim: int, usual: float, squashes: bool) -> StateDependent:
        """New noise that depends on the state; `usual` is the default initial `log_std`."""
        start = usual if self.log_std_init is None else self.log_std_init
        return StateDependent(n_latent, act_dim, start, self.full_std, self.use_expln, squashes)

    def head(self, space: spaces.Space[Any], n_latent: int) -> Head:
        """The distribution from which PPO draws actions."""
        if not self.use_sde:
            return head_for(space, self.log_std_init or 0.0)
        if not isinstance(space, spaces.Box):
            raise Unsupported(f"use_sde: its noise is for a Box, and the action space is {space}")
        return self.noise(n_latent, math.prod(space.shape), 0.0, self.squash_output)

    @property
    def flattens(self) -> bool:
        """Whether the extractor only changes the shape of observations."""
        return self.features_extractor_class is FlattenExtractor


def kwargs_for(
    name: str, space: spaces.Space[Any], given: Mapping[str, Any] | None
) -> PolicyKwargs:
    """`policy_kwargs` of the policy `name`, for observations of `space`."""
    if name not in EXTRACTORS:
        known = ", ".join(f'"{known}"' for known in EXTRACTORS)
        raise ValueError(f"policy is {name!r}; there are {known}, and modules of your own")
    kwargs = PolicyKwargs.of(given)
    if kwargs.features_extractor_class is None:
        kwargs.features_extractor_class = EXTRACTORS[name]
    if kwargs.flattens and isinstance(space, spaces.Dict):
        raise ValueError(f'policy: "{name}" takes no Dict ({space}); use "MultiInputPolicy"')
    return kwargs


def layers(n_in: int, widths: list[int], activation: type[nn.Module]) -> nn.Sequential:
    """Linear layers with an activation after each."""
    modules: list[nn.Module] = []
    for width in widths:
        modules += [nn.Linear(n_in, width), activation()]
        n_in = width
    return nn.Sequential(*modules)


def orthogonal(module: nn.Module, gain: float) -> None:
    """Orthogonal weights with `gain`, biases zero, in all linear layers and convolutions."""
    for part in module.modules():
        if isinstance(part, nn.Linear | nn.Conv2d):
            nn.init.orthogonal_(part.weight, gain)
            if part.bias is not None:
                nn.init.zeros_(part.bias)


class MlpExtractor(nn.Module):
    """The layers of the policy and those of the value function."""

    def __init__(
        self, n_in: int, pi: list[int], vf: list[int], activation: type[nn.Module]
    ) -> None:
        super().__init__()
        self.policy_net, self.value_net = layers(n_in, pi, activation), layers(n_in, vf, activation)


class Seeing(nn.Module):
    """A module with a features extractor below it."""

    def _see(
        self, space: spaces.Space[Any], kwargs: PolicyKwargs, extractor: nn.Module | None = None
    ) -> int:
        """Take `extractor`, or make one; returns the number of its features."""
        self.shown = Shown(space, kwargs.normalize_images)
        self.features_extractor = kwargs.extractor(space) if extractor is None else extractor
        return int(self.features_extractor.features_dim)  # type: ignore[arg-type]

    def _seen(self, obs: Tensor) -> Tensor:
        """The features of rows of observations."""
        return cast(Tensor, self.features_extractor(self.shown(obs)))


class FeaturesActorCritic(Seeing, ActorCritic):
    """Policy and value function above a features extractor, which they share by default. The parts
    have their names in Stable-Baselines3."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        kwargs: PolicyKwargs,
    ) -> None:
        super().__init__()
        n = self._see(observation_space, kwargs)
        self.vf_features_extractor: nn.Module | None = None
        if kwargs.share_features_extractor is False:
            self.vf_features_extractor = kwargs.extractor(observation_space)
        pi, vf = kwargs.hidden([64, 64], "vf")
        self.mlp_extractor = MlpExtractor(n, pi, vf, kwargs.activation_fn or nn.Tanh)
        n_latent = pi[-1] if pi else n
        self.head = kwargs.head(action_space, n_latent)
        self.action_net = nn.Linear(n_latent, self.head.n_inputs)
        self.value_net = nn.Linear(vf[-1] if vf else n, 1)
        use_their_names(self, HEAD)
        repeat_features_extractor(self)
        if kwargs.ortho_init:
            inner = [self.features_extractor, self.vf_features_extractor, self.mlp_extractor]
            for part in filter(None, inner):
                orthogonal(part, math.sqrt(2))
            orthogonal(self.action_net, 0.01)
            orthogonal(self.value_net, 1.0)

    def _features(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        """The features for the policy and those for the value function."""
        observations = self.shown(obs)
        features = self.features_extractor(observations)
        if self.vf_features_extractor is None:
            return features, features
        return features, self.vf_features_extractor(observations)

    def _said(self, features: Tensor) -> Tensor:
        latent = self.mlp_extractor.policy_net(features)
        said: Tensor = self.action_net(latent)
        return torch.cat([said, latent.detach()], dim=-1) if self.head.needs_latent else said

    def _value(self, features: Tensor) -> Tensor:
        return cast(Tensor, self.value_net(self.mlp_extractor.value_net(features))).squeeze(-1)

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        said = self._said(self._seen(obs))
        actions = self.head.draw(said, deterministic, generator)
        return actions, self.head.log_prob(said, actions)

    def get_value(self, obs: Tensor) -> Tensor:
        extractor = self.vf_features_extractor or self.features_extractor
        return self._value(extractor(self.shown(obs)))

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        of_policy, of_value = self._features(obs)
        said = self._said(of_policy)
        log_probs, entropy = self.head.log_prob(said, actions), self.head.entropy(said)
        # Where the entropy has no formula: the mean of -log pi(a|s) estimates it.
        return self._value(of_value), log_probs, -log_probs if entropy is None else entropy

    def torch_distribution(self, obs: Tensor) -> Any:
        return self.head.torch_distribution(self._said(self._features(obs)[0]))

    def reset_noise(self, n: int = 1, generator: torch.Generator | None = None) -> None:
        if isinstance(self.head, StateDependent):
            self.head.reset_noise(n, generator)
        else:
            super().reset_noise(n, generator)


class FeaturesActor(Seeing, SacPolicy):
    """SAC's actor above a features extractor."""

    def __init__(
        self, space: spaces.Space[Any], kwargs: PolicyKwargs, act_dim: int,
        hidden: list[int], activation: type[nn.Module],
    ) -> None:  # fmt: skip
        super().__init__()
        n = self._see(space, kwargs)
        self.net = SquashedGaussianActor(n, act_dim, tuple(hidden), activation)
        use_their_names(self, SQUASHED_WITHIN)

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        features = self._seen(obs)
        return self.net.get_action_and_logprob(features, deterministic, generator)

    def from_noise(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        """As `SquashedGaussianActor`'s."""
        return self.net.from_noise(self._seen(obs), noise)


class StateDependentActor(Seeing, SacPolicy):
    """SAC's actor with noise that depends on the state (gSDE). `clip_mean` bounds the mean, which
    otherwise grows where tanh is flat."""

    def __init__(
        self, space: spaces.Space[Any], kwargs: PolicyKwargs, act_dim: int,
        hidden: list[int], activation: type[nn.Module],
    ) -> None:  # fmt: skip
        super().__init__()
        sizes = [self._see(space, kwargs), *hidden]
        self.trunk, self.clip_mean = trunk(sizes, activation), float(kwargs.clip_mean)
        self.mean = nn.Linear(sizes[-1], act_dim)
        self.head = kwargs.noise(sizes[-1], act_dim, usual=-3.0, squashes=True)
        use_their_names(self, NOISY_CLIPPED if self.clip_mean > 0 else NOISY)

    def reset_noise(self, n: int = 1, generator: torch.Generator | None = None) -> None:
        self.head.reset_noise(n, generator)

    def get_std(self) -> Tensor:
        """As the head's."""
        return self.head.get_std()

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        latent: Tensor = self.trunk(self._seen(obs))
        mean = self.mean(latent)
        if self.clip_mean > 0:
            mean = F.hardtanh(mean, -self.clip_mean, self.clip_mean)
        said = torch.cat([mean, latent], dim=-1)
        unsquashed = self.head.draw_unsquashed(said, deterministic)
        return unsquashed.tanh(), self.head.log_prob_unsquashed(said, unsquashed)


class FeaturesCritic(Seeing):
    """SAC's Q functions above a features extractor: their own, or `extractor`, which is the
    actor's and learns from the actor's loss alone."""

    def __init__(
        self, space: spaces.Space[Any], kwargs: PolicyKwargs, act_dim: int,
        hidden: list[int], activation: type[nn.Module], extractor: nn.Module | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self.shares = extractor is not None
        n = self._see(space, kwargs, extractor)
        # The name is part of the parameters' names in earlier checkpoints, so it cannot change.
        self.twins = q_functions(kwargs.n_critics, n, act_dim, tuple(hidden), activation)
        use_their_names(self, CRITICS_WITHIN)

    @property
    def learning_part(self) -> nn.Module:
        """The part that the critic's loss changes."""
        return self.twins if self.shares else self

    def forward(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, ...]:
        seen = self._seen(obs.reshape(len(obs), -1))
        features = seen.detach() if self.shares else seen
        return cast(tuple[Tensor, ...], self.twins(features, actions))


def _plain(space: spaces.Space[Any], kwargs: PolicyKwargs) -> bool:
    return kwargs.flattens and isinstance(space, spaces.Box)


def make_actor_critic(
    space: spaces.Space[Any], action_space: spaces.Space[Any], kwargs: PolicyKwargs
) -> ActorCritic:
    """PPO's policy."""
    if kwargs.n_critics != 2:
        raise ValueError("policy_kwargs: n_critics belongs to SAC; PPO has one value function")
    simple = isinstance(action_space, spaces.Discrete | spaces.Box)
    if not (_plain(space, kwargs) and simple and kwargs.ortho_init) or kwargs.use_sde:
        return FeaturesActorCritic(space, action_space, kwargs)
    n, activation = features_size(space), kwargs.activation_fn or nn.Tanh
    pi, vf = (tuple(widths) for widths in kwargs.hidden([64, 64], "vf"))
    if isinstance(action_space, spaces.Discrete):
        return CategoricalActorCritic(n, int(action_space.n), pi, vf, activation)
    assert action_space.shape is not None
    act_dim = math.prod(action_space.shape)
    return GaussianActorCritic(n, act_dim, pi, vf, activation, kwargs.log_std_init or 0.0)


def make_actor_and_critic(
    space: spaces.Space[Any], act_dim: int, kwargs: PolicyKwargs
) -> tuple[SacPolicy, nn.Module]:
    """SAC's actor and critic."""
    pi, qf = kwargs.hidden([256, 256], "qf")
    activation = kwargs.activation_fn or nn.ReLU
    if _plain(space, kwargs) and not kwargs.use_sde:
        n = features_size(space)
        actor = SquashedGaussianActor(n, act_dim, tuple(pi), activation)
        return actor, q_functions(kwargs.n_critics, n, act_dim, tuple(qf), activation)
    kind = StateDependentActor if kwargs.use_sde else FeaturesActor
    seeing = kind(space, kwargs, act_dim, pi, activation)
    shared = seeing.features_extractor if kwargs.share_features_extractor else None
    return seeing, FeaturesCritic(space, kwargs, act_dim, qf, activation, shared)
