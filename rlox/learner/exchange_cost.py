"""Whether several processes train one model faster than one process would: estimated from what the
first iterations took, and said where they do not.

An iteration is a rollout and its updates. In it, worker k of n collects for r_k seconds, computes
its updates for u, and exchanges data for x, which includes the wait for the slowest worker. So an
iteration takes worker 0 the time T = r_0 + u + x.

One process exchanges nothing. It collects for R = r_0 + r_1 + … at most, since it steps as many
environments, and calls the policy once for all of them. Its updates take u where every worker
learns from all transitions (R9), and n u at most where every worker learns from its part of each
minibatch. So n processes train at most (R + u) / T, or (R + n u) / T, times as fast as one. Where
even that is below 1, n processes are slower than one, and worker 0 says so.

On CUDA a call returns before its work is done, so much of an exchange counts as computing. There
the estimate says less often that processes are slower.
"""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

_WARM_UP = 1  # iterations: the first one connects the workers and allocates
_MEASURED = 3  # whose median is taken, so that one disturbance decides nothing


class Iteration(NamedTuple):
    """Seconds of a rollout and its updates, seen from one worker.

    Attributes:
        collecting: of the rollout, of each worker by rank.
        updating: of what this worker computes in its updates.
        exchanging: of all exchanges of this worker, its waits for the others included.
        joined: whether every worker learns from the transitions of all.
    """

    collecting: Sequence[float]
    updating: float
    exchanging: float
    joined: bool

    def together(self, rank: int = 0) -> float:
        """Seconds that the iteration takes the worker `rank`, which measured it."""
        return self.collecting[rank] + self.updating + self.exchanging

    def alone(self) -> float:
        """Seconds that it would take one process, at most."""
        parts = 1 if self.joined else len(self.collecting)
        return sum(self.collecting) + parts * self.updating


class ExchangeCost:
    """Takes the iterations of worker 0 one by one, and says once what they show."""

    def __init__(self) -> None:
        self._seen: list[Iteration] = []

    def add(self, iteration: Iteration, left: int) -> None:
        """An iteration is over, and `left` more are to come in this training.

        Warns:
            UserWarning: after the fourth, if several processes train slower than one would.
        """
        if len(self._seen) < _WARM_UP + _MEASURED:
            self._seen.append(iteration)
            if len(self._seen) == _WARM_UP + _MEASURED:
                told = verdict(self._seen[_WARM_UP:], left)
                if told is not None:
                    warnings.warn(told, stacklevel=2)


def verdict(iterations: Sequence[Iteration], left: int) -> str | None:
    """What to say of workers that took so long for each of some iterations, with `left` to come;
    None where they may be as fast as one process or faster."""
    middle = sorted(iterations, key=lambda one: one.alone() / one.together())[len(iterations) // 2]
    together, alone = middle.together(), middle.alone()
    if alone >= together:
        return None
    remedy = (
        "collect more between two exchanges (n_steps)"
        if middle.joined
        else "exchange less often (a larger batch_size, fewer n_epochs)"
    )
    lost = f" The rest of this training is longer by {left * (together - alone):.2g} s or more."
    return (
        f"{len(middle.collecting)} processes train at most {alone / together:.2f} times as fast as "
        f"one: a rollout and its updates take {_ms(together)}, of which {_ms(middle.exchanging)} "
        f"are exchanges between the processes, and would take one process {_ms(alone)} at most."
        f"{lost if left else ''} Train in one process, or {remedy}."
    )


def _ms(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms"
