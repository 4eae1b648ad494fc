"""Native environments are rendered by Gymnasium's environments of the same id, which are given
their states."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import rlox
from rlox.env.native_backend import ENV_IDS


def seen(env_id: str, states: NDArray[Any]) -> NDArray[Any]:
    """What Gymnasium's environment observes of states."""
    angles = {"Pendulum-v1": 1, "Acrobot-v1": 2}.get(env_id, 0)
    turned = [f(states[:, i]) for i in range(angles) for f in (np.cos, np.sin)]
    return np.column_stack([*turned, states[:, angles:]])


@pytest.mark.parametrize("env_id", sorted(ENV_IDS))
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
        drawn = seen(env_id, np.array(env.render()))
        np.testing.assert_allclose(drawn, obs, atol=1e-6)
        obs, *_ = env.step(env.action_space.sample())
    assert asked == [((env_id,), {"render_mode": "rgb_array"})]
