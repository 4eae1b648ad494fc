"""Saves a trainer to a file, and loads it from one."""

import sys
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from torch import Tensor

from rlox.learner.arguments import plain, require_device, require_lost
from rlox.learner.classes import decoded
from rlox.learner.distributed import Workers
from rlox.learner.environments import NoEnv
from rlox.learner.names import in_our_order
from rlox.learner.schedules import Scheduled
from rlox.learner.spaces import as_saved, from_saved, require_same_space

if TYPE_CHECKING:
    from gymnasium import spaces

    from rlox.learner.policies import StochasticPolicy


def write(saved: Any, path: str | Path | IO[bytes], ending: str) -> None:
    """Write `saved`. A path is replaced in one step by a file that was completed beside it; folders
    are made. A path without an ending gets `ending`."""
    if not isinstance(path, str | Path):
        torch.save(saved, path)
        return
    path = Path(path)
    path = path if path.suffix else path.with_name(f"{path.name}{ending}")
    path.parent.mkdir(parents=True, exist_ok=True)
    part = Path(f"{path}.part")
    torch.save(saved, part)
    part.replace(path)


def read(
    path: str | Path | IO[bytes],
    ending: str,
    writer: str,
    device: str | torch.device = "cpu",
    advice: str = "",
) -> Any:
    """What `write` wrote, its tensors on `device`. No code is run from the file. ValueError, with
    the name of its `writer` and an `advice`, for a file that cannot be read."""
    if isinstance(path, str | Path) and not Path(path).suffix and not Path(path).exists():
        path = f"{path}{ending}"
    try:
        return torch.load(path, map_location=device, weights_only=True)
    except OSError:
        raise
    except Exception as error:  # torch.load has no error of its own for foreign files
        raise ValueError(
            f"{path}: {writer} has not written it, or not to its end.{advice} ({error})"
        ) from error


def _as_made(part: Any) -> Any:
    """A module without the wrapper of `torch.compile`, which changes the names of weights."""
    return getattr(part, "_orig_mod", part)


def _load(part: Any, state: Mapping[str, Any], exact_match: bool) -> None:
    if isinstance(part, torch.optim.Optimizer):
        part.load_state_dict(dict(state))
    else:
        _as_made(part).load_state_dict(state, strict=exact_match)


def _require_parts(given: Set[str], known: Set[str], exact_match: bool) -> None:
    """ValueError for a part that is not known, and with `exact_match` for one that is not given."""
    if unknown := sorted(given - known):
        raise ValueError(f"parameters hold {', '.join(unknown)}; there are {sorted(known)}")
    if exact_match and (missing := sorted(known - given)):
        raise ValueError(f"parameters lack {', '.join(missing)}, which exact_match asks for")


