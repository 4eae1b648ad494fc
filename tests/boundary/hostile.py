"""Calls that nobody should make: every function of the extension, with arguments to break it.

`hostile_calls(seed, count)` makes so many in this process; as a program it bounds the memory first,
and can call from several threads and from forked children. Whatever comes out must be an
`Exception`: no crash, no hang, and none of Rust's panics, which are no `Exception`. Sizes are small
or absurd, so that a call takes microseconds.

    python tests/boundary/hostile.py --seed 1 --count 100000 --threads 3 --forks 20
"""

import argparse
import json
import os
import resource
import signal
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from hostile_arguments import ADAM, CRITIC, N_ACTOR, N_CRITICS, Arguments

from rlox import _core


class Hostile(Arguments):
    """Draws calls and makes them."""

    def call_buffer(self) -> Any:
        buffer, dim, dtype = self.buffer()
        r, n, a, f32 = self.random, self.random.choice((0, 1, 5, 90)), self.array, np.float32
        which = r.randrange(9)
        if which < 3:
            row = [a((dim,), dtype), a((dim,), dtype), a((1,), f32)]
            return buffer.push, [*row, self.number(1.0), self.number(False), self.number(True)], {}
        if which < 5:
            columns = [a((n, dim), dtype), a((n, dim), dtype), a((n, 1), f32), a((n,), f32)]
            return buffer.push_batch, [*columns, a((n,), "?"), a((n,), "?")], {}
        if which < 8 or not hasattr(buffer, "update_priorities"):
            seed, copy = self.number(r.choice((None, 3))), self.number(r.random() < 0.6)
            return self.sampled, [buffer, self.number(n), seed, copy], {}
        if r.random() < 0.2:
            return setattr, [buffer, "beta", self.number(0.5)], {}
        return buffer.update_priorities, [a((n,), "i8"), a((n,), r.choice("fd"))], {}

    def sampled(self, buffer: Any, *arguments: Any) -> None:
        """A sample, whose arrays come back as arguments, spoilt or not."""
        sample = buffer.sample(*arguments)
        len(buffer), buffer.capacity
        name = self.random.choice(list(sample))
        array = sample[name]
        if self.random.random() < 0.2:
            self.spoilt(array)
        self.pool[f"array {array.shape} {array.dtype}"] = array
        self.pool["batch"] = sample

    def call_make(self) -> Any:
        n, r = self.number, self.random
        which = r.randrange(6)
        if which == 0:
            kind = r.choice((_core.ReplayBuffer, _core.PrioritizedReplayBuffer))
            return kind, [n(4), n(3), n(1)], {"obs_dtype": n("uint8"), "seed": n(0)}
        if which == 1:
            return _core.PrioritizedReplayBuffer, [n(4), n(3), n(1), n(0.6), n(0.4)], {}
        if which == 2:
            return _core.VecEnv, [n("CartPole-v1"), n(3), n(0)], {}
        if which == 3:
            critic = n(([n(5), n(6), n(1)], n("relu")))
            return _core.SacUpdate, [n(([3, n(6), 4], "tanh")), n((critic, CRITIC))], {}
        if which == 4:
            return _core.roundtrip, [self.array((5,), "f8")], {}
        small = [_core.build_info, _core.builtin_envs, _core.take_crossings, _core.take_spans]
        some = [(f, []) for f in small] + [(_core.count_crossings, [n(False)])]
        call, arguments = r.choice([*some, (_core.record_spans, [n(None)])])
        return call, arguments, {}

    def call_env(self) -> Any:
        env, n, r, a = self.env(), self.number, self.random, self.array
        k, dim = env.n_envs, env.obs_dim
        which = r.randrange(7)
        if which < 4:
            out = a((k, dim), "f4"), a((k,), "f8"), a((k,), "?"), a((k,), "?")
            actions = a((k,), r.choice(("i8", "i8", "i4", "u1"))) if dim == 4 else a((k, 1), "f4")
            return env.step, [actions, n(r.choice((None, out)))], {}
        if which == 4:
            seeds, bounds = r.choice((None, [n(1)] * k)), r.choice((None, a((4, 2), "f8")))
            return env.reset, [n(seeds), r.choice((None, a((k,), "?"))), bounds, None], {}
        if which == 5:
            return env.set_state, [n(0), a((4 if dim == 4 else 2,), "f8"), n(3)], {}
        return env.state, [n(0)], {}

    def call_training(self) -> Any:
        r, n, a = self.random, self.number, self.array
        t, shape = r.choice("fd"), r.choice(((0,), (7,), (40,)))
        out = r.choice((None, None, (a(shape, t), a(shape, t))))
        flat, rates = [a(shape, t) for _ in range(4)], [n(0.5), n(0.9), n(0.9)]
        which = r.randrange(5)
        if which == 0:
            return _core.compute_gae, [*flat[:3], *rates], {"out": n(out)}
        if which == 1:
            return _core.compute_vtrace, [*flat, *rates, n(1.0)], {"out": n(out)}
        shape = r.choice(((0, 0), (3, 5), (8, 16)))
        two = [a(shape, t) for _ in range(3)]
        out = r.choice((None, None, a((shape[0],), t)))
        if which == 2:
            return (
                _core.compute_token_kl,
                [*two[:2], r.choice((None, a(shape, "?")))],
                {"out": n(out)},
            )
        if which == 3:
            return _core.compute_group_advantages, [flat[0], n(1), n(1e-8)], {"out": None}
        layout = r.choice(("step_major", "env_major", n("x")))
        last = a((shape[1 if layout == "step_major" else 0],), t)
        return _core.compute_gae_batched, [*two, last, *rates[1:], layout], {}

    def moments(self, size: int) -> Any:
        return self.number(tuple(self.array((size,), "f4") for _ in range(3)))

    def call_update(self) -> Any:
        r, n, a = self.random, self.number, self.array
        k = r.choice((0, 1, 9))
        if r.random() < 0.4:
            actor = n([3, n(4), 2]), n("tanh"), self.moments(3 * 4 + 4 + 4 * 2 + 2)
            critic = [3, 4, 1], "relu", self.moments(3 * 4 + 4 + 4 + 1)
            rollout = [a((k, 3), "f4"), a((k,), "i8"), *(a((k,), "f4") for _ in range(3))]
            order = a((2 * k,), "i8")
            names = ("clip_range", "ent_coef", "vf_coef", "max_grad_norm", "lr", "eps")
            settings = {name: n(0.1) for name in names} | {"betas": n((0.9, n(0.999)))}
            settings |= {"batch_size": n(4), "normalize_advantage": n(True), "threads": n(1)}
            return _core.ppo_update, [actor, critic, n(None), n(rollout), order, n(0)], settings
        sac = self.sac()
        if r.random() < 0.3:
            return sac.act, [a((N_ACTOR,), "f4"), a((k, 3), "f4"), a((k, 2), "f4")], {}
        batch: Any = {
            "reward": a((k,), "f4"),
            "terminated": a((k,), "?"),
            "action": a((k, 2), "f4"),
        }
        batch |= {"obs": a((k, 3), "f4"), "next_obs": a((k, 3), "f4")}
        if r.random() < 0.1:
            batch[self.evil()] = 0
        learners = [self.moments(N_ACTOR), self.moments(N_CRITICS), a((N_CRITICS,), "f4")]
        arguments = [
            *learners,
            self.moments(1),
            n(self.pool.get("batch", batch)) if k == 9 else batch,
        ]
        settings = {"gamma": n(0.9), "tau": n(0.1), "target_entropy": n(-1.0), "threads": n(2)}
        adams = n((n(ADAM), ADAM, n(ADAM)))
        return sac.update, [*arguments, a((2, k, 2), "f4")], settings | {"adams": adams}

    def call_rollout(self) -> Any:
        env, n, r, a = self.env(), self.number, self.random, self.array
        k, dim, outputs = env.n_envs, env.obs_dim, 2 if env.obs_dim == 4 else 1
        actor = [dim, 4, outputs], n("tanh"), a((dim * 4 + 4 + 4 * outputs + outputs,), "f4")
        critic = n([dim, 4, 1]), "relu", a((dim * 4 + 4 + 4 + 1,), "f4")
        log_std, steps = a((0 if dim == 4 else 1,), "f4"), r.choice((1, 3, 9))
        running = n((a((k,), "f8"), a((k,), "i8")))
        arguments = [n(actor), n(critic), log_std, n(steps), n(0.9), n(0.9), n((n(1), 2)), running]
        noise = r.choice((None, None, a((steps, k, 1), "f4")))
        return _core.collect_rollout, [env, *arguments, noise, n(r.choice((None, 1, 3)))], {}

    def call_collector(self) -> Any:
        if self.random.random() < 0.9:
            return self.call_env()
        return self.collected, [], {}

    def collected(self) -> None:
        """A whole life of a collector, whose policy is no better than the rest."""
        env, r = self.env(), self.random
        k, dim = env.n_envs, env.obs_dim

        def act(obs: Any) -> Any:
            self.one()
            actions = self.array((k,), "i8") if dim == 4 else self.array((k, 1), "f4")
            return self.number((actions, self.array((k,), "f4"), self.array((k,), "f4")))

        collector = _core.AsyncCollector(
            env, act, lambda o: self.array((len(o),), "f4"), self.number(2)
        )
        for _ in range(r.randrange(3)):
            getattr(collector, r.choice(("start", "take", "start", "take", "close")))()
        if r.random() < 0.5:
            collector.close()

    # Calling them.

    def one(self) -> None:
        """One call; what comes out of it is counted."""
        if self.depth > 2:
            return
        self.depth += 1
        name = self.random.choice(list(self.calls))
        outcome = "returned"
        try:
            call, arguments, named = self.calls[name]()
            call(*arguments, **named)
        except Exception as error:
            outcome = type(error).__name__
        except BaseException as error:
            self.fatal.append(f"{name}: {type(error).__name__}: {error}")
            outcome = "FATAL"
        finally:
            self.depth -= 1
        self.counts["calls"] += 1
        self.counts[f"{name} {outcome}"] += 1


