"""What PPO and SAC share: environment, seeds, the frame of `learn`, `predict`, `save`, `load`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Self

import gymnasium as gym
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.env.gymnasium_backend import exact_id
from rlox.learner import switchboard
from rlox.learner.arguments import plain, require_device, require_integers, require_one_of
from rlox.learner.callbacks import BaseCallback, CallbackList
from rlox.learner.compiled import Compilation
from rlox.learner.distributed import Workers
from rlox.learner.environments import (
    AnyEnv,
    flatten_obs,
    make_vector_env,
    require_box_observations,
)
from rlox.learner.finite import FiniteSteps
from rlox.learner.logger import Logger
from rlox.learner.policies import StochasticPolicy
from rlox.learner.spaces import as_saved, given_observations, is_image, require_same_space
from rlox.learner.step_locals import step_locals
from rlox.learner.switchboard import Twins
from rlox.learner.torch_settings import PRECISIONS, threads_for, torch_settings
from rlox.timing import Timing

RETURN_WINDOW = 100  # episodes in the mean return that is shown, as in Stable-Baselines3


class Algorithm:
    """A trainer: `learn`, `predict`, `save`, `load`.

    Attributes: `timing`, disabled unless a `TimingCallback` is given; `num_timesteps`, environment
    steps taken, over all environments; `episode_returns` and `episode_lengths` of every finished
    episode; `logger.values`, the latest figures; `compilations`, what R2 and R3 took to compile.

    All randomness comes from generators of its own, derived from `seed` (None: from torch's global
    generator), so that training neither reads nor moves anybody else's.
    """

    policy: StochasticPolicy
    batch_size: int
    update_path: str
    _state: tuple[str, ...]  # attributes with a state_dict, which `save` writes
    _state_of: ClassVar[Mapping[str, str]] = {}  # of those, the ones that an argument makes anew
    _generators: tuple[str, ...] = ("_act_generator", "_predict_generator")
    _joins = False  # whether several processes can train one model

    def __init__(
        self,
        env: str | gym.Env[Any, Any] | AnyEnv,
        n_envs: int | None,
        usual_envs: Twins[int],
        optimizations: Collection[str] | None,
        seed: int | None,
        device: str | torch.device | None,
        threads: int | None,
        matmul_precision: str,
        tensorboard_log: str | Path | None,
        arguments: dict[str, Any],
    ) -> None:
        self.optimizations = self._chosen = switchboard.choose(optimizations)
        self._asked = optimizations is not None
        if n_envs is None:
            n_envs = usual_envs.of(self.optimizations)
        if device is None:
            device = switchboard.DEVICE.of(self.optimizations)
        require_integers(1, n_envs=n_envs, threads=1 if threads is None else threads)
        require_integers(0, seed=0 if seed is None else seed)
        require_one_of("matmul_precision", matmul_precision, PRECISIONS)
        self.device = require_device(device)
        self.threads, self.matmul_precision = threads, matmul_precision
        if isinstance(env, str):
            env = exact_id(env)  # so that `load` takes the same version
        self.env_id = env if isinstance(env, str) else None
        self._workers = self._join()
        self.env = make_vector_env(env, self._workers.share(n_envs) if self._workers else n_envs)
        self.n_envs = int(self.env.num_envs)
        self.observation_space = require_box_observations(self.env)
        self.action_space = self.env.single_action_space
        self.obs_dim = int(np.prod(self.observation_space.shape))
        self._sees_images = is_image(self.observation_space)
        self.seed = seed
        asked = None if optimizations is None else sorted(self._chosen)
        self._arguments = plain(arguments | {"n_envs": n_envs, "optimizations": asked})

        root = int(torch.randint(2**31, ()).item() if seed is None else seed)
        if self._workers:
            root = self._workers.gathered(root)[0]
        # An environment that the user made keeps its own seed, unless this trainer is given one.
        self._env_seed = root if seed is not None or isinstance(env, str) else None
        self._seeds = np.random.SeedSequence(root)
        self._act_generator = self._generator()
        if self._workers:
            self._act_generator.manual_seed(self._act_generator.initial_seed() + self._rank)
        self._predict_generator = self._generator()

        self.compilations: list[Compilation] = []
        self.timing = Timing(type(self).__name__, enabled=False)
        self.env.timing = self.timing  # type: ignore[attr-defined]
        self.logger = Logger(tensorboard_log if self._rank == 0 else None)
        self.num_timesteps = 0
        self.episode_returns: list[float] = []
        self.episode_lengths: list[int] = []
        self._callback, self._each_step = CallbackList([]), list[str]()
        self._end = 0
        self._finite = FiniteSteps(self)
        self._last_obs: NDArray[Any] | None = None  # None where no episode is under way

    def learn(
        self,
        total_timesteps: float,
        callback: BaseCallback | Sequence[BaseCallback] | None = None,
        progress_bar: bool = False,
        reset_num_timesteps: bool = True,
    ) -> Self:
        """Train for `total_timesteps` environment steps, counted over all environments.

        A callback that returns False ends training. Training may be interrupted (Ctrl-C) and goes
        on with the next `learn`. With `reset_num_timesteps=False` it goes on counting, in the same
        episodes (new ones after an interruption and after `load`) and in the same run of
        TensorBoard; else the environments are reset and a new run is begun.
        """
        steps = total_timesteps
        if isinstance(steps, float) and steps.is_integer():
            steps = int(steps)  # as 1e6 is often written
        require_integers(1, total_timesteps=steps)
        callbacks: Any = callback if isinstance(callback, Sequence) else [callback]
        self._callback = CallbackList([] if callback is None else callbacks)
        self._callback.init_callback(self)
        self._each_step = self._callback.overriding("_on_step")
        if reset_num_timesteps:
            self._last_obs = None
            self.num_timesteps = 0
            self.episode_returns, self.episode_lengths = [], []
        self._end = self.num_timesteps + int(steps)
        self.optimizations = switchboard.for_run(self._asked, self._chosen, int(steps))
        if self._rank == 0:
            self.timing.gauge("env steps", lambda: self.num_timesteps, rate=True)
        shown = progress_bar and self._rank == 0
        self.logger.start(
            type(self).__name__, self.num_timesteps, self._end, shown, reset_num_timesteps
        )
        try:
            self._callback.on_training_start()
            with torch_settings(*self._torch_settings()):
                self._train_until_end()
        except BaseException:
            self._last_obs = None  # the environments may have moved on uncounted
            raise
        finally:
            self._callback.on_training_end()
            self.logger.stop()
        return self

    def _train_until_end(self) -> None:
        """The algorithm: collect and update until `_finished()`."""
        raise NotImplementedError

    def predict(self, obs: Any, deterministic: bool = False) -> tuple[NDArray[Any], None]:
        """Actions for one observation or a batch of them, as the environment takes them.

        `obs`: of the observation space's shape, or a batch `[n, …]` of such. ValueError for another
        shape, for what are no finite numbers, and for what the space's type cannot hold.

        Returns `(actions, None)`: Stable-Baselines3 has a recurrent state there.
        """
        batch, one = given_observations(obs, self.observation_space)
        rows = batch.reshape(len(batch), -1)
        self.policy.train(False)
        with torch.no_grad():
            actions, _ = self.policy.get_action_and_logprob(
                self._tensor(rows), deterministic=deterministic, generator=self._predict_generator
            )
        env_actions = self._env_actions(actions.cpu().numpy())
        return (env_actions[0] if one else env_actions), None

    def _env_actions(self, actions: NDArray[Any]) -> NDArray[Any]:
        """The policy's actions as the environment takes them."""
        raise NotImplementedError

    def save(self, path: str | Path) -> None:
        """Write weights, optimisers, arguments, and where training stands: steps, episodes and
        random streams, so that `learn(…, reset_num_timesteps=False)` of what `load` returns does
        what it would do here with new episodes, on the same kind of device: episodes under way are
        not kept. Nor is a replay buffer; SAC fills a new one before it learns on.

        A file that is there is replaced at once, never left half. Where several processes train
        one model, all call this, and the first one writes.
        """
        streams = self._streams()
        saved = {
            "algorithm": type(self).__name__,
            "env_id": self.env_id,
            "arguments": self._arguments,
            "spaces": (as_saved(self.observation_space), as_saved(self.action_space)),
            "num_timesteps": self.num_timesteps,
            "episodes": (self.episode_returns, self.episode_lengths),
            "seeds": (self._seeds.entropy, self._seeds.n_children_spawned, self._env_seed),
            "streams": self._workers.gathered(streams) if self._workers else [streams],
            "state": {name: getattr(self, name).state_dict() for name in self._state},
        }
        if self._rank == 0:
            part = Path(f"{path}.part")
            torch.save(saved, part)
            part.replace(path)

    @classmethod
    def load(
        cls,
        path: str | Path,
        env: str | gym.Env[Any, Any] | AnyEnv | None = None,
        device: str | torch.device = "cpu",
        **arguments: Any,
    ) -> Self:
        """The trainer that `save` wrote. No code is run from the file.

        `env` is needed if training was in an environment object; `arguments` replace those of the
        saved trainer; modules that the user had given are given again here. ValueError for an
        environment of other spaces: what was learnt is scaled to them.
        """
        saved = torch.load(path, map_location=device, weights_only=True)
        if saved["algorithm"] != cls.__name__:
            raise ValueError(f"{path} holds a {saved['algorithm']}, not a {cls.__name__}")
        if env is None and saved["env_id"] is None:
            raise ValueError("env is needed: the model was trained in an environment object")
        model = cls(
            saved["env_id"] if env is None else env,
            **{**saved["arguments"], "device": device, **arguments},
        )
        if "spaces" in saved:  # files of earlier versions do not tell
            seen, taken = saved["spaces"]
            require_same_space("observation", seen, model.observation_space)
            require_same_space("action", taken, model.action_space)
        for name, state in saved["state"].items():
            if cls._state_of.get(name) in arguments:
                continue
            part = getattr(model, name)
            try:
                part.load_state_dict(state)
            except (RuntimeError, ValueError) as error:
                raise ValueError(
                    f"{name}: what {path} holds does not fit this trainer; modules that were given "
                    f"at its making must be given to load, too ({error})"
                ) from error
            if isinstance(part, torch.optim.Optimizer) and "learning_rate" in arguments:
                for group in part.param_groups:  # the state brought the saved trainer's
                    group["lr"] = float(arguments["learning_rate"])
        model.num_timesteps = saved["num_timesteps"]
        model.episode_returns, model.episode_lengths = map(list, saved["episodes"])
        if "seed" not in arguments:
            model._take_up(saved["seeds"], saved["streams"])
        return model

    def _take_up(
        self, seeds: tuple[int, int, int | None], streams: Sequence[Mapping[str, Tensor]]
    ) -> None:
        """Go on drawing where the trainer that was saved stood."""
        entropy, spawned, env_seed = seeds
        self._seeds = np.random.SeedSequence(entropy, n_children_spawned=spawned)
        if self._env_seed is not None:
            self._env_seed = env_seed
        if self._rank < len(streams):  # more workers than there were draw as new ones do
            self._set_streams(streams[self._rank])

    def _streams(self) -> dict[str, Tensor]:
        """Where the streams of random numbers stand that training draws from."""
        return {name: getattr(self, name).get_state() for name in self._generators}

    def _set_streams(self, streams: Mapping[str, Tensor]) -> None:
        for name in self._generators:
            generator, state = getattr(self, name), streams[name].cpu()
            # That of another kind of device is of another kind: it cannot go on here.
            if state.shape == generator.get_state().shape:
                generator.set_state(state)

    @property
    def _rank(self) -> int:
        return self._workers.rank if self._workers else 0

    @property
    def _all_envs(self) -> int:
        """Environments of all processes that train this model."""
        return self.n_envs * (self._workers.size if self._workers else 1)

    def _join(self) -> Workers | None:
        """The processes that torchrun has started, of which this is one; None if it is alone."""
        workers = Workers.join(self.device)
        if workers and not self._joins:
            raise ValueError(
                f"{type(self).__name__} trains in one process; torchrun has started {workers.size}"
            )
        return workers

    def _adam(self, module: nn.Module, lr: float, eps: float = 1e-8) -> torch.optim.Adam:
        """Adam as one kernel over all parameters. It rounds otherwise than the one that goes
        operation by operation: by some 1e-7 of a step."""
        return torch.optim.Adam(module.parameters(), lr=float(lr), eps=eps, fused=True)

    def _torch_settings(self) -> tuple[int, str, bool]:
        """Torch's threads, the precision of its products, and whether NumPy computes its tanh while
        learning."""
        modules = [getattr(self, name) for name in self._state]
        modules = [module for module in modules if isinstance(module, nn.Module)]
        threads = self.threads or threads_for(modules, self.batch_size)
        numpys_tanh = switchboard.TANH.of(self.optimizations)(threads)
        if self.update_path == "native":  # then torch has nothing large to multiply
            return threads, self.matmul_precision, numpys_tanh
        precision_for = switchboard.PRODUCTS.of(self.optimizations)
        precision = precision_for(self.matmul_precision, modules, self.batch_size)
        return threads, precision, numpys_tanh

    def _compile_options(self) -> dict[str, Any]:
        """Inductor's, of what is compiled."""
        return switchboard.COMPILED_PRODUCTS.of(self.optimizations)()

    def _generator(self) -> torch.Generator:
        """A new stream of random numbers, independent of those before it."""
        return torch.Generator(self.device).manual_seed(self._new_seed())

    @contextmanager
    def _seeded_initialisation(self) -> Iterator[None]:
        """Networks made inside draw their weights from `seed`, and leave the global stream alone.

        Initialisers of torch's layers take no generator, so the global one is lent to them.
        """
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._new_seed())
            yield

    def _new_seed(self) -> int:
        return int(self._seeds.spawn(1)[0].generate_state(1)[0])

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        """`array` on the device; bytes become floats, those of images in [0, 1]."""
        tensor = torch.from_numpy(array)
        if self.device.type != "cpu":  # asking for it costs as much as the line before
            tensor = tensor.to(self.device)
        if tensor.dtype != torch.uint8:
            return tensor
        return tensor.float() / 255 if self._sees_images else tensor.float()

    def _reset_env(self) -> NDArray[Any]:
        """First observations. Every training begins with episodes of another seed."""
        seed = self._env_seed
        if seed is not None:
            self._env_seed = self._new_seed()
            seed += self._rank * self.n_envs  # as if one process had them all
        self._running_return = np.zeros(self.n_envs)
        self._running_length = np.zeros(self.n_envs, dtype=np.int64)
        obs = flatten_obs(self.env.reset(seed=seed)[0], self.observation_space)
        self._finite.reset(obs)
        return obs

    def _current_obs(self) -> NDArray[Any]:
        """What the environments show; new episodes where none are under way."""
        if self._last_obs is None:
            self._last_obs = self._reset_env()
        return self._last_obs

    def _finished(self) -> bool:
        return self.num_timesteps >= self._end

    def _count_step(self, rewards: NDArray[Any], dones: NDArray[np.bool_]) -> None:
        """Book one vectorised step."""
        self.num_timesteps += self._all_envs
        self._running_return += rewards
        self._running_length += 1
        if np.count_nonzero(dones):  # a fifth of what dones.any() takes
            self.episode_returns += [float(x) for x in self._running_return[dones]]
            self.episode_lengths += [int(x) for x in self._running_length[dones]]
            self._running_return[dones] = 0
            self._running_length[dones] = 0

    def _tell_step(self, *step: Any) -> bool:
        """Callbacks hear of a step that was counted (as `step_locals` takes it); False: stop."""
        if self._each_step:
            self._callback.update_locals(step_locals(self, *step))
        return self._callback.on_step()

    def _log(self, figures: Mapping[str, float]) -> None:
        """Record figures with the mean of the latest episodes, and show them."""
        if self.episode_returns:
            self.logger.record(
                {
                    "rollout/ep_rew_mean": float(np.mean(self.episode_returns[-RETURN_WINDOW:])),
                    "rollout/ep_len_mean": float(np.mean(self.episode_lengths[-RETURN_WINDOW:])),
                }
            )
        self.logger.record(figures)
        self.logger.dump(self.num_timesteps)
