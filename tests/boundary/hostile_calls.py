"""Every function and method of the extension, called with arguments that should break it."""

from __future__ import annotations

import contextlib
from typing import Any

from hostile_arguments import ADAM, CRITIC, N_ACTOR, N_CRITICS, Arguments
from rlox._laboratory import pairs

from rlox import _core

_CATALOGUE = pairs.catalogue()


def _whole(number: Any) -> int:
    """The number if it can be a size, otherwise 0."""
    return number if type(number) is int and number < 2**31 else 0


class Calls(Arguments):
    """Draws calls: `call_…` gives a function, its arguments, and what to do with its result."""

    def call_buffer(self) -> Any:
        buffer, dim, dtype = self.buffer()
        r, n, a, f32 = self.random, self.random.choice((0, 1, 5, 90)), self.array, "f4"
        which = r.randrange(10)
        if which < 3:
            row = [a((dim,), dtype), a((dim,), dtype), a((1,), f32)]
            return buffer.push, [*row, self.number(1.0), self.number(False), self.number(True)], {}
        if which < 5:
            columns = [a((n, dim), dtype), a((n, dim), dtype), a((n, 1), f32), a((n,), f32)]
            return buffer.push_batch, [*columns, a((n,), "?"), a((n,), "?")], {}
        by_priority = hasattr(buffer, "update_priorities")
        if which == 9:
            reads = [(len, [buffer]), (buffer.size, []), (getattr, [buffer, "capacity"])]
            if by_priority:
                reads += [(getattr, [buffer, name]) for name in ("alpha", "beta")]
            else:
                reads.append((buffer.transitions, []))
            return *r.choice(reads), {}
        if which < 8 or not by_priority:
            seed, copy = self.number(r.choice((None, 3))), self.number(r.random() < 0.6)
            return buffer.sample, [self.number(n), seed, copy], {}, self.keep_sample
        if r.random() < 0.2:
            return setattr, [buffer, "beta", self.number(0.5)], {}
        return buffer.update_priorities, [a((n,), "i8"), a((n,), r.choice("fd"))], {}

    def keep_sample(self, sample: Any) -> None:
        """Put the arrays of a sample into the pool of arguments, sometimes changed."""
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
            networks = [n(([3, n(6), 4], "tanh")), n((critic, CRITIC))]
            return _core.SacUpdate, [*networks, *(n(r.random() < 0.5) for _ in range(3))], {}
        if which == 4:
            return _core.roundtrip, [self.array((5,), "f8")], {}
        small = [
            _core.build_info, _core.builtin_envs, _core.take_crossings, _core.take_spans,
            _core.instructions, _core.has_bfloat16, _core.has_amx,
        ]  # fmt: skip
        some = [(f, []) for f in small] + [(_core.count_crossings, [n(False)])]
        call, arguments = r.choice([*some, (_core.record_spans, [n(None)])])
        return call, arguments, {}

    def call_pairs(self) -> Any:
        n, r = self.number, self.random
        identity, workload, sizes = r.choice(_CATALOGUE)
        smallest = min(sizes, key=lambda of: max(of.values()))
        size = {name: n(value) for name, value in smallest.items()}
        if r.random() < 0.6 or max(map(_whole, size.values())) > 64:  # larger ones take too long
            return r.choice(((pairs.tolerance, [n(identity)], {}), self.case(identity)))
        if r.random() < 0.03:
            seconds = r.choice((0.0, 0.0, -1.0, float("nan"), None, "x"))
            return pairs.contest, [n(identity), n(workload), n(size), seconds, n(3)], {}
        if r.random() < 0.01:
            return pairs.catalogue, [], {}
        twin = n(r.choice(("baseline", "optimized")))
        return pairs.Arm, [n(identity), n(workload), n(size), twin], {}, self.timed

    def case(self, identity: str) -> Any:
        """The twins on a case of their property tests; P25's take some milliseconds."""
        if identity == "P25" and self.random.random() < 0.99:
            return pairs.catalogue, [], {}
        choices = [self.random.getrandbits(64) for _ in range(self.random.randrange(30))]
        return pairs.agree, [self.number(identity), self.number(choices)], {}

    def timed(self, arm: Any) -> None:
        """Time one side of a pair. An object belongs to one thread, and makes as many calls as it
        is asked for, however long they take."""
        calls = self.random.choice((0, 1, 2, -1, 1.5, None, "x", 2**70, []))
        self.counted(arm.time, [calls])
        self.counted(arm.outcome, [])

    def call_env(self) -> Any:
        env, n, r, a = self.env(), self.number, self.random, self.array
        k, dim = env.n_envs, env.obs_dim
        which = r.randrange(8)
        if which == 7:
            names = ["env_id", "n_envs", "obs_dim", "observation_space", "action_space"]
            return getattr, [env, r.choice([*names, "initial_bounds"])], {}
        if which < 4:
            out = a((k, dim), "f4"), a((k,), "f8"), a((k,), "?"), a((k,), "?")
            discrete = isinstance(env.action_space, int)
            actions = a((k,), r.choice(("i8", "i8", "i4", "u1"))) if discrete else a((k, 1), "f4")
            return env.step, [actions, n(r.choice((None, out)))], {}
        if which == 4:
            seeds, bounds = r.choice((None, [n(1)] * k)), r.choice((None, a((4, 2), "f8")))
            return env.reset, [n(seeds), r.choice((None, a((k,), "?"))), bounds, None], {}
        if which == 5:
            return env.set_state, [n(0), a((len(env.initial_bounds),), "f8"), n(3)], {}
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
            settings |= {"batch_size": n(4), "normalize_advantage": n(True)}
            settings |= {"threads": n(1), "fused": n(True), "by_columns": n(True)}
            for name in ("clip_range_vf", "target_kl"):
                settings[name] = n(r.choice((None, 0.1)))
            if r.random() < 0.3:
                settings["nvec"], rollout[1] = n([1, n(1)]), a((k, 2), "i8")
            elif r.random() < 0.3:
                settings["bits"], rollout[1] = n(True), a((k, 2), "f4")
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

    def call_acting(self) -> Any:
        r, n, a = self.random, self.number, self.array
        network = n([3, n(4), 2]), n("tanh"), a((3 * 4 + 4 + 4 * 2 + 2,), "f4")
        head = r.choice(
            ([None, None], [a((2,), "f4"), None], [None, n([n(1), 1])], [None, None, n(True)])
        )
        if r.random() < 0.3:
            return _core.ActionSampler, [n(network), *head], {}
        acting = self.counted(_core.ActionSampler, [network, *head])
        k = r.choice((0, 1, 9))
        return acting.draw, [a((k, 3), "f4"), a((k, 2), "f4")], {}

    def call_rollout(self) -> Any:
        env, n, r, a = self.env(), self.number, self.random, self.array
        k, dim, space = env.n_envs, env.obs_dim, env.action_space
        outputs = space if isinstance(space, int) else 1
        actor = [dim, 4, outputs], n("tanh"), a((dim * 4 + 4 + 4 * outputs + outputs,), "f4")
        critic = n([dim, 4, 1]), "relu", a((dim * 4 + 4 + 4 + 1,), "f4")
        log_std, steps = a((0 if isinstance(space, int) else 1,), "f4"), r.choice((1, 3, 9))
        running = n((a((k,), "f8"), a((k,), "i8")))
        arguments = [n(actor), n(critic), log_std, n(steps), n(0.9), n(0.9), n((n(1), 2)), running]
        noise = r.choice((None, None, a((steps, k, 1), "f4")))
        return _core.collect_rollout, [env, *arguments, noise, n(r.choice((None, 1, 3)))], {}

    def call_python_rollout(self) -> Any:
        """The environments are as hostile as other arguments, and may call what they like."""
        n, r, a = self.number, self.random, self.array
        k, dim, outputs = r.choice((1, 3, 9)), 4, 2
        actor = [dim, 4, outputs], n("tanh"), a((dim * 4 + 4 + 4 * outputs + outputs,), "f4")
        critic = n([dim, 4, 1]), "relu", a((dim * 4 + 4 + 4 + 1,), "f4")
        kinds = ((0, None), (outputs, None), (0, n([1, n(1)])), (0, None, n(True)))
        deviations, *kind = r.choice(kinds)
        log_std = a((deviations,), "f4")

        def step(actions: Any) -> Any:
            if r.random() < 0.1:
                self.one()
            if r.random() < 0.05:
                return n(None)
            cut_short = n((a((1,), "i8"), a((1, dim), "f4"))) if r.random() < 0.3 else None
            return n((a((k, dim), "f4"), a((k,), "f8"), a((k,), "?"), cut_short))

        how = [log_std, n(r.choice((1, 3, 9))), n(0.9), n(0.9), n((n(1), 2)), *kind]
        obs = a((k, dim), "f4")
        return _core.collect_python_rollout, [n(step), obs, n(actor), n(critic), *how], {}

    def several_of_a_collector(self) -> None:
        """The whole life of a collector whose policy is as hostile as other arguments."""
        env, r = self.env(), self.random
        k = env.n_envs

        def act(obs: Any) -> Any:
            self.one()
            discrete = isinstance(env.action_space, int)
            actions = self.array((k,), "i8") if discrete else self.array((k, 1), "f4")
            return self.number((actions, self.array((k,), "f4"), self.array((k,), "f4")))

        value = lambda o: self.array((len(o),), "f4")  # noqa: E731
        more = [self.number(of) for of in (2, 0.9, 0.9)]
        collector = self.counted(_core.AsyncCollector, [env, act, value, *more])
        names = ("start", "take", "start", "take", "start", "take", "close", "__enter__")
        for _ in range(r.randrange(4)):
            with contextlib.suppress(Exception):
                self.counted(getattr(collector, r.choice(names)), [])
        if r.random() < 0.5:
            self.counted(collector.close, [])
        elif r.random() < 0.5:
            self.counted(collector.__exit__, [self.number(None)] * r.randrange(4))
