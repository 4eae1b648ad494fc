"""A trainer's random numbers: streams that all derive from its `seed`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from rlox.learner.arguments import require_integers


class Seeded:
    """The part of a trainer that makes its random streams."""

    device: torch.device
    action_space: spaces.Space[Any]
    _act_generator: torch.Generator
    _generators: tuple[str, ...]
    _seeds: np.random.SeedSequence
    _env_seed: int | None
    _rank: Any

    def set_random_seed(self, seed: int | None = None) -> None:
        """Begin all random streams anew from `seed`: those of training and `predict`, of
        `action_space`, and of the environments when they are reset next. What was learnt stays.
        None changes nothing."""
        if seed is None:
            return
        require_integers(0, seed=seed)
        self._seeds, self._env_seed = np.random.SeedSequence(seed), int(seed)
        self.action_space.seed(int(seed) + self._rank)
        for name in self._generators:
            getattr(self, name).manual_seed(self._new_seed())
        self._draw_apart()

    def _draw_apart(self) -> None:
        """Let each of the processes that train one model draw actions of its own."""
        generator = self._act_generator
        generator.manual_seed(generator.initial_seed() + self._rank)

    def _generator(self) -> torch.Generator:
        """A new stream of random numbers, independent of those before it."""
        return torch.Generator(self.device).manual_seed(self._new_seed())

    @contextmanager
    def _seeded_initialisation(self) -> Iterator[None]:
        """Networks made in this block draw their weights from `seed`, without advancing the global
        stream.

        Initialisers of torch's layers take no generator, so the global one is set meanwhile.
        """
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._new_seed())
            yield

    def _new_seed(self) -> int:
        return int(self._seeds.spawn(1)[0].generate_state(1)[0])
