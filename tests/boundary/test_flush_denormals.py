"""Where the caller has denormal floats flushed to zero (`torch.set_flush_denormal`), or not."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

import rlox
from rlox import _core

LEAST = {np.dtype(np.float32): 1.2e-38, np.dtype(np.float64): 2.3e-308}
Array = np.ndarray[Any, Any]


def flushes() -> bool:
    """Whether this thread does."""
    return bool((np.full(1, 1e-39, np.float32) * np.float32(1)).view(np.uint32)[0] == 0)


@pytest.fixture(params=[False, True], ids=["kept", "flushed"])
def flushed(request: Any) -> Iterator[bool]:
    if not torch.set_flush_denormal(request.param):
        pytest.skip("no such setting here")
    yield request.param
    torch.set_flush_denormal(False)


def numbers(scale: float, *shape: int, dtype: Any = np.float64) -> Array:
    return (scale * np.random.default_rng(7).normal(size=shape)).astype(dtype)


def buffer(scale: float) -> rlox.PrioritizedReplayBuffer:
    made, rows = (
        rlox.PrioritizedReplayBuffer(64, 3, 1, alpha=1.0, beta=0.5, seed=3),
        numbers(1, 50, 3),
    )
    rows = rows.astype(np.float32)
    made.push_batch(rows, rows, rows[:, :1].copy(), rows[:, 1].copy(), *np.zeros((2, 50), bool))
    made.update_priorities(np.arange(50), scale * np.abs(numbers(1, 50)))
    return made


def samples(scale: float) -> list[Array]:
    return list(buffer(scale).sample(40, seed=5).values())


def steps(scale: float) -> list[Array]:
    env = _core.VecEnv("Pendulum-v1", 9, 0)
    env.reset()
    env.set_state(0, np.array([scale, scale]))
    return [
        array for _ in range(9) for array in env.step(numbers(scale, 9, 1, dtype=np.float32))[:4]
    ]


CALLS: dict[str, Callable[[float], Any]] = {
    "gae": lambda s: rlox.compute_gae(*numbers(s, 2, 300), np.zeros(300), 0.1 * s, 0.9, 0.9),
    "gae of float32": lambda s: rlox.compute_gae_batched(
        *numbers(s, 3, 16, 32, dtype=np.float32), numbers(s, 32, dtype=np.float32), 0.9, 0.9
    ),
    "vtrace": lambda s: rlox.compute_vtrace(*numbers(s, 3, 300), np.zeros(300), 0.1 * s, 0.9),
    "token kl": lambda s: [rlox.compute_token_kl(*numbers(s, 2, 4, 300))],
    "advantages": lambda s: [rlox.compute_group_advantages(numbers(s, 300), 10, 1.0)],
    "samples": samples,
    "steps": steps,
}


@pytest.mark.parametrize("name", CALLS)
def test_results_differ_by_less_than_the_least_normal_number(name: str) -> None:
    for scale in (1.0, 1e-30, 1e-300):
        if not torch.set_flush_denormal(False):
            pytest.skip("no such setting here")
        expected = CALLS[name](scale)
        torch.set_flush_denormal(True)
        try:
            found = CALLS[name](scale)
        finally:
            torch.set_flush_denormal(False)
        for one, other in zip(found, expected, strict=True):
            atol = 1e4 * LEAST.get(one.dtype, 0) * (scale < 1)  # of some hundreds of terms
            np.testing.assert_allclose(one, other, rtol=0, atol=atol)


def test_priorities_that_are_flushed_draw_stored_rows_or_none(flushed: bool) -> None:
    """Set where they are kept or not, and drawn where it is the other way round."""
    made = buffer(1e-310)
    torch.set_flush_denormal(not flushed)
    try:
        batch = made.sample(4000, seed=1)
    except RuntimeError as error:
        assert "every priority is zero" in str(error)
    else:
        assert np.isin(batch["indices"], np.arange(50)).all()
        assert np.isfinite(batch["weights"]).all()


def test_an_update_leaves_the_setting_as_it_was(flushed: bool) -> None:
    """Updates of networks flush for themselves: gradients may be as small as they like."""

    def moments(n: int) -> tuple[Array, Array, Array]:
        return tuple(np.full(n, 1e-3, np.float32) for _ in range(3))  # type: ignore[return-value]

    n, columns = 40, [np.ones(40, np.float32) for _ in range(3)]
    networks = ([3, 4, 2], "tanh", moments(26)), ([3, 4, 1], "tanh", moments(21))
    rollout = np.ones((n, 3), np.float32), np.zeros(n, np.int64), *columns
    settings = {
        "clip_range": 0.2,
        "ent_coef": 0.0,
        "vf_coef": 0.5,
        "max_grad_norm": 0.5,
        "eps": 1e-8,
    }
    assert flushes() == flushed
    _core.ppo_update(
        *networks, None, rollout, np.arange(n), 0, batch_size=8, normalize_advantage=False, lr=1e-3,
        betas=(0.9, 0.999), **settings,
    )  # fmt: skip
    assert flushes() == flushed
