"""The layers that training time is divided into, and which of them a sampled stack belongs to.

A stack belongs to the innermost of its frames whose owner is known. Frames of libc, libm, the
loader and Rust's standard library work for their caller; so do Python's runtime and NumPy when an
extension calls them from C, up to the next Python function. Three things a stack alone cannot say
come from the phase it was taken in: which of torch's roles it plays, and whether Python code is the
environment's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from rlox_opt.sampling.samples import Frame

TITLES = {
    "rust": "Rust",
    "torch_inference": "PyTorch inference",
    "torch_forward": "PyTorch training: forward",
    "torch_backward": "PyTorch training: backward",
    "torch_optimizer": "PyTorch training: optimiser",
    "python": "Python",
    "numpy": "NumPy",
    "env_python": "Environment (Python)",
    "boundary": "Boundary (PyO3, conversion)",
    "kernel": "Kernel",
    "idle": "Idle",
}
LAYERS = tuple(TITLES)

# A thread in one of these is waiting. Names of libc, Python, Rust's standard library.
_WAIT = re.compile(
    r"nanosleep|futex.*wait|cond_(timed|clock)?wait|sem_(timed|clock)?wait|^p?poll$|^p?select$"
    r"|^epoll_p?wait|^wait(4|id|pid)$|^accept4?$|PyThread_acquire_lock|^take_gil$"
    r"|[Cc]ondvar.*wait|thread::park|mpmc.*recv|mpsc.*recv"
)
# A wait below one of these is a parallel section: its workers, not nobody, hold the time.
_PARALLEL_RUST = re.compile(r"\brayon")
_PARALLEL_TORCH = re.compile(r"libgomp|libiomp|at::internal::invoke_parallel|c10::ThreadPool")

# py-spy does not see the kernel: a stack that ends in one of libc's wrappers was inside it.
_SYSCALL = re.compile(
    r"^_*(libc_)?(p?(read|write)v?|open(at)?|close|[fl]?stat|fstatat|lseek|mmap|munmap|mremap|madvise"
    r"|mprotect|s?brk|ioctl|fcntl|getrandom|fsync|fdatasync|ftruncate|unlink|rename|mkdir|rmdir"
    r"|readlink|access|getdents|dup2?|pipe2?|sched_yield|send(to|msg)?|recv(from|msg)?|getrusage)"
    r"(64)?$"
)
_TRANSPARENT_LIBRARY = re.compile(
    r"^(libc|libm|libdl|librt|libutil|libpthread|ld-linux.*|ld|libstdc\+\+|libgcc_s|libgomp.*"
    r"|libiomp.*)[.-]|^\[(vdso|unknown|vsyscall|heap|stack|anon)|^//anon|^perf-\d+\.map$"
)
_EVAL = re.compile(r"^_?PyEval_EvalFrame")
_RUST_STD = re.compile(r"^<?(std|core|alloc|rayon|rayon_core|crossbeam\w*|hashbrown)::|^_?_rust_")
_RUST_BOUNDARY = re.compile(r"^<?(_core|pyo3\w*|numpy|rlox_python)::|^__pyo?3?_?(method|function)")


def classify(frames: Sequence[Frame], phase: str, see_kernel: bool = True) -> str:
    """The layer of one sampled stack.

    Args:
        frames: the stack, outermost first.
        phase: where in the program it was taken, "outer/inner", "" when outside all phases.
        see_kernel: False asks who is responsible: kernel time goes to the layer that called it.
    """
    if not frames:
        return "python"
    if see_kernel and _in_kernel(frames[-1]):
        return "kernel"
    if _owner(frames[-1]) in (None, "kernel") or _WAIT.search(frames[-1].name):
        waited = wait_layer(frames, phase)
        if waited is not None:
            return waited
    return _place(_innermost_owner(frames), frames, phase)


def wait_layer(frames: Sequence[Frame], phase: str) -> str | None:
    """The layer of a thread that waits: idle, or its parallel section; None: it does not wait."""
    native = list(_native_tail(frames))
    if not any(_WAIT.search(frame.name) for frame in native):
        return None
    for frame in native:
        if _PARALLEL_RUST.search(frame.name) or "/rayon" in frame.module:
            return "rust"
        if _PARALLEL_TORCH.search(frame.name) or _PARALLEL_TORCH.search(frame.module):
            return torch_role(frames, phase)
    return "idle"


def torch_role(frames: Sequence[Frame], phase: str) -> str:
    """Which of torch's layers: what the stack shows outright, else what the phase is for."""
    for frame in frames:
        if "autograd::Engine" in frame.name or frame.name == "_engine_run_backward":
            return "torch_backward"
    parts = phase.split("/")
    if "backward" in parts:
        return "torch_backward"
    if not {"optimizer", "clip", "polyak"}.isdisjoint(parts):
        return "torch_optimizer"
    return "torch_forward" if "gradient_update" in parts else "torch_inference"


