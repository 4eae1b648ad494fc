"""One array in two threads, of which one is in a call that has let go of the interpreter.

Every other call that would read what that one writes, or write what it reads, names its argument.
"""

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from test_arrays import Update, a_thousand_rows

import rlox
from rlox import _core

Array = np.ndarray[Any, Any]
N = 64
READ, WRITTEN = "is being written to elsewhere", "is read-only or in use elsewhere"


class Rollout:
    """A rollout that takes some tenths of a second. It writes to `rewards` and `lengths`, and reads
    `params`."""

    def __init__(self) -> None:
        self.env = _core.VecEnv("CartPole-v1", N, 0)
        self.env.reset()
        self.rewards, self.lengths = np.zeros(N), np.zeros(N, np.int64)
        self.params = np.zeros(4 * 64 + 64 + 64 * 2 + 2, np.float32)

    def __call__(self) -> None:
        rollout(self.env, self.params, (self.rewards, self.lengths), 4_000)


def rollout(
    env: Any, params: Array, running: Any, n_steps: int, noise: Array | None = None
) -> None:
    networks = ([4, 64, 2], "tanh", params), ([4, 1], "tanh", np.zeros(5, np.float32))
    nothing = np.zeros(0, np.float32)
    _core.collect_rollout(env, *networks, nothing, n_steps, 0.9, 0.9, (0, 0), running, noise, 1)


def calls(of: Rollout) -> dict[str, Callable[[], Any]]:
    """Each by the message that it is to end in."""
    r, n, p = of.rewards, of.lengths, of.params
    f, flags, square = r.view(np.float32), r.view(bool), r.reshape(8, 8)
    free, free_square, idle = np.zeros(N), np.zeros((8, 8)), np.zeros(N, np.int64)
    row, rows, falses = np.zeros(4, np.float32), np.zeros((1, 4), np.float32), np.zeros(1, bool)
    env, pendulum = _core.VecEnv("CartPole-v1", N, 1), _core.VecEnv("Pendulum-v1", 1, 1)
    for one in (env, pendulum):
        one.reset()
    buffer = rlox.PrioritizedReplayBuffer(8, 4, 1)
    buffer.push(row, row, row[:1], 0.0, False, False)
    sac = _core.SacUpdate(([3, 4], "relu"), (([5, 1], "relu"),) * 2)
    out = np.zeros((N, 4), np.float32), free, *np.zeros((2, N), bool)
    reads: dict[str, Callable[[], Any]] = {
        "rewards": lambda: rlox.compute_gae(r, free, free, 0.0, 0.9, 0.9),
        "values": lambda: rlox.compute_gae(free, r, free, 0.0, 0.9, 0.9),
        "dones": lambda: rlox.compute_gae_batched(
            free_square, free_square, square, free[:8], 0.9, 0.9
        ),
        "last_values": lambda: rlox.compute_gae_batched(*[free_square] * 3, r[:8], 0.9, 0.9),
        "log_rhos": lambda: rlox.compute_vtrace(r, free, free, free, 0.0, 0.9),
        "log_probs_policy": lambda: rlox.compute_token_kl(square, free_square),
        "log_probs_ref": lambda: rlox.compute_token_kl(free_square, square),
        "array": lambda: _core.roundtrip(r),
        "indices": lambda: buffer.update_priorities(n, free),
        "priorities": lambda: buffer.update_priorities(idle[:1], r[:1]),
        "obs": lambda: buffer.push(f[:4], row, row[:1], 0.0, False, False),
        "next_obs": lambda: buffer.push(row, f[:4], row[:1], 0.0, False, False),
        "reward": lambda: buffer.push_batch(rows, rows, rows[:, :1].copy(), f[:1], falses, falses),
        "truncated": lambda: buffer.push_batch(
            rows, rows, rows[:, :1].copy(), row[:1], falses, flags[:1]
        ),
        "actions": lambda: env.step(n),
        "mask": lambda: env.reset(mask=flags[:N]),
        "bounds": lambda: env.reset(bounds=r[:8].reshape(4, 2)),
        "state": lambda: pendulum.set_state(0, r[:2]),
        "params": lambda: sac.act(f[:16], rows[:, :3].copy(), rows[:, :2].copy()),
        "noise": lambda: rollout(env, np.zeros_like(p), (free, idle), 1, f[:N].reshape(1, N, 1)),
    }
    writes: dict[str, Callable[[], Any]] = {
        "out": lambda: env.reset(out=p[: 4 * N].reshape(N, 4)),
        "out[0]": lambda: env.step(idle, (p[: 4 * N].reshape(N, 4), *out[1:])),
        "out[1]": lambda: rlox.compute_gae(free, free, free, 0.0, 0.9, 0.9, out=(np.zeros(N), r)),
        "out[3]": lambda: env.step(idle, (*out[:3], p.view(bool)[:N])),
        "running[0]": lambda: rollout(env, np.zeros_like(p), (r, idle), 1),
        "running[1]": lambda: rollout(env, np.zeros_like(p), (free, n), 1),
    }
    return {f"{name}: {READ}": call for name, call in reads.items()} | {
        f"{name}: {WRITTEN}": call for name, call in writes.items()
    }


