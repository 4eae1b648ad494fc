"""Calls in odd orders that must work: whole lives of buffers, environments, collectors and updates.
Their results are compared with a model in Python, with NumPy, or with an equal object that is
called in another way."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import numpy as np
import numpy.random  # not lazily: a fork would copy the lock of an import under way
from hostile_arguments import Arguments
from numpy.testing import assert_allclose, assert_array_equal

from rlox import _core
from rlox.advantage import reference

F32 = np.float32
COLUMNS = ("obs", "next_obs", "action", "reward", "terminated", "truncated")
# What comes of a want of memory or of threads, which others may have taken.
_NO_FAULT = ("memory", "no thread to collect in")


def must_work(sequence: Callable[[Any], None]) -> Callable[[Any], None]:
    """Any error that it raises is a fault."""

    @wraps(sequence)
    def watched(self: Any) -> None:
        try:
            sequence(self)
        except MemoryError:
            pass
        except Exception as error:
            if not any(word in str(error) for word in _NO_FAULT):
                name = sequence.__name__.removeprefix("several_")
                self.fatal.append(f"{name}: {type(error).__name__}: {error}")

    return watched


def same(found: Iterable[Any], expected: Iterable[Any], what: str) -> None:
    """Whether they are equal to the bit, NaN included."""
    for one, other in zip(found, expected, strict=True):
        if isinstance(one, dict):
            same(one.values(), other.values(), what)
        else:
            assert_array_equal(one, other, err_msg=what)


class Sequences(Arguments):
    """Draws sequences of calls, on objects of their own."""

    def generator(self) -> np.random.Generator:
        """A NumPy generator, seeded from this object's own."""
        return np.random.default_rng(self.random.getrandbits(64))

    # Buffers.

    def transitions(self, start: int, n: int, dims: tuple[int, int], dtype: str) -> list[Any]:
        """Rows whose reward is their number. Some have odd memory layouts: slices, Fortran
        order."""
        i = np.arange(start, start + n)
        obs = np.repeat(i[:, None] % 251, dims[0], axis=1).astype(dtype)
        action = np.repeat(-i[:, None], dims[1], axis=1).astype(F32)
        return [obs, obs + 1, action, i.astype(F32), i % 3 == 0, i % 5 == 0]

    @must_work
    def several_of_a_buffer(self) -> None:
        """Single and batched pushes, some larger than the buffer, compared with a deque."""
        r, c = self.random, self.counted
        dims, dtype = (r.choice((1, 3, 17)), r.choice((1, 2))), r.choice(("float32", "uint8"))
        kind = r.choice((_core.ReplayBuffer, _core.PrioritizedReplayBuffer))
        by_priority = kind is _core.PrioritizedReplayBuffer
        capacity = r.choice((1, 2, 7, 64))
        buffer = c(kind, [capacity, *dims], obs_dtype=dtype, seed=r.getrandbits(63))
        held, pushed = deque[int](maxlen=capacity), 0
        for _ in range(r.randrange(1, 10)):
            n = r.choice((0, 1, 1, 2, 5, capacity, capacity + 3))
            columns = self.transitions(pushed, n, dims, dtype)
            if n == 1 and r.random() < 0.5:
                c(buffer.push, [column[0] for column in columns[:3]] + [float(pushed), *(
                    bool(column[0]) for column in columns[4:])])  # fmt: skip
            else:
                c(buffer.push_batch, columns)
            held.extend(range(pushed, pushed + n))
            pushed += n
            assert c(len, [buffer]) == c(buffer.size, []) == len(held)
            assert c(getattr, [buffer, "capacity"]) == capacity
            if held:
                self.drawn(buffer, held, dims, dtype)
            if held and by_priority:
                self.by_priority(buffer, held)
            elif not by_priority:
                found = c(buffer.transitions, [])
                oldest = held[0] if held else 0
                expected = self.transitions(oldest, len(held), dims, dtype)
                same([found[name] for name in COLUMNS], expected, "transitions")

    def drawn(self, buffer: Any, held: deque[int], dims: tuple[int, int], dtype: str) -> None:
        """A sample consists of whole stored rows; equal seeds draw the same, kept or copied."""
        r, n = self.random, self.random.choice((1, 3, 32))
        seed = r.choice((None, r.getrandbits(64)))
        kept = self.counted(buffer.sample, [n, seed, r.random() < 0.5])
        numbers = kept["reward"].astype(np.int64)
        assert set(numbers.tolist()) <= {*held}, "a row that is not held"
        for name, column in zip(
            COLUMNS, self.transitions(0, max(held) + 1, dims, dtype), strict=True
        ):
            assert_array_equal(kept[name], column[numbers], err_msg=name)
        if seed is not None:
            again = self.counted(buffer.sample, [n, seed])
            same([again], [kept], "a sample of the same seed")

    def by_priority(self, buffer: Any, held: deque[int]) -> None:
        """Weights are the paper's, for the priorities that were set last."""
        n, rng = len(held), self.generator()
        priorities = rng.uniform(0.1, 9, n).astype(self.random.choice((F32, np.float64)))
        self.counted(buffer.update_priorities, [np.arange(n), priorities])
        beta = self.random.choice((0.0, 0.4, 1.0))
        self.counted(setattr, [buffer, "beta", beta])
        assert self.counted(getattr, [buffer, "beta"]) == beta
        sample = self.counted(buffer.sample, [16])
        p = priorities.astype(np.float64) ** self.counted(getattr, [buffer, "alpha"])
        weights = (n * p / p.sum()) ** -beta
        found = sample["weights"]
        assert_allclose(
            found, weights[sample["indices"]] / weights.max(), rtol=1e-4, err_msg="weights"
        )

    # Environments.

    def environments(self, n_envs: int) -> tuple[list[Any], Callable[[], Any]]:
        """Two equal vector environments, and a function that draws actions for them."""
        r, rng = self.random, self.generator()
        name, seed = r.choice(_core.builtin_envs()), r.getrandbits(100)
        twins = [self.counted(_core.VecEnv, [name, n_envs, seed]) for _ in range(2)]
        if isinstance(n_actions := twins[0].action_space, int):
            dtype = r.choice((np.int64, np.int32, np.uint8, np.int8))
            return twins, lambda: rng.integers(0, n_actions, n_envs).astype(dtype)
        return twins, lambda: rng.uniform(-3, 3, (n_envs, 1)).astype(F32)

    @must_work
    def several_of_environments(self) -> None:
        """Two equal environments stay equal, whatever arrays their results are written to; arrays
        that are still referred to do not change."""
        r, c, n = self.random, self.counted, self.random.choice((1, 2, 5, 33))
        (one, other), actions = self.environments(n)
        for env in (one, other):
            assert c(getattr, [env, "n_envs"]) == n
        dim = c(getattr, [one, "obs_dim"])
        first = c(one.reset, []), c(other.reset, [None, None, None, np.empty((n, dim), F32)])
        same([first[0]], [first[1]], "a reset into an array")
        held: list[tuple[Any, Any]] = []
        out = None
        for _ in range(r.randrange(1, 12)):
            if r.random() < 0.2:
                mask, seeds = self.generator().random(n) < 0.5, [r.choice((None, 5))] * n
                same([c(one.reset, [seeds, mask])], [c(other.reset, [seeds, mask])], "a reset")
            if r.random() < 0.3:
                i = r.randrange(n)
                state, elapsed = c(one.state, [i])
                for env in (one, other):
                    c(env.set_state, [i, state * 0.5, elapsed])
                assert_array_equal(c(other.state, [i])[0], state * 0.5)
            act = actions()
            found = c(one.step, [act])
            expected = c(other.step, [act, out])
            same(found[:4], expected[:4], "a step")
            ended = found[2] | found[3]
            assert ("final_obs" in found[4]) == bool(ended.any()), "infos of episodes that ended"
            out = expected[:4] if r.random() < 0.7 else None
            if r.random() < 0.5:
                held.append((found[0], found[0].copy()))
        for array, copy in held:
            assert_array_equal(array, copy, err_msg="an array that is held")

    # Training.

    @must_work
    def several_of_advantages(self) -> None:
        """Each function against its equations, into given arrays and into new ones."""
        r, c, rng = self.random, self.counted, self.generator()
        t, n_envs = r.choice((0, 1, 2, 7, 65)), r.choice((1, 3, 17))
        dtype = r.choice((F32, np.float64))
        new = lambda *shape: rng.normal(size=shape).astype(dtype)  # noqa: E731
        gamma, lam, bars = r.random(), r.random(), (r.random() * 2, r.random())
        close = (
            {"rtol": 1e-6, "atol": 1e-9} if dtype is np.float64 else {"rtol": 1e-3, "atol": 1e-4}
        )

        def agree(call: Any, arguments: list[Any], expected: Any) -> None:
            shape = expected[0].shape
            out = tuple(np.full(shape, 9, dtype) for _ in expected)
            given = out if len(out) > 1 else out[0]
            found = c(call, arguments, out=r.choice((None, given)))
            for one, other in zip(found if len(out) > 1 else [found], expected, strict=True):
                assert_allclose(one, other, err_msg=call.__name__, **close)

        def wide(arrays: list[Any]) -> list[Any]:
            return [array.astype(np.float64) for array in arrays]

        steps = [new(t), new(t), (rng.random(t) < 0.2).astype(dtype)]
        last = float(F32(rng.normal()))
        gae = [*wide(steps), last, gamma, lam]
        agree(_core.compute_gae, [*steps, last, gamma, lam], reference.compute_gae(*gae))
        rhos, trace = new(t), [last, gamma, *bars]
        expected = reference.compute_vtrace(*wide([rhos, *steps]), *trace)
        agree(_core.compute_vtrace, [rhos, *steps, *trace], expected)
        steps = [new(t, n_envs), new(t, n_envs), (rng.random((t, n_envs)) < 0.2).astype(dtype)]
        lasts = new(n_envs)
        both = reference.compute_gae(*wide([*steps, lasts]), gamma, lam)
        layout = r.choice(("step_major", "env_major"))
        turned = steps if layout == "step_major" else [x.T.copy() for x in steps]
        both = both if layout == "step_major" else tuple(x.T for x in both)
        agree(_core.compute_gae_batched, [*turned, lasts, gamma, lam, layout], both)
        policy, ref = -np.abs(new(n_envs, t)), -np.abs(new(n_envs, t))
        mask = r.choice((None, rng.random((n_envs, t)) < 0.5))
        kl = reference.compute_token_kl(*wide([policy, ref]), mask)
        agree(_core.compute_token_kl, [policy, ref, mask], [kl])
        rewards, size = new(4 * n_envs), r.choice((1, 2, 4))
        groups = reference.compute_group_advantages(*wide([rewards]), size, 1e-2)
        agree(_core.compute_group_advantages, [rewards, size, 1e-2], [groups])
        array = rng.normal(size=t)
        same([c(_core.roundtrip, [array])], [array], "there and back")

    @must_work
    def several_of_updates(self) -> None:
        """An update on two threads equals the update on one thread, to the bit."""
        r, c, seed = self.random, self.counted, self.random.getrandbits(64)
        n, width, gaussian = r.choice((2, 9, 40)), r.choice((1, 8, 17)), r.random() < 0.5

        def moments(rng: Any, size: int) -> Any:
            return rng.normal(size=size).astype(F32), np.zeros(size, F32), np.zeros(size, F32)

        def ppo(threads: int) -> Any:
            rng = np.random.default_rng(seed)
            networks = [
                ([3, width, out], "tanh", moments(rng, 4 * width + (width + 1) * out))
                for out in (2, 1)
            ]
            normal = lambda *shape: rng.normal(size=shape).astype(F32)  # noqa: E731
            actions = normal(n, 2) if gaussian else rng.integers(0, 2, n)
            log_std = moments(rng, 2) if gaussian else None
            rollout = normal(n, 3), actions, normal(n), normal(n), normal(n)
            order = np.concatenate([rng.permutation(n) for _ in range(3)])
            figures, _ = c(
                _core.ppo_update, [*networks, log_std, rollout, order, 0], batch_size=n // 2,
                clip_range=0.2, normalize_advantage=True, ent_coef=0.01, vf_coef=0.5,
                max_grad_norm=0.5, lr=1e-3, betas=(0.9, 0.999), eps=1e-5, threads=threads,
            )  # fmt: skip
            return [figures, *networks[0][2], *networks[1][2], *(log_std or ())]

        def sac(threads: int) -> Any:
            rng = np.random.default_rng(seed)
            critic = ([5, width, 1], "relu")
            sizes = 4 * width + (width + 1) * 4, 2 * (6 * width + width + 1)
            update = c(_core.SacUpdate, [([3, width, 4], "relu"), (critic, critic)])
            actor, critics, alpha = (moments(rng, size) for size in (*sizes, 1))
            targets, adam = critics[0].copy(), (1e-3, 0.9, 0.999, 1e-8, 1)
            normal = lambda *shape: rng.normal(size=shape).astype(F32)  # noqa: E731
            batch = {"obs": normal(n, 3), "next_obs": normal(n, 3), "action": normal(n, 2)}
            batch |= {"reward": normal(n), "terminated": rng.random(n) < 0.3}
            figures = c(
                update.update, [actor, critics, targets, alpha, batch, normal(2, n, 2)], gamma=0.9,
                tau=0.1, target_entropy=-2.0, adams=(adam, adam, adam), threads=threads,
            )  # fmt: skip
            acted = c(update.act, [actor[0], batch["obs"], normal(n, 2)])
            assert (np.abs(acted) <= 1).all()
            return [*figures, *actor, *critics, targets, *alpha, acted]

        for update in (ppo, sac):
            same(update(1), update(2), f"{update.__name__} on two threads")

    # Rollouts.

    @must_work
    def several_of_rollouts(self) -> None:
        """A rollout is the same on one thread and on three, and so are the environments' states."""
        r, c, rng = self.random, self.counted, self.generator()
        n, steps = r.choice((1, 5)), r.choice((1, 4))
        twins, _ = self.environments(n)
        dim, space = twins[0].obs_dim, twins[0].action_space
        discrete = isinstance(space, int)
        outputs = space if discrete else 1
        actor, critic = (
            ([dim, 4, out], "tanh", rng.normal(size=(dim + 1) * 4 + 5 * out).astype(F32))
            for out in (outputs, 1)
        )
        log_std, stream = np.zeros(0 if discrete else 1, F32), (r.getrandbits(63), r.randrange(9))
        found = []
        for env, threads in zip(twins, (1, 3), strict=True):
            c(env.reset, [])
            running = np.zeros(n), np.zeros(n, np.int64)
            arguments = [actor, critic, log_std, steps, 0.9, 0.9, stream, running]
            rollout = c(_core.collect_rollout, [env, *arguments, None, threads])
            states = [c(env.state, [i])[0] for i in range(n)]
            found.append([*rollout.values(), *running, *states])
        same(*found, "a rollout on three threads")

    @must_work
    def several_of_collectors(self) -> None:
        """Two equal collectors give equal rollouts, and give their environments back."""
        r, c, n = self.random, self.counted, self.random.choice((1, 3))
        twins, _ = self.environments(n)
        discrete = isinstance(twins[0].action_space, int)
        steps, rollouts = r.choice((1, 5)), r.randrange(3)
        unfinished, found = r.random() < 0.3, []

        def act(obs: Any) -> Any:
            actions = (obs[:, -1] > 0).astype(np.int64) if discrete else obs[:, :1].copy()
            return actions, np.zeros(n, F32), obs.sum(axis=1)

        for env in twins:
            value = lambda obs: obs.sum(axis=1)  # noqa: E731
            collector = c(_core.AsyncCollector, [env, act, value, steps, 0.9, 0.8])
            c(collector.__enter__, [])
            taken = []
            for _ in range(rollouts):
                c(collector.start, [])
                taken.append(c(collector.take, []))
            if unfinished:
                c(collector.start, [])
            c(collector.__exit__, [None, None, None])
            c(collector.close, [])
            if not unfinished and rollouts:
                taken.append({"state": c(env.state, [n - 1])[0]})
            found.append(taken)
            for rollout in taken[:rollouts]:
                assert rollout["rewards"].shape == (steps, n)
                assert_array_equal(rollout["values"], rollout["obs"].sum(axis=2))
        same(*found, "a rollout of a collector")
