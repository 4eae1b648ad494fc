"""`Timing`: the seconds that named blocks take, as a tree per thread.

    timing = Timing("PPO")
    with timing.add_time("gradient_update"):
        with timing.add_time("forward"):
            ...
    print(timing)

The clock is `time.perf_counter_ns`, which on Linux is CLOCK_MONOTONIC; perf can stamp its samples
with the same clock. A block costs about half a microsecond, so the frequent path is written for
speed: a node of the tree is itself the context manager and is made once. It is found by one
dictionary look-up in the block that the thread is in.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from time import perf_counter_ns
from typing import Any, NamedTuple

from rlox.timing.spans import SpanLog

_NS = 1e-9
# A block that is open across `await` is left after blocks that were entered later, so those seem to
# lie inside it. Such blocks would nest without end: beyond this depth they begin again at the root.
_DEEPEST = 64
_MOST_PATHS = 10_000


class Phase(NamedTuple):
    """One block of the tree. `name` is its path, "outer/inner"; `seconds` include inner blocks."""

    name: str
    seconds: float
    self_seconds: float
    calls: int


class _Thread:
    """A thread's innermost open block, and where its closed spans are appended."""

    __slots__ = ("current", "extend", "name", "native_id", "root")

    def __init__(self) -> None:
        self.name = threading.current_thread().name
        self.native_id = threading.get_native_id()
        self.extend: Callable[[Iterable[int]], None] | None = None
        self.root: _Node = _Node(self, None, "", -1)
        self.current = self.root


class _Node:
    """One named block under one parent in one thread; entering it starts its clock."""

    __slots__ = (
        "calls",
        "children",
        "index",
        "last_ns",
        "name",
        "parent",
        "shown",
        "start_ns",
        "thread",
        "total_ns",
    )

    def __init__(self, thread: _Thread, parent: _Node | None, name: str, index: int) -> None:
        self.thread, self.parent, self.name, self.index = thread, parent, name, index
        self.children: dict[str, _Node] = {}
        self.shown = "total"
        self.total_ns = self.calls = self.last_ns = self.start_ns = 0

    def __enter__(self) -> None:
        self.thread.current = self
        self.start_ns = perf_counter_ns()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        end = perf_counter_ns()
        start = self.start_ns
        self.last_ns = elapsed = end - start
        self.total_ns += elapsed
        self.calls += 1
        thread = self.thread
        thread.current = self.parent  # type: ignore[assignment]  # only roots have none
        extend = thread.extend
        if extend is not None:
            extend((self.index, start, end))  # in one call: a signal handler may time a block too

    def entered(self) -> list[_Node]:
        """The inner blocks that were left at least once, or that contain such a block."""
        return [node for node in list(self.children.values()) if node.calls or node.entered()]

    def walk(self, prefix: str = "") -> Iterator[tuple[str, _Node]]:
        """Every entered block below this one, with its path, outer before inner."""
        for node in self.entered():
            yield prefix + node.name, node
            yield from node.walk(f"{prefix}{node.name}/")

    def reset(self, now: int) -> None:
        self.total_ns = self.calls = self.last_ns = 0
        self.start_ns = now
        for child in list(self.children.values()):
            child.reset(now)

    def self_ns(self) -> int:
        """Time in this block without its inner blocks."""
        return max(0, self.total_ns - sum(child.total_ns for child in self.children.values()))


class _SynchronizedNode(_Node):
    """A block that waits for the device before it reads the clock, at its begin and at its end."""

    __slots__ = ("synchronize",)
    synchronize: Callable[[], object]

    def __enter__(self) -> None:
        self.synchronize()
        super().__enter__()

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        self.synchronize()
        super().__exit__(kind, error, traceback)


class _Nothing:
    """The block of a disabled Timing."""

    __slots__ = ()

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exc: object) -> None:
        return None


_NOTHING = _Nothing()


