"""R2: one minibatch of PPO (gather, forward, backward, clip, Adam) as one compiled graph.

Acting is not compiled. Before a compiled call Dynamo checks its guards, which takes longer than the
joined network (R1) takes for a few observations.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from rlox.learner.compiled import Compiled, FlatModule, FlatTensors, adam_
from rlox.learner.flat import CLIP_EPSILON
from rlox.learner.native.networks import Unfit
from rlox.learner.seams import StepByParameter

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO, Rollout


class _Loss(nn.Module):
    """PPO's loss as a module whose parameters are the policy's, for `functional_call`."""

    def __init__(self, model: "PPO") -> None:
        super().__init__()
        self.policy = model.policy
        self.model = [model]  # in a list, so that torch does not register it as a submodule

    def forward(self, batch: "Rollout") -> tuple[Tensor, Tensor]:
        return self.model[0].loss(batch)


class EagerMinibatch:
    """R2's baseline: operation by operation."""

    def __init__(self, model: "PPO", stepper: StepByParameter) -> None:
        self.model, self.stepper = model, stepper

    def __call__(self, rollout: "Rollout", indices: Tensor) -> Tensor:
        """Learn from the transitions at `indices`; returns `FIGURES`."""
        model, timing = self.model, self.model.timing
        with timing.add_time("minibatch"):
            batch = type(rollout)(*(column.index_select(0, indices) for column in rollout))
        with timing.add_time("forward"):
            loss, figures = model.loss(batch)
        with timing.add_time("backward"):
            self.stepper.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        with timing.add_time("clip"):
            self.stepper.clip(model.max_grad_norm)
        with timing.add_time("optimizer"):
            self.stepper.step()
        return figures

    def begin(self) -> None:
        """Called before the minibatches of a rollout."""


class CompiledMinibatch(EagerMinibatch):
    """R2's optimised form: one graph over the flat parameters, for any policy; operation by
    operation if it cannot be compiled."""

    def __init__(self, model: "PPO", stepper: StepByParameter) -> None:
        super().__init__(model, stepper)
        self._compiled = Compiled("R2", self._minibatch, model._compile_options)
        self.report = self._compiled.report
        model.compilations.append(self.report)
        self._loss = _Loss(model)
        try:
            if model._workers:
                raise Unfit("several processes train one model")
            self._flat = FlatModule(self._loss, model.optimizer)
        except Unfit as reason:
            self._compiled.give_up(str(reason))

    def begin(self) -> None:
        if not self.report.given_up:
            try:
                self._tensors = self._flat.bind()
            except Unfit as reason:
                self._compiled.give_up(str(reason))

    def __call__(self, rollout: "Rollout", indices: Tensor) -> Tensor:
        figures: Tensor | None = None
        if not self.report.given_up:
            sizes = (len(rollout.obs), len(indices))
            with self.model.timing.add_time("compiled"), torch.no_grad():
                figures = self._compiled(sizes, rollout, indices, self._tensors)
        return super().__call__(rollout, indices) if figures is None else figures

    def _minibatch(self, rollout: "Rollout", indices: Tensor, flat: FlatTensors) -> Tensor:
        batch = type(rollout)(*(column.index_select(0, indices) for column in rollout))

        def loss(vector: Tensor) -> tuple[Tensor, Tensor]:
            found: tuple[Tensor, Tensor] = functional_call(
                self._loss, self._flat.unflattened(vector), (batch,)
            )
            return found

        gradient, (_, figures) = grad_and_value(loss, has_aux=True)(flat.vector)
        norm = torch.linalg.vector_norm(gradient)
        gradient = gradient * (self.model.max_grad_norm / (norm + CLIP_EPSILON)).clamp(max=1.0)
        adam_(flat, gradient, self._flat.eps)
        found: Tensor = figures
        return found
