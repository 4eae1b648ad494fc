"""Runs a driver of the race, and then its final policy for EPISODES deterministic episodes.

The job's `driver` is the race's driver that trains, `run_sb3` or `run_rlox`. The episodes are those
of Stable-Baselines3's `evaluate_policy` in its own vector environment, whichever library trained.
Their returns are written to `final.json` beside the outcome.
"""

import importlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "peers"))

from run import JOB

EPISODES, AT_ONCE = 100, 10
SEED = 1_000_000  # above a training's: the episodes are none that it was trained in


def returns_of(model: Any) -> list[float]:
    """The returns of EPISODES episodes of the job's environment."""
    from stable_baselines3.common.env_util import make_vec_env
    from stable_baselines3.common.evaluation import evaluate_policy

    env = make_vec_env(JOB["env_id"], AT_ONCE, seed=SEED + JOB["seed"])
    returns, _ = evaluate_policy(model, env, EPISODES, return_episode_rewards=True)
    return [float(value) for value in returns]


def main() -> None:
    driver = importlib.import_module(JOB["driver"])
    library = sys.modules["rlox" if JOB["driver"] == "run_rlox" else "stable_baselines3"]
    trainer, trained = getattr(library, JOB["algo"].upper()), []
    learn = trainer.learn

    def kept(model: Any, *args: Any, **kwargs: Any) -> Any:
        trained.append(model)
        return learn(model, *args, **kwargs)

    trainer.learn = kept
    driver.main()
    (model,) = trained
    Path(JOB["out"]).with_name("final.json").write_text(json.dumps(returns_of(model)))


if __name__ == "__main__":
    main()
