"""What R2 and R3 share: a whole update as one compiled graph over flat parameters.

`torch.compile` needs a C++ compiler and seconds of time. Without a compiler, or where a module
cannot be traced as one graph, training goes on uncompiled, with one warning.
"""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from types import FunctionType, MethodType
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rlox.learner.flat import Flat
from rlox.learner.native.networks import Unfit, Watch

BACKEND = "inductor"
BETA_1, BETA_2 = 0.9, 0.999  # Adam's, torch's defaults


class FlatTensors(NamedTuple):
    """The arguments of `adam_`: parameters and both moments as flat vectors; the number of steps,
    and the betas to their powers, for each parameter; the learning rate."""

    vector: Tensor
    exp_avg: Tensor
    exp_avg_sq: Tensor
    steps: Tensor
    power_1: Tensor
    power_2: Tensor
    lr: Tensor


@dataclass
class Compilation:
    """The cost and result of compiling: wall seconds of loading the compiler and of the first
    calls; the number of graphs (one for each size of a batch); and the reason if compiling was
    given up. In that case each graph break is counted."""

    seconds: float = 0.0
    graphs: int = 0
    graph_breaks: int = 0
    given_up: str = ""


class Compiled:
    """`update` compiled as one graph, with Inductor's `options`. If compiling was given up, calls
    return None."""

    def __init__(
        self, id_: str, update: Callable[..., Any], options: Callable[[], dict[str, Any]]
    ) -> None:
        self.id = id_
        started = time.perf_counter()
        self._update = torch.compile(
            _with_code_of_its_own(update),
            fullgraph=True,
            dynamic=False,
            backend=BACKEND,
            options=options() if BACKEND == "inductor" else None,
        )
        self.report = Compilation(time.perf_counter() - started)
        self._seen: set[object] = set()  # sizes for which a graph was compiled

    def __call__(self, size: object, *arguments: Any) -> Any:
        """Call it. There is a graph for each `size`. If compiling fails, no argument has been
        changed."""
        if self.report.given_up:
            return None
        started = time.perf_counter()
        try:
            answer = self._update(*arguments)
        # Dynamo, Inductor and the compiler that they find each raise errors of their own.
        except Exception as error:
            self.report.graph_breaks += isinstance(error, torch._dynamo.exc.Unsupported)
            cause = getattr(error, "inner_exception", error)  # the compiler's own error
            self.give_up(f"{type(cause).__name__}: {str(cause).strip().splitlines()[0]}")
            return None
        if size not in self._seen:
            self._seen.add(size)
            self.report.graphs += 1
            self.report.seconds += time.perf_counter() - started
        return answer

    def give_up(self, why: str) -> None:
        """Warn once that training goes on uncompiled."""
        self.report.given_up = why
        message = f"{self.id}: not compiled, training goes on in eager torch: {why}"
        warnings.warn(message, stacklevel=2)


def _with_code_of_its_own(method: Callable[..., Any]) -> Callable[..., Any]:
    """A bound method with its own code object. Dynamo keeps graphs by code object and gives up on
    one at its ninth graph, and a process may train more models than that."""
    if not isinstance(method, MethodType):
        return method
    function = method.__func__
    own = FunctionType(
        function.__code__.replace(),
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    return MethodType(own, method.__self__)


def products_as_they_are() -> dict[str, Any]:
    """R16's baseline: a library computes all matrix products."""
    return {}


def products_by_shape() -> dict[str, Any]:
    """R16's optimised form: a library computes only products without a small dimension, and
    never adds the bias. The pass runs last, since another pass would join bias and product
    again."""
    from rlox.learner.compiled_products import ProductsByShape  # loads the compiler

    return {"post_grad_custom_post_pass": ProductsByShape()}


class FlatModule:
    """A module's trainable parameters by name, in one vector, with Adam's moments beside it.

    Raises `Unfit` for parameters that are not all float32 and on one device, for hooks, and for an
    optimiser that takes other steps than `adam_`.
    """

    def __init__(self, module: nn.Module, optimizer: torch.optim.Adam) -> None:
        named = {name: p for name, p in module.named_parameters() if p.requires_grad}
        self.names, self.params = list(named), list[Tensor](named.values())
        kinds = {(p.dtype, p.device) for p in self.params}
        if len(kinds) != 1 or self.params[0].dtype != torch.float32:
            raise Unfit("its parameters are not all float32 and on one device")
        self._watch = Watch([module], [optimizer])
        self._watch.require_undisturbed()
        if tuple(optimizer.param_groups[0]["betas"]) != (BETA_1, BETA_2):
            raise Unfit("Adam's betas are not torch's defaults")
        self.shapes = [p.shape for p in self.params]
        self.sizes = [p.numel() for p in self.params]
        self.optimizer = optimizer
        self.eps = float(optimizer.param_groups[0]["eps"])
        # These are tensors: a number would be compiled into the graph as a constant, so that each
        # value of a schedule would need a graph of its own.
        self.lr, self.power_1, self.power_2 = (torch.zeros(()) for _ in range(3))
        self._flat: Flat | None = None

    def bind(self) -> FlatTensors:
        """The tensors that `adam_` changes, with the present learning rate. This is called before
        each update, since a schedule may change the rate and loading replaces tensors; it takes
        some microseconds.

        Raises `Unfit` if the optimiser has made more steps with some parameters than with others,
        or if somebody has changed module or optimiser meanwhile.
        """
        self._watch.require_undisturbed()
        if self._flat is None or not self._flat.holds():
            self._flat = Flat(self.params, self.optimizer)
        self.lr.fill_(self.optimizer.param_groups[0]["lr"])
        step = float(self._flat.steps[0])
        self.power_1.fill_(BETA_1**step)
        self.power_2.fill_(BETA_2**step)
        vector, first, second = self._flat.tensors
        steps, powers = self._flat.steps, (self.power_1, self.power_2)
        return FlatTensors(vector, first, second, steps, *powers, self.lr)

    def unflattened(self, vector: Tensor) -> dict[str, Tensor]:
        """`vector` as the module's parameters by name."""
        parts = torch.split(vector, self.sizes)
        shaped = (part.view(shape) for part, shape in zip(parts, self.shapes, strict=True))
        return dict(zip(self.names, shaped, strict=True))


def adam_(flat: FlatTensors, gradient: Tensor, eps: float) -> None:
    """One step of Adam (Kingma and Ba 2015).

    The powers of the betas are kept, since Inductor would otherwise compute them anew for each 16
    parameters.
    """
    vector, exp_avg, exp_avg_sq, steps, power_1, power_2, lr = flat
    steps += 1
    power_1 *= BETA_1
    power_2 *= BETA_2
    exp_avg.lerp_(gradient, 1 - BETA_1)
    exp_avg_sq.mul_(BETA_2).addcmul_(gradient, gradient, value=1 - BETA_2)
    root = (exp_avg_sq / (1 - power_2)).sqrt() + eps
    vector.sub_(lr / (1 - power_1) * exp_avg / root)
