"""Native environments are drawn by Gymnasium's own of the same id, which are told their states."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import rlox


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1"])
def test_each_is_drawn_as_it_stands(env_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawing itself takes pygame; here its environment shows the state that it was given."""
    made = gymnasium.make(env_id).unwrapped
    made.render = lambda: made.state.copy()  # type: ignore[attr-defined,method-assign]

    class Maker:
        unwrapped: Any = made

    asked: list[Any] = []
    monkeypatch.setattr(gymnasium, "make", lambda *a, **k: asked.append((a, k)) or Maker())
    env = rlox.VecEnv(env_id, 2, seed=0)
    obs, _ = env.reset()
    for _ in range(3):
        drawn = np.array(env.render())
        if env_id == "Pendulum-v1":
            drawn = np.stack([np.cos(drawn[:, 0]), np.sin(drawn[:, 0]), drawn[:, 1]], axis=1)
        np.testing.assert_allclose(drawn, obs, atol=1e-6)
        obs, *_ = env.step(env.action_space.sample())
    assert asked == [((env_id,), {"render_mode": "rgb_array"})]
