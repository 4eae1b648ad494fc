"""Turns rows of observations into the input of a policy's layers. It has the features extractors of
Stable-Baselines3, under their names."""

from collections.abc import Callable, Mapping
from typing import Any, cast

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from rlox.learner.arguments import Unsupported
from rlox.learner.spaces import is_image, part_shape, parts


def channels_first(space: spaces.Box) -> bool:
    """Whether the first axis of images has the channels: it does if it is the shortest one."""
    return int(np.argmin(space.shape)) == 0


def shown(space: spaces.Space[Any]) -> spaces.Space[Any]:
    """`space` as a features extractor sees it: images with their channels first."""
    if isinstance(space, spaces.Dict):
        return spaces.Dict([(key, shown(part)) for key, part in space.spaces.items()])
    if isinstance(space, spaces.Box) and is_image(space) and not channels_first(space):
        low, high = (np.transpose(end, (2, 0, 1)) for end in (space.low, space.high))
        return spaces.Box(low, high, dtype=np.uint8)
    return space


def in_order(obs: Any, space: spaces.Space[Any]) -> Any:
    """`obs`, an array or tensor of one or several observations, with the axes in the order of
    `space`. Images may have their channels first, as Stable-Baselines3's `VecTransposeImage`
    does."""
    if isinstance(space, spaces.Dict):
        if not isinstance(obs, Mapping) or not obs.keys() >= space.spaces.keys():
            return obs
        return {key: in_order(obs[key], part) for key, part in space.spaces.items()}
    shape = part_shape(space)
    if len(shape) != 3 or not isinstance(space, spaces.Box):
        return obs
    if not is_image(space) or channels_first(space):
        return obs
    height, width, channels = shape
    if tuple(getattr(obs, "shape", ()))[-3:] != (channels, height, width):
        return obs
    if isinstance(obs, Tensor):
        return obs.movedim(-3, -1)
    return np.moveaxis(np.asarray(obs), -3, -1)


def with_channels_first(env: Any) -> Any:
    """`env`, a vector environment of Stable-Baselines3's kind, with `VecTransposeImage` around it
    where that library's trainers would put one: if images have their channels last."""
    from stable_baselines3.common.vec_env import VecTransposeImage, is_vecenv_wrapped

    in_place = shown(env.observation_space) == env.observation_space
    if in_place or is_vecenv_wrapped(env, VecTransposeImage):
        return env
    turned: Any = VecTransposeImage(env)
    turned.of_a_trainer = True  # so that another trainer gets the environment inside the wrapper
    return turned


def as_shown_by(env: Any, obs: Any) -> Any:
    """`obs` of a trainer's environments, as its `env` shows them."""
    return env.transpose_observations(obs) if "of_a_trainer" in vars(env) else obs


def features_size(space: spaces.Space[Any]) -> int:
    """The numbers that networks get for one observation; a `Discrete` is one-hot."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    return int(np.prod(part_shape(space)))


class Shown(nn.Module):
    """Turns rows `[B, row_length]` of float32 into the input of a features extractor: a tensor, or
    for a `Dict` one for each key. Discrete values become one-hot; images have their channels first.

    `scales`: whether images within a `Dict` become floats from 0 to 1. If the whole observation is
    an image, the trainer has scaled it.
    """

    def __init__(self, space: spaces.Space[Any], scales: bool = True) -> None:
        super().__init__()
        self.space, self.scales = space, scales
        self._parts = parts(space)
        self._lengths = [int(np.prod(part_shape(part))) for part in self._parts.values()]

    @property
    def leaves_rows(self) -> bool:
        """Whether rows stay what they are once a `FlattenExtractor` has flattened them."""
        space = self.space
        return isinstance(space, spaces.Box | spaces.MultiBinary) and not is_image(space)

    def forward(self, rows: Tensor) -> Any:
        columns = torch.split(rows, self._lengths, dim=1)
        found = {
            key: self._shown(column, part)
            for (key, part), column in zip(self._parts.items(), columns, strict=True)
        }
        return found if isinstance(self.space, spaces.Dict) else found[""]

    def _shown(self, rows: Tensor, space: spaces.Space[Any]) -> Tensor:
        if isinstance(space, spaces.Discrete):
            return _one_hot(rows[:, 0] - int(space.start), int(space.n))
        if isinstance(space, spaces.MultiDiscrete):
            starts = torch.as_tensor(space.start.flatten(), device=rows.device)
            each = zip((rows - starts).T, space.nvec.flatten().tolist(), strict=True)
            return torch.cat([_one_hot(column, n) for column, n in each], dim=1)
        if not is_image(space):
            return rows.view(-1, *part_shape(space))
        assert isinstance(space, spaces.Box)
        images = rows.view(-1, *space.shape)
        if self.scales and isinstance(self.space, spaces.Dict):
            images = images / 255
        return images if channels_first(space) else images.permute(0, 3, 1, 2)


def _one_hot(numbers: Tensor, n: int) -> Tensor:
    """One-hot rows `[B, n]`; torch's own function cannot be compiled."""
    return (numbers[:, None] == torch.arange(n, device=numbers.device)).float()


