"""torch's parameters and Adam's moments as views of flat vectors, so that one compiled graph, or
Rust, updates all of them in one pass."""

from functools import cached_property
from operator import is_
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox.learner.native.networks import Unfit

CLIP_EPSILON = 1e-6  # as in torch.nn.utils.clip_grad_norm_


class Flat:
    """Parameters side by side in one float32 vector. Modules and optimiser keep working with them.

    `tensors`: the parameters and, if there is an optimiser, its two moments. `steps`: the number of
    its steps, for each parameter. Raises `Unfit` if these numbers differ.
    """

    def __init__(self, params: list[Tensor], optimizer: torch.optim.Adam | None) -> None:
        self.params, self.optimizer = params, optimizer
        values = _gathered([param.detach() for param in params])
        for param, view in zip(params, self.views(values), strict=True):
            param.data = view
        self._pointers = [param.data_ptr() for param in params]
        self.tensors: tuple[Tensor, ...] = (values,)
        if optimizer is not None:
            self._state = optimizer.state
            # The device on which torch keeps them.
            at = values.device if optimizer.param_groups[0].get("fused") else torch.device("cpu")
            self._adopt_moments([self._state[param] for param in params], at)

    @cached_property
    def arrays(self) -> tuple[NDArray[Any], ...]:
        """`tensors` as NumPy arrays."""
        return tuple(tensor.numpy() for tensor in self.tensors)

    @cached_property
    def counts(self) -> NDArray[Any] | Tensor:
        """`steps`; on the CPU as a NumPy array, which is counted up in less time."""
        return self.steps.numpy() if self.steps.device.type == "cpu" else self.steps

    def _adopt_moments(self, states: list[dict[str, Tensor]], at: torch.device) -> None:
        steps = {float(state.get("step", 0.0)) for state in states}
        if len(steps) > 1:
            raise Unfit("Adam has taken more steps with some parameters than with others")
        # In torch's form, so that torch can continue with them.
        self.steps = torch.full((len(states),), steps.pop(), device=at)
        for state, step in zip(states, self.steps, strict=True):
            state["step"] = step
        for name in ("exp_avg", "exp_avg_sq"):
            pairs = zip(states, self.params, strict=True)
            moment = _gathered([s[name] if name in s else torch.zeros_like(p) for s, p in pairs])
            for state, view in zip(states, self.views(moment), strict=True):
                state[name] = view
            self.tensors += (moment,)
        self._adopted = self._kept()

    def _kept(self) -> list[Tensor]:
        """All tensors that Adam keeps."""
        return [tensor for state in self._state.values() for tensor in state.values()]

    def views(self, vector: Tensor) -> list[Tensor]:
        """The parts of a vector that belong to the parameters, in their shapes."""
        parts = torch.split(vector, [param.numel() for param in self.params])
        return [part.view_as(param) for part, param in zip(parts, self.params, strict=True)]

    def holds(self) -> bool:
        """Whether parameters and moments are still views of the vectors. They are not if a state
        was loaded into the optimiser or removed from it, or if a parameter was given other data."""
        return [*map(Tensor.data_ptr, self.params)] == self._pointers and (
            self.optimizer is None or self._holds_moments(self.optimizer)
        )

    def _holds_moments(self, optimizer: torch.optim.Adam) -> bool:
        if optimizer.state is not self._state:
            return False
        kept = self._kept()
        return len(kept) == len(self._adopted) and all(map(is_, kept, self._adopted))

    def begin_step(self) -> tuple[float, float, float, float, int]:
        """Count a step of Adam; returns lr, beta1, beta2, eps, and the step's number."""
        assert self.optimizer is not None
        counts = self.counts
        counts += 1
        group = self.optimizer.param_groups[0]
        return group["lr"], *group["betas"], group["eps"], int(counts[0])


def _gathered(tensors: list[Tensor]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])
