"""PPO in several processes: `torchrun --nproc-per-node N script.py`, with the script of one.

`n_envs` and `batch_size` are those of all workers together: each has its part of the environments,
and every update is that of the joined minibatch. All shuffle alike, each takes the transitions of a
minibatch that it has collected, and the sum of the workers' gradients, each weighted with its share
of the minibatch, is the gradient of the whole; advantages are normalised over the whole as well. So
a step is that of one process that had collected all, but for rounding. What differs is the noise of
the actions, since each worker draws its own. Updates are torch's, uncompiled: R2 and R9 do not
apply, and say so.

The worker of rank 0 alone saves and shows figures; `save` and `learn` are called by all of them.
Gloo on CPUs, NCCL on CUDA. A worker that ends, or is silent for `PATIENCE`, ends the others with
`WorkerLostError`, and torchrun the job. Who wants other settings initialises `torch.distributed`
before the trainer is made.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Self

import torch
import torch.distributed as dist
from torch import Tensor, nn

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO, Rollout

PATIENCE = timedelta(minutes=5)


class WorkerLostError(RuntimeError):
    """Another worker has ended or hangs; training goes on from the last checkpoint."""


class Workers:
    """The workers of this job, seen from one of them: the `rank`-th of `size`."""

    def __init__(self, rank: int, size: int) -> None:
        self.rank, self.size = rank, size

    @classmethod
    def join(cls, device: torch.device) -> Self | None:
        """Meet the other workers; None where there are none."""
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

    def align(self, module: nn.Module) -> None:
        """Give every worker rank 0's parameters and buffers."""
        with torch.no_grad(), self._together():
            for tensor in (*module.parameters(), *module.buffers()):
                dist.broadcast(tensor, 0)

    def collect(self, model: "PPO") -> "Rollout | None":
        """This worker's rollout; None if a callback has stopped one of the workers. All get to know
        the episodes of all, by rank."""
        seen = len(model.episode_returns)
        rollout = model.collect_rollout()
        own = (rollout is None, model.episode_returns[seen:], model.episode_lengths[seen:])
        with model.timing.add_time("gather"):
            stopped, returns, lengths = zip(*self.gathered(own), strict=True)
        model.episode_returns[seen:] = chain.from_iterable(returns)
        model.episode_lengths[seen:] = chain.from_iterable(lengths)
        return None if any(stopped) else rollout

    def train(self, model: "PPO", rollout: "Rollout") -> Tensor:
        """`n_epochs` over the rollouts of all workers; returns the means of `FIGURES`."""
        model.policy.train(True)
        with model.timing.add_time("gather"):
            advantages = self._joined(rollout.advantages, model.n_envs)
        figures = []
        for _ in range(model.n_epochs):
            order = torch.randperm(
                len(advantages), generator=model._shuffle_generator, device=model.device
            )
            for indices in torch.split(order, model.batch_size):
                figures.append(self._minibatch(model, rollout, advantages[indices], indices))
        return torch.stack(figures).mean(dim=0)

    def _joined(self, column: Tensor, n_envs: int) -> Tensor:
        """`[n_steps * n_envs]` of each worker as `[n_steps * size * n_envs]`, step-major."""
        columns = [torch.empty_like(column) for _ in range(self.size)]
        with self._together():
            dist.all_gather(columns, column)
        return torch.stack([column.view(-1, n_envs) for column in columns], dim=1).flatten()

    def _minibatch(
        self, model: "PPO", rollout: "Rollout", advantages: Tensor, indices: Tensor
    ) -> Tensor:
        """A step of Adam from the transitions `indices` of all rollouts joined; `FIGURES`."""
        timing = model.timing
        with timing.add_time("minibatch"):
            if model.normalize_advantage and len(advantages) > 1:
                advantages = (advantages - advantages.mean()) / (advantages.std() + 1e-8)
            env = indices % (self.size * model.n_envs)
            own = env // model.n_envs == self.rank
            at = (indices // (self.size * model.n_envs) * model.n_envs + env % model.n_envs)[own]
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
        # A mean over nothing is NaN: where no transition is its own, a worker adds zeros.
        figures = share * figures if len(at) else torch.zeros_like(figures)
        with timing.add_time("all_reduce"):
            grads = (torch.zeros_like(p) if p.grad is None else p.grad for p in params)
            flat = torch.cat([*(grad.flatten() for grad in grads), figures])
            with self._together():
                dist.all_reduce(flat)
            parts = torch.split(flat, [*(p.numel() for p in params), len(figures)])
            for p, grad in zip(params, parts[:-1], strict=True):
                p.grad = grad.view_as(p)
        with timing.add_time("clip"):
            nn.utils.clip_grad_norm_(params, model.max_grad_norm)
        with timing.add_time("optimizer"):
            model.optimizer.step()
        return parts[-1]

    @contextmanager
    def _together(self) -> Iterator[None]:
        """What all workers do at once; the loss of one is said clearly."""
        try:
            yield
        except RuntimeError as error:  # of Gloo and of NCCL alike
            raise WorkerLostError(
                f"worker {self.rank} of {self.size}: another one has ended or hangs; start again "
                f"from the last checkpoint ({str(error).splitlines()[0]})"
            ) from error
