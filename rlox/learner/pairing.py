"""A pair of the training loop: the workloads of an optimisation. Both sides are real parts of
trainers, one made with the optimisation and one without it."""

import random
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch

Size = Mapping[str, int]

# Sizes that a case is drawn from: small, so that hundreds of cases take seconds.
_CASES = {"n_envs": 3, "n_steps": 5, "batch_size": 9, "hidden": 6, "layers": 3}
_CALLS = 2  # of a case: the second one continues where the first has ended


class Arm(NamedTuple):
    """One side of a pair: the call that is timed, and a function that gives the values of its last
    result, which are compared."""

    call: Callable[[], Any]
    outcome: Callable[[Any], Sequence[Any]] = list


class Workload(NamedTuple):
    """`make(optimizations, size, seed)` gives one side. `missing()` says why this machine cannot
    run it. Cases are drawn from `cases`, {name: (least, most)}, if the usual small ones would not
    execute the code that the optimisation changes.
    """

    name: str
    sizes: Sequence[Size]
    make: Callable[[Collection[str], Size, int], Arm]
    missing: Callable[[], str | None] = lambda: None
    cases: Mapping[str, tuple[int, int]] = MappingProxyType({})


class Pair(NamedTuple):
    """An optimisation's workloads, and how much its twins may differ in them (0: not a bit)."""

    id: str
    tolerance: float
    workloads: Sequence[Workload]

    def agree(self, seed: int) -> None:
        """Raise AssertionError if the twins differ in the case that `seed` draws."""
        rng = random.Random(seed)
        for workload in self.workloads:
            if workload.missing() is None:
                ranges = {name: (1, _CASES[name]) for name in workload.sizes[0]}
                ranges.update(workload.cases)
                size = {name: rng.randint(*ends) for name, ends in ranges.items()}
                arms = self.arms(workload, size, rng.getrandbits(31))
                for _ in range(_CALLS):
                    before, after = (arm.outcome(arm.call()) for arm in arms)
                    self.compare(before, after)

    def arms(self, workload: Workload, size: Size, seed: int) -> tuple[Arm, Arm]:
        """The baseline's side and the optimised one."""
        return workload.make((), size, seed), workload.make((self.id,), size, seed)

    def compare(self, before: Sequence[Any], after: Sequence[Any]) -> None:
        """Raise AssertionError if the results differ by more than the tolerance."""
        for one, other in zip(before, after, strict=True):
            one, other = (torch.as_tensor(x).detach().cpu() for x in (one, other))
            torch.testing.assert_close(other, one, rtol=self.tolerance, atol=self.tolerance)
