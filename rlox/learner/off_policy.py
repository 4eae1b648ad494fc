"""What a trainer with a replay buffer does between updates: it steps, with noise, and stores."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rlox import PrioritizedReplayBuffer, ReplayBuffer
from rlox.learner.algorithm import Algorithm
from rlox.learner.arguments import require_flags, require_integers, require_one_of
from rlox.learner.environments import final_obs
from rlox.learner.originals import originals
from rlox.learner.replay import SacReplayBuffer, fill, obs_dtype_of
from rlox.learner.saved import read, write
from rlox.learner.spaces import flatten_obs
from rlox.learner.their_names import SacNames
from rlox.learner.torch_settings import torch_settings

PRIORITY_EPSILON = 1e-6  # keeps priorities above 0, so that every transition may be drawn again
BETA_0 = 0.4  # exponent of the importance weights at the start


class TrainFreq(NamedTuple):
    """How much is collected between updates."""

    frequency: int
    unit: str

    @classmethod
    def of(cls, given: Any, n_envs: int) -> "TrainFreq":
        """An integer, or `(integer, "step" or "episode")`, or Stable-Baselines3's `TrainFreq`."""
        frequency, of = given if isinstance(given, tuple | list) else (given, "step")
        unit: Any = getattr(of, "value", of)
        require_integers(1, train_freq=frequency)
        require_one_of("train_freq", unit, ("step", "episode"))
        if unit == "episode" and n_envs > 1:
            raise ValueError(f"train_freq: episodes are counted in one environment, not {n_envs}")
        return cls(int(frequency), unit)


def bootstraps_time_limits(replay_buffer_kwargs: Mapping[str, Any] | None) -> bool:
    """Whether values are bootstrapped after a time limit; ValueError for other arguments of a
    replay buffer."""
    given = dict(replay_buffer_kwargs or {})
    found = given.pop("handle_timeout_termination", True)
    if given:
        raise ValueError(
            f"replay_buffer_kwargs: holds {', '.join(given)}; handle_timeout_termination is known"
        )
    require_flags(handle_timeout_termination=found)
    return bool(found)


class LentStream:
    """A stream of random numbers for code that draws from NumPy's global stream, as
    Stable-Baselines3's action noises do. Their numbers are then determined by the trainer's seed,
    and the global stream is not advanced."""

    def __init__(self, seed: int) -> None:
        self._state: Any = np.random.RandomState(seed).get_state()

    @contextmanager
    def lent(self) -> Iterator[None]:
        """In this block NumPy's global functions draw from this stream."""
        theirs = np.random.get_state()  # noqa: NPY002 - the global stream is replaced meanwhile
        np.random.set_state(self._state)  # noqa: NPY002
        try:
            yield
            self._state = np.random.get_state()  # noqa: NPY002
        finally:
            np.random.set_state(theirs)  # noqa: NPY002