def outcome(call: Callable[[], Any]) -> str:
    try:
        call()
    except ValueError as error:
        return str(error)
    return "returned"


def test_every_call_is_told_of_arrays_that_a_rollout_works_with() -> None:
    for _ in range(20):  # a busy machine may look when the rollout is over
        work = Rollout()
        others = calls(work)
        thread = threading.Thread(target=work)
        thread.start()
        reading = f"rewards: {READ}"
        while thread.is_alive() and outcome(others[reading]) != reading:
            time.sleep(0.001)
        found = {expected: outcome(call) for expected, call in others.items()}
        in_time = thread.is_alive()
        thread.join()
        if in_time:
            assert found == {expected: expected for expected in others}
            break
    else:
        pytest.fail("no rollout took long enough")
    # And afterwards they are free again.
    assert outcome(others[reading]) == "returned"
    assert outcome(others[f"out: {WRITTEN}"]) == "returned"


@pytest.mark.parametrize("viewed", [False, True])
def test_memory_that_a_rollout_writes_to_is_not_resized(viewed: bool) -> None:
    for _ in range(20):
        work = Rollout()
        owner = work.rewards
        if viewed:
            owner = np.zeros(4 * N)
            work.rewards = owner[N : 2 * N]
        thread = threading.Thread(target=work)
        thread.start()
        in_use = f"rewards: {READ}"
        read = lambda: rlox.compute_gae(*[work.rewards] * 3, 0.0, 0.9, 0.9)  # noqa: B023, E731
        while thread.is_alive() and outcome(read) != in_use:
            time.sleep(0.001)
        refused = ""
        try:
            owner.resize(10**6, refcheck=False)
        except ValueError as error:
            refused = str(error)
        in_time = thread.is_alive()
        thread.join()
        if in_time:
            assert "resize" in refused
            return
    pytest.fail("no rollout took long enough")


def test_what_both_calls_only_read_is_shared() -> None:
    work, again = Rollout(), _core.VecEnv("CartPole-v1", N, 1)
    again.reset()
    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        rollout(again, work.params, (np.zeros(N), np.zeros(N, np.int64)), 1)
        assert rlox.compute_gae(*[work.params] * 3, 0.0, 0.9, 0.9)[0].shape == work.params.shape
    thread.join()


def test_kept_arrays_are_refused_while_a_sample_is_written_to_them() -> None:
    """Whichever call writes: in each row of the table it writes into the sample's own memory."""
    buffer, row = rlox.ReplayBuffer(10, 4, 1), np.ones(4, np.float32)
    buffer.push(row, row, row[:1], 1.0, False, False)
    n, done = 400_000, False
    batch = buffer.sample(n, copy=False)
    rewards, obs = batch["reward"][:N], batch["obs"][:1]
    env = _core.VecEnv("CartPole-v1", 1, 0)
    expected = {f"rewards: {READ}", f"out: {WRITTEN}"}

    def work() -> None:
        while not done:
            assert buffer.sample(n, copy=False)["reward"] is batch["reward"]

    thread = threading.Thread(target=work)
    thread.start()
    found, deadline = set[str](), time.monotonic() + 60
    while not expected <= found and thread.is_alive() and time.monotonic() < deadline:
        found.add(outcome(lambda: rlox.compute_gae(*[rewards] * 3, 0.0, 0.9, 0.9)))
        found.add(outcome(lambda: env.reset(out=obs)))
    done = True
    thread.join()
    assert expected <= found <= expected | {"returned"}


def test_what_a_dictionary_runs_is_over_before_an_array_is_looked_at() -> None:
    """A batch's keys may be compared by code of Python's, which may free the memory of an array."""
    update, batch = Update(), a_thousand_rows().sample(Update.rows)
    expected = Update()
    expected(batch)
    replaced = []

    class Key(str):
        """Lies where "next_obs" is looked for, and is another key."""

        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            targets = update.targets
            state = 1, targets.shape, targets.dtype, False, targets.tobytes()
            targets.__setstate__(state)  # type: ignore[attr-defined]
            replaced.append(targets.ctypes.data)
            return False

    update({Key("next_obs"): None} | batch)
    assert len(replaced) > 1, "no lookup has met the key"
    np.testing.assert_array_equal(update.targets, expected.targets)