class Saved:
    """The part of a trainer that saves and loads."""

    policy: "StochasticPolicy"
    device: torch.device
    env_id: str | None
    num_timesteps: int
    episode_returns: list[float]
    episode_lengths: list[int]
    observation_space: "spaces.Space[Any]"
    action_space: "spaces.Space[Any]"
    _arguments: dict[str, Any]
    _lost: list[str]  # arguments that a file cannot hold
    _derived: dict[str, Any]  # attributes as they were made of arguments that look otherwise
    _n_updates: int
    _seeds: np.random.SeedSequence
    _env_seed: int | None
    _workers: Workers | None
    _rank: Any
    _all_envs: Any
    _learning_rate: Scheduled
    _state: tuple[str, ...]  # names of attributes with a state_dict, which `save` writes
    _state_of: ClassVar[Mapping[str, str]] = {}  # of these, those that an argument replaces
    _generators: tuple[str, ...]
    _last_obs: Any
    _next_obs: Any
    _go_on_from: Any
    _their_parts: ClassVar[Mapping[str, str]]  # our names of parts by their names

    def _schedules(self) -> list[Scheduled]:
        return [one for one in vars(self).values() if isinstance(one, Scheduled)]

    def get_parameters(self) -> dict[str, dict[str, Any]]:
        """Weights and optimisers, named as in Stable-Baselines3."""
        found: dict[str, dict[str, Any]] = {}
        for name, own in self._their_parts.items():
            part = getattr(self, own, None)
            if part is None:
                continue
            top, _, within = name.partition("/")
            state = _as_made(part).state_dict()
            if within:
                state = {f"{within}.{key}": value for key, value in state.items()}
            found.setdefault(top, {}).update(state)
        return found

    def set_parameters(
        self,
        load_path_or_dict: str | Path | Mapping[str, Mapping[str, Any]],
        exact_match: bool = True,
        device: str | torch.device = "auto",
    ) -> None:
        """Load what `get_parameters` returned, or what `save` wrote. ValueError for an unknown
        part, and with `exact_match` also for a missing one."""
        if isinstance(load_path_or_dict, str | Path):
            saved = self._read(load_path_or_dict, self.device)["state"]
            _require_parts(saved.keys(), {*self._state}, exact_match)
            for name, state in saved.items():
                _load(getattr(self, name), state, exact_match)
            return
        given = {name: dict(state) for name, state in load_path_or_dict.items()}
        known = {name.partition("/")[0] for name in self.get_parameters()}
        _require_parts(given.keys(), known, exact_match)
        for name, own in self._their_parts.items():
            top, _, within = name.partition("/")
            part = getattr(self, own, None)
            if part is None or top not in given:
                continue
            state = given[top]
            if within:
                begin = f"{within}."
                state = {k.removeprefix(begin): v for k, v in state.items() if k.startswith(begin)}
            if isinstance(part, torch.optim.Optimizer):
                weights = given.get("policy", {})
                state = in_our_order(state, part, _as_made(self.policy), weights)
            _load(part, state, exact_match)

    def save(
        self,
        path: str | Path | IO[bytes],
        exclude: Iterable[str] | None = None,
        include: Iterable[str] | None = None,
    ) -> None:
        """Write weights, optimisers, arguments, and the state of training: steps, episodes and
        random streams. After `load`, `learn(…, reset_num_timesteps=False)` does what it would do
        here with new episodes, on the same kind of device; of episodes under way only the latest
        observations are saved. A replay buffer is not saved, but SAC's `save_replay_buffer` writes
        one; without it SAC fills a new one before it goes on learning.

        Arguments named in `exclude` are not saved. For those named in `include`, the trainer's
        attribute of that name is saved. A path without an ending gets `.zip`; folders are made. An
        existing file is replaced in one step, never left half-written. If several processes train
        one model, all must call this, and the first one writes.
        """
        streams = self._streams()
        # A file cannot contain functions.
        schedules = {one.name: one.function for one in self._schedules()}
        moving = {name for name, function in schedules.items() if function is not None}
        first = {one.name: one.first for one in self._schedules()}
        derived = {name for name, made in self._derived.items() if getattr(self, name) == made}
        present = self._arguments.keys() - derived
        kind: Any = type(self)
        settable = {name for name in present if getattr(getattr(kind, name, None), "fset", None)}
        held = settable | vars(self).keys() & present
        set_since = plain({name: getattr(self, name) for name in held})
        lost_since = settable - set_since.keys()
        arguments = {**self._arguments, **set_since, "n_envs": self._all_envs, **first}
        left_out = set(exclude or ())
        arguments = {name: one for name, one in arguments.items() if name not in left_out}
        known = [name for name in include or () if name in self._arguments and hasattr(self, name)]
        arguments |= plain({name: getattr(self, name) for name in known})
        obs = self._last_obs if self._next_obs is None else self._next_obs  # the present ones
        saved = {
            "algorithm": type(self).__name__,
            "env_id": self.env_id,
            "arguments": arguments,
            "lost": sorted({*self._lost} - schedules.keys() | moving | lost_since),
            "spaces": (as_saved(self.observation_space), as_saved(self.action_space)),
            "num_timesteps": self.num_timesteps,
            "n_updates": self._n_updates,
            "episodes": (self.episode_returns, self.episode_lengths),
            "last_obs": None if obs is None else torch.from_numpy(obs),
            "seeds": (self._seeds.entropy, self._seeds.n_children_spawned, self._env_seed),
            "streams": self._workers.gathered(streams) if self._workers else [streams],
            "state": {name: _as_made(getattr(self, name)).state_dict() for name in self._state},
        }
        if self._rank != 0:
            return
        write(saved, path, ".zip")

    @classmethod
    def load(
        cls,
        path: str | Path | IO[bytes],
        env: Any = None,
        device: str | torch.device = "cpu",
        custom_objects: Mapping[str, Any] | None = None,
        print_system_info: bool = False,
        force_reset: bool = True,
        **arguments: Any,
    ) -> Self:
        """The trainer that `save` wrote. No code is run from the file.

        Without `env`, a trainer of an environment object can act, and can learn after `set_env`.
        `arguments` and `custom_objects` replace those of the saved trainer. A file cannot hold
        functions and objects: ValueError where networks were made of such ones and they are not
        given again, a warning for schedules and noises. With `force_reset=False` the episodes that
        were under way in `env` when the trainer was saved continue, if it was trained there.
        ValueError for an environment with other spaces, since what was learnt is scaled to them.
        """
        device = require_device(device)
        saved = cls._read(path, device)
        # Programs for Stable-Baselines3 also name attributes here, which are ignored.
        lost: set[str] = {*saved.get("lost", ())}
        known = {
            k: v for k, v in (custom_objects or {}).items() if k in {*saved["arguments"], *lost}
        }
        arguments = {**known, **arguments}
        held = {name: one for name, one in saved["arguments"].items() if name not in arguments}
        held = {name: decoded(name, one) for name, one in held.items()}
        given = {**held, "device": device, **arguments}
        require_lost(lost - arguments.keys(), path)
        if env is None and saved["env_id"] is None:
            if "spaces" not in saved:
                raise ValueError("env is needed: the file, of an earlier version, has no spaces")
            env = NoEnv([from_saved(one) for one in saved["spaces"]], given["n_envs"] or 1)
        module = (saved["env_id"] or "").rpartition(":")[0]
        if env is None and module and module not in sys.modules:
            raise ValueError(
                f"{path}: its environment is {saved['env_id']!r}, and {module} is not imported, "
                "which would run its code; import it, or give env"
            )
        make: Any = cls
        model: Self = make(env=saved["env_id"] if env is None else env, **given)
        if "spaces" in saved:  # missing in files of earlier versions
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
            if isinstance(part, torch.optim.Optimizer) and "learning_rate" in {*arguments, *lost}:
                for group in part.param_groups:  # their learning rate came with the loaded state
                    group["lr"] = model._learning_rate.value
        model.num_timesteps = saved["num_timesteps"]
        model._n_updates = saved.get("n_updates", 0)
        model.episode_returns, model.episode_lengths = map(list, saved["episodes"])
        if "seed" not in arguments:
            model._take_up(saved["seeds"], saved["streams"])
        under_way = saved.get("last_obs")
        if env is not None and not force_reset and under_way is not None:
            model._go_on_from(under_way.cpu().numpy())
        return model

    @classmethod
    def _read(cls, path: str | Path | IO[bytes], device: torch.device) -> dict[str, Any]:
        """What `save` wrote. ValueError for what another algorithm or program has written."""
        writer = f"{cls.__name__}.save"
        advice = (
            " Of a model of Stable-Baselines3 the weights can be taken over: "
            "set_parameters(theirs.get_parameters())"
        )
        saved = read(path, ".zip", writer, device, advice)
        if not isinstance(saved, dict) or "algorithm" not in saved:
            raise ValueError(f"{path}: {writer} has not written it")
        if saved["algorithm"] != cls.__name__:
            raise ValueError(f"{path} holds a {saved['algorithm']}, not a {cls.__name__}")
        return saved

    def _take_up(
        self, seeds: tuple[int, int, int | None], streams: Sequence[Mapping[str, Tensor]]
    ) -> None:
        """Set the random streams to where the saved trainer's were."""
        entropy, spawned, env_seed = seeds
        self._seeds = np.random.SeedSequence(entropy, n_children_spawned=spawned)
        if self._env_seed is not None:
            self._env_seed = env_seed
        if self._rank < len(streams):  # further workers draw as new ones do
            self._set_streams(streams[self._rank])

    def _streams(self) -> dict[str, Tensor]:
        """The states of the random streams from which training draws."""
        return {name: getattr(self, name).get_state() for name in self._generators}

    def _set_streams(self, streams: Mapping[str, Tensor]) -> None:
        for name in self._generators:
            generator, state = getattr(self, name), streams[name].cpu()
            # The state of another kind of device has another size, and cannot be used here.
            if state.shape == generator.get_state().shape:
                generator.set_state(state)
