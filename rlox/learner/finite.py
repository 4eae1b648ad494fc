"""Refuses observations and rewards that are not finite, and observations outside their space, when
the environment gives them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from rlox.learner.environments import rust_core
from rlox.learner.spaces import of_parts, parts, unlisted
from rlox.learner.vector_envs import single_envs

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm

LARGEST = float(np.finfo(np.float32).max)  # the largest number of networks and buffers
NOBODY = np.empty(0, np.intp)  # no environment


class FiniteSteps:
    """Checks the observations and rewards of a trainer's environments before they are learnt from.

    Environments in Rust give finite numbers and are not checked. Raises ValueError, with the
    environment's number and its step, for NaN, for numbers that are infinite as float32, and for
    those that a `Discrete` or `MultiDiscrete` does not list.
    """

    def __init__(self, model: "Algorithm") -> None:
        self.model = model
        self._needed = rust_core(model.vector_env) is None
        lists = spaces.Discrete | spaces.MultiDiscrete
        self._lists = any(isinstance(of, lists) for of in parts(model.observation_space).values())

    def reset(self, obs: NDArray[Any]) -> None:
        """First observations, `[n_envs, obs_dim]`."""
        if self._needed:
            self._require_obs("a first observation", obs, range(len(obs)), 0)

    def step(
        self,
        obs: NDArray[Any],
        rewards: NDArray[Any],
        dones: NDArray[np.bool_],
        rows: NDArray[np.intp],
        last: NDArray[Any] | None,
    ) -> None:
        """Check a step that is not counted yet: observations `[n_envs, obs_dim]`, rewards and ends
        of episodes `[n_envs]`, and the `last` observations of the environments `rows`."""
        if not self._needed:
            return
        envs, taken = range(len(obs)), self.model._all_envs
        self._require("a reward", rewards, envs, taken)
        if last is not None:
            self._require_obs("an observation", last, rows, taken)
        self._require_obs("an observation", obs, envs, taken, dones)

    def _require_obs(
        self,
        what: str,
        obs: NDArray[Any],
        envs: Sequence[int] | NDArray[np.intp],
        taken: int,
        anew: NDArray[np.bool_] | None = None,
    ) -> None:
        self._require(what, obs, envs, taken, anew)
        if not self._lists:
            return
        columns = [
            unlisted(rows, part).reshape(len(rows), -1)
            for rows, part in of_parts(obs, self.model.observation_space)
        ]
        wrong = np.concatenate(columns, axis=1)
        if wrong.any():
            space = self.model.observation_space
            self._refuse(what, f"is not in {space}", obs, wrong, envs, taken, anew)

    def _require(
        self,
        what: str,
        values: NDArray[Any],
        envs: Sequence[int] | NDArray[np.intp],
        taken: int,
        anew: NDArray[np.bool_] | None = None,
    ) -> None:
        # One sum of squares takes a third of the time of checking each number. NaN fails it too.
        if values.dtype.kind != "f" or float(np.vdot(values, values)) <= LARGEST:
            return
        good = np.abs(values) <= LARGEST
        if np.count_nonzero(good) != good.size:
            self._refuse(what, "is not finite", values, ~good, envs, taken, anew)

    def _refuse(
        self,
        what: str,
        why: str,
        values: NDArray[Any],
        wrong: NDArray[np.bool_],
        envs: Sequence[int] | NDArray[np.intp],
        taken: int,
        anew: NDArray[np.bool_] | None,
    ) -> NoReturn:
        """Raise ValueError with the first `wrong` one of the `values`."""
        row, *at = np.argwhere(wrong)[0].tolist()
        model, env = self.model, int(envs[row])
        alone = single_envs(model.vector_env)
        one: Any = alone[0] if alone else model.vector_env
        name = one.spec.id if one.spec else type(one.unwrapped).__name__
        where = f" at index {at[0]}" if at else ""
        if anew is not None and anew[env]:
            what = "a first observation"
        elif taken:
            where += f", at step {model._running_length[env] + 1} of its episode"
        raise ValueError(
            f"env: environment {env} of {model.n_envs} ({name}) gave {what} that {why}: "
            f"{values[row, *at]}{where} ({model.num_timesteps + taken} environment steps into "
            "training). It was not learnt from; mend the environment, or replace such values with "
            "gymnasium.wrappers.TransformObservation or TransformReward"
        )