class Timing:
    """A tree of named blocks and their seconds, one per thread.

    Args:
        name: the title of the printed tree.
        enabled: if False, blocks cost next to nothing and record nothing; may be set at any time.
        synchronize: called before each reading of the clock, such as `torch.cuda.synchronize`, so
            that a block includes the device's work and not only its launch. None: no waiting.

    The blocks of a thread form one tree; `phases` is the tree of the thread that made the Timing. A
    block that raises an error counts too. A context manager belongs to the thread that asked for
    it.
    """

    def __init__(
        self,
        name: str = "Profile",
        enabled: bool = True,
        synchronize: Callable[[], object] | None = None,
    ) -> None:
        self.name = name
        self.enabled = enabled
        self.synchronize = synchronize
        self._local = threading.local()
        self._lock = threading.Lock()
        self._threads: list[_Thread] = []
        self._paths: list[str] = []
        self._indices: dict[str, int] = {}  # of paths, which all threads share
        self._spans: SpanLog | None = None
        self._owner = threading.current_thread().name
        # Set if `rlox-opt profile` records this process; it then records every Timing.
        self._recorder = getattr(sys.modules.get("rlox_opt_recorder"), "active", lambda: None)()
        if self._recorder is not None:
            self._recorder.adopt(self)

    def add_time(self, name: str) -> AbstractContextManager[None]:
        """Add the time of the block to the time that `name` has here so far."""
        if not self.enabled:
            return _NOTHING
        try:
            return self._local.thread.current.children[name]  # type: ignore[no-any-return]
        except (AttributeError, KeyError):
            return self._add_node(name)

    def timeit(self, name: str) -> AbstractContextManager[None]:
        """Time the block. The printed tree shows the last time; `phases` still has the sum."""
        return self._shown(name, "last")

    def time_avg(self, name: str) -> AbstractContextManager[None]:
        """Time the block. The printed tree shows the mean time; `phases` still has the sum."""
        return self._shown(name, "mean")

    def _shown(self, name: str, how: str) -> AbstractContextManager[None]:
        node = self.add_time(name)
        if isinstance(node, _Node):
            node.shown = how
        return node

    def _add_node(self, name: str) -> _Node:
        """The rare path: the first time that this thread enters `name` here."""
        if not name or "/" in name:
            raise ValueError(f"a block's name must not be empty nor hold '/', found {name!r}")
        thread: _Thread | None = getattr(self._local, "thread", None)
        with self._lock:
            if thread is None:
                thread = self._local.thread = _Thread()
                self._threads.append(thread)
                self._log(thread)
            parent = thread.current
            path = self._paths[parent.index] + "/" + name if parent.index >= 0 else name
            many = len(self._paths) >= _MOST_PATHS and path not in self._indices
            if many or path.count("/") >= _DEEPEST:
                parent, path = thread.root, name
                if name in parent.children:
                    return parent.children[name]
            if path not in self._indices:
                self._paths.append(path)
                self._indices[path] = len(self._paths) - 1
            index = self._indices[path]
            node: _Node
            if self.synchronize is None:
                node = _Node(thread, parent, name, index)
            else:
                node = _SynchronizedNode(thread, parent, name, index)
                node.synchronize = self.synchronize
            parent.children[name] = node
            return node

    @property
    def spans(self) -> SpanLog | None:
        """Where every closed span is logged; None (the default) logs nothing."""
        return self._spans

    @spans.setter
    def spans(self, log: SpanLog | None) -> None:
        with self._lock:
            self._spans = log
            if log is not None:
                log.paths = self._paths
            for thread in self._threads:
                self._log(thread)

    def _log(self, thread: _Thread) -> None:
        thread.extend = (
            None
            if self._spans is None
            else self._spans.open_thread(thread.name, thread.native_id).data.extend
        )

    def reset(self) -> None:
        """Forget all times. A block that is open continues, and counts from now on."""
        with self._lock:
            now = perf_counter_ns()
            for thread in self._threads:
                thread.root.reset(now)

    def flow(self, name: str, number: int) -> None:
        """Mark that the thing with this `number` passes here, such as a rollout on its way from
        the steps to the update. In a recorded run an arrow is drawn from each such place to the
        next, even into another process."""
        if self._recorder is not None:
            self._recorder.flow(name, number)

    def gauge(self, name: str, read: Callable[[], float], rate: bool = False) -> None:
        """In a recorded run, draw `read()` over time; with `rate`, its growth per second."""
        if self._recorder is not None:
            self._recorder.gauge(name, read, rate)

    def totals(self) -> Iterator[tuple[str, int, int, int, int]]:
        """For every block: its thread's name and native id, the index of its path in a log of
        spans, the number of calls, nanoseconds."""
        for thread in list(self._threads):
            for _, node in thread.root.walk():
                yield thread.name, thread.native_id, node.index, node.calls, node.total_ns

    def begin_child(self) -> None:
        """Called in the child of a fork, where only the forking thread goes on. It has not timed
        anything in the child yet."""
        self._lock = threading.Lock()
        thread: _Thread | None = getattr(self._local, "thread", None)
        self._threads = [] if thread is None else [thread]
        if thread is not None:
            thread.native_id = threading.get_native_id()
            thread.current = thread.root
        self.reset()

    def phases(self) -> list[Phase]:
        """The blocks of the thread that made this Timing, outer before inner."""
        return self.trees().get(self._owner, [])

    def trees(self) -> dict[str, list[Phase]]:
        """The blocks of every thread, by the thread's name (a second one with a name: "name 2")."""
        trees: dict[str, list[Phase]] = {}
        for thread in self._threads:
            name, count = thread.name, 1
            while name in trees:
                count += 1
                name = f"{thread.name} {count}"
            trees[name] = [
                Phase(path, node.total_ns * _NS, node.self_ns() * _NS, node.calls)
                for path, node in thread.root.walk()
            ]
        return trees

    def __str__(self) -> str:
        """The tree as text: blocks without inner blocks on one line, then those with some.

        Each shows seconds (total, last or mean), its share of its thread's time and its calls.
        """
        waits = "" if self.synchronize is None else ", device synchronised at each block"
        lines = []
        for thread in self._threads:
            whose = "" if thread.name == self._owner else f" [{thread.name}]"
            lines.append(f"{self.name}{whose} profile tree view (seconds, share, calls{waits}):")
            total = sum(node.total_ns for node in thread.root.children.values())
            lines.extend(_tree(thread.root, max(total, 1), ""))
        return "\n".join(lines)


