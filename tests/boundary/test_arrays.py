"""Arrays that change, overlap or hold what they should not: an error, or the right result."""

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import rlox
from rlox import _core

Array = np.ndarray[Any, Any]
KINDS = pytest.mark.parametrize("kind", [rlox.ReplayBuffer, rlox.PrioritizedReplayBuffer])
ROWS = 1_000_000  # sampling them holds a buffer for some hundredths of a second, in 30 MB


def one_row(kind: Any = rlox.PrioritizedReplayBuffer) -> Any:
    buffer, row = kind(10, 1, 1), np.full(1, 7, np.float32)
    buffer.push(row, row, row, 7.0, False, False)
    return buffer


def push(buffer: Any) -> tuple[list[Array], Callable[[], None]]:
    rows = [np.full(1, 7, np.float32) for _ in range(3)]
    return rows, lambda: buffer.push(*rows, 7.0, False, False)


def push_batch(buffer: Any) -> tuple[list[Array], Callable[[], None]]:
    rows = [np.full((1, 1), 7, np.float32) for _ in range(3)]
    reward, flags = np.full(1, 7, np.float32), [np.zeros(1, bool) for _ in range(2)]
    return [*rows, reward], lambda: buffer.push_batch(*rows, reward, *flags)


def update_priorities(buffer: Any) -> tuple[list[Array], Callable[[], None]]:
    indices = np.zeros(1, np.int64)
    return [indices], lambda: buffer.update_priorities(indices, np.ones(1))


def noting(call: Callable[[], None], raised: list[Exception]) -> None:
    try:
        call()
    except Exception as error:
        raised.append(error)


@pytest.mark.parametrize("prepare", [push, push_batch, update_priorities])
def test_arrays_that_change_while_a_call_waits_are_looked_at_again(prepare: Any) -> None:
    for _ in range(2):
        buffer = one_row()
        arrays, call = prepare(buffer)
        raised: list[Exception] = []

        threads = [threading.Thread(target=buffer.sample, args=(ROWS,))]
        threads.append(threading.Thread(target=noting, args=(call, raised)))
        for thread in threads:
            thread.start()
            time.sleep(0.02)
        for array in arrays:
            array.dtype = np.uint8  # more elements of the same memory
        for thread in threads:
            thread.join()
        # Unless the call was through before, it is told what it found; nothing else was read.
        assert all("has dtype uint8" in str(error) for error in raised), raised
        assert set(buffer.sample(64)["obs"].ravel().tolist()) == {7.0}
        assert len(buffer) <= 2


def test_two_outputs_of_a_rollout_do_not_share_memory() -> None:
    n, memory = 8, bytearray(64)
    env = _core.VecEnv("CartPole-v1", n, 0)
    env.reset()
    actor, critic = np.zeros(10, np.float32), np.zeros(5, np.float32)
    networks = ([4, 2], "tanh", actor), ([4, 1], "tanh", critic), np.zeros(0, np.float32)

    def rollout(rewards: Array, lengths: Array, noise: Array | None = None) -> None:
        _core.collect_rollout(env, *networks, 8, 0.9, 0.9, (0, 0), (rewards, lengths), noise)

    with pytest.raises(ValueError, match=r"running\[1\]: shares memory with running\[0\]"):
        rollout(np.frombuffer(memory, np.float64), np.frombuffer(memory, np.int64))
    memory = bytearray(8 * n * 4)
    noise = np.frombuffer(memory, np.float32).reshape(8, n, 1)
    with pytest.raises(ValueError, match=r"running\[0\]: shares memory with noise"):
        rollout(np.frombuffer(memory, np.float64, n), np.zeros(n, np.int64), noise)


