"""Callbacks that evaluate, save, stop, and time."""

from pathlib import Path
from typing import Any

import numpy as np

from rlox.learner.arguments import require_integers
from rlox.learner.callback_base import BaseCallback, EventCallback, stops
from rlox.learner.environments import make_vector_env
from rlox.learner.evaluation import evaluate_policy


class CheckpointCallback(BaseCallback):
    """Saves the trainer every `save_freq` vectorised steps, as `{name_prefix}_{steps}_steps.zip` in
    `save_path`; with it the replay buffer, and the statistics of a `VecNormalize`, if asked for."""

    def __init__(
        self,
        save_freq: int,
        save_path: str | Path,
        name_prefix: str = "rl_model",
        save_replay_buffer: bool = False,
        save_vecnormalize: bool = False,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        require_integers(1, save_freq=save_freq)
        self.save_freq, self.save_path, self.name_prefix = save_freq, save_path, name_prefix
        self.save_replay_buffer, self.save_vecnormalize = save_replay_buffer, save_vecnormalize

    def _init_callback(self) -> None:
        if self.save_replay_buffer and getattr(self.model, "prioritized", False):
            raise ValueError(
                "save_replay_buffer: is True, and a buffer with priorities is not written; give "
                "CheckpointCallback save_replay_buffer=False, or SAC prioritized=False"
            )
        Path(self.save_path).mkdir(parents=True, exist_ok=True)

    def _path(self, kind: str, ending: str) -> Path:
        name = f"{self.name_prefix}_{kind}{self.num_timesteps}_steps.{ending}"
        return Path(self.save_path, name)

    def _on_step(self) -> bool:
        if not self._is_due(self.save_freq):
            return True
        saved = self._path("", "zip")
        self.model.save(saved)
        if self.save_replay_buffer and hasattr(self.model, "save_replay_buffer"):
            self.model.save_replay_buffer(self._path("replay_buffer_", "pkl"))
        normalizer = self.model.get_vec_normalize_env()
        if self.save_vecnormalize and normalizer is not None:
            normalizer.save(str(self._path("vecnormalize_", "pkl")))
        if self.verbose >= 2:
            print(f"Saved {saved}")
        return True


class EvalCallback(EventCallback):
    """Evaluates the policy every `eval_freq` vectorised steps, over `n_eval_episodes`. If several
    processes train one model, the episodes of the first one count.

    `eval_env`: as a trainer's. `log_path` is a folder for `evaluations.npz`, `best_model_save_path`
    one for `best_model.zip`. `callback_on_new_best` is called at each new best mean return, and
    `callback_after_eval` after each evaluation.
    """

    def __init__(
        self,
        eval_env: Any,
        callback_on_new_best: Any = None,
        callback_after_eval: Any = None,
        n_eval_episodes: int = 5,
        eval_freq: int = 10_000,
        log_path: str | Path | None = None,
        best_model_save_path: str | Path | None = None,
        deterministic: bool = True,
        render: bool = False,
        verbose: int = 1,
        warn: bool = True,
    ) -> None:
        super().__init__(callback_after_eval, verbose)
        require_integers(1, n_eval_episodes=n_eval_episodes)
        require_integers(0, eval_freq=eval_freq)
        self.callback_on_new_best = callback_on_new_best
        if callback_on_new_best is not None:
            callback_on_new_best.parent = self
        self.eval_env, self.n_eval_episodes, self.eval_freq = eval_env, n_eval_episodes, eval_freq
        self.deterministic, self.render, self.warn = deterministic, render, warn
        self.best_model_save_path = best_model_save_path
        self.log_path = None if log_path is None else Path(log_path, "evaluations")
        self.best_mean_reward = self.last_mean_reward = -np.inf
        self.evaluations_timesteps: list[int] = []
        self.evaluations_results: list[list[float]] = []
        self.evaluations_length: list[list[int]] = []
        self.evaluations_successes: list[list[bool]] = []

    def _init_callback(self) -> None:
        if self.eval_freq:
            self._require_same_wrappers()
        for folder in (self.best_model_save_path, self.log_path and self.log_path.parent):
            if folder is not None:
                Path(folder).mkdir(parents=True, exist_ok=True)
        if self.callback_on_new_best is not None:
            self.callback_on_new_best.init_callback(self.model)
        self._made = make_vector_env(self.eval_env, 1)

    def _on_step(self) -> bool:
        if not self.eval_freq or not self._is_due(self.eval_freq):
            return True
        self._follow_normalisation()
        successes: list[bool] = []

        def hear(locals_: dict[str, Any], _: dict[str, Any]) -> None:
            success = locals_["info"].get("is_success")
            if locals_["done"] and success is not None:
                successes.append(bool(success))

        returns, lengths = evaluate_policy(
            self.model, self._made, self.n_eval_episodes, self.deterministic, self.render, hear,
            return_episode_rewards=True,
        )  # fmt: skip
        if workers := self.model._workers:  # all save a new best, so all decide by the same figures
            returns, lengths, successes = workers.gathered((returns, lengths, successes))[0]
        mean, spread = float(np.mean(returns)), float(np.std(returns))
        self.last_mean_reward = mean
        self._write(returns, lengths, successes)
        if self.verbose and self.model._rank == 0:
            print(f"Evaluated at {self.num_timesteps} steps: return {mean:.2f} +/- {spread:.2f}")
        self.logger.record("eval/mean_reward", mean)
        self.logger.record("eval/mean_ep_length", float(np.mean(lengths)))
        if successes:
            self.logger.record("eval/success_rate", float(np.mean(successes)))
        self.logger.dump(self.num_timesteps)
        go_on = True
        if mean > self.best_mean_reward:
            self.best_mean_reward = mean
            if self.best_model_save_path is not None:
                self.model.save(Path(self.best_model_save_path, "best_model"))
            if self.callback_on_new_best is not None:
                go_on = not stops(self.callback_on_new_best.on_step())
        return go_on and self._on_event()

    def _require_same_wrappers(self) -> None:
        """ValueError before training if `_follow_normalisation` would fail at an evaluation."""
        try:
            self._follow_normalisation()
        except (AssertionError, AttributeError) as error:
            raise ValueError(
                f"eval_env: is {_kind(self.eval_env)}, and training is in a VecNormalize, whose "
                "statistics evaluations use; wrap it as the training environments are: "
                "VecNormalize(DummyVecEnv([make_env]), training=False, norm_reward=False)"
            ) from error

    def _follow_normalisation(self) -> None:
        """Evaluate with the statistics of the trainer's `VecNormalize`, if it has one."""
        if self.model.get_vec_normalize_env() is None:
            return
        from stable_baselines3.common.vec_env import sync_envs_normalization

        sync_envs_normalization(self.training_env, self.eval_env)

    def _write(self, returns: list[float], lengths: list[int], successes: list[bool]) -> None:
        if self.log_path is None or self.model._rank != 0:
            return
        if successes:
            self.evaluations_successes.append(successes)
        self.evaluations_timesteps.append(self.num_timesteps)
        self.evaluations_results.append(returns)
        self.evaluations_length.append(lengths)
        columns: dict[str, Any] = {
            "timesteps": self.evaluations_timesteps,
            "results": self.evaluations_results,
            "ep_lengths": self.evaluations_length,
        }
        if self.evaluations_successes:
            columns["successes"] = self.evaluations_successes
        np.savez(self.log_path, **columns)


def _kind(env: Any) -> str:
    """For a message: an id, or what kind of environment it is."""
    return f"the id {env!r}" if isinstance(env, str) else f"a {type(env).__name__}"


class StopTrainingOnRewardThreshold(BaseCallback):
    """Stops when the mean return of its parent, an `EvalCallback`, has reached a threshold."""

    parent: EvalCallback

    def __init__(self, reward_threshold: float, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.reward_threshold = reward_threshold

    def _on_step(self) -> bool:
        go_on = bool(self.parent.best_mean_reward < self.reward_threshold)
        if self.verbose and not go_on:
            print(
                f"Stopping: the mean return {self.parent.best_mean_reward:.2f} is above the "
                f"threshold, {self.reward_threshold}"
            )
        return go_on


class StopTrainingOnNoModelImprovement(BaseCallback):
    """Stops when `max_no_improvement_evals` evaluations in a row have not improved the best mean
    return, once there were `min_evals`. It is the `callback_after_eval` of an `EvalCallback`."""

    parent: EvalCallback

    def __init__(self, max_no_improvement_evals: int, min_evals: int = 0, verbose: int = 0) -> None:
        super().__init__(verbose)
        self.max_no_improvement_evals, self.min_evals = max_no_improvement_evals, min_evals
        self.last_best_mean_reward, self.no_improvement_evals = -np.inf, 0

    def _on_step(self) -> bool:
        if self.n_calls > self.min_evals:
            if self.parent.best_mean_reward > self.last_best_mean_reward:
                self.no_improvement_evals = 0
            else:
                self.no_improvement_evals += 1
        self.last_best_mean_reward = self.parent.best_mean_reward
        go_on = self.no_improvement_evals <= self.max_no_improvement_evals
        if self.verbose and not go_on:
            print(f"Stopping: {self.no_improvement_evals} evaluations brought no better return")
        return go_on


class StopTrainingOnMaxEpisodes(BaseCallback):
    """Stops after `max_episodes` for each environment."""

    def __init__(self, max_episodes: int, verbose: int = 0) -> None:
        super().__init__(verbose)
        require_integers(1, max_episodes=max_episodes)
        self.max_episodes = max_episodes

    def _on_training_start(self) -> None:
        self._before = len(self.model.episode_returns)

    @property
    def n_episodes(self) -> int:
        """Episodes that have ended since training began."""
        return len(self.model.episode_returns) - self._before

    def _on_step(self) -> bool:
        go_on = self.n_episodes < self.max_episodes * self.model._all_envs
        if self.verbose and not go_on:
            print(f"Stopping: {self.n_episodes} episodes have ended")
        return go_on


class ProgressBarCallback(BaseCallback):
    """Shows a progress bar; `learn(progress_bar=True)` does the same."""

    def _on_training_start(self) -> None:
        self.logger.show_progress(type(self.model).__name__, self.num_timesteps, self.model._end)


class Checkpoints(BaseCallback):
    """Saves the trainer to `path` every so many environment steps, between update and rollout.

    The file is complete at any time; `PPO.load(path).learn(…, reset_num_timesteps=False)` continues
    training.
    """

    def __init__(self, path: str | Path, every: int) -> None:
        require_integers(1, every=every)
        self.path, self.every = path, every

    def _on_training_start(self) -> None:
        self._saved = self.num_timesteps

    def _on_rollout_start(self) -> None:
        if self.num_timesteps - self._saved >= self.every:
            self._saved = self.num_timesteps
            self.model.save(self.path)


class TimingCallback(BaseCallback):
    """Switches the trainer's `timing` on: the phases of training, in `model.timing.phases()`.

    On a GPU a phase measures the launch of its kernels, not their work. With `synchronize` the
    trainer waits for the device at both ends of each phase, so that it measures the work as well;
    that slows training, and the printed tree says so. On a CPU `synchronize` does nothing.
    """

    def __init__(self, synchronize: bool = False) -> None:
        self.synchronize = synchronize

    def _on_training_start(self) -> None:
        timing = self.model.timing
        if self.synchronize and self.model.device.type == "cuda":
            import torch

            timing.synchronize = torch.cuda.synchronize
        timing.enabled = True

    def _on_training_end(self) -> None:
        self.model.timing.enabled = False