def _for_convolutions(space: spaces.Space[Any], normalized: bool) -> bool:
    """Whether observations are images or, if `normalized`, of any Box with three axes."""
    any_box = normalized and isinstance(space, spaces.Box) and len(part_shape(space)) == 3
    return any_box or is_image(space)


def takes_normalized_images(extractor: type[nn.Module]) -> bool:
    """Whether the extractor has an argument `normalized_image`, with which images need not be
    bytes: the image extractors of this library and Stable-Baselines3, and classes derived from
    them."""
    of_images = ("NatureCNN", "CombinedExtractor")
    known = (__name__, "stable_baselines3.common.torch_layers")
    return any(c.__name__ in of_images and c.__module__ in known for c in extractor.__mro__)


class FlattenExtractor(nn.Module):
    """Observations as one vector."""

    def __init__(self, observation_space: spaces.Space[Any]) -> None:
        super().__init__()
        self.features_dim = features_size(observation_space)

    def forward(self, observations: Tensor) -> Tensor:
        return observations.flatten(1)


def frames_as_given(frames: Tensor) -> Tensor:
    """R18's baseline: convolutions take frames `[B, C, H, W]` as they lie in memory."""
    return frames


def frames_with_channels_last(frames: Tensor) -> Tensor:
    """R18's optimised form: on a CPU the channels of each pixel lie side by side. oneDNN convolves
    such frames in less time, and its results lie in that order as well."""
    if frames.device.type != "cpu":
        return frames
    return frames.contiguous(memory_format=torch.channels_last)


class NatureCNN(nn.Module):
    """The convolutions of Mnih et al. 2015 and one linear layer. With `normalized_image` it takes a
    Box with any three axes, channels first. A trainer chooses how frames lie in memory, `order`."""

    order: Callable[[Tensor], Tensor] = staticmethod(frames_as_given)

    def __init__(
        self,
        observation_space: spaces.Space[Any],
        features_dim: int = 512,
        normalized_image: bool = False,
    ) -> None:
        super().__init__()
        if not _for_convolutions(observation_space, normalized_image):
            raise Unsupported(
                f"CnnPolicy takes images, bytes from 0 to 255 in three axes, and the observation "
                f"space is {observation_space}; for floats in three axes, the channels first, give "
                "policy_kwargs=dict(normalize_images=False); for others use "
                '"MlpPolicy", or for a Dict "MultiInputPolicy"'
            )
        self.features_dim = features_dim
        shape = part_shape(observation_space)
        self.cnn = nn.Sequential(
            *(nn.Conv2d(shape[0], 32, 8, stride=4), nn.ReLU()),
            *(nn.Conv2d(32, 64, 4, stride=2), nn.ReLU()),
            *(nn.Conv2d(64, 64, 3, stride=1), nn.ReLU(), nn.Flatten()),
        )
        with torch.no_grad():
            length = self.cnn(torch.zeros(1, *shape)).shape[1]
        self.linear = nn.Sequential(nn.Linear(length, features_dim), nn.ReLU())

    def forward(self, observations: Tensor) -> Tensor:
        return cast(Tensor, self.linear(self.cnn(self.order(observations))))


def is_nature_cnn(extractor: type[nn.Module] | None) -> bool:
    """Whether it is this library's `NatureCNN`, or Stable-Baselines3's, and no class derived from
    them."""
    theirs = ("stable_baselines3.common.torch_layers", "NatureCNN")
    return extractor is NatureCNN or (
        extractor is not None and (extractor.__module__, extractor.__qualname__) == theirs
    )


class CombinedExtractor(nn.Module):
    """A `NatureCNN` for each image of a `Dict`; all other entries flat; joined to one vector."""

    def __init__(
        self,
        observation_space: spaces.Dict,
        cnn_output_dim: int = 256,
        normalized_image: bool = False,
    ) -> None:
        super().__init__()
        if not isinstance(observation_space, spaces.Dict):
            raise ValueError(
                f"MultiInputPolicy takes a Dict, and the observation space is {observation_space}; "
                'use "MlpPolicy" or "CnnPolicy"'
            )
        extractors = {
            key: NatureCNN(part, cnn_output_dim, normalized_image)
            if _for_convolutions(part, normalized_image)
            else FlattenExtractor(part)
            for key, part in observation_space.spaces.items()
        }
        self.extractors = nn.ModuleDict(extractors)
        self.features_dim = sum(part.features_dim for part in extractors.values())

    def forward(self, observations: Mapping[str, Tensor]) -> Tensor:
        found = [extractor(observations[key]) for key, extractor in self.extractors.items()]
        return torch.cat(found, dim=1)
