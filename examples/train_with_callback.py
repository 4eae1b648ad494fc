"""Trains PPO on CartPole-v1 until the mean return of the last episodes is good enough.

python examples/train_with_callback.py --goal 150
"""

import argparse
from statistics import mean

import rlox
from rlox.learner.callbacks import BaseCallback


class StopWhenGood(BaseCallback):
    """Ends training when the mean return of the last `episodes` episodes is at least `goal`."""

    def __init__(self, goal: float, episodes: int = 50) -> None:
        super().__init__()
        self.goal, self.episodes = goal, episodes

    def on_step(self) -> bool:
        """Called after each step of the environments; False ends training."""
        returns = self.model.episode_returns[-self.episodes :]
        return len(returns) < self.episodes or mean(returns) < self.goal


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--goal", type=float, default=150.0, help="mean return to stop at")
    parser.add_argument("--steps", type=int, default=200_000, help="environment steps at most")
    arguments = parser.parse_args()

    model = rlox.PPO("CartPole-v1", n_envs=8, seed=0)
    model.learn(arguments.steps, callback=StopWhenGood(arguments.goal))
    reached = mean(model.episode_returns[-50:])
    print(f"mean return {reached:.0f} after {model.num_timesteps} steps")


if __name__ == "__main__":
    main()
