"""The baseline in bfloat16, which `matmul_precision="medium"` uses where the CPU has it; a driver
as those of the race. Products of layers are rounded here, so that the effect on learning can be
measured on any CPU.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function


def rounded(x: Tensor) -> Tensor:
    """Round to the 8 bits of precision of bfloat16."""
    return x.bfloat16().float()


class Linear(Function):
    """A layer whose three products take rounded matrices and are summed in float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        x, weight = rounded(x), rounded(weight)
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.t())

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        of_products = rounded(gradient)
        return of_products @ weight, of_products.t() @ x, gradient.sum(dim=0)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "peers"))
    import run_rlox

    torch.nn.functional.linear = Linear.apply
    run_rlox.main()


if __name__ == "__main__":
    main()