def test_outputs_of_a_step_do_not_share_memory() -> None:
    env = _core.VecEnv("CartPole-v1", 8, 0)
    env.reset()
    memory = bytearray(64)
    rewards, flags = np.frombuffer(memory, np.float64), np.frombuffer(memory, bool, 8)
    obs = np.zeros((8, 4), np.float32)
    with pytest.raises(ValueError, match=r"out\[2\]: shares memory with out\[1\]"):
        env.step(np.zeros(8, np.int64), (obs, rewards, flags, np.zeros(8, bool)))
    env.step(np.zeros(8, np.int64), (obs, rewards, np.zeros(8, bool), np.zeros(8, bool)))


ODD = np.array([1, 0, 255, 2], np.uint8)


@KINDS
@pytest.mark.parametrize("which", [4, 5])
def test_flags_of_other_bytes_than_0_and_1_are_no_flags(kind: Any, which: int) -> None:
    buffer, rows = kind(10, 1, 1), np.zeros((4, 1), np.float32)
    columns = [rows, rows, rows, rows[:, 0].copy(), np.zeros(4, bool), np.zeros(4, bool)]
    columns[which] = ODD.view(bool)
    with pytest.raises(ValueError, match="holds a byte of 255, expected 0 or 1"):
        buffer.push_batch(*columns)
    assert len(buffer) == 0


def test_a_mask_of_other_bytes_than_0_and_1_counts_what_is_not_0() -> None:
    log_probs = np.arange(32.0).reshape(8, 4)
    mask = np.tile(ODD, (8, 1))
    found = rlox.compute_token_kl(-log_probs, -2 * log_probs, mask.view(bool))
    expected = rlox.compute_token_kl(-log_probs, -2 * log_probs, mask != 0)
    np.testing.assert_array_equal(found, expected)
    env = _core.VecEnv("CartPole-v1", 4, 0)
    env.reset()
    with pytest.raises(ValueError, match="mask: holds a byte of 255, expected 0 or 1"):
        env.reset(mask=ODD.view(bool))


@KINDS
def test_what_is_in_kept_arrays_does_not_matter(kind: Any) -> None:
    buffer, rows = kind(10, 1, 1), np.zeros((4, 1), np.float32)
    buffer.push_batch(rows, rows, rows, rows[:, 0].copy(), *np.zeros((2, 4), bool))
    for copy in (True, False):
        for _ in range(9):
            sample = buffer.sample(4, copy=copy)
            for name in ("terminated", "truncated"):
                assert not sample[name].view(np.uint8).any()
                sample[name].view(np.uint8)[:] = 255
            del sample


def learner(rng: np.random.Generator, n: int) -> tuple[Array, Array, Array]:
    params = rng.normal(size=n).astype(np.float32) / 16
    return params, np.zeros(n, np.float32), np.zeros(n, np.float32)


class Update:
    """An update of SAC that takes some 20 ms, always the same."""

    rows, width = 512, 256

    def __init__(self) -> None:
        rng, width = np.random.default_rng(0), self.width
        critic = ([4, width, width, 1], "relu")
        self.sac = _core.SacUpdate(([3, width, width, 2], "relu"), (critic, critic))
        n_critics = 2 * (4 * width + width + width * width + width + width + 1)
        n_actor = 3 * width + width + width * width + width + 2 * width + 2
        self.learners = [learner(rng, n_actor), learner(rng, n_critics)]
        self.targets = self.learners[1][0].copy()
        self.log_alpha = learner(rng, 1)
        self.noise = rng.normal(size=(2, self.rows, 1)).astype(np.float32)

    def __call__(self, batch: Any) -> Any:
        adam = (1e-3, 0.9, 0.999, 1e-8, 1)
        settings = {"gamma": 0.9, "tau": 0.1, "target_entropy": -1.0, "threads": 1}
        adams = (adam, adam, adam)
        arguments = (*self.learners, self.targets, self.log_alpha, batch, self.noise)
        return self.sac.update(*arguments, adams=adams, **settings)


def a_thousand_rows() -> Any:
    buffer, rng = rlox.ReplayBuffer(1000, 3, 1), np.random.default_rng(1)
    rows = rng.normal(size=(2, 1000, 3)).astype(np.float32)
    buffer.push_batch(
        *rows, rows[0, :, :1].copy(), rows[1, :, 0].copy(), *np.zeros((2, 1000), bool)
    )
    return buffer


