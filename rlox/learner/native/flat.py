"""torch's parameters, and Adam's moments of them, as views of flat vectors that Rust writes to."""

from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.native.networks import Unfit


class Flat:
    """Parameters side by side in one float32 vector; modules and optimiser keep working with them.

    `arrays`: the parameters and, where there is an optimiser, its two moments, as NumPy views.
    """

    def __init__(self, params: list[Tensor], optimizer: torch.optim.Adam | None) -> None:
        self.params, self.optimizer = params, optimizer
        values = _gathered([param.detach() for param in params])
        for param, view in zip(params, self._views(values), strict=True):
            param.data = view
        self._pointers = [param.data_ptr() for param in params]
        self.arrays: tuple[NDArray[Any], ...] = (values.numpy(),)
        if optimizer is not None:
            self._state = optimizer.state
            self._adopt_moments([self._state[param] for param in params])

    def _adopt_moments(self, states: list[dict[str, Tensor]]) -> None:
        steps = {float(state.get("step", 0.0)) for state in states}
        if len(steps) > 1:
            raise Unfit("Adam has taken more steps with some parameters than with others")
        # A number for each parameter, as torch has it, so that it can go on by itself.
        self.steps = torch.full((len(states),), steps.pop())
        for state, step in zip(states, self.steps, strict=True):
            state["step"] = step
        for name in ("exp_avg", "exp_avg_sq"):
            pairs = zip(states, self.params, strict=True)
            moment = _gathered([s[name] if name in s else torch.zeros_like(p) for s, p in pairs])
            for state, view in zip(states, self._views(moment), strict=True):
                state[name] = view
            self.arrays += (moment.numpy(),)

    def _views(self, vector: Tensor) -> list[Tensor]:
        parts = torch.split(vector, [param.numel() for param in self.params])
        return [part.view_as(param) for part, param in zip(parts, self.params, strict=True)]

    def holds(self) -> bool:
        """Whether parameters and moments are still where they were put: somebody may have loaded a
        state into the optimiser, or given a parameter other data."""
        return [param.data_ptr() for param in self.params] == self._pointers and (
            self.optimizer is None or self.optimizer.state is self._state
        )

    def begin_step(self) -> tuple[float, float, float, float, int]:
        """Count a step of Adam's; its lr, beta1, beta2, eps, and its number."""
        assert self.optimizer is not None
        self.steps += 1
        group = self.optimizer.param_groups[0]
        return group["lr"], *group["betas"], group["eps"], int(self.steps[0])


def _gathered(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
