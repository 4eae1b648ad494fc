"""What every engine is given: numbers from one seed or by formula, made with NumPy alone.

Each engine's process makes them anew and gets the same; so does the driver, for its references.
"""

import numpy as np

GAMMA, GAE_LAMBDA = 0.99, 0.95
SEED = 42
DONES = 0.05  # share of steps that end an episode
EPISODE = 200  # transitions of an episode in a buffer
_RING_NUMBERS = 28_224_000  # of observations, at most
_CHUNK_NUMBERS = 2_000_000


def rollout(*shape, dtype="float64"):
    """Rewards, values, dones and last values: `[n_steps]` or `[n_steps, n_envs]`, and the shape
    without the steps."""
    rng = np.random.default_rng(SEED)
    rewards, values = rng.standard_normal((2, *shape))
    dones = rng.random(shape) < DONES
    last = rng.standard_normal(shape[1:])
    return tuple(np.asarray(x, dtype) for x in (rewards, values, dones, last))


def log_rhos(n, dtype="float64"):
    """Log-ratios of a target policy to the behaviour policy, `[n]`."""
    return (0.3 * np.random.default_rng(SEED + 1).standard_normal(n)).astype(dtype)


def log_probs(rows, tokens, dtype="float64"):
    """Of a policy and of its reference, `[rows, tokens]` each."""
    rng = np.random.default_rng(SEED)
    policy = -np.abs(rng.standard_normal((rows, tokens)))
    reference = policy + 0.1 * rng.standard_normal((rows, tokens))
    return policy.astype(dtype), reference.astype(dtype)


def group_rewards(groups, size):
    """`[groups * size]`"""
    return np.random.default_rng(SEED).standard_normal(groups * size)


def capacity(obs_dim):
    """Transitions in a buffer: 100,000, or fewer where they are large."""
    return min(100_000, max(1_000, _RING_NUMBERS // obs_dim))


def transitions(start, stop, obs_dim):
    """Transitions `start` to `stop` of one long run, as columns: obs, next_obs, action, reward,
    terminated, truncated.

    A reward is the transition's number, and every element of an observation tells it. The next
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


def chunks(n, obs_dim):
    """The first `n` transitions, in pieces that do not fill the memory."""
    size = max(1, min(n, _CHUNK_NUMBERS // obs_dim))
    for start in range(0, n, size):
        yield transitions(start, min(start + size, n), obs_dim)


def one(obs_dim, number=0):
    """One transition as a trainer has it: arrays, and Python's own numbers."""
    obs, next_obs, action, reward, terminated, truncated = (
        column[0] for column in transitions(number, number + 1, obs_dim)
    )
    return obs, next_obs, action, float(reward), bool(terminated), bool(truncated)


def priorities(n):
    """Before alpha, `[n]`."""
    return np.linspace(0.1, 2.0, n)


def pushes(n_envs):
    """Two steps of CartPole's actions, int64 `[2, n_envs]`: left, right, left, … and the other way
    round."""
    first = np.arange(n_envs) % 2
    return np.stack([first, 1 - first])


def values(n_steps, n_envs):
    """What a critic would say, float32 `[n_steps, n_envs]`."""
    rng = np.random.default_rng(SEED)
    return rng.standard_normal((n_steps, n_envs), dtype=np.float32)
