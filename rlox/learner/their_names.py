"""What programs for Stable-Baselines3 look up on policies and trainers, under its names."""

import inspect
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from gymnasium import spaces
from numpy.typing import NDArray
from torch import nn

from rlox.learner.classes import decoded

if TYPE_CHECKING:
    from rlox.learner.acting import Acting
    from rlox.learner.logger import Logger
    from rlox.learner.policies import Temperature


# What Stable-Baselines3's trainers call on themselves, and a subclass there may override.
CALLED_BY_THEIRS = frozenset(
    {
        "_convert_train_freq", "_dump_logs", "_excluded_save_params", "_get_torch_save_params",
        "_init_callback", "_on_step", "_sample_action", "_setup_learn", "_setup_lr_schedule",
        "_setup_model", "_store_transition", "_update_current_progress_remaining",
        "_update_info_buffer", "_update_learning_rate", "_wrap_env", "collect_rollouts",
    }
)  # fmt: skip


class TrainerNames:
    """The part of a trainer that has these names, for reading."""

    policy: Any
    logger: "Logger"
    get_vec_normalize_env: Any
    _arguments: dict[str, Any]
    _end: int
    _learns_from = ""  # what `train` is given where Stable-Baselines3's is given nothing

    def __init_subclass__(cls) -> None:
        """Warn of methods that no trainer here calls, and of a `train` that it cannot call."""
        super().__init_subclass__()
        if idle := sorted(CALLED_BY_THEIRS & vars(cls).keys()):
            warnings.warn(
                f"class {cls.__name__} defines {', '.join(idle)}, which Stable-Baselines3 calls "
                "and rlox does not; use a callback, a wrapper of the environment, or `train`",
                stacklevel=2,
            )
        own, given = vars(cls).get("train"), cls._learns_from
        if given and inspect.isfunction(own) and not _takes_one(own):
            warnings.warn(
                f"class {cls.__name__} defines train{inspect.signature(own)}, and rlox calls it "
                f"with the {given}: define train(self, {given}), which has in `{given}` what "
                f"Stable-Baselines3's reads from self.{given}_buffer",
                stacklevel=2,
            )

    @property
    def policy_kwargs(self) -> dict[str, Any]:
        """The arguments from which the policy was made; none of a module of the user's."""
        if getattr(self.policy, "made_from", None) is not None:
            return dict(self.policy.made_from[1])
        return dict(decoded("policy_kwargs", self._arguments.get("policy_kwargs")) or {})

    @property
    def policy_class(self) -> type:
        """The class of the policy."""
        return type(self.policy)

    @property
    def tensorboard_log(self) -> str | None:
        """The folder for TensorBoard's event files."""
        folder = self.logger._folder
        return None if folder is None else str(folder)

    # Private there, and yet read by many callbacks.

    @property
    def _total_timesteps(self) -> int:
        """The number of steps at which the present `learn` ends."""
        return self._end

    @property
    def _num_timesteps_at_start(self) -> int:
        """The number of steps at which the present `learn` began."""
        return self.logger.begun_at

    @property
    def _vec_normalize_env(self) -> Any:
        return self.get_vec_normalize_env()


def _takes_one(method: Any) -> bool:
    """Whether a method may be called with one argument."""
    try:
        inspect.signature(method).bind(None, None)
    except TypeError:
        return False
    return True


class SacNames:
    """The part of SAC that has these names, for reading."""

    temperature: "Temperature"
    alpha_optimizer: torch.optim.Adam | None
    _arguments: dict[str, Any]
    _buffer_size: int

    @property
    def buffer_size(self) -> int:
        """The number of transitions that the replay buffer can hold."""
        return self._buffer_size

    @property
    def ent_coef(self) -> float | str:
        """The argument; `temperature()` is the present value."""
        given: float | str = self._arguments["ent_coef"]
        return given

    @property
    def log_ent_coef(self) -> torch.Tensor | None:
        """The logarithm of the temperature; None for a fixed one."""
        return self.temperature.log_alpha if self.temperature.learned else None

    @property
    def ent_coef_optimizer(self) -> torch.optim.Optimizer | None:
        """The temperature's optimiser; None for a fixed one."""
        return self.alpha_optimizer


class TheirNames:
    """The part of a policy that has these names, for reading."""

    acting: "Acting | None"
    parameters: Any
    _learns_by: torch.optim.Optimizer | None = None

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """The optimiser with which PPO learns this policy; it is the trainer's `optimizer`."""
        if self._learns_by is None:
            raise AttributeError("optimizer: no PPO learns this policy")
        return self._learns_by

    @property
    def observation_space(self) -> spaces.Space[Any]:
        """The space of the observations that it acts on."""
        return self._acting().observation_space

    @property
    def action_space(self) -> spaces.Space[Any]:
        """The space in which it acts."""
        return self._acting().action_space

    def _acting(self) -> "Acting":
        if self.acting is None:
            raise AttributeError("the policy belongs to no trainer, which would have its spaces")
        return self.acting

    def parameters_to_vector(self) -> NDArray[np.float32]:
        """All weights, one after another."""
        weights = nn.utils.parameters_to_vector(self.parameters())
        return weights.detach().cpu().numpy()

    def load_from_vector(self, vector: NDArray[np.float32]) -> None:
        """Set the weights to what `parameters_to_vector` gave. ValueError for another length."""
        n = sum(one.numel() for one in self.parameters())
        if len(vector) != n:
            raise ValueError(f"vector: has {len(vector)} numbers, and the policy {n} weights")
        device = next(self.parameters()).device
        weights = torch.tensor(vector, dtype=torch.float32, device=device)
        nn.utils.vector_to_parameters(weights, self.parameters())

    def __getstate__(self) -> dict[str, Any]:
        """Without the optimiser, which a copy does not have."""
        return {name: one for name, one in vars(self).items() if name != "_learns_by"}


class KnownOptimizer:
    """An attribute of PPO whose new value its policy learns of. Without `__get__`, reading it takes
    no longer than reading another one."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __set__(self, model: Any, value: torch.optim.Optimizer) -> None:
        vars(model)[self._name] = value
        if isinstance(model.policy, TheirNames):
            model.policy._learns_by = value