def test_kept_arrays_that_an_update_reads_are_left_alone() -> None:
    buffer = a_thousand_rows()
    expected = Update()(buffer.sample(Update.rows, seed=3))
    for _ in range(5):
        update, found = Update(), []
        batch = buffer.sample(Update.rows, seed=3, copy=False)
        thread = threading.Thread(target=lambda u=update, b=batch, f=found: f.append(u(b)))
        thread.start()
        while thread.is_alive():
            buffer.sample(Update.rows, copy=False)
        thread.join()
        np.testing.assert_array_equal(found[0][2], expected[2])
        assert found[0][:2] == expected[:2]
    again = [buffer.sample(Update.rows, copy=False)["obs"] for _ in range(2)]
    assert again[0] is again[1]


def test_arrays_that_an_update_works_with_are_refused_to_others_meanwhile() -> None:
    """Also calls that keep the interpreter's lock, and so count no borrows of arrays, are
    refused."""
    update, batch = Update(), a_thousand_rows().sample(Update.rows)
    params, env = update.learners[0][0], _core.VecEnv("Pendulum-v1", Update.rows, 0)
    env.reset()
    expected = {"rewards: is being written to elsewhere", "out: is read-only or in use elsewhere"}
    refused = set[str]()
    for _ in range(20):  # a busy machine may not ask twice while one of them runs
        thread = threading.Thread(target=lambda: update(batch))
        thread.start()
        while thread.is_alive():
            try:
                rlox.compute_gae(params, params, params, 0.0, 0.9, 0.9)
                env.reset(out=batch["obs"])
            except ValueError as error:
                refused.add(str(error))
            if len(refused) == 1 and "rewards: is being written to elsewhere" in refused:
                params = np.zeros(3, np.float32)
        thread.join()
        if refused >= expected:
            break
    assert refused == expected


@KINDS
def test_kept_arrays_that_no_longer_do_are_made_anew(kind: Any) -> None:
    buffer, row = kind(4, 4, 1), np.ones(4, np.float32)
    buffer.push(row, row, row[:1], 1.0, False, False)

    def misaligned(array: Array) -> None:
        array.setflags(align=False)

    def flat(array: Array) -> None:
        array.shape = (-1,)  # which it may be

    def short(array: Array) -> None:
        with pytest.raises(ValueError, match="cannot resize"):
            array.resize(1, refcheck=False)  # it would be while a sample is written to it

    def swapped(array: Array) -> None:
        array.dtype = array.dtype.newbyteorder()

    def read_only(array: Array) -> None:
        array.flags.writeable = False

    for change in (misaligned, flat, short, swapped, read_only):
        for name in buffer.sample(4):
            change(buffer.sample(4, copy=False)[name])
            for _ in range(3):
                sample = buffer.sample(4, copy=False)
                assert (sample["obs"] == 1).all()
                assert sample["obs"].dtype == np.float32


def test_an_array_is_not_resized_while_an_update_reads_it() -> None:
    batch = a_thousand_rows().sample(Update.rows)
    rewards = np.concatenate([batch["reward"], batch["reward"]])[: Update.rows]
    expected = Update()(batch | {"reward": rewards})
    for _ in range(200):  # a fast or a busy machine may not look while the update reads
        column, update, found = rewards.copy(), Update(), list[Any]()
        given = batch | {"reward": column}

        def work(update: Update = update, given: Any = given, found: Any = found) -> None:
            with contextlib.suppress(ValueError):  # resized before it was read
                found.append(update(given))

        thread = threading.Thread(target=work)
        thread.start()
        refused = False
        while thread.is_alive() and not refused and len(column) == Update.rows:
            time.sleep(0.0005)
            try:
                column.resize(Update.rows + 1, refcheck=False)
            except ValueError:
                refused = True
        thread.join()
        if refused:
            np.testing.assert_array_equal(found[0][2], expected[2])
            return
    pytest.fail("no resize was refused")
