"""Draws arguments that should break the call they are made for."""

import random
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.ma  # not lazily: a fork would copy the lock of an import under way
from surface import name_of

from rlox import _core

warnings.simplefilter("ignore")
Args = list[Any]
CRITIC = ([5, 6, 1], "relu")
N_ACTOR, N_CRITICS = 3 * 6 + 6 + 6 * 4 + 4, 2 * (5 * 6 + 6 + 6 + 1)
ADAM = (1e-3, 0.9, 0.999, 1e-8, 1)
NUMBERS: list[Any] = [
    0, 1, 2, 3, 8, -1, -(2**63), 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 2**127, 2**200,
    True, False, 0.0, -0.0, 0.5, 1.5, -1e-310, 1e-310, 1e308, -1e308, float("nan"), float("inf"),
    float("-inf"), np.float32(0.1), np.float64("nan"), np.int64(-1), np.bool_(True), 1j,
    np.array(3), np.array([1.0]), None, "", "x", "float32", b"8", "\ud800", [], (), {}, set(),
    object, object(), [1, 2], (1.0, 2.0), {"obs": 1}, slice(None), range(3), NotImplemented, ...,
]  # fmt: skip
SEVERAL = 0.05  # of draws; each makes some ten calls
DTYPES: list[Any] = [
    "f4", "f8", "f2", ">f4", ">f8", ">i8", "i8", "i4", "u8", "u1", "i1", "?", "O", "U3", "S2", "c8",
    "M8[s]", "m8[s]", [("a", "f4")],
    np.dtype({"names": ["a"], "formats": ["f4"], "titles": [("t", 1)]}),
]  # fmt: skip


class Sub(np.ndarray[Any, Any]):
    """A subclass of ndarray, some of whose attributes are wrong."""

    def astype(self, *_: Any, **__: Any) -> Any:
        """Not what it should be."""
        return [np.zeros(3), "x", self, np.zeros(8, np.int64)][self.size % 4]


