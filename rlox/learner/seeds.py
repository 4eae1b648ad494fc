"""A trainer's random numbers: streams that all derive from its `seed`."""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


class Seeded:
    """The part of a trainer that makes its random streams."""

    device: torch.device
    _seeds: np.random.SeedSequence

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
