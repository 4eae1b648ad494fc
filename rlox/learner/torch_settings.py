"""Sets torch's threads, the precision of its products, and the implementation of tanh while a
trainer learns, and sets them back afterwards."""

import platform
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

# Multiplications of a batch by one layer, up to which a second thread brings nothing. PPO's 512 x
# 64 x 64 (2.1 million) is as fast on one thread as on two, and many times faster beside a busy
# program, since torch's threads wait actively. SAC's 256 x 256 x 256 (17 million) gains 1.3 times.
SMALL_PRODUCT = 4_000_000
PRECISIONS = ("highest", "high", "medium")


def is_small(modules: Iterable[nn.Module], batch_size: int) -> bool:
    """Whether no product of a batch by a layer has more than `SMALL_PRODUCT` multiplications."""
    matrices = [p.numel() for module in modules for p in module.parameters() if p.dim() > 1]
    return batch_size * max(matrices, default=0) <= SMALL_PRODUCT


def threads_for(modules: Iterable[nn.Module], batch_size: int) -> int:
    """1 if every product of a batch is small, otherwise torch's own number of threads."""
    return 1 if is_small(modules, batch_size) else torch.get_num_threads()


def precision_as_asked(precision: str, modules: Iterable[nn.Module], batch_size: int) -> str:
    """R13's baseline: MKL computes products."""
    return precision


def precision_of_onednn(precision: str, modules: Iterable[nn.Module], batch_size: int) -> str:
    """R13's optimised form: oneDNN computes products, if it is faster and computes in float32.
    A trainer whose products are all small keeps MKL, since a call of oneDNN takes longer."""
    if precision != "highest" or is_small(modules, batch_size) or why_not_onednn():
        return precision
    return "medium"


@cache
def why_not_onednn() -> str | None:
    """Why oneDNN's products are not used on this machine; None if they can be.

    torch has no name for "oneDNN, in float32". At "medium" it allows bfloat16 and calls oneDNN,
    which uses bfloat16 on CPUs with matrix units for it, and computes in float32 on others.
    """
    if not is_amd():  # MKL's fast kernels are for Intel's CPUs
        return "MKL, or what torch has in its place, is as fast as oneDNN on this CPU"
    if torch.accelerator.is_available():  # "medium" would apply to its products too
        return "there is an accelerator, and its products would lose precision"
    x = 1 + 2**-12  # rounds to 1 in bfloat16
    a = torch.full((256, 256), x, dtype=torch.float32, device="cpu")
    with torch_settings(torch.get_num_threads(), "medium"):
        products = (a @ a, a.t() @ a, nn.functional.linear(a, a, 0 * a[0]))
    if max(float((product / (256 * x**2) - 1).abs().max()) for product in products) > 2**-16:
        return "oneDNN would round to bfloat16 on this CPU"
    return None


def tanh_of_torch(threads: int) -> bool:
    """R15's baseline: torch's tanh is its own."""
    return False


def tanh_of_numpy(threads: int) -> bool:
    """R15's optimised form: NumPy computes tanh, if that is faster: on one thread it is twelve
    times as fast as MKL's, which torch divides among its `threads`."""
    return threads < 8 and why_not_numpy() is None


def why_not_numpy() -> str | None:
    """Why NumPy's tanh is not used on this machine; None if it can be."""
    if is_amd() and torch.backends.mkl.is_available():  # type: ignore[no-untyped-call]
        return None
    return "MKL's tanh, or what torch has in its place, is as fast as NumPy's on this CPU"


class _Tanh(threading.local):
    """Whether torch or NumPy computes this thread's tanh."""

    numpys = False


_TANH = _Tanh()


@cache
def _kernels() -> torch.library.Library:
    """Kernels of tanh that replace torch's on CPUs, and decide at each call which one computes.
    They are never removed, since another thread may be inside one."""
    library = torch.library.Library("aten", "IMPL")  # type: ignore[no-untyped-call]
    library.impl("tanh", _tanh, "CPU")  # type: ignore[no-untyped-call]
    library.impl("tanh_", _tanh_, "CPU")  # type: ignore[no-untyped-call]
    return library


def _tanh(x: Tensor) -> Tensor:
    keeps = x.is_floating_point() or x.is_complex()
    out = torch.empty_like(x, dtype=x.dtype if keeps else torch.get_default_dtype())
    return _write_tanh(x, out)


def _tanh_(x: Tensor) -> Tensor:
    return _write_tanh(x, x)


def _write_tanh(x: Tensor, out: Tensor) -> Tensor:
    if not _TANH.numpys or x.dtype != torch.float32 or not x.is_contiguous():
        return torch.tanh(x, out=out)  # torch's own: only calls without `out` are replaced
    _numpys_tanh(x.detach().numpy(), out.detach().numpy())
    return out


def _numpys_tanh(x: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    np.tanh(x, out=out)


@cache
def is_amd() -> bool:
    """Whether this is a CPU of AMD's."""
    cpuinfo = Path("/proc/cpuinfo")
    said = cpuinfo.read_text("utf-8") if cpuinfo.exists() else platform.processor()
    return "AuthenticAMD" in said


@contextmanager
def torch_settings(threads: int, precision: str, numpys_tanh: bool = False) -> Iterator[None]:
    """In this block, torch uses so many threads in the whole process, float32 products have that
    precision (one of `PRECISIONS`, as in `torch.set_float32_matmul_precision`; "medium" is bfloat16
    where the CPU has it), and, if asked, NumPy computes this thread's float32 tanh on the CPU."""
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    before_tanh = _TANH.numpys
    if numpys_tanh:
        _kernels()
    _TANH.numpys = numpys_tanh
    if threads != before[0]:
        torch.set_num_threads(threads)
    if precision != before[1]:
        torch.set_float32_matmul_precision(precision)
    try:
        yield
    finally:
        _TANH.numpys = before_tanh
        if threads != before[0]:
            torch.set_num_threads(before[0])
        if precision != before[1]:
            torch.set_float32_matmul_precision(before[1])
