"""Types of the extension module; `python -m mypy.stubtest rlox._core` holds them to the binary."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

__all__ = [
    "ActionSampler",
    "AsyncCollector",
    "PrioritizedReplayBuffer",
    "ReplayBuffer",
    "SacUpdate",
    "VecEnv",
    "build_info",
    "builtin_envs",
    "collect_python_rollout",
    "collect_rollout",
    "compute_gae",
    "compute_gae_batched",
    "compute_group_advantages",
    "compute_token_kl",
    "compute_vtrace",
    "count_crossings",
    "has_amx",
    "has_bfloat16",
    "instructions",
    "ppo_update",
    "record_spans",
    "roundtrip",
    "take_crossings",
    "take_spans",
]

_Bools = NDArray[np.bool_]
_F32 = NDArray[np.float32]
_Space = int | tuple[NDArray[np.float32], NDArray[np.float32]]
_StepArrays = tuple[NDArray[np.float32], NDArray[np.float64], _Bools, _Bools]
_Shape = tuple[Sequence[int], str]
_Learner = tuple[_F32, ...]
_Adam = tuple[float, float, float, float, int]
_Float = TypeVar("_Float", np.float32, np.float64)

_Instructions: TypeAlias = Literal["portable", "avx2", "avx512"]

class _BuildInfo(TypedDict):
    version: str
    commit: str
    profile: str
    rustc: str
    features: list[str]
    instructions: _Instructions

class _Batch(TypedDict):
    obs: NDArray[Any]
    next_obs: NDArray[Any]
    action: NDArray[np.float32]
    reward: NDArray[np.float32]
    terminated: _Bools
    truncated: _Bools

class _PrioritizedBatch(_Batch):
    weights: NDArray[np.float32]
    indices: NDArray[np.int64]

class _RolloutColumns(TypedDict):
    obs: _F32
    actions: NDArray[np.int64] | _F32
    log_probs: _F32
    values: _F32
    rewards: _F32
    dones: _F32
    advantages: _F32
    returns: _F32
    episode_steps: NDArray[np.int64]
    episode_rewards: NDArray[np.float64]
    episode_lengths: NDArray[np.int64]

def build_info() -> _BuildInfo: ...
def instructions() -> _Instructions: ...
def has_amx() -> bool: ...
def has_bfloat16() -> bool: ...
def count_crossings(on: bool) -> None: ...
def take_crossings() -> dict[str, tuple[int, int, int]]: ...
def record_spans(monotonic_ns: int | None) -> None: ...
def take_spans() -> tuple[list[str], list[tuple[int, bytes]]]: ...
def roundtrip(array: NDArray[np.float64]) -> NDArray[np.float64]: ...
def builtin_envs() -> list[str]: ...
def compute_gae(
    rewards: NDArray[_Float],
    values: NDArray[_Float],
    dones: NDArray[_Float],
    last_value: float,
    gamma: float,
    gae_lambda: float,
    *,
    out: tuple[NDArray[_Float], NDArray[_Float]] | None = None,
) -> tuple[NDArray[_Float], NDArray[_Float]]: ...
def compute_gae_batched(
    rewards: NDArray[_Float],
    values: NDArray[_Float],
    dones: NDArray[_Float],
    last_values: NDArray[_Float],
    gamma: float,
    gae_lambda: float,
    layout: Literal["step_major", "env_major"] = "step_major",
    *,
    out: tuple[NDArray[_Float], NDArray[_Float]] | None = None,
) -> tuple[NDArray[_Float], NDArray[_Float]]: ...
def compute_vtrace(
    log_rhos: NDArray[_Float],
    rewards: NDArray[_Float],
    values: NDArray[_Float],
    dones: NDArray[_Float],
    last_value: float,
    gamma: float,
    rho_bar: float = 1.0,
    c_bar: float = 1.0,
    *,
    out: tuple[NDArray[_Float], NDArray[_Float]] | None = None,
) -> tuple[NDArray[_Float], NDArray[_Float]]: ...
def compute_token_kl(
    log_probs_policy: NDArray[_Float],
    log_probs_ref: NDArray[_Float],
    mask: _Bools | None = None,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...
def compute_group_advantages(
    rewards: NDArray[_Float],
    group_size: int,
    epsilon: float = 1e-8,
    *,
    out: NDArray[_Float] | None = None,
) -> NDArray[_Float]: ...

_Moments = tuple[_F32, _F32, _F32]
_Network = tuple[Sequence[int], str, _Moments]

def ppo_update(
    actor: _Network,
    critic: _Network,
    log_std: _Moments | None,
    rollout: tuple[_F32, NDArray[Any], _F32, _F32, _F32],
    order: NDArray[np.int64],
    step: int,
    *,
    batch_size: int,
    clip_range: float,
    normalize_advantage: bool,
    ent_coef: float,
    vf_coef: float,
    max_grad_norm: float,
    lr: float,
    betas: tuple[float, float],
    eps: float,
    clip_range_vf: float | None = None,
    target_kl: float | None = None,
    nvec: Sequence[int] | None = None,
    bits: bool = False,
    threads: int = 1,
    fused: bool = True,
    by_columns: bool = True,
) -> tuple[tuple[float, float, float, float, float, float], int]: ...

@disjoint_base
class ReplayBuffer:
    def __new__(
        cls,
        capacity: int,
        obs_dim: int,
        act_dim: int,
        obs_dtype: Literal["float32", "uint8"] = "float32",
        seed: int = 0,
    ) -> ReplayBuffer: ...
    def push(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[np.float32],
        reward: float,
        terminated: bool,
        truncated: bool,
    ) -> None: ...
    def push_batch(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[np.float32],
        reward: NDArray[np.float32],
        terminated: _Bools,
        truncated: _Bools,
    ) -> None: ...
    def sample(self, batch_size: int, seed: int | None = None, copy: bool = True) -> _Batch: ...
    def transitions(self) -> _Batch: ...
    def __len__(self) -> int: ...
    def size(self) -> int: ...
    @property
    def capacity(self) -> int: ...

@final
class PrioritizedReplayBuffer:
    def __new__(
        cls,
        capacity: int,
        obs_dim: int,
        act_dim: int,
        alpha: float = 0.6,
        beta: float = 0.4,
        obs_dtype: Literal["float32", "uint8"] = "float32",
        seed: int = 0,
    ) -> PrioritizedReplayBuffer: ...
    def push(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[np.float32],
        reward: float,
        terminated: bool,
        truncated: bool,
    ) -> None: ...
    def push_batch(
        self,
        obs: NDArray[Any],
        next_obs: NDArray[Any],
        action: NDArray[np.float32],
        reward: NDArray[np.float32],
        terminated: _Bools,
        truncated: _Bools,
    ) -> None: ...
    def sample(
        self, batch_size: int, seed: int | None = None, copy: bool = True
    ) -> _PrioritizedBatch: ...
    def update_priorities(
        self,
        indices: NDArray[np.int64],
        priorities: NDArray[np.float32] | NDArray[np.float64],
    ) -> None: ...
    def __len__(self) -> int: ...
    def size(self) -> int: ...
    @property
    def capacity(self) -> int: ...
    @property
    def alpha(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @beta.setter
    def beta(self, value: float) -> None: ...

@final
class VecEnv:
    def __new__(cls, env_id: str, n_envs: int, seed: int) -> VecEnv: ...
    @property
    def env_id(self) -> str: ...
    @property
    def n_envs(self) -> int: ...
    @property
    def obs_dim(self) -> int: ...
    @property
    def observation_space(self) -> _Space: ...
    @property
    def action_space(self) -> _Space: ...
    @property
    def initial_bounds(self) -> list[tuple[float, float]]: ...
    def reset(
        self,
        seeds: Sequence[int | None] | None = None,
        mask: _Bools | None = None,
        bounds: NDArray[np.float64] | None = None,
        out: NDArray[np.float32] | None = None,
    ) -> NDArray[np.float32]: ...
    def step(
        self, actions: NDArray[Any], out: _StepArrays | None = None
    ) -> tuple[NDArray[np.float32], NDArray[np.float64], _Bools, _Bools, dict[str, Any]]: ...
    def state(self, i: int) -> tuple[NDArray[np.float64], int]: ...
    def set_state(self, i: int, state: NDArray[np.float64], elapsed: int = 0) -> None: ...

def collect_rollout(
    env: VecEnv,
    actor: tuple[Sequence[int], str, _F32],
    critic: tuple[Sequence[int], str, _F32],
    log_std: _F32,
    n_steps: int,
    gamma: float,
    gae_lambda: float,
    stream: tuple[int, int],
    running: tuple[NDArray[np.float64], NDArray[np.int64]],
    noise: _F32 | None = None,
    threads: int | None = None,
) -> _RolloutColumns: ...
def collect_python_rollout(
    step: Callable[[NDArray[Any]], tuple[Any, ...] | None],
    obs: _F32,
    actor: tuple[Sequence[int], str, _F32],
    critic: tuple[Sequence[int], str, _F32],
    log_std: _F32,
    n_steps: int,
    gamma: float,
    gae_lambda: float,
    stream: tuple[int, int],
    nvec: Sequence[int] | None = None,
    bits: bool = False,
) -> _RolloutColumns | None: ...

@final
class AsyncCollector:
    def __new__(
        cls,
        env: VecEnv,
        act: Callable[[NDArray[np.float32]], tuple[NDArray[Any], _F32, _F32]],
        value: Callable[[NDArray[np.float32]], _F32],
        n_steps: int,
        gamma: float = 0.99,
        gae_lambda: float = 0.95,
    ) -> AsyncCollector: ...
    def start(self) -> None: ...
    def take(self) -> dict[str, NDArray[Any]]: ...
    def close(self) -> None: ...
    def __enter__(self) -> AsyncCollector: ...
    def __exit__(self, *_exception: object) -> None: ...

@final
class ActionSampler:
    def __new__(
        cls,
        actor: tuple[Sequence[int], str, _F32],
        log_std: _F32 | None = None,
        nvec: Sequence[int] | None = None,
        bits: bool = False,
    ) -> ActionSampler: ...
    def draw(self, obs: _F32, noise: _F32) -> NDArray[Any]: ...

@final
class SacUpdate:
    def __new__(
        cls,
        actor: _Shape,
        critics: tuple[_Shape, _Shape],
        bfloat16: bool = False,
        amx: bool = False,
        fused: bool = True,
    ) -> SacUpdate: ...
    def update(
        self,
        actor: _Learner,
        critics: _Learner,
        targets: _F32,
        log_alpha: _Learner,
        batch: dict[str, NDArray[Any]],
        noise: _F32,
        *,
        gamma: float,
        tau: float,
        target_entropy: float,
        adams: tuple[_Adam, _Adam, _Adam | None],
        threads: int,
    ) -> tuple[float, float, float | None, _F32]: ...
    def act(self, params: _F32, obs: _F32, noise: _F32) -> _F32: ...