def hostile_calls(seed: int, count: int, shared: Hostile | None = None) -> Hostile:
    """So many calls; `fatal` of what is returned says which raised what is no `Exception`."""
    hostile = Hostile(seed, shared)
    while hostile.counts["calls"] < count:
        hostile.one()
    return hostile


def in_child(seed: int, count: int, shared: Hostile) -> str | None:
    """What went wrong in a forked child that goes on with what its parent has, or None."""
    said, say = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # ends who waits for ever
        try:
            fatal = hostile_calls(seed, count, shared).fatal
            os.write(say, "; ".join(fatal).encode()[:4000])  # a pipe holds as much
            os._exit(bool(fatal))
        finally:
            os._exit(2)
    os.close(say)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with os.fdopen(said) as pipe:
        fatal = pipe.read()
    return f"a child ended with {code}: {fatal}" if code else None


def main() -> None:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=20_000, help="calls, in all threads together")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--forks", type=int, default=0, help="children, of 100 calls each")
    parser.add_argument("--megabytes", type=int, default=600, help="that calls may take; 0: any")
    arguments = parser.parse_args()
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit = used + (arguments.megabytes << 20)
    if arguments.megabytes:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    shared, found = Hostile(arguments.seed), list[Hostile]()
    each = arguments.count // arguments.threads

    def work(thread: int) -> None:
        found.append(hostile_calls(arguments.seed * 1000 + thread, each, shared))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(1, arguments.threads)]
    fatal = list[str | None]()
    sys.unraisablehook = lambda what: fatal.append(
        None if isinstance(what.exc_value, Exception) else repr(what.exc_value)
    )
    for thread in threads:
        thread.start()
    for fork in range(arguments.forks):
        fatal.append(in_child(arguments.seed * 1000 + 500 + fork, 100, shared))
    work(0)
    for thread in threads:
        thread.join()
    counts = sum((hostile.counts for hostile in found), Counter[str]())
    counts["calls in children"] = 100 * arguments.forks
    wrong = [what for what in fatal if what] + [what for one in found for what in one.fatal]
    print(json.dumps({"counts": dict(sorted(counts.items())), "fatal": wrong}, indent=1))
    sys.stdout.flush()
    os._exit(bool(wrong))  # collectors that nobody closed may be at work


if __name__ == "__main__":
    main()