def _tree(node: _Node, total_ns: int, indent: str) -> Iterator[str]:
    entered = node.entered()
    leaves = [child for child in entered if not child.entered()]
    if leaves:
        yield indent + ", ".join(_entry(child, total_ns) for child in leaves)
    for child in entered:
        if child not in leaves:
            yield indent + _entry(child, total_ns)
            yield from _tree(child, total_ns, indent + "  ")


def _entry(node: _Node, total_ns: int) -> str:
    ns = {"total": node.total_ns, "last": node.last_ns, "mean": node.total_ns / max(node.calls, 1)}
    kind = "" if node.shown == "total" else f"{node.shown} "
    share = 100 * node.total_ns / total_ns
    return f"{node.name}: {kind}{ns[node.shown] * _NS:.4f} ({share:.1f} %, {node.calls}x)"


def measure_overhead(spans: int = 20_000, logged: bool = False) -> float:
    """The cost of one block on this machine, in nanoseconds: the fastest of seven loops of empty
    blocks, less the fastest of seven empty loops.

    The fastest is taken, since interruptions only add time. `logged` measures with a span log.
    """
    timing = Timing()
    if logged:
        timing.spans = SpanLog()
    empty: Any = range(spans)
    bare, blocks = [], []
    for _ in range(7):
        start = perf_counter_ns()
        for _ in empty:
            pass
        bare.append(perf_counter_ns() - start)
        start = perf_counter_ns()
        for _ in empty:
            with timing.add_time("block"):
                pass
        blocks.append(perf_counter_ns() - start)
    return (min(blocks) - min(bare)) / spans
