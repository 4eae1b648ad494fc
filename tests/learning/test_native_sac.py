"""SAC learns with its native update as it does with torch's."""

import numpy as np
import pytest
import torch
from side_by_side import mean_interval, random_return, welch_interval

from rlox import SAC
from rlox.learner.policies import SquashedGaussianActor, TwinCritic

SEEDS = range(5)


def last_returns(seed: int, native: bool) -> float:
    """Mean return of the last ten episodes of 6,000 steps of Pendulum-v1, with small networks."""
    torch.manual_seed(seed)
    model = SAC(
        "Pendulum-v1",
        seed=seed,
        learning_starts=500,
        learning_rate=1e-3,
        policy=SquashedGaussianActor(3, 1, (64, 64)),
        critic=TwinCritic(3, 1, (64, 64)),
        optimizations=["R9"] if native else [],
    ).learn(6000)
    assert model.update_path == ("native" if native else "torch")
    return float(np.mean(model.episode_returns[-10:]))


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_native_update_learns_as_torch_does() -> None:
    native, torch_path = ([last_returns(seed, kind) for seed in SEEDS] for kind in (True, False))
    print(f"native {native}\ntorch {torch_path}")
    low, high = welch_interval(native, torch_path)
    assert low <= 0 <= high
    assert mean_interval(native)[0] > random_return("Pendulum-v1") + 500