class OffPolicy(SacNames, Algorithm):
    """Collects transitions, and calls `train_once` for each update."""

    replay_buffer: ReplayBuffer | PrioritizedReplayBuffer
    learning_starts: int
    gradient_steps: int
    target_update_interval: int
    act_dim: int
    prioritized: bool
    use_sde_at_warmup = False
    _action_names = ("buffer_actions", "actions")
    _buffer_size: int
    _bootstraps_time_limits = True
    _n_updates = 0
    _moves_targets = True  # whether the next update moves the target networks
    _noises: list[Any]  # one for each environment; empty without noise
    _noise_stream: LentStream | None
    _train_freq: TrainFreq
    _action_noise: Any
    _explore_rng: np.random.Generator
    _figures: dict[str, torch.Tensor | float]
    _native: Any
    actor_optimizer: torch.optim.Adam
    critic_optimizer: torch.optim.Adam
    alpha_optimizer: torch.optim.Adam | None

    def train_once(self) -> None:
        """One update."""
        raise NotImplementedError

    @property
    def train_freq(self) -> TrainFreq:
        """How much is collected between updates; an integer is a number of steps."""
        return self._train_freq

    @train_freq.setter
    def train_freq(self, given: Any) -> None:
        self._train_freq = TrainFreq.of(given, self.n_envs)

    @property
    def action_noise(self) -> Any:
        """What is added to actions in [-1, 1], or None. Of several environments each has a copy, or
        one of the `noises` of Stable-Baselines3's `VectorizedActionNoise`."""
        return self._action_noise

    @action_noise.setter
    def action_noise(self, given: Any) -> None:
        noises = getattr(given, "noises", None)
        if given is None:
            noises = []
        elif noises is None:
            alone = self.n_envs == 1
            noises = [given] if alone else [copy.deepcopy(given) for _ in range(self.n_envs)]
        elif len(noises) != self.n_envs:
            raise ValueError(
                f"action_noise: is for {len(noises)} environments, and there are {self.n_envs}"
            )
        self._action_noise, self._noises = given, noises

    def _watch_env(self) -> None:
        super()._watch_env()
        self._originals = originals(self.get_vec_normalize_env(), self.observation_space)

    def _new_buffer(self) -> ReplayBuffer | PrioritizedReplayBuffer:
        size, space, seed = self._buffer_size, self.observation_space, self._new_seed()
        if self.prioritized:
            dtype = obs_dtype_of(space)
            return PrioritizedReplayBuffer(
                size, self.obs_dim, self.act_dim, obs_dtype=dtype, seed=seed
            )
        limits = self._bootstraps_time_limits
        return SacReplayBuffer(size, space, self.act_dim, self.n_envs, seed, limits, self.device)

    def _draw(self) -> Any:
        """A batch from the replay buffer, as NumPy arrays."""
        buffer = self.replay_buffer
        if isinstance(buffer, PrioritizedReplayBuffer):
            buffer.beta = BETA_0 + (1 - BETA_0) * min(1.0, self.num_timesteps / max(self._end, 1))
        drawn = buffer.sample(self.batch_size, copy=False)  # used up before the next one is drawn
        return drawn if self._originals is None else self._originals.normalized(drawn)

    def _prioritize(self, indices: NDArray[np.int64], td_errors: NDArray[np.float32]) -> None:
        """Give the transitions at `indices` priorities by their TD errors, `[B]` each."""
        if isinstance(self.replay_buffer, PrioritizedReplayBuffer):
            with self.timing.add_time("sample"):
                self.replay_buffer.update_priorities(indices, td_errors + PRIORITY_EPSILON)

    def train(self, gradient_steps: int, batch_size: int = 64) -> None:
        """`gradient_steps` updates with batches of `batch_size` from the replay buffer, without a
        step of the environments."""
        require_integers(0, gradient_steps=gradient_steps)
        require_integers(1, batch_size=batch_size)
        own, self.batch_size = self.batch_size, batch_size
        if self._end == 0:  # before any `learn`, compiling must pay within these updates
            self._choose_for(gradient_steps)
        try:
            with torch_settings(*self._torch_settings()), self._torch_held():
                self._update(gradient_steps)
            self._record_figures()
        finally:
            self.batch_size = own

    def _torch_held(self) -> AbstractContextManager[None]:
        """In this block torch leaves the cores to updates in Rust, if that is where they run."""
        held: AbstractContextManager[None] = (
            self._native.torch_held() if self._native else nullcontext()
        )
        return held

    def _update(self, updates: int) -> None:
        if self._learning_rate.moves:
            adams = self.actor_optimizer, self.critic_optimizer, self.alpha_optimizer
            self._follow_schedules(*filter(None, adams))
        with self.timing.add_time("gradient_update"):
            for number in range(updates):
                self._moves_targets = number % self.target_update_interval == 0
                self.train_once()
        self._n_updates += updates

    def _record_figures(self) -> None:
        """Record the means of the latest episodes, and the figures of the latest update."""
        super()._record_figures()
        self.logger.record("time/episodes", len(self.episode_returns), exclude="tensorboard")
        self._record_update()
        self.logger.record(self._success_rate())

    def _record_update(self) -> None:
        if self._n_updates:
            figures = {name: float(value) for name, value in self._figures.items()}
            self.logger.record({**figures, "train/n_updates": self._n_updates})

    def save_replay_buffer(self, path: str | Path | IO[bytes]) -> None:
        """Write the transitions of the replay buffer, the oldest first, as `save` writes. A path
        without an ending gets `.pkl`. ValueError for a prioritised buffer."""
        if isinstance(self.replay_buffer, PrioritizedReplayBuffer):
            raise ValueError(
                "prioritized: a buffer with priorities is not written; save_replay_buffer takes "
                "one of prioritized=False"
            )
        columns = self.replay_buffer.transitions()
        write({name: torch.from_numpy(column) for name, column in columns.items()}, path, ".pkl")

    def load_replay_buffer(
        self, path: str | Path | IO[bytes], truncate_last_traj: bool = True
    ) -> None:
        """Replace the replay buffer's transitions by those that `save_replay_buffer` wrote; of more
        than `buffer_size`, the latest are taken. ValueError if observations or actions have another
        size. `truncate_last_traj` is for hindsight replay, which this library does not have."""
        held = read(path, ".pkl", "save_replay_buffer")
        columns = {name: column.numpy() for name, column in held.items()}
        buffer = self._new_buffer()
        fill(buffer, columns)
        self.replay_buffer = buffer

    def set_random_seed(self, seed: int | None = None) -> None:
        """As every trainer's. ValueError for a prioritised buffer that is not empty, whose draws
        cannot begin anew."""
        if seed is None:
            return
        held = self.replay_buffer
        if isinstance(held, PrioritizedReplayBuffer) and held.size():
            raise ValueError(
                "prioritized: the draws of a buffer with priorities begin anew only while it is "
                "empty; call set_random_seed before learn"
            )
        super().set_random_seed(seed)
        self._explore_rng = np.random.default_rng(self._new_seed())
        self._noise_stream = None  # it is made anew when noise is drawn next
        buffer = self._new_buffer()
        if isinstance(held, ReplayBuffer):
            fill(buffer, held.transitions())
        self.replay_buffer = buffer

    def _streams(self) -> dict[str, Tensor]:
        state = self._explore_rng.bit_generator.state["state"]  # two numbers of 128 bits
        explore = b"".join(state[name].to_bytes(16, "little") for name in ("state", "inc"))
        return super()._streams() | {"explore": torch.tensor(list(explore))}

    def _set_streams(self, streams: Mapping[str, Tensor]) -> None:
        super()._set_streams(streams)
        if "explore" in streams:  # not in files of earlier versions
            explore = bytes(streams["explore"].tolist())
            state, inc = (int.from_bytes(of, "little") for of in (explore[:16], explore[16:]))
            generator = self._explore_rng.bit_generator
            generator.state = {**generator.state, "state": {"state": state, "inc": inc}}

    def _step_and_update(self) -> None:
        timing, freq = self.timing, self.train_freq
        by_steps = freq.unit == "step"
        obs = self._first_obs()
        self._noise_stream = None
        replaced = type(self).train is not OffPolicy.train  # it expects to be called
        steps = ended = 0  # since the last updates
        shown = len(self.episode_returns)  # at the time when figures were last shown
        while steps or not self._finished():  # steps that were taken are learnt from
            if steps == 0:
                self._callback.on_rollout_start()
            if self._moved:  # a callback has moved the environments
                obs = self._first_obs()
            self._explore_anew(steps)
            with timing.add_time("policy_forward"):
                actions = self._noisy_actions(obs) if self._noises else self._chosen_actions(obs)
            with timing.add_time("env_step"):
                env_actions = self._env_actions(actions)
                raw, rewards, terminations, truncations, infos = self.vector_env.step(env_actions)
            with timing.add_time("store"):
                new_obs = flatten_obs(raw, self.observation_space)
                dones = terminations | truncations
                # The target of an episode's last step uses its final observation, not the first one
                # of the next episode; it bootstraps unless the task itself ended.
                next_obs, rows, last = new_obs.copy(), np.flatnonzero(dones), None
                if len(rows):
                    next_obs[rows] = last = final_obs(infos, rows, self.observation_space)
                self._finite.step(new_obs, rewards, dones, rows, last)
                store = self.replay_buffer.push_batch
                if self._next_step is not None:  # a callback may step the environments
                    store = partial(self._store_taken, ~self._next_step.idle)
                # A step that counts as terminated is not bootstrapped.
                ended_here = terminations if self._bootstraps_time_limits else dones
                before, after = obs, next_obs
                gain = told = rewards.astype(np.float32)
                if self._originals is not None:
                    before, after, original = self._originals.step(rows, last)
                    gain = original.astype(np.float32)
                if not self._each_step:
                    store(before, after, actions, gain, ended_here, truncations)
                self._count_step(rewards, dones, infos)
            for row in rows if self._noises else ():
                self._noises[row].reset()
            if self._each_step:  # a callback may step the environments, which overwrite theirs
                ended_here, truncations = ended_here.copy(), truncations.copy()
            step = (actions, env_actions, raw, told, terminations, truncations, infos)
            go_on = self._tell_step(new_obs, *step)
            if self._each_step:
                # As in Stable-Baselines3, what a callback adds to the rewards is learnt, unless a
                # `VecNormalize` has kept the original ones. That library does not store the step at
                # which a callback stops.
                with timing.add_time("store"):
                    store(before, after, actions, gain, ended_here, truncations)
            if not go_on:
                break
            obs = new_obs
            steps, ended = steps + 1, ended + len(rows)
            if (steps if by_steps else ended) < freq.frequency:
                continue
            self._callback.on_rollout_end()
            if self._has_enough():
                updates = self.gradient_steps
                if updates == -1:
                    updates = steps * self.n_envs
                if replaced:
                    self.train(updates, self.batch_size)
                else:
                    self._update(updates)
            steps = ended = 0
            self.logger.advance(self.num_timesteps)
            every = self._log_interval
            if every and shown // every < len(self.episode_returns) // every:
                shown = len(self.episode_returns)
                self._log({})
        self._record_update()  # also where no episode has ended

    def _first_obs(self) -> NDArray[Any]:
        """The present observations, where collecting begins or begins anew."""
        obs = self._current_obs()
        if self._originals is not None:
            self._originals.begin()
        for noise in self._noises:
            noise.reset()
        return obs

    def _has_enough(self) -> bool:
        """Whether updates may begin, and the buffer has transitions for them: after `load` it has
        none."""
        if self.num_timesteps <= self.learning_starts:
            return False
        stored = len(self.replay_buffer)
        return stored > self.learning_starts or stored == self.replay_buffer.capacity

    def _store_taken(self, taken: NDArray[np.bool_], *step: NDArray[Any]) -> None:
        """Store the step of the environments that took one."""
        if taken.any():
            self.replay_buffer.push_batch(*(part[taken] for part in step))

    def _noisy_actions(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        """`_chosen_actions` with `action_noise`."""
        actions = self._chosen_actions(obs)
        if self._noise_stream is None:
            self._noise_stream = LentStream(self._new_seed())
        with self._noise_stream.lent():
            noise = np.array([one() for one in self._noises], np.float32).reshape(actions.shape)
        noisy: NDArray[np.float32] = np.clip(actions + noise, -1, 1)
        return noisy

    def _chosen_actions(self, obs: NDArray[Any]) -> NDArray[np.float32]:
        """Actions `[n_envs, act_dim]` in [-1, 1]: uniform at first, then the policy's."""
        if self.num_timesteps < self.learning_starts and not self.use_sde_at_warmup:
            return self._explore_rng.uniform(-1, 1, (self.n_envs, self.act_dim)).astype(np.float32)
        if self._native is not None:
            drawn: NDArray[np.float32] = self._native.act(self, obs)
            return drawn
        self.policy.train(False)
        with torch.no_grad():
            actions, _ = self.policy.get_action_and_logprob(
                self._tensor(obs), generator=self._act_generator
            )
        return actions.cpu().numpy()
