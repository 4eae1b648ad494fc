"""PPO's rollouts in one call into Rust: the networks, sampling and advantages run there.

The built-in environments are stepped in Rust, too (R4, with R1, R7 and R8 taken to their end), with
the interpreter's lock released. Where environments run in Python, or a callback is called at each
step, Rust calls Python once for each step (R19). Both are for the policies of
`networks.actor_critic_networks`. All other rollouts are collected in torch. Without R19, Rust may
still draw their actions (R17). `PPO.rollout_path` says which path is taken.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from rlox import _core
from rlox.learner.collectors import Rollout, booked
from rlox.learner.env_steps import EnvSteps
from rlox.learner.environments import rust_core
from rlox.learner.native.networks import (
    ActorCriticNetworks,
    Unfit,
    Watch,
    actor_critic_networks,
    network_input,
    require_plain_parameters,
    require_room,
    vector,
    warn_of_torch,
)

if TYPE_CHECKING:
    from rlox.learner.ppo import PPO


class Parts(NamedTuple):
    """What a rollout in Rust needs: the policy, and the environments in Rust. If there are none,
    Python takes the steps, because `why`."""

    policy: ActorCriticNetworks
    core: _core.VecEnv | None
    why: str


class NativeRollouts:
    """Collects for one trainer, with a stream of random numbers of its own."""

    def __init__(self, model: "PPO") -> None:
        self.model = model
        self.begin_stream()
        self._said = ""
        self._known: tuple[nn.Module, ActorCriticNetworks, Watch] | None = None

    def begin_stream(self) -> None:
        """Begin the stream of random numbers anew."""
        self.seed = self.model._new_seed() + self.model._rank
        self.collected = 0

    def path(self) -> str:
        """How the trainer as it is now collects: see `PPO.rollout_path`."""
        try:
            parts = self._parts()
        except Unfit as reason:
            return f"torch: {reason}"
        return f"native, with steps in Python: {parts.why}" if parts.why else "native"

    def say(self, path: str) -> None:
        """Warn that torch collects, once for each reason."""
        if path.startswith("torch") and path != self._said and self.model._rank == 0:
            self._said = path
            warn_of_torch("R4", "rollouts are collected", path)

    def _parts(self) -> Parts:
        """Raises `Unfit` if the policy or the steps cannot do without torch."""
        model = self.model
        if model.collector != "sync":
            raise Unfit("another thread collects")
        core, why = self._environments()
        if why and "R19" not in model.optimizations:
            raise Unfit(why)
        policy = self._networks()
        require_plain_parameters([*policy.actor.params, *policy.critic.params, *policy.log_std])
        require_room(model, policy)
        return Parts(policy, core, why)

    def _networks(self) -> ActorCriticNetworks:
        """The policy's networks. They are recognised anew only where the policy has changed, since
        that takes a tenth of the time of a short rollout."""
        policy = self.model.policy
        if self._known is not None and self._known[0] is policy:
            _, networks, watch = self._known
            with suppress(Unfit):
                watch.require_undisturbed()
                return networks
        networks = actor_critic_networks(policy)
        self._known = policy, networks, Watch([policy], [])
        return networks

    def _environments(self) -> tuple[_core.VecEnv | None, str]:
        """The environments in Rust if Rust steps them, otherwise why Python does."""
        if "R4" not in self.model.optimizations:
            return None, "R4 is not among the optimisations"
        if self.model._each_step:
            names = ", ".join(self.model._each_step)
            return None, f"{names} has an _on_step, which is called at each step"
        core = rust_core(self.model.vector_env)
        return core, "" if core is not None else "the environments run in Python"

    def collect(self) -> Rollout | None:
        """The next rollout, which continues where the last one ended; None if a callback stops.

        Raises `Unfit` before any step.
        """
        model = self.model
        parts = self._parts()
        model._current_obs()  # new episodes, if none are under way
        with model.timing.add_time("native_rollout"):
            model.timing.flow("rollout", model._rollout_number)
            if parts.core is None:
                return self._around_steps(parts)
            running = (model._running_return, model._running_length)
            columns = _core.collect_rollout(parts.core, running=running, **self._how(parts))
        with model.timing.add_time("store"):
            model._last_obs = columns["obs"][-1].copy()
            go_on = self._count(
                columns["episode_steps"],
                columns["episode_rewards"].tolist(),
                columns["episode_lengths"].tolist(),
            )
            return self._booked(columns, []) if go_on else None

    def _around_steps(self, parts: Parts) -> Rollout | None:
        """A rollout whose steps Python takes."""
        model, policy, steps = self.model, parts.policy, EnvSteps(self.model)
        acted_on = [model._current_obs()]

        def step(actions: NDArray[Any]) -> tuple[Any, ...] | None:
            stepped = steps.take(actions, model._env_actions(actions))
            if stepped is None:
                return None
            obs, rewards, dones, cut_short = stepped
            if policy.see is not None:
                acted_on.append(obs)
            if cut_short is not None:
                cut_short = cut_short[0], network_input(model, policy.see, cut_short[1])
            rewards = np.ascontiguousarray(rewards, np.float64)
            return network_input(model, policy.see, obs), rewards, dones, cut_short

        obs, how = network_input(model, policy.see, acted_on[0]), self._how(parts)
        columns = _core.collect_python_rollout(step, obs, **how, nvec=policy.nvec, bits=policy.bits)
        if columns is None:
            return None
        if policy.see is not None:  # a rollout has what was given to `see`, as torch's has
            columns["obs"] = model._tensor(np.stack(acted_on)).numpy()
        return self._booked(columns, steps.idle)

    def _how(self, parts: Parts) -> dict[str, Any]:
        """The arguments that both functions of Rust take, with the next stream."""
        self.collected += 1
        return {
            "actor": parts.policy.actor.packed(),
            "critic": parts.policy.critic.packed(),
            "log_std": vector(parts.policy.log_std),
            "n_steps": self.model.n_steps,
            "gamma": self.model.gamma,
            "gae_lambda": self.model.gae_lambda,
            "stream": (self.seed, self.collected - 1),
        }

    def _booked(self, columns: "_core._RolloutColumns", idle: list[NDArray[np.bool_]]) -> Rollout:
        arrays = (
            columns["obs"][:-1],
            columns["actions"],
            columns["log_probs"],
            columns["advantages"],
            columns["returns"],
        )
        rollout = Rollout(*map(torch.from_numpy, arrays))
        return booked(self.model, rollout, columns["rewards"], columns["dones"], idle)

    def _count(self, steps: NDArray[np.int64], returns: list[float], lengths: list[int]) -> bool:
        """Count the rollout's steps and the episodes that ended in it; False if a callback stops.

        A callback's `on_step` is called for each step when the rollout is complete. The trainer's
        counters are then those of the step, but the environments are at the rollout's end.
        """
        model = self.model
        if not model._callback.asks_for_steps():
            model._callback.count_calls(model.n_steps)
            model.num_timesteps += model.n_steps * model._all_envs
            model.episode_returns += returns
            model.episode_lengths += lengths
            return True
        ends = np.searchsorted(steps, np.arange(model.n_steps), side="right")
        start = 0
        for end in ends.tolist():
            model.num_timesteps += model._all_envs
            model.episode_returns += returns[start:end]
            model.episode_lengths += lengths[start:end]
            start = end
            if not model._callback.on_step():
                model._last_obs = None  # the environments are ahead of what was counted
                return False
        return True
