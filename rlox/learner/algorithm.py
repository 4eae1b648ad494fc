"""What PPO and SAC share: environment, seeds, the outline of `learn`, `predict`."""

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.env.gymnasium_backend import exact_id
from rlox.learner import switchboard
from rlox.learner.acting import Acting, Predicted, as_floats
from rlox.learner.arguments import (
    not_plain,
    plain,
    require_device,
    require_integers,
    require_one_of,
)
from rlox.learner.callbacks import CallbackList
from rlox.learner.compiled import Compilation
from rlox.learner.distributed import Workers
from rlox.learner.environments import make_vector_env
from rlox.learner.features import NatureCNN
from rlox.learner.finite import FiniteSteps
from rlox.learner.in_envs import InEnvs
from rlox.learner.logger import Logger
from rlox.learner.policies import StochasticPolicy
from rlox.learner.saved import Saved
from rlox.learner.schedules import Schedule, Scheduled
from rlox.learner.seeds import Seeded
from rlox.learner.spaces import (
    is_image,
    require_supported_observations,
    row_length,
)
from rlox.learner.step_locals import Locals, step_locals
from rlox.learner.switchboard import Twins
from rlox.learner.torch_settings import PRECISIONS, threads_for, torch_settings
from rlox.timing import Timing


class Algorithm(Seeded, InEnvs, Saved):
    """A trainer: `learn`, `predict`, `save`, `load`.

    Attributes: `timing`, disabled unless a `TimingCallback` is given; `num_timesteps`, environment
    steps taken, over all environments; `episode_returns` and `episode_lengths` of every finished
    episode; `logger.values`, the latest figures; `compilations`, what compiling by R2 and R3 took.

    All randomness comes from the trainer's own generators, derived from `seed` (None: from torch's
    global generator), so that training neither reads nor advances any other generator. `seed` also
    seeds `action_space`, from which some environments draw.
    """

    policy: StochasticPolicy
    batch_size: int
    update_path: str
    _generators: tuple[str, ...] = ("_act_generator", "_predict_generator")
    _joins = False  # whether several processes can train one model

    _differs = ""  # a sentence on defaults that differ from Stable-Baselines3's
    _said: ClassVar[set[str]] = set()  # such sentences that this process has printed
    _squashes = False  # whether the policy acts in [-1, 1]
    _action_names: tuple[str, str]  # in `locals`: of the policy's actions and the environment's
    # gSDE: whether noise depends on the state, and the number of steps until it is drawn anew.
    use_sde, sde_sample_freq = False, -1

    def __init__(
        self,
        env: Any,
        n_envs: int | None,
        usual_envs: Twins[int],
        optimizations: Collection[str] | None,
        seed: int | None,
        device: str | torch.device | None,
        threads: int | None,
        matmul_precision: str,
        tensorboard_log: str | Path | None,
        verbose: int,
        stats_window_size: int,
        learning_rate: Any,
        scales_images: bool,
        arguments: dict[str, Any],
    ) -> None:
        self.optimizations = self._chosen = switchboard.choose(optimizations)
        self._asked = optimizations is not None
        if n_envs is None:
            n_envs = usual_envs.of(self.optimizations)
            if isinstance(env, str) and n_envs > 1:
                self._differs += f"{self._differs and ', '}n_envs={n_envs} for 1"
        if device is None:
            device = switchboard.DEVICE.of(self.optimizations)
        require_integers(1, n_envs=n_envs, threads=1 if threads is None else threads)
        require_integers(1, stats_window_size=stats_window_size)
        require_integers(0, seed=0 if seed is None else seed)
        require_one_of("matmul_precision", matmul_precision, PRECISIONS)
        self.device = require_device(device)
        self.threads, self.matmul_precision = threads, matmul_precision
        if isinstance(env, str):
            env = exact_id(env)  # so that `load` takes the same version
        self.env_id = env if isinstance(env, str) else None
        self.verbose, self.stats_window_size = int(verbose), int(stats_window_size)
        self._learning_rate = Scheduled("learning_rate", learning_rate)
        self._workers = self._join()
        shared = self._workers and isinstance(env, str)  # other environments bring their number
        own = self._workers.share(n_envs) if shared else n_envs
        self.vector_env = self._steppable(make_vector_env(env, own))
        self.n_envs = int(self.vector_env.num_envs)
        self.observation_space = require_supported_observations(
            self.vector_env.single_observation_space
        )
        self.action_space = self.vector_env.single_action_space
        self.obs_dim = row_length(self.observation_space)
        self._sees_images = scales_images and is_image(self.observation_space)
        self._acting = Acting(
            self.observation_space, self.action_space, self._sees_images, self._squashes
        )
        self._watch_env()
        self.seed = seed
        asked = None if optimizations is None else sorted(self._chosen)
        self._arguments = plain(arguments | {"n_envs": n_envs, "optimizations": asked})
        self._lost, self._derived = not_plain(arguments), dict[str, Any]()

        root = int(torch.randint(2**31, ()).item() if seed is None else seed)
        if self._workers:
            root = self._workers.gathered(root)[0]
        # The user's environment object keeps its own seed, unless this trainer is given one.
        self._env_seed = root if seed is not None or isinstance(env, str) else None
        self._seeds = np.random.SeedSequence(root)
        if seed is not None:
            self.action_space.seed(root + self._rank)
        self._act_generator = self._generator()
        self._draw_apart()
        self._predict_generator = self._generator()

        self.compilations: list[Compilation] = []
        self.timing = Timing(type(self).__name__, enabled=False)
        self.vector_env.timing = self.timing  # type: ignore[attr-defined]
        shown = self.verbose if self._rank == 0 else 0
        self.logger = Logger(tensorboard_log if self._rank == 0 else None, shown)
        self.num_timesteps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self._callback, self._each_step = CallbackList([]), list[str]()
        self._end = 0
        self._finite = FiniteSteps(self)
        self._last_obs: NDArray[Any] | None = None  # None if no episode is under way

    def learn(
        self,
        total_timesteps: float,
        callback: Any = None,
        log_interval: int | None = -1,
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> Self:
        """Train for `total_timesteps` environment steps, counted over all environments.

        `callback`: a callback of ours or of Stable-Baselines3's, a function of two dictionaries, or
        several of these. If one returns False training ends. Training may be interrupted (Ctrl-C)
        and continues with the next `learn`. With `reset_num_timesteps=False` the count continues,
        in the same episodes (new ones after an interruption and after `load`) and in the same run
        of TensorBoard; otherwise the environments are reset and a new run begins.

        Figures are shown every `log_interval` rollouts (PPO: 1) or episodes (SAC: 4); None shows
        none. `tb_log_name` is the name of the run, by default the algorithm's.
        """
        steps = total_timesteps
        if isinstance(steps, float) and steps.is_integer():
            steps = int(steps)  # programs often write 1e6
        require_integers(1, total_timesteps=steps)
        if log_interval is not None and log_interval != -1:
            require_integers(1, log_interval=log_interval)
        self._log_interval = self._usual_log_interval if log_interval == -1 else log_interval
        callbacks = callback if isinstance(callback, list | tuple) else [callback]
        self._callback = CallbackList([] if callback is None else list(callbacks))
        self._callback.init_callback(self)
        self._each_step = self._callback.overriding("_on_step")
        if reset_num_timesteps:
            self._last_obs = None
            self.num_timesteps = 0
            self.episode_returns, self.episode_lengths = [], []
        self._say_what_differs()
        self._end = self.num_timesteps + int(steps)
        self._choose_for(int(steps))
        if self._rank == 0:
            self.timing.gauge("env steps", lambda: self.num_timesteps, rate=True)
        shown = progress_bar and self._rank == 0
        self.logger.start(
            tb_log_name or type(self).__name__, self.num_timesteps, self._end, shown,
            reset_num_timesteps,
        )  # fmt: skip
        try:
            # What callbacks read; they get the same dictionary at each step.
            known = Locals(self=self, total_timesteps=self._end, callback=self._callback)
            self._callback.on_training_start(known, {})
            with torch_settings(*self._torch_settings()):
                self._train_until_end()
        except BaseException:
            # The environments may have taken steps that are not counted.
            self._last_obs = self._next_obs = None
            raise
        finally:
            self._callback.on_training_end()
            self.logger.stop()
        return self

    def _choose_for(self, steps: int) -> None:
        """Choose the optimisations that pay in so many steps."""
        self.optimizations = switchboard.for_run(self._asked, self._chosen, steps)
        for network in self._networks():
            for part in network.modules():
                if isinstance(part, NatureCNN):
                    part.order = switchboard.FRAMES.of(self.optimizations)

    def _networks(self) -> list[nn.Module]:
        """The networks that the trainer learns."""
        kept = (getattr(self, name) for name in self._state)
        return [module for module in kept if isinstance(module, nn.Module)]

    def _say_what_differs(self) -> None:
        """Print, once a process, the defaults that differ from Stable-Baselines3's."""
        name = type(self).__name__
        message = f'{name}(env) has {self._differs} of {name}("MlpPolicy", env)'
        if self._differs and self._rank == 0 and message not in self._said:
            self._said.add(message)
            print(message, file=sys.stderr)

    def _train_until_end(self) -> None:
        """The algorithm: collect and update until `_finished()`."""
        raise NotImplementedError

    def predict(
        self,
        observation: Any,
        state: tuple[NDArray[Any], ...] | None = None,
        episode_start: NDArray[np.bool_] | None = None,
        deterministic: bool = False,
    ) -> Predicted:
        """Actions for one observation or a batch of them, as the environment takes them.

        `observation`: one of the observation space's shape, or a batch `[n, …]`. ValueError for
        another shape, for NaN and infinite numbers, and for numbers that the space's dtype cannot
        represent. `state` and `episode_start` are ignored: they are for recurrent policies, which
        this library does not have.

        Returns `(actions, None)`: in Stable-Baselines3 the second is a recurrent state.
        """
        return self._acting.predict(
            self.policy, observation, deterministic, self._predict_generator, self.device
        )

    def set_logger(self, logger: Any) -> None:
        """Pass all figures on to `logger`, which may be one of Stable-Baselines3's."""
        self.logger.handed_to = logger

    @property
    def learning_rate(self) -> Any:
        """The value given: a number, or a function of the part of training that remains."""
        return self._learning_rate.function or self._learning_rate.value

    @learning_rate.setter
    def learning_rate(self, given: Any) -> None:
        self._learning_rate = Scheduled("learning_rate", given)
        for part in (getattr(self, name) for name in self._state):
            for group in part.param_groups if isinstance(part, torch.optim.Optimizer) else ():
                group["lr"] = self._learning_rate.value

    @property
    def lr_schedule(self) -> Schedule:
        """`learning_rate` as a function, under Stable-Baselines3's name. Setting it sets
        `learning_rate`."""
        value = self._learning_rate.value
        return self._learning_rate.function or (lambda _: value)

    @lr_schedule.setter
    def lr_schedule(self, given: Any) -> None:
        self.learning_rate = given

    @property
    def _current_progress_remaining(self) -> float:
        """From 1, before any `learn`, down to 0. It stays at 0 if the last rollout exceeds the
        total; Stable-Baselines3's becomes negative there, and so does a linear learning rate."""
        return max(0.0, 1.0 - self.num_timesteps / self._end) if self._end else 1.0

    def _follow_schedules(self, *optimizers: Any) -> None:
        """Set what is scheduled to its value for the rest of training. A learning rate that was
        given as a number is not set, so that a callback may change it."""
        for scheduled in self._schedules():
            scheduled.at(self._current_progress_remaining)
        for optimizer in optimizers if self._learning_rate.moves else ():
            for group in optimizer.param_groups:
                group["lr"] = self._learning_rate.value

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The policy's actions as the environment takes them."""
        raise NotImplementedError

    def _join(self) -> Workers | None:
        """The processes that torchrun has started, with this one; None if there is no other."""
        workers = Workers.join(self.device)
        if workers and not self._joins:
            raise ValueError(
                f"{type(self).__name__} trains in one process; torchrun has started {workers.size}"
            )
        return workers

    def _adam(
        self, module: nn.Module, lr: float, fused: bool = True, **settings: Any
    ) -> torch.optim.Adam:
        """Adam as one kernel over all parameters. It rounds differently from the Adam that runs
        operation by operation: by about 1e-7 of a step."""
        return torch.optim.Adam(module.parameters(), lr=lr, fused=fused, **settings)

    def _torch_settings(self) -> tuple[int, str, bool]:
        """Settings while learning: torch's threads, the precision of its products, and whether
        NumPy computes tanh."""
        modules = self._networks()
        threads = self.threads or threads_for(modules, self.batch_size)
        numpys_tanh = switchboard.TANH.of(self.optimizations)(threads)
        if self.update_path == "native":  # torch then has no large products
            return threads, self.matmul_precision, numpys_tanh
        precision_for = switchboard.PRODUCTS.of(self.optimizations)
        precision = precision_for(self.matmul_precision, modules, self.batch_size)
        return threads, precision, numpys_tanh

    def _compile_options(self) -> dict[str, Any]:
        """Inductor's options for compiled functions."""
        return switchboard.COMPILED_PRODUCTS.of(self.optimizations)()

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """`array` on the device; bytes become floats, those of images in [0, 1]."""
        tensor = torch.from_numpy(array)
        if self.device.type != "cpu":  # the call costs as much as the line before
            tensor = tensor.to(self.device)
        return as_floats(tensor, self._sees_images)

    def _finished(self) -> bool:
        return self.num_timesteps >= self._end

    _usual_log_interval = 1
    _log_interval: int | None = 1

    def _shows(self) -> bool:
        """Whether figures are shown now."""
        return self._log_interval is not None

    def _explore_anew(self, step: int) -> None:
        """gSDE: draw noise for the environments if it is due at this `step` of a rollout."""
        often = self.sde_sample_freq
        if self.use_sde and (step == 0 or (often > 0 and step % often == 0)):
            self.policy.reset_noise(self.n_envs, self._act_generator)

    def _tell_step(self, obs: NDArray[Any], *step: Any) -> bool:
        """Call the callbacks for a counted step (arguments of `step_locals`) that has led to `obs`;
        False: stop. As in Stable-Baselines3 they find in `_last_obs` what was acted on."""
        if self._each_step:
            self._callback.update_locals(step_locals(self, *step))
        self._next_obs = obs
        go_on = self._callback.on_step()
        if self._next_obs is not None:  # otherwise a callback has moved the environments
            self._last_obs, self._next_obs = obs, None
        return go_on

    def _log(self, figures: Mapping[str, float]) -> None:
        """Record figures with the mean of the latest episodes, and show them."""
        self._record_figures()
        self.logger.record({**figures, "train/learning_rate": self._learning_rate.value})
        if self._shows():
            self.logger.dump(self.num_timesteps)

    def dump_logs(self, iteration: int = 0) -> None:
        """Show and write the present figures, with the mean of the latest episodes. `iteration` is
        an argument for programs written for Stable-Baselines3; PPO counts its iterations itself."""
        self._record_figures()
        self.logger.dump(self.num_timesteps)

    def _record_figures(self) -> None:
        """Record the means of the latest episodes."""
        if self.episode_returns:
            self.logger.record(
                {
                    "rollout/ep_rew_mean": float(
                        np.mean(self.episode_returns[-self.stats_window_size :])
                    ),
                    "rollout/ep_len_mean": float(
                        np.mean(self.episode_lengths[-self.stats_window_size :])
                    ),
                }
            )
