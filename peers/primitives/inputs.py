"""The inputs of every engine: numbers from one seed or from a formula, made with NumPy alone.

Each engine's process makes them anew and gets the same; so does the driver for its references.
"""

from itertools import pairwise

import numpy as np

GAMMA, GAE_LAMBDA = 0.99, 0.95
SEED = 42
DONES = 0.05  # share of steps that end an episode
EPISODE = 200  # transitions of an episode in a buffer
_RING_NUMBERS = 28_224_000  # of observations, at most
_CHUNK_NUMBERS = 2_000_000


def rollout(*shape, dtype="float64"):
    """Rewards, values, dones `[n_steps]` or `[n_steps, n_envs]`, and last values, whose shape is
    the same without the steps."""
    rng = np.random.default_rng(SEED)
    rewards, values = rng.standard_normal((2, *shape))
    dones = rng.random(shape) < DONES
    last = rng.standard_normal(shape[1:])
    return tuple(np.asarray(x, dtype) for x in (rewards, values, dones, last))


def log_rhos(n, dtype="float64"):
    """Log-ratios of a target policy to the behaviour policy, `[n]`."""
    return (0.3 * np.random.default_rng(SEED + 1).standard_normal(n)).astype(dtype)


def log_probs(rows, tokens, dtype="float64"):
    """Log-probabilities of a policy and of its reference, `[rows, tokens]` each."""
    rng = np.random.default_rng(SEED)
    policy = -np.abs(rng.standard_normal((rows, tokens)))
    reference = policy + 0.1 * rng.standard_normal((rows, tokens))
    return policy.astype(dtype), reference.astype(dtype)


def group_rewards(groups, size):
    """Rewards of groups, `[groups * size]`."""
    return np.random.default_rng(SEED).standard_normal(groups * size)


def capacity(obs_dim):
    """The number of transitions in a buffer: 100,000, or fewer if they are large."""
    return min(100_000, max(1_000, _RING_NUMBERS // obs_dim))


def transitions(start, stop, obs_dim):
    """Transitions `start` to `stop` of one long run, as columns: obs, next_obs, action, reward,
    terminated, truncated.

    A reward is the transition's number, and so is every element of its observation. The next
    observation is the obs of the next transition, except where an episode ends.
    """
    number = np.arange(start, stop, dtype=np.float32)
    pattern = (np.arange(obs_dim) % 64 / 64).astype(np.float32)
    obs = number[:, None] + pattern
    next_obs = obs + np.float32(1)
    terminated = number % EPISODE == EPISODE - 1
    next_obs[terminated] *= -1
    action = (number % 7)[:, None].astype(np.float32)
    return obs, next_obs, action, number.copy(), terminated, np.zeros(len(number), np.bool_)


def chunks(n, obs_dim, size=None):
    """The first `n` transitions in pieces of `size`, or in large pieces that fit into memory."""
    size = size or max(1, min(n, _CHUNK_NUMBERS // obs_dim))
    for start in range(0, n, size):
        yield transitions(start, min(start + size, n), obs_dim)


def repeated(obs_dim, steps="joined"):
    """One transition, as columns, to be pushed again and again. "joined": its next observation is
    its observation, so that all pushes form one endless episode, and a buffer that recognises the
    next observation need not store it twice. "apart": the two differ, as when environments take
    turns, so that every push has two observations to store. "only apart": the same, into a buffer
    all of whose transitions are such, so that a buffer that had stored one observation of each has
    touched the memory for two."""
    obs, next_obs, *others = transitions(0, 1, obs_dim)
    return obs, obs.copy() if steps == "joined" else next_obs, *others


def one(obs_dim, number=None, steps="joined"):
    """One transition in a trainer's form, arrays and Python numbers; without a `number` that of
    `repeated`."""
    columns = repeated(obs_dim, steps)
    if number is not None:
        columns = transitions(number, number + 1, obs_dim)
    obs, next_obs, action, reward, terminated, truncated = (column[0] for column in columns)
    return obs, next_obs, action, float(reward), bool(terminated), bool(truncated)


def priorities(n):
    """Priorities before alpha, `[n]`."""
    return np.linspace(0.1, 2.0, n)


def pushes(n_envs):
    """CartPole's actions of two steps, int64 `[2, n_envs]`: left, right, left, … and the
    opposite."""
    first = np.arange(n_envs) % 2
    return np.stack([first, 1 - first])


def values(n_steps, n_envs):
    """A critic's values, made up, float32 `[n_steps, n_envs]`."""
    rng = np.random.default_rng(SEED)
    return rng.standard_normal((n_steps, n_envs), dtype=np.float32)


# Where `peers backends` starts, by the same formulas as crates/rlox-bench/benches/nn_backends.
LR, EPS, CLIP_RANGE, VF_COEF, ENT_COEF = 3e-4, 1e-5, 0.2, 0.5, 0.01
Q_NET, VALUE_NET = (4, 64, 64, 2), (4, 64, 64, 1)
ACTOR, CRITIC, LAYER = (3, 256, 256, 2), (4, 256, 256, 1), (256, 256)
SECOND = 1_000_000  # where the numbers of the second network begin


def numbers(n, start):
    """`n` numbers in [-1, 1), from fractions of multiples of the golden ratio, from `start` on."""
    return np.arange(start, start + n) * 0.6180339887498949 % 1.0 * 2.0 - 1.0


def params(widths, start):
    """A network's parameters, float32: layer after layer, weight `[out, in]`, then bias."""
    at, parts = start, []
    for n_in, n_out in pairwise(widths):
        n = (n_in + 1) * n_out
        parts.append(numbers(n, at) / np.sqrt(n_in))
        at += n
    return np.concatenate(parts).astype(np.float32)


def minibatch(n=64):
    """64 transitions by name, and what PPO knows of them; columns are `[n]` or `[n, 4]`."""
    columns = {
        "obs": numbers(4 * n, 100_000).reshape(n, 4),
        "next_obs": numbers(4 * n, 200_000).reshape(n, 4),
        "rewards": numbers(n, 300_000),
        "discounts": np.where(np.arange(n) % 16 == 15, 0.0, GAMMA),
        "log_probs": np.log(0.5) + 0.1 * numbers(n, 400_000),
        "advantages": numbers(n, 500_000),
        "returns": numbers(n, 600_000),
    }
    return {name: x.astype(np.float32) for name, x in columns.items()} | {
        "actions": np.arange(n) % 2
    }


def draw():
    """An observation `[1, 3]` and a standard normal `[1, 1]`."""
    columns = numbers(3, 100_000)[None], numbers(1, 200_000)[None]
    return tuple(x.astype(np.float32) for x in columns)


def critic_batch(n=256):
    """Observations with actions `[n, 4]` and targets `[n]`."""
    columns = numbers(4 * n, 100_000).reshape(n, 4), numbers(n, 200_000)
    return tuple(x.astype(np.float32) for x in columns)


def layer_rows(n=256):
    """A layer's inputs `[n, 256]`."""
    return numbers(n * LAYER[0], 100_000).reshape(n, -1).astype(np.float32)
