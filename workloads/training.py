"""A training run for `rlox-opt profile`: `python -m workloads.training SPEC VECTOR`,
by itself or under torchrun.

VECTOR is "native" (the trainer's own environments), "sync" or "async" (Gymnasium's vector
environments, all in this process or each in one of its own).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from rlox_opt.sampling.spec import Spec


def main(argv: Sequence[str] | None = None) -> int:
    """Train as the spec says."""
    path, vector = sys.argv[1:] if argv is None else argv
    spec = Spec.load(Path(path))
    import torch

    import rlox

    torch.set_num_threads(spec.threads)
    settings = dict(spec.trainer)
    env: Any = spec.env_id
    if vector != "native":
        env = _vector_env(spec.env_id, vector, settings.pop("n_envs"))
    trainer = {"ppo": rlox.PPO, "sac": rlox.SAC}[spec.algo](
        env, seed=spec.seed, device=spec.device, threads=spec.threads, **settings
    )
    try:
        trainer.learn(spec.total_timesteps)
    finally:
        trainer.env.close()
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
    return 0


def _vector_env(env_id: str, vector: str, n_envs: int) -> Any:
    """This process's part of the environments: before torch.distributed has threads, which a fork
    would not copy."""
    import gymnasium
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

    kind = {"sync": SyncVectorEnv, "async": AsyncVectorEnv}[vector]
    makers = [partial(gymnasium.make, env_id)] * (n_envs // int(os.environ.get("WORLD_SIZE", 1)))
    return kind(makers, autoreset_mode=AutoresetMode.SAME_STEP)


if __name__ == "__main__":
    sys.exit(main())
