"""PPO in several processes: `torchrun --nproc-per-node N script.py`, with the script of one.

`n_envs` and `batch_size` are those of all workers together. Each worker has its part of the
environments, and every update equals that of the joined minibatch, up to rounding. The noise of the
actions differs from that of one process, since each worker draws its own. All workers shuffle
alike.

Where updates run in Rust (R9), each worker gets the rollouts of all workers and learns from all of
them, so they exchange data once a rollout and not at every minibatch. In torch, each worker takes
those transitions of a minibatch that it has collected. The gradient of the whole minibatch is the
sum of the workers' gradients, each weighted with its share of the minibatch; advantages are
normalised over the whole minibatch as well. Such updates are not compiled: R2 does not apply, and a
warning says so.

Where the exchanges cost more than the workers save, `exchange_cost` says so after the first
iterations.

The worker of rank 0 alone saves and shows figures; `save` and `learn` are called by all of them.
Gloo on CPUs, NCCL on CUDA. If a worker ends, or is silent for `PATIENCE`, the others end with
`WorkerLostError`, and torchrun ends the job. To use other settings, initialise `torch.distributed`
before the trainer is made.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from time import perf_counter
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.learner.exchange_cost import ExchangeCost, Iteration
from rlox.learner.flat import Flat
from rlox.learner.native.networks import warn_of_torch

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO, Rollout

PATIENCE = timedelta(minutes=5)


class WorkerLostError(RuntimeError):
    """Another worker has ended or hangs; training can continue from the last checkpoint."""


class Workers:
    """The workers of this job, as seen by the `rank`-th of `size`."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size
        self._cost = ExchangeCost()
        self._collecting: Sequence[float] = ()  # seconds of the last rollout, by rank
        self._exchanging = 0.0  # seconds since then
        self._joins = False  # whether the latest update ran in Rust in every worker

    @classmethod
    def join(cls, device: torch.device) -> Self | None:
        """Connect to the other workers; None if there are none."""
        if not dist.is_available() or int(os.environ.get("WORLD_SIZE", 1)) == 1:
            return None
        if not dist.is_initialized():
            if device.type == "cuda":
                torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
            dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
        return cls(dist.get_rank(), dist.get_world_size())

    def share(self, n_envs: int) -> int:
        """How many of `n_envs` environments are this worker's."""
        if n_envs % self.size:
            raise ValueError(
                f"n_envs must be a multiple of the {self.size} workers, which share them; "
                f"got {n_envs}"
            )
        return n_envs // self.size

    def gathered(self, value: Any) -> list[Any]:
        """Every worker's `value`, by rank."""
        values: list[Any] = [None] * self.size
        with self._together():
            dist.all_gather_object(values, value)
        return values

    def align(self, tensors: Iterable[Tensor]) -> None:
        """Give every worker the values that rank 0 has."""
        with torch.no_grad(), self._together():
            for tensor in tensors:
                dist.broadcast(tensor, 0)

    def collect(self, model: "PPO") -> "Rollout | None":
        """This worker's rollout; None if a callback has stopped one of the workers. Every worker
        gets the episodes of all workers, by rank."""
        seen = len(model.episode_returns)
        began = perf_counter()
        rollout = model.collect_rollout()
        collecting, self._exchanging = perf_counter() - began, 0.0
        episodes = model.episode_returns[seen:], model.episode_lengths[seen:]
        with model.timing.add_time("gather"):
            told = self._told(model, rollout is None, collecting, *episodes)
        stopped, self._collecting, returns, lengths = zip(*told, strict=True)
        model.episode_returns[seen:] = chain.from_iterable(returns)
        model.episode_lengths[seen:] = chain.from_iterable(lengths)
        return None if any(stopped) else rollout

    def _told(
        self,
        model: "PPO",
        stopped: bool,
        collecting: float,
        returns: Sequence[float],
        lengths: Sequence[int],
    ) -> list[tuple[bool, float, list[float], list[int]]]:
        """What every worker tells of its rollout, by rank. All tell as many numbers, since one
        exchange of a fixed size takes half the time of one of any object."""
        most = model.n_steps * model.n_envs  # an episode for each step
        own = torch.zeros(3 + 2 * most, dtype=torch.float64)
        said = [stopped, collecting, len(returns), *returns, *lengths]
        own[: len(said)] = torch.tensor(said, dtype=torch.float64)
        found = []
        for one in self._of_all(own.to(model.device)):
            stop, seconds, n = one[:3].tolist()
            ends = one[3 : 3 + 2 * int(n)].view(2, -1)
            found.append((bool(stop), seconds, ends[0].tolist(), ends[1].int().tolist()))
        return found

    def train(
        self, model: "PPO", rollout: "Rollout"
    ) -> Sequence[float] | NDArray[np.float32] | None:
        """`n_epochs` over the rollouts of all workers; returns the means of `FIGURES`, or None as
        `NativeUpdate.train` does."""
        before, began = self._exchanging, perf_counter()
        figures = self._learn(model, rollout)
        updating = perf_counter() - began - (self._exchanging - before)
        if self.rank == 0 and self._collecting:
            joined = model._native is not None
            took = Iteration(self._collecting, updating, self._exchanging, joined)
            per_rollout = model.n_steps * model._all_envs
            self._cost.add(took, max(0, model._end - model.num_timesteps) // per_rollout)
        return figures

    def _learn(
        self, model: "PPO", rollout: "Rollout"
    ) -> Sequence[float] | NDArray[np.float32] | None:
        native = model._native
        with model.timing.add_time("gather"):
            # Votes go with the rollouts as long as all workers update in Rust. Otherwise rollouts
            # are not exchanged, and votes go alone.
            if self._joins or self._all_say(native is not None, model.device):
                vote = torch.full((len(rollout.obs),), native is not None, device=model.device)
                *columns, votes = self._joined([*rollout, vote], model.n_envs)
                self._joins = bool(votes.all())
            if self._joins:
                joined = type(rollout)(*columns)
            elif native is not None:
                native = model._native = None
                model.update_path = "torch: another worker's has to be"
                warn_of_torch("R9", "updates run", model.update_path)
        if native is not None:
            figures = native.train(model, joined)
            # The workers' results are equal to the bit unless their CPUs are of different kinds and
            # round differently. Such differences must not add up.
            with model.timing.add_time("align"):
                self.align(native.flat.tensors[:1])
                if model.target_kl is not None:
                    self._align_ends(model, native.flat)
            return figures
        model._minibatch()  # if R2 was asked for, this warns that it does not apply
        learnt = self._train_in_torch(model, rollout)
        return torch.stack(learnt).mean(dim=0).cpu().numpy() if learnt else None

    def _align_ends(self, model: "PPO", flat: Flat) -> None:
        """Where `target_kl` ends an update, rounding may decide at which minibatch. Every worker
        therefore gets rank 0's moments, number of steps, and generator of shuffles."""
        shuffles = model._shuffle_generator.get_state()
        self.align([*flat.tensors[1:], flat.steps, shuffles])
        model._shuffle_generator.set_state(shuffles)

    def _train_in_torch(self, model: "PPO", rollout: "Rollout") -> list[Tensor]:
        model.policy.train(True)
        with model.timing.add_time("gather"):
            (advantages,) = self._joined([rollout.advantages], model.n_envs)
        figures: list[Tensor] = []
        for _ in range(model.n_epochs):
            model._n_updates += 1
            order = torch.randperm(
                len(advantages), generator=model._shuffle_generator, device=model.device
            )
            for indices in torch.split(order, model.batch_size):
                if model.target_kl is not None and self._too_far(model, rollout, indices):
                    return figures
                figures.append(self._minibatch(model, rollout, advantages[indices], indices))
        return figures

    def _too_far(self, model: "PPO", rollout: "Rollout", indices: Tensor) -> bool:
        """As `PPO._too_far`, of the transitions `indices` of all rollouts joined."""
        assert model.target_kl is not None
        total = model._kl(rollout, self._own(model, indices)[1]).sum()
        with self._together():
            dist.all_reduce(total)
        return bool(total / len(indices) > 1.5 * model.target_kl)

    def _own(self, model: "PPO", indices: Tensor) -> tuple[Tensor, Tensor]:
        """Which of the transitions `indices` of all rollouts joined are this worker's, and where
        they are in its rollout."""
        env = indices % (self.size * model.n_envs)
        own = env // model.n_envs == self.rank
        at = indices // (self.size * model.n_envs) * model.n_envs + env % model.n_envs
        return own, at[own]

    def _all_say(self, said: bool, device: torch.device) -> bool:
        """Whether every worker has said yes."""
        votes = torch.tensor(int(said), device=device)
        with self._together():
            dist.all_reduce(votes, dist.ReduceOp.MIN)
        return bool(votes)

    def _of_all(self, own: Tensor) -> list[Tensor]:
        """Every worker's tensor, by rank; they have one shape."""
        of_all = [torch.empty_like(own) for _ in range(self.size)]
        with self._together():
            dist.all_gather(of_all, own)
        return of_all

    def _joined(self, columns: Sequence[Tensor], n_envs: int) -> list[Tensor]:
        """`[n_steps * n_envs, …]` of each worker as `[n_steps * size * n_envs, …]`, step-major."""
        packed = torch.cat([column.contiguous().view(-1).view(torch.uint8) for column in columns])
        sizes = [column.nbytes for column in columns]
        parts = zip(*(torch.split(one, sizes) for one in self._of_all(packed)), strict=True)
        joined = []
        for column, of_all in zip(columns, parts, strict=True):
            # Cloned, since a view as eight-byte numbers needs aligned memory.
            own = [
                one.clone().view(column.dtype).view(-1, n_envs, *column.shape[1:]) for one in of_all
            ]
            joined.append(torch.stack(own, dim=1).flatten(0, 2))
        return joined

    def _minibatch(
        self, model: "PPO", rollout: "Rollout", advantages: Tensor, indices: Tensor
    ) -> Tensor:
        """A step of Adam from the transitions `indices` of all rollouts joined; `FIGURES`."""
        timing = model.timing
        with timing.add_time("minibatch"):
            if model.normalize_advantage and len(advantages) > 1:
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            own, at = self._own(model, indices)
            batch = type(rollout)(*(column.index_select(0, at) for column in rollout))
            batch = batch._replace(advantages=advantages[own])

        params = [p for group in model.optimizer.param_groups for p in group["params"]]
        with timing.add_time("forward"):
            model.optimizer.zero_grad()
            loss, figures = model.loss(batch, normalize_advantage=False)
        share = len(at) / len(indices)
        if len(at):
            with timing.add_time("backward"):
                (share * loss).backward()  # type: ignore[no-untyped-call]
        # A mean over nothing is NaN, so a worker without a transition in the minibatch adds zeros.
        figures = share * figures if len(at) else torch.zeros_like(figures)
        with timing.add_time("all_reduce"):
            grads = (torch.zeros_like(p) if p.grad is None else p.grad for p in params)
            flat = torch.cat([*(grad.flatten() for grad in grads), figures])
            with self._together():
                dist.all_reduce(flat)
            parts = torch.split(flat, [*(p.numel() for p in params), len(figures)])
            for p, grad in zip(params, parts[:-1], strict=True):
                p.grad = grad.view_as(p) if p.requires_grad else None  # or Adam would move it
        with timing.add_time("clip"):
            nn.utils.clip_grad_norm_(params, model.max_grad_norm)
        with timing.add_time("optimizer"):
            model.optimizer.step()
        return parts[-1]

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Something that all workers do at once, and how long it takes. If one is lost, the error
        says so."""
        began = perf_counter()
        try:
            yield
        except RuntimeError as error:  # of Gloo and NCCL
            raise WorkerLostError(
                f"worker {self.rank} of {self.size}: another one has ended or hangs; start again "
                f"from the last checkpoint ({str(error).splitlines()[0]})"
            ) from error
        finally:
            self._exchanging += perf_counter() - began
