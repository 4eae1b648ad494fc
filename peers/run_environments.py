"""The environments alone, with random actions: as many processes as the race has threads, none of
which waits for another. A trainer of the same environments on the same cores is faster only where
its actions make their steps cheaper."""

import time
from multiprocessing import get_context

from run import JOB, Returns, Run, atari_envs, pixels

_ACTIONS = 4096  # that are drawn before the clock starts
_made = {}


def make(seed: int) -> None:
    """Make this process's environment, and its actions."""
    import gymnasium

    env = gymnasium.make(JOB["env_id"])
    env.action_space.seed(seed)
    _made.update(env=env, seed=seed, actions=[env.action_space.sample() for _ in range(_ACTIONS)])


def play(steps: int) -> list[tuple[int, float]]:
    """Take so many steps; the step and the return of each episode that ended."""
    env, actions = _made["env"], _made["actions"]
    env.reset(seed=_made["seed"])
    episodes, total = [], 0.0
    for step in range(steps):
        _, reward, terminated, truncated, _ = env.step(actions[step % _ACTIONS])
        total += reward
        if terminated or truncated:
            episodes.append((step + 1, total))
            total = 0.0
            env.reset()
    return episodes


def play_pixels(run: Run) -> int:
    """Step ale-py's vector environment, which has threads of its own; returns the steps taken."""
    envs, steps = atari_envs(), 0
    envs.action_space.seed(JOB["seed"])
    actions = [envs.action_space.sample() for _ in range(_ACTIONS)]
    returns = Returns(run, JOB["n_envs"])
    run.begin()
    envs.reset(seed=JOB["seed"])
    while steps < JOB["total_timesteps"]:
        _, rewards, terminated, truncated, _ = envs.step(actions[steps // JOB["n_envs"] % _ACTIONS])
        steps += JOB["n_envs"]
        returns.add(rewards, terminated | truncated, steps)
    return steps


def main() -> None:
    run = Run()
    if pixels():
        run.end(play_pixels(run))
        return
    threads = JOB["threads"]
    context = get_context("fork")
    pools = [context.Pool(1, make, (threads * JOB["seed"] + n,)) for n in range(threads)]
    for pool in pools:
        pool.apply(time.sleep, (0,))  # its environment is made
    each = JOB["total_timesteps"] // threads
    run.begin()
    played = [pool.apply_async(play, (each,)) for pool in pools]
    ended = sorted((step * threads, value) for one in played for step, value in one.get())
    for step, value in ended:
        run.episode(step, value)
    run.end(each * threads)
    for pool in pools:
        pool.terminate()


if __name__ == "__main__":
    main()
