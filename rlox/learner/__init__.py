"""What trains: PPO and SAC, in torch over the data plane; the part of rlox that needs torch."""

from rlox.learner.ppo import PPO
from rlox.learner.sac import SAC

__all__ = ["PPO", "SAC"]
