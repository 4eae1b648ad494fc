"""What engines' modules are made of. Such a module has a function for each family that the engine
offers, named as the family; it takes the size of a case and returns an `Arm`.
"""

import itertools
import sys
from collections.abc import Callable
from typing import NamedTuple

import inputs
import numpy as np

FORM, THREADS = sys.argv[2], int(sys.argv[3])

SHOWN_STEPS = 40  # steps of an environment in an answer
KNOWN = 128  # transitions in a buffer whose rows are checked


class Unsupported(Exception):
    """The engine does not offer this case; the message says why."""


class Arm(NamedTuple):
    """The call that is timed, and a function that gives one call's results by name, for
    checking."""

    call: Callable[[], object]
    answer: Callable[[], dict]


def function(call, *names: str) -> Arm:
    """A call that returns its results, one array or a tuple of them."""

    def answer() -> dict:
        results = call()
        results = results if isinstance(results, tuple) else (results,)
        return {name: np.array(x) for name, x in zip(names, results, strict=True)}

    return Arm(call, answer)


def drawing(sample) -> Arm:
    """A call that draws rows of a buffer; `sample()` returns its columns by name."""

    def draw() -> dict:
        return {name: np.array(column) for name, column in sample().items()}

    def answer() -> dict:
        drawn = [draw()]
        if drawn[0]["obs"].nbytes < 1_000_000:  # eight draws show more of their fairness
            drawn += [draw() for _ in range(7)]
        return {name: np.concatenate([one[name] for one in drawn]) for name in drawn[0]}

    return Arm(sample, answer)


def storing(push, known_rows) -> Arm:
    """A call that stores transitions. `known_rows()` stores the first transitions in a new buffer
    and returns columns of rows drawn from it."""

    def answer() -> dict:
        return {name: np.array(column) for name, column in known_rows().items()}

    return Arm(push, answer)


def flags(stepped):
    """Obs, rewards and dones from what an environment with Gymnasium's interface returned."""
    obs, rewards, terminated, truncated, _ = stepped
    return obs, rewards, terminated | truncated


def stepping(step, first_obs, n_envs: int, convert=np.asarray, read=flags) -> Arm:
    """A call that steps environments: `step(convert(actions))`. `read` makes obs, rewards and dones
    of its result."""
    pushes = inputs.pushes(n_envs)
    turns = itertools.cycle([convert(actions) for actions in pushes])

    def answer() -> dict:
        obs, rewards, dones = [np.array(first_obs)], [], []
        for actions in itertools.islice(itertools.cycle(pushes), SHOWN_STEPS):
            after = read(step(convert(actions)))
            for kept, new in zip((obs, rewards, dones), after, strict=True):
                kept.append(np.array(new))
        return {
            "obs": np.reshape(obs, (SHOWN_STEPS + 1, n_envs, -1)),
            "actions": np.resize(pushes, (SHOWN_STEPS, n_envs)),
            "rewards": np.reshape(rewards, (SHOWN_STEPS, n_envs)),
            "dones": np.reshape(dones, (SHOWN_STEPS, n_envs)),
        }

    return Arm(lambda: step(next(turns)), answer)


def rolling(reset, step, gae, n_envs: int, n_steps: int, convert=np.asarray, read=flags) -> Arm:
    """A call that steps environments, stores the results in arrays that are kept between calls, and
    computes advantages by `gae(rewards, values, dones, last_values)`, all `[n_steps, n_envs]`.

    Actions and values come from the inputs, so that no network is timed.
    """
    pushes = inputs.pushes(n_envs)
    converted = [convert(actions) for actions in pushes]
    values = inputs.values(n_steps + 1, n_envs)
    obs = np.zeros((n_steps, n_envs, 4), np.float32)
    actions = np.zeros((n_steps, n_envs), np.int64)
    rewards = np.zeros((n_steps, n_envs), np.float32)
    dones = np.zeros((n_steps, n_envs), np.float32)

    def call():
        current = reset()
        for t in range(n_steps):
            obs[t] = current
            actions[t] = pushes[t % 2]
            current, rewards[t], dones[t] = read(step(converted[t % 2]))
        return gae(rewards, values[:-1], dones, values[-1])

    def answer() -> dict:
        advantages, returns = call()
        return rollout_answer(obs, actions, rewards, dones, values, advantages, returns)

    return Arm(call, answer)


def rollout_answer(obs, actions, rewards, dones, values, advantages, returns) -> dict:
    """The results of a rollout, time first; of the observations only the first one."""
    return {
        "obs": np.array(obs[: SHOWN_STEPS + 1]),
        "actions": np.array(actions[:SHOWN_STEPS]),
        "rewards": np.array(rewards),
        "dones": np.array(dones),
        "values": np.array(values),
        "advantages": np.array(advantages),
        "returns": np.array(returns),
    }
