"""The layers that time is divided into, and which of them a sampled stack belongs to.

A stack belongs to the innermost of its frames whose owner is known. Frames of libc, libm, the
loader and Rust's standard library work for their caller. So do Python's runtime and NumPy where an
extension calls them from C, up to the next Python function. Code that was made at run time works
for the native code that calls it. The stack alone does not show everything. The phase, or the part
of torch's work, decides which of torch's roles a stack plays, and whether Python code is the
environment's. A stack that imports or compiles counts as start-up.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

from rlox_opt.project.layers import Layers, everywhere
from rlox_opt.sampling.samples import Frame

TITLES = {layer.name: layer.title for layer in everywhere().layers}
LAYERS = tuple(TITLES)
UNKNOWN, STARTUP = "unknown", "startup"
GRAD = "grad"  # the part of torch's work in which gradients are recorded and later used

# A thread in one of these functions of libc, Python, Rust's standard library or Abseil is waiting.
_WAIT = re.compile(
    r"nanosleep|futex.*wait|cond_(timed|clock)?wait|sem_(timed|clock)?wait|^p?poll$|^p?select$"
    r"|^epoll_p?wait|^wait(4|id|pid)$|^accept4?$|PyThread_acquire_lock|^take_gil$"
    r"|[Cc]ondvar.*wait|thread::park|mpmc.*recv|mpsc.*recv|PerThreadSemWait"
)
# py-spy does not show who calls a wait of libc. This one is the interpreter's wait for its own
# lock, and hardly anything else uses it.
_INTERPRETERS_WAIT = "pthread_cond_timedwait"
# py-spy does not show the kernel. A stack that ends in a libc wrapper of a system call was in it.
_SYSCALL = re.compile(
    r"^_*(libc_)?(p?(read|write)v?|open(at)?|close|[fl]?stat|fstatat|lseek|mmap|munmap|mremap|madvise"
    r"|mprotect|s?brk|ioctl|fcntl|getrandom|fsync|fdatasync|ftruncate|unlink|rename|mkdir|rmdir"
    r"|readlink|access|getdents|dup2?|pipe2?|sched_yield|send(to|msg)?|recv(from|msg)?|getrusage)"
    r"(64)?$"
)
# The part of a path that differs between machines.
_ELSEWHERE = (
    r"^.*/(?:site-packages|dist-packages|lib-dynload|lib/python3\.\d+t?|registry/src/[^/]+)/"
    r"|^/rustc/[0-9a-f]+/"
)
_EVAL = re.compile(r"^_?PyEval_EvalFrame")
_RUNTIME = ("numpy", "python")  # works for an extension that calls it from C
_OWN_WORK = ("numpy", "native")  # works for itself, and so do the others where it calls them:
_BY_ITSELF = ("python", UNKNOWN)
_PACKAGES = re.compile(r"(^|/)(site-packages|dist-packages)/")
# Functions of the standard libraries of Rust and C++ by which a thread begins.
_BEGINS = re.compile(r"^<?(alloc|core|std)::|^_?_rust_")


class Classifier:
    """Decides which layer a stack belongs to, by what a project says of its code. `scripts` are
    files of Python whose names do not say so."""

    def __init__(self, layers: Layers, scripts: Iterable[str] = ()) -> None:
        self.layers = whole = layers.with_general()
        self._scripts = frozenset(scripts)
        self._owners = [
            (re.compile(o.module), re.compile(o.function), o.layer) for o in whole.owners
        ]
        self._roles = [(role, re.compile(role.function)) for role in whole.roles]
        self._parallel = {of: re.compile(text) for of, text in whole.parallel.items()}
        self._homes = {layer: re.compile(text) for layer, text in whole.homes.items()}
        self._extension = re.compile(whole.extension or r"(?!)")
        self._startup = re.compile(whole.startup or r"(?!)")
        folders = "|".join(map(re.escape, whole.folders)) or r"(?!)"
        self._prefix = re.compile(rf"{_ELSEWHERE}|^.*/(?=(?:{folders})/)")
        self._owner = lru_cache(maxsize=65536)(self._find_owner)
        self.is_extension = lru_cache(maxsize=4096)(self._is_extension)
        self._starts = lru_cache(maxsize=65536)(lambda module: bool(self._startup.search(module)))

    def classify(
        self, frames: Sequence[Frame], phase: str, see_kernel: bool = True, part: str = ""
    ) -> str:
        """The layer of one sampled stack.

        Args:
            frames: the stack, outermost first.
            phase: where in the program it was taken, "outer/inner"; "" outside all phases.
            see_kernel: False counts kernel time for the layer that called the kernel.
            part: the part of torch's work; "" where it is not known.
        """
        if not frames:
            return UNKNOWN
        if self.is_startup(frames):
            return STARTUP
        if see_kernel and self._in_kernel(frames[-1]):
            return "kernel"
        if self._owner(frames[-1]) in (None, "kernel") or _WAIT.search(frames[-1].name):
            waited = self.wait_layer(frames, phase, part)
            if waited is not None:
                return waited
        return self.role(self.innermost_owner(frames), frames, phase, part)

    def is_startup(self, frames: Sequence[Frame]) -> bool:
        """Whether a stack imports, or compiles code that runs later."""
        return any(self._starts(frame.module) for frame in frames)

    def is_python(self, frame: Frame) -> bool:
        """Whether a frame is a Python function, as opposed to C code of the interpreter."""
        return is_python(frame) or (frame.line is not None and frame.module in self._scripts)

    def wait_layer(
        self, frames: Sequence[Frame], phase: str, part: str = "", of_python: bool = False
    ) -> str | None:
        """The layer of a thread that waits: idle, the interpreter's lock ("gil"), or the library in
        whose parallel section it waits. A thread of the section's pool, which nobody's code called,
        is idle between sections; one that is known to be `of_python` is none. None if it does not
        wait."""
        native = list(self._native_tail(frames))
        if not any(_WAIT.search(frame.name) for frame in native):
            return None
        python = any(map(self.is_python, frames))
        for at, frame in enumerate(native):
            if frame.name == "take_gil" or (python and frame.name == _INTERPRETERS_WAIT):
                return "gil"
            for owner, parallel in self._parallel.items():
                if parallel.search(frame.name) or parallel.search(frame.module):
                    caller = self._caller(native[at + 1 :], parallel)
                    if caller is None and not of_python:
                        return "idle"
                    return self.role(caller if caller in _OWN_WORK else owner, frames, phase, part)
        return "idle"

    def _caller(self, outer: Sequence[Frame], parallel: re.Pattern[str]) -> str | None:
        """The owner of the code that entered a parallel section, by the frames around the section,
        innermost first; None in a thread that began in the section's own library."""
        for frame in outer:
            if parallel.search(frame.name) or parallel.search(frame.module):
                continue
            owner = None if _BEGINS.search(frame.name) else self._owner(frame)
            if owner not in (None, "kernel", UNKNOWN):
                return owner
        return None

    def role(self, owner: str, frames: Sequence[Frame], phase: str, part: str = "") -> str:
        """The layer of an owner's code. What the stack itself shows decides first, then the part of
        torch's work and the phase."""
        parts = phase.split("/")
        for role, function in self._roles:
            if (
                owner in role.of
                and (not role.phases or not set(role.phases).isdisjoint(parts))
                and (not role.parts or part in role.parts)
                and (not role.function or any(function.search(frame.name) for frame in frames))
            ):
                return role.layer
        if part == GRAD and owner in self.layers.graded:
            return self.layers.graded[owner]
        return self.layers.otherwise.get(owner, owner)

    def calls(self, frames: Sequence[Frame]) -> bool:
        """Whether the innermost frame is native code that a line of Python calls, and not the
        interpreter."""
        return bool(frames) and self._owner(frames[-1]) not in ("eval", "python")

    def package_owner(self, module: str) -> str:
        """The owner of the native code that a Python file calls, if nothing else shows it: the
        owner of the package that contains the file."""
        for pattern, function, layer in self._owners:
            if layer is None or not (layer in self.layers.otherwise or layer == "numpy"):
                continue
            if not function.pattern and pattern.search(module):
                return layer
        return "native" if _PACKAGES.search(module) else UNKNOWN

    def _is_extension(self, module: str) -> bool:
        """Whether a library is the project's own, so that its line tables are read."""
        return self._extension.search(module) is not None

    def shown(self, frames: Sequence[Frame]) -> tuple[Frame, ...]:
        """The frames for showing and storing: their paths without the machine's own part."""
        return tuple(frame._replace(module=self.short_module(frame.module)) for frame in frames)

    def short_module(self, module: str) -> str:
        """A path from its package on; a path that is still absolute becomes its file's name."""
        short = self._prefix.sub("", module)
        return short.rsplit("/", 1)[-1] if short.startswith("/") else short

    def innermost_owner(self, frames: Sequence[Frame]) -> str:
        """The owner of a stack's work, also while it waits."""
        calls = self.layers.calls
        innermost: str | None = None
        for frame in self._native_tail(frames):
            owner = self._owner(frame)
            if owner in calls:
                return calls[owner] if innermost in _RUNTIME else owner
            if owner in (None, "kernel"):
                continue
            if innermost is None or (owner in _OWN_WORK and innermost in _BY_ITSELF):
                innermost = owner
        if innermost is None:
            return self._home(frames)
        return innermost if innermost != "eval" else "python"

    def _home(self, frames: Sequence[Frame]) -> str:
        native = list(self._native_tail(frames))
        for layer, home in self._homes.items():
            if any(home.search(frame.module) for frame in native):
                return layer
        return UNKNOWN

    def _native_tail(self, frames: Sequence[Frame]) -> Iterator[Frame]:
        """Frames from the innermost outwards, up to and including the innermost Python function."""
        for frame in reversed(frames):
            yield frame
            if self._owner(frame) == "eval":
                return

    def _in_kernel(self, leaf: Frame) -> bool:
        if self._owner(leaf) == "kernel":
            return True
        library = PurePosixPath(leaf.module).name
        return library.startswith(("libc.", "libc-", "libpthread")) and (
            _SYSCALL.match(leaf.name) is not None
        )

    def _find_owner(self, frame: Frame) -> str | None:
        """The owner of a frame's code; None where it works for its caller."""
        if enters_python(frame) or self.is_python(frame):
            return "eval"
        for module, function, layer in self._owners:
            if module.search(frame.module) and function.search(frame.name):
                return layer
        return "native"


def is_python(frame: Frame) -> bool:
    """Whether a frame is a Python function, as opposed to C code of the interpreter."""
    return frame.module.endswith((".py", ".pyx")) or frame.module.startswith("<")


def enters_python(frame: Frame) -> bool:
    """Whether a frame is a Python function or the interpreter's loop, which runs one."""
    return is_python(frame) or _EVAL.match(frame.name) is not None