class Arguments:
    """Draws arguments; one seed in one thread always gives the same."""

    def __init__(self, seed: int, shared: "Arguments | None" = None) -> None:
        self.random = random.Random(seed)
        self.depth = 0
        self.counts = Counter[str]()
        self.fatal: list[str] = []
        self.pool: dict[str, Any] = shared.pool if shared else {}
        self.memory = shared.memory if shared else bytearray(1 << 14)
        self.calls: list[Callable[[], Any]] = self.named("call_")
        self.several: list[Callable[[], None]] = self.named("several_")

    def named(self, start: str) -> list[Callable[[], Any]]:
        """The methods whose names begin with `start`."""
        return [getattr(self, name) for name in dir(type(self)) if name.startswith(start)]

    # What is called upon.

    def kept(self, name: str, make: Callable[[], Any], often: float = 0.02) -> Any:
        """An object of the pool, which threads share; sometimes it is replaced by a new one."""
        if name not in self.pool or self.random.random() < often:
            self.pool[name] = make()
        return self.pool[name]

    def buffer(self) -> Any:
        kind, dtype = (
            self.random.choice(("", "Prioritized")),
            self.random.choice(("float32", "uint8")),
        )
        dim, capacity = self.random.choice((3, 300)), self.random.choice((1, 7, 80))
        make = getattr(_core, f"{kind}ReplayBuffer")
        name = f"buffer {kind} {dtype} {dim}"
        made = self.kept(name, lambda: make(capacity, dim, 1, obs_dtype=dtype))
        if len(made) == 0 and self.random.random() < 0.5:
            rows, flags = np.ones((5, dim), dtype), np.zeros(5, bool)
            made.push_batch(
                rows, rows, np.ones((5, 1), np.float32), np.ones(5, np.float32), flags, flags
            )
        return made, dim, np.dtype(dtype)

    def env(self) -> Any:
        kind, n = self.random.choice(_core.builtin_envs()), self.random.choice((1, 5, 16))
        made = self.kept(f"{kind} {n}", lambda: _core.VecEnv(kind, n, 0))
        if self.random.random() < 0.7:
            try:
                made.reset()
            except RuntimeError:
                self.pool.pop(f"{kind} {n}", None)
        return made

    def sac(self) -> Any:
        make = lambda: _core.SacUpdate(([3, 6, 4], "relu"), (CRITIC, CRITIC))  # noqa: E731
        return self.kept("sac", make)

    # What it is given.

    def array(self, shape: Any, dtype: Any) -> Any:
        """Mostly an array that fits: a new one, one of the pool, or one whose memory other arrays
        share."""
        r, dtype = self.random, np.dtype(dtype)
        n = int(np.prod(shape))
        pick = r.random()
        if pick < 0.15:
            return self.kept(f"array {shape} {dtype}", lambda: np.zeros(shape, dtype), 0.1)
        if pick < 0.25 and n * dtype.itemsize < len(self.memory) - 64:
            start = 8 * r.randrange(8)
            return np.frombuffer(self.memory, dtype, n, start).reshape(shape)
        array = np.full(shape, r.choice((0, 0, 1)), dtype)
        return self.spoilt(array) if pick > 0.9 else array

    def spoilt(self, array: Any) -> Any:
        r = self.random
        how = r.randrange(18)
        if how == 0:
            return array.astype(np.dtype(r.choice(DTYPES)), copy=True)
        if how == 1:
            return np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array
        if how == 2:
            array.flags.writeable = False
        elif how == 3:
            array.setflags(align=False)
        elif how == 4:
            raw = bytearray(array.nbytes + 1)
            return np.frombuffer(raw, array.dtype, array.size, 1).reshape(array.shape)
        elif how == 5:
            return array.astype(array.dtype.newbyteorder())
        elif how == 6 and array.dtype.kind == "f":
            array.reshape(-1)[: r.randrange(4)] = r.choice((np.nan, np.inf, -np.inf, 1e38, 1e-42))
        elif how == 7:
            return array.view(Sub)
        elif how == 8:
            return array[: r.randrange(3)] if array.ndim else array
        elif how == 9:
            return array.reshape(r.choice(((1, *array.shape), (*array.shape, 1), (-1,))))
        elif how == 10:
            return np.broadcast_to(array.reshape(-1)[:1], array.shape) if array.size else array
        elif how == 11:
            return np.asfortranarray(array)
        elif how == 12:
            array.view(np.uint8).reshape(-1)[:] = 255
        elif how == 13:
            return array.tolist()
        elif how == 14:
            return np.ma.masked_array(array)
        elif how == 15:
            return self.evil()
        elif how == 16 and array.dtype == np.int64:
            array.reshape(-1)[: r.randrange(3)] = r.choice((-1, 2**62, -(2**63), 1 << 31))
        elif how == 17:
            array.dtype = r.choice((np.uint8, array.dtype))
        return array

    def number(self, usual: Any) -> Any:
        r = self.random.random()
        if r < 0.93:
            return usual
        return self.evil() if r > 0.985 else self.random.choice(NUMBERS)

    def evil(self) -> Any:
        """An object whose methods call back, raise an error, or return something unexpected."""
        hostile, answer = self, self.random.choice(NUMBERS)

        def method(*_: Any, **__: Any) -> Any:
            hostile.one()
            if hostile.random.random() < 0.3:
                raise hostile.random.choice((ValueError, TypeError, MemoryError, StopIteration))
            return answer

        names = (
            "index float int bool len iter next array array_interface array_struct getitem eq hash "
            "str repr call buffer fspath complex contains"
        )
        return type("Evil", (), {f"__{name}__": method for name in names.split()})()

    # Calling.

    def counted(self, call: Callable[..., Any], arguments: Args, **named: Any) -> Any:
        """Make one call; its result is counted and returned."""
        name, outcome = name_of(call, arguments), "returned"
        try:
            return call(*arguments, **named)
        except AssertionError as error:  # only the pairs have such: their twins differ
            self.fatal.append(f"{name}: {error}")
            outcome = "WRONG"
            raise
        except Exception as error:
            outcome = type(error).__name__
            raise
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self.fatal.append(f"{name}: {type(error).__name__}: {error}")
            outcome = "FATAL"
        finally:
            self.counts["calls"] += 1
            self.counts[f"{name} {outcome}"] += 1

    def one(self) -> None:
        """Make one drawn call, or several that belong together."""
        if self.depth > 2:
            return
        self.depth += 1
        try:
            if self.random.random() < SEVERAL:
                self.random.choice(self.several)()
                return
            call, arguments, named, *then = self.random.choice(self.calls)()
            result = self.counted(call, arguments, **named)
            for follows in then:
                follows(result)
        except Exception:  # of a call, which has counted it, or of making what it takes
            pass
        finally:
            self.depth -= 1
