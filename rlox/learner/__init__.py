"""The trainers PPO and SAC, in torch on top of the data plane. Only this part of rlox needs
torch."""

from rlox.learner.ppo import PPO
from rlox.learner.sac import SAC

__all__ = ["PPO", "SAC"]