def _place(owner: str, frames: Sequence[Frame], phase: str) -> str:
    if owner == "torch":
        return torch_role(frames, phase)
    if owner in ("python", "numpy") and "python_env" in phase.split("/"):
        return "env_python"
    return owner


def _innermost_owner(frames: Sequence[Frame]) -> str:
    found: str | None = None
    for frame in _native_tail(frames):
        owner = _owner(frame)
        if owner in ("torch", "rust", "boundary"):
            if found in ("numpy", "python"):  # called from C by the extension, for its own ends
                return "torch" if owner == "torch" else "boundary"
            return owner
        if owner == "numpy" or (owner is not None and found is None):
            found = owner
    if found in (None, "kernel"):
        rust = any(_is_rust(frame) for frame in _native_tail(frames))
        return "rust" if rust else "python"
    return found if found != "eval" else "python"


def _native_tail(frames: Sequence[Frame]) -> Iterator[Frame]:
    """Frames from the leaf outwards, up to and with the innermost Python function."""
    for frame in reversed(frames):
        yield frame
        if _owner(frame) == "eval":
            return


def is_python(frame: Frame) -> bool:
    """Whether a frame is a Python function (and not C code of the interpreter)."""
    return frame.module.endswith((".py", ".pyx")) or frame.module.startswith("<")


def _is_rust(frame: Frame) -> bool:
    return frame.module.endswith(".rs") or PurePosixPath(frame.module).name.startswith("_core.")


def _in_kernel(leaf: Frame) -> bool:
    if _owner(leaf) == "kernel":
        return True
    library = PurePosixPath(leaf.module).name
    return library.startswith(("libc.", "libc-", "libpthread")) and (
        _SYSCALL.match(leaf.name) is not None
    )


@lru_cache(maxsize=65536)
def _owner(frame: Frame) -> str | None:
    """Whose code a frame is; None where it works for its caller."""
    name, module = frame.name, frame.module
    library = PurePosixPath(module).name
    if is_python(frame):
        return "eval"
    if module.startswith("[") and _TRANSPARENT_LIBRARY.match(module) is None:
        return "kernel"
    if module.endswith(".rs"):
        return _rust_file_owner(module)
    if library.startswith("_core."):
        if _RUST_BOUNDARY.match(name):
            return "boundary"
        return "rust" if "rlox_core::" in name and not _RUST_STD.match(name) else None
    if "/torch/" in f"/{module}" or library.startswith(("libtorch", "libc10", "libmkl")):
        return "torch"
    if "/numpy/" in f"/{module}" or "/numpy.libs/" in f"/{module}":
        return "numpy"
    if _TRANSPARENT_LIBRARY.match(library) or _TRANSPARENT_LIBRARY.match(module):
        return None
    if _EVAL.match(name):
        return "eval"
    return "python"


def _rust_file_owner(module: str) -> str | None:
    if "rlox-core/" in module:
        return "rust"
    if "rlox-python/" in module or re.search(r"(^|/)(pyo3|numpy)[\w-]*-\d", module):
        return "boundary"
    return None  # the standard library, rayon, ndarray: they work for their caller
