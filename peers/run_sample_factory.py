"""Sample Factory's APPO as synchronous PPO, `form` "sync" in one process or "async" in several."""

import tempfile
import time
from pathlib import Path

from run import JOB, Run, limit_torch

limit_torch()

import gymnasium  # noqa: E402
from sample_factory.algo.runners.runner import AlgoObserver  # noqa: E402
from sample_factory.algo.utils.misc import EPISODIC, ExperimentStatus  # noqa: E402
from sample_factory.cfg.arguments import parse_full_cfg, parse_sf_args  # noqa: E402
from sample_factory.envs.env_utils import register_env  # noqa: E402
from sample_factory.train import make_runner  # noqa: E402


class Started(gymnasium.Wrapper):
    """Writes the time of its first reset into the file `began`. At that time the workers' processes
    have started, and nothing was collected. All processes share the monotonic clock."""

    def __init__(self, env, began: Path) -> None:
        super().__init__(env)
        self.began = began

    def reset(self, **kwargs):
        if not self.began.exists():
            self.began.write_text(str(time.perf_counter()))
        return self.env.reset(**kwargs)


def make_env(name, cfg, env_config, render_mode=None):
    """One environment of a worker."""
    return Started(gymnasium.make(name), Path(cfg.train_dir, "began"))


def arguments(folder: str) -> list[str]:
    """The race's hyperparameters as its arguments; its additional features are switched off."""
    sync = JOB["form"] == "sync"
    settings = {
        "algo": "APPO",
        "env": JOB["env_id"],
        "experiment": "race",
        "train_dir": folder,
        "device": "cpu",
        "seed": JOB["seed"],
        "serial_mode": sync,
        "async_rl": not sync,
        "num_workers": 1 if sync else 2,
        "num_envs_per_worker": JOB["n_envs"] // (1 if sync else 2),
        "worker_num_splits": 1 if sync else 2,
        "train_for_env_steps": JOB["total_timesteps"],
        "rollout": JOB["n_steps"],
        "recurrence": 1,
        "use_rnn": False,
        "batch_size": JOB["batch_size"],
        "num_batches_per_epoch": JOB["n_envs"] * JOB["n_steps"] // JOB["batch_size"],
        "num_epochs": JOB["n_epochs"],
        "learning_rate": JOB["learning_rate"],
        "adam_eps": 1e-5,
        "gamma": JOB["gamma"],
        "gae_lambda": JOB["gae_lambda"],
        "ppo_clip_ratio": JOB["clip_range"],
        "ppo_clip_value": 1e6,
        "value_loss_coeff": JOB["vf_coef"],
        "exploration_loss_coeff": JOB["ent_coef"],
        "max_grad_norm": JOB["max_grad_norm"],
        "with_vtrace": False,
        "value_bootstrap": True,
        "normalize_input": False,
        "normalize_returns": False,
        "nonlinearity": "tanh",
        "actor_critic_share_weights": False,
        "decorrelate_envs_on_one_worker": False,
        "decorrelate_experience_max_seconds": 0,
        "save_every_sec": 10_000,
        "keep_checkpoints": 1,
    }
    flags = [f"--{name}={value}" for name, value in settings.items()]
    return [*flags, "--encoder_mlp_layers", "64", "64"]


class Stop(AlgoObserver):
    """Ends the run when training ends, before the processes are shut down."""

    def __init__(self, run: Run) -> None:
        self.run = run

    def on_stop(self, runner) -> None:
        self.run.end(sum(runner.env_steps.values()))


def main() -> None:
    register_env(JOB["env_id"], make_env)
    run = Run()
    with tempfile.TemporaryDirectory() as folder:
        parser, _ = parse_sf_args(argv=arguments(folder), evaluation=False)
        _, runner = make_runner(parse_full_cfg(parser, arguments(folder)))

        began, steps = Path(folder, "began"), 0

        def on_episode(runner, message, policy_id) -> None:
            nonlocal steps
            if not run.episodes:
                run.begin(float(began.read_text()))
            # The learner's own count of steps lags behind what was collected.
            steps += int(message[EPISODIC]["len"])
            run.episode(steps, message[EPISODIC]["reward"])

        runner.register_episodic_stats_handler(on_episode)
        runner.register_observer(Stop(run))
        status = runner.init()
        began.unlink(missing_ok=True)
        if status == ExperimentStatus.SUCCESS:
            status = runner.run()
        if status != ExperimentStatus.SUCCESS:
            raise SystemExit(f"Sample Factory ended with status {status}")


if __name__ == "__main__":
    main()
