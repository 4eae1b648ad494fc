"""A policy class written for Stable-Baselines3, used as PPO's policy here."""

from pathlib import Path
from typing import IO, Any, Self

import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlox.learner.features import channels_first, shown
from rlox.learner.policies import ActorCritic
from rlox.learner.spaces import is_image, part_shape, parts

THEIRS = "stable_baselines3.common.policies"


class TheirPolicy(ActorCritic):
    """Wraps an object of `policy_class`, a subclass of Stable-Baselines3's `ActorCriticPolicy`.
    That object gets observations as they come from the environment, images with their channels
    first, and draws from torch's global generator. Attributes that this class lacks are looked up,
    and set, on that object."""

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        action_space: spaces.Space[Any],
        policy_class: type[nn.Module],
        learning_rate: float,
        kwargs: dict[str, Any],
    ) -> None:
        super().__init__()
        self.space = observation_space
        self.theirs: Any = policy_class(
            shown(observation_space), action_space, lambda _: learning_rate, **kwargs
        )

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimiser that the policy has made."""
        found: torch.optim.Optimizer = self.theirs.optimizer
        return found

    @optimizer.setter
    def optimizer(self, given: torch.optim.Optimizer) -> None:
        self.theirs.optimizer = given

    def _raw(self, rows: Tensor) -> Any:
        """Rows as batches of the environment's own observations."""
        found, at = {}, 0
        for key, part in parts(self.space).items():
            shape = part_shape(part)
            n = int(torch.Size(shape).numel())
            batch = rows[:, at : at + n].view(-1, *shape)
            at += n
            if isinstance(part, spaces.Discrete | spaces.MultiDiscrete):
                batch = batch.long()
            if isinstance(part, spaces.Box) and is_image(part) and not channels_first(part):
                batch = batch.permute(0, 3, 1, 2)
            found[key] = batch
        return found if isinstance(self.space, spaces.Dict) else found[""]

    def get_action_and_logprob(
        self, obs: Tensor, deterministic: bool = False, generator: torch.Generator | None = None
    ) -> tuple[Tensor, Tensor]:
        actions, _, log_probs = self.theirs(self._raw(obs), deterministic=deterministic)
        return (actions.flatten(1) if actions.ndim > 1 else actions), log_probs

    def get_value(self, obs: Tensor) -> Tensor:
        values: Tensor = self.theirs.predict_values(self._raw(obs))
        return values.flatten()

    def step_value(self, obs: Tensor) -> Tensor:
        """Values of a rollout's steps. Stable-Baselines3 takes them from `forward`, so `forward` is
        called if the policy's class overrides it."""
        if type(self.theirs).forward.__module__ == THEIRS:
            return self.get_value(obs)
        values: Tensor = self.theirs(self._raw(obs))[1]
        return values.flatten()

    def evaluate_actions(self, obs: Tensor, actions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        values, log_probs, entropy = self.theirs.evaluate_actions(self._raw(obs), actions)
        return values.flatten(), log_probs, -log_probs if entropy is None else entropy

    def get_distribution(self, obs: Any) -> Any:
        return self.theirs.get_distribution(obs)

    def obs_to_tensor(self, observation: Any) -> tuple[Any, bool]:
        found: tuple[Any, bool] = self.theirs.obs_to_tensor(observation)
        return found

    def reset_noise(self, n: int = 1, generator: torch.Generator | None = None) -> None:
        self.theirs.reset_noise(n)

    def save(self, path: str | Path | IO[bytes]) -> None:
        """Save as the policy's own class does; that class can load the file."""
        self.theirs.save(path)

    @classmethod
    def load(cls, *_: Any, **__: Any) -> Self:
        """Raises an error: the file can be loaded by the user's policy class alone."""
        raise ValueError("policy.load: call load of the class that was given to PPO as policy")

    def train(self, mode: bool = True) -> "TheirPolicy":
        self.training = mode
        self.theirs.set_training_mode(mode)
        return self

    def __setattr__(self, name: str, value: Any) -> None:
        theirs = self.__dict__.get("_modules", {}).get("theirs")
        own = name in self.__dict__ or hasattr(type(self), name)
        there = theirs is not None and not own and hasattr(theirs, name)
        if there:
            setattr(theirs, name, value)
        else:
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name == "theirs":
                raise
            return getattr(self.theirs, name)
