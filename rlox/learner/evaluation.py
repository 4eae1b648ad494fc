"""Evaluates a policy by the returns of its episodes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from rlox.learner.environments import make_vector_env
from rlox.learner.infos import TheirInfos, last_infos, monitored_episodes, told_apart
from rlox.learner.vector_envs import NextStep, holds_monitor


def evaluate_policy(
    model: Any,
    env: Any,
    n_eval_episodes: int = 10,
    deterministic: bool = True,
    render: bool = False,
    callback: Callable[[dict[str, Any], dict[str, Any]], Any] | None = None,
    reward_threshold: float | None = None,
    return_episode_rewards: bool = False,
    warn: bool = True,
) -> tuple[Any, Any]:
    """Mean and standard deviation of the returns of `n_eval_episodes`; with
    `return_episode_rewards`, the returns and lengths instead.

    `model` has a `predict`; `env` is what a trainer takes. Several environments share the episodes.
    Returns are those of a `Monitor` if there is one.
    """
    made = make_vector_env(env, 1)
    n, monitored = made.num_envs, holds_monitor(made)
    shares = np.array([(n_eval_episodes + i) // n for i in range(n)])
    played, returns, lengths = np.zeros(n, int), np.zeros(n), np.zeros(n, int)
    found: list[tuple[float, int]] = []
    obs, _ = made.reset()
    made.unwrapped.stepped_by = None  # type: ignore[attr-defined]  # by no trainer; see `InEnvs`
    state, starts = None, np.ones(n, bool)
    while (played < shares).any():
        actions, state = model.predict(
            obs, state=state, episode_start=starts, deterministic=deterministic
        )
        obs, rewards, terminations, truncations, infos = made.step(actions)
        dones = terminations | truncations
        # In an idle step an environment has only been reset.
        idle = made.idle if isinstance(made, NextStep) else np.zeros(n, bool)
        starts = dones | idle
        returns += rewards
        lengths += ~idle
        ended = np.flatnonzero(dones).tolist()
        if callback is not None:
            told = told_apart(infos, n, ended)
            for i in np.flatnonzero((played < shares) & ~idle).tolist():
                callback({"info": told[i], "done": dones[i], "reward": rewards[i]}, {})
        for i in ended:
            if played[i] < shares[i]:
                episode = [(float(returns[i]), int(lengths[i]))]
                heard = monitored_episodes(
                    last_infos(infos, n, [i]), isinstance(infos, TheirInfos), monitored
                )
                if heard is not None:
                    episode = [(float(one["r"]), int(one["l"])) for one in heard if one]
                played[i] += len(episode)
                found += episode
            returns[i], lengths[i] = 0, 0
        if render:
            made.render()
    rewards_of, lengths_of = ([one[i] for one in found] for i in (0, 1))
    mean, spread = float(np.mean(rewards_of)), float(np.std(rewards_of))
    if reward_threshold is not None and mean <= reward_threshold:
        raise AssertionError(f"the mean return {mean:.2f} is not above {reward_threshold:.2f}")
    return (rewards_of, lengths_of) if return_episode_rewards else (mean, spread)
