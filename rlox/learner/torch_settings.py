"""Torch's threads and the precision of its products while a trainer learns; put back afterwards."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import nn

# Multiplications of a batch by one layer, up to which a second thread brings nothing: PPO's
# 512 x 64 x 64 (2.1 million) is as fast on one thread as on two, and many times faster beside a
# busy neighbour, for whom torch's threads spin; SAC's 256 x 256 x 256 (17 million) gains 1.3 times.
SMALL_PRODUCT = 4_000_000
PRECISIONS = ("highest", "high", "medium")


def threads_for(modules: Iterable[nn.Module], batch_size: int) -> int:
    """1 where every product of a batch is small, else as many threads as torch has."""
    matrices = [p.numel() for module in modules for p in module.parameters() if p.dim() > 1]
    small = batch_size * max(matrices, default=0) <= SMALL_PRODUCT
    return 1 if small else torch.get_num_threads()


@contextmanager
def torch_settings(threads: int, precision: str) -> Iterator[None]:
    """Inside, torch computes with so many threads, and float32 products in that precision: one of
    `PRECISIONS`, as `torch.set_float32_matmul_precision` takes it ("medium" is bfloat16 where the
    CPU has it)."""
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    if threads != before[0]:
        torch.set_num_threads(threads)
    if precision != before[1]:
        torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        if threads != before[0]:
            torch.set_num_threads(before[0])
        if precision != before[1]:
            torch.set_float32_matmul_precision(before[1])
