"""Callbacks under the names of Stable-Baselines3, and one that times the phases."""

from rlox.learner.callback_base import (
    BaseCallback,
    CallbackList,
    ConvertCallback,
    EventCallback,
    EveryNTimesteps,
    LogEveryNTimesteps,
)
from rlox.learner.callback_events import (
    CheckpointCallback,
    Checkpoints,
    EvalCallback,
    ProgressBarCallback,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
    StopTrainingOnRewardThreshold,
    TimingCallback,
)

__all__ = [
    "BaseCallback",
    "CallbackList",
    "CheckpointCallback",
    "Checkpoints",
    "ConvertCallback",
    "EvalCallback",
    "EventCallback",
    "EveryNTimesteps",
    "LogEveryNTimesteps",
    "ProgressBarCallback",
    "StopTrainingOnMaxEpisodes",
    "StopTrainingOnNoModelImprovement",
    "StopTrainingOnRewardThreshold",
    "TimingCallback",
]
