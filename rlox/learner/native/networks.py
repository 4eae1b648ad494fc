"""Recognises unchanged policies, critics and optimisers of this library, so that another form may
replace them (in Rust, compiled, or joined), and gives their parameters in Rust's order."""

import warnings
from collections.abc import Callable, Sequence
from itertools import chain
from operator import attrgetter, is_not
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from rlox.learner.featured import FeaturesActor, FeaturesActorCritic, FeaturesCritic, Seeing
from rlox.learner.features import CombinedExtractor, FlattenExtractor, Shown
from rlox.learner.heads import Bernoullis, Categoricals, Gaussian
from rlox.learner.policies import (
    CategoricalActorCritic,
    GaussianActorCritic,
    SquashedGaussianActor,
    TwinCritic,
)

if TYPE_CHECKING:
    from rlox.learner.algorithm import Algorithm
    from rlox.learner.ppo import PPO

ACTIVATIONS: dict[type[nn.Module], str] = {nn.Tanh: "tanh", nn.ReLU: "relu"}
# A program that replaces one of these methods on a policy, or on a module in it, expects its own to
# be called.
METHODS = {
    *("forward", "from_noise", "get_action_and_logprob", "get_value", "evaluate_actions"),
    *("draw", "draw_actions", "log_prob", "entropy", "_log_probs"),
    *("_features", "_seen", "_shown", "_said", "_value"),
}
# Modules without parameters between observations and layers, whose output is computed only once.
FIXED = (Shown, FlattenExtractor, CombinedExtractor, nn.ModuleDict)
# How many times as fast Rust is as torch, from both races of docs/rivals.md (AMD EPYC, 2 cores,
# 2026-11-23).
COST = "in torch alone, PPO took 8 times as long on CartPole-v1 and SAC 2.5 times on Pendulum-v1"
# The largest size of a rollout's observations in numbers, after one-hot encoding: 512 MiB.
MOST_NUMBERS = 2**27
BACKWARD_HOOKS = attrgetter("_backward_hooks")
GRADIENT_HOOKS = attrgetter("_post_accumulate_grad_hooks")
REQUIRES_GRAD = attrgetter("requires_grad")
HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Unfit(Exception):
    """The reason why a module or an optimiser is left to torch."""


Native = TypeVar("Native")


def native_if_fit(make: Callable[[], Native], *, wanted: bool) -> tuple[Native | None, str]:
    """The result of `make`, if it is wanted and does not raise `Unfit`; and the path taken:
    "native", or "torch", with the reason if the native path was wanted."""
    if not wanted:
        return None, "torch"
    try:
        return make(), "native"
    except Unfit as reason:
        return None, f"torch: {reason}"


def warn_of_torch(optimization: str, what: str, path: str) -> None:
    """Warn that torch does what was meant to run in Rust, if `path` gives a reason. Such a run
    takes several times as long, which the user should know."""
    _, _, reason = path.partition(": ")
    if reason:
        message = f"{optimization}: {what} in torch, not in Rust: {reason}; {COST}"
        warnings.warn(message, stacklevel=3)


class Network(NamedTuple):
    """A multilayer perceptron: widths (input, hidden…, output), "tanh" or "relu", parameters."""

    widths: list[int]
    activation: str
    params: list[Tensor]

    def packed(self) -> tuple[list[int], str, NDArray[np.float32]]:
        """The network in Rust's form, with its parameters as one vector (see `vector`)."""
        return self.widths, self.activation, vector(self.params)


def actor_network(policy: nn.Module) -> tuple[Network, Seeing | None]:
    """The actor as one network: its two heads are one layer, means before log deviations. Also the
    module that turns rows of observations into its input; None if rows are the input."""
    _require_as_made("the policy", policy)
    seeing = policy if type(policy) is FeaturesActor else None
    if seeing is not None:
        _require_fixed(seeing, [seeing.features_extractor])
        policy = seeing.net
    if type(policy) is not SquashedGaussianActor:
        raise Unfit(f"the policy is a {type(policy).__name__}")
    _require_as_made("the policy", policy)
    layers = _leaves(policy.trunk)
    mean, log_std = _linear(policy.mean), _linear(policy.log_std)
    if layers and isinstance(layers[-1], nn.Linear):
        raise Unfit("the actor's trunk does not end with an activation")
    if (mean.in_features, mean.out_features) != (log_std.in_features, log_std.out_features):
        raise Unfit("the actor's heads differ in width")
    widths, activation, params = _network("the actor's trunk", [*layers, mean])
    params = [*params[:-2], mean.weight, log_std.weight, mean.bias, log_std.bias]
    return Network([*widths[:-1], 2 * widths[-1]], activation, params), seeing


def critic_networks(critic: nn.Module) -> tuple[Network, Network, Seeing | None]:
    """The critics, and the module that turns rows of observations into their input; None if rows
    are the input."""
    _require_as_made("the critic", critic)
    seeing = critic if type(critic) is FeaturesCritic else None
    if seeing is not None:
        _require_fixed(seeing, [seeing.features_extractor])
        critic = seeing.twins
    if type(critic) is not TwinCritic:
        raise Unfit(f"the critic is a {type(critic).__name__}")
    _require_as_made("the critic", critic)
    q1, q2 = (_network("a critic", _leaves(q)) for q in (critic.q1, critic.q2))
    return q1, q2, seeing


class ActorCriticNetworks(NamedTuple):
    """A policy and its value function. `log_std` is a Gaussian's. `nvec` are the possibilities of
    each of several choices. With `bits` each output is the logit of a bit. `see` turns rows of
    observations into the networks' input; None: rows are the input.
    """

    actor: Network
    critic: Network
    log_std: list[Tensor]
    nvec: list[int] | None = None
    see: Callable[[Tensor], Tensor] | None = None
    bits: bool = False


def actor_critic_networks(policy: nn.Module) -> ActorCriticNetworks:
    """The networks of a policy that Rust can run; `Unfit` for another."""
    _require_as_made("the policy", policy)
    if type(policy) is FeaturesActorCritic:
        return _above_features(policy)
    if type(policy) not in (CategoricalActorCritic, GaussianActorCritic):
        raise Unfit(f"the policy is a {type(policy).__name__}")
    assert isinstance(policy, CategoricalActorCritic | GaussianActorCritic)
    actor = _network("the actor", _leaves(policy.actor))
    critic = _network("the critic", _leaves(policy.critic))
    log_std: list[Tensor] = [policy.log_std] if isinstance(policy, GaussianActorCritic) else []
    return ActorCriticNetworks(actor, critic, log_std)


def _above_features(policy: FeaturesActorCritic) -> ActorCriticNetworks:
    _require_fixed(policy, [policy.features_extractor, policy.vf_features_extractor])
    head = policy.head
    _require_as_made("the policy's head", head)
    if type(head) not in (Categoricals, Gaussian, Bernoullis):
        raise Unfit(f"actions are drawn by {type(head).__name__}")
    layers = policy.mlp_extractor
    _require_as_made("the layers", layers)
    actor = _network("the actor", [*_leaves(layers.policy_net), policy.action_net])
    critic = _network("the critic", [*_leaves(layers.value_net), policy.value_net])
    log_std: list[Tensor] = [head.log_std] if isinstance(head, Gaussian) else []
    nvec = head.numbers if isinstance(head, Categoricals) and not head.single else None
    bits = isinstance(head, Bernoullis)
    see = None if policy.shown.leaves_rows else policy._seen
    return ActorCriticNetworks(actor, critic, log_std, nvec, see, bits)


def require_room(model: "PPO", networks: ActorCriticNetworks) -> None:
    """Raise `Unfit` if the networks' input for a rollout, which is longer than the observations,
    would need too much memory."""
    width = networks.actor.widths[0]
    numbers = model.n_steps * model._all_envs * width
    if width > model.obs_dim and numbers > MOST_NUMBERS:
        raise Unfit(f"the networks' input for a rollout would be {numbers:,} numbers")


def _require_fixed(seeing: Seeing, extractors: list[nn.Module | None]) -> None:
    """Raise `Unfit` if there are parameters between observations and layers."""
    for part in filter(None, [seeing.shown, *extractors]):
        for module in part.modules():
            if type(module) not in FIXED:
                raise Unfit(f"a {type(module).__name__} stands before the networks")
            _require_as_made("a features extractor", module)


def _network(name: str, layers: list[nn.Module]) -> Network:
    linears = [_linear(layer) for layer in layers[::2]]
    kinds = {type(layer) for layer in layers[1::2]}
    if len(layers) % 2 == 0 or len(kinds) > 1 or not kinds <= ACTIVATIONS.keys():
        raise Unfit(f"{name} is no chain of Linear layers with Tanh, or ReLU, between them")
    widths = [linears[0].in_features, *(layer.out_features for layer in linears)]
    params = [param for layer in linears for param in (layer.weight, layer.bias)]
    activation = ACTIVATIONS[kinds.pop()] if kinds else "relu"
    return Network(widths, activation, params)


def _leaves(module: nn.Module) -> list[nn.Module]:
    """The layers of nested `Sequential`s."""
    _require_as_made("a layer", module)
    if type(module) is not nn.Sequential:
        return [module]
    return [leaf for child in module for leaf in _leaves(child)]


def _linear(module: nn.Module) -> nn.Linear:
    if type(module) is not nn.Linear or module.bias is None:
        raise Unfit(f"there is a {type(module).__name__} where a Linear with bias is expected")
    _require_as_made("a layer", module)
    return module


def _require_as_made(name: str, module: nn.Module) -> None:
    if METHODS & vars(module).keys():
        raise Unfit(f"a method of {name} is replaced")
    if any(getattr(module, hooks) for hooks in HOOKS):
        raise Unfit(f"{name} has a hook")


def vector(params: list[Tensor]) -> NDArray[np.float32]:
    """The parameters as one vector: a view if they lie side by side, as `flat.Flat` puts them,
    otherwise a copy."""
    if not params:
        return np.empty(0, np.float32)
    first, end = params[0].detach(), params[0].data_ptr()
    storage = first.untyped_storage().data_ptr()
    for param in params:
        apart = param.data_ptr() != end or param.untyped_storage().data_ptr() != storage
        if apart or not param.is_contiguous():
            return torch.cat([param.detach().flatten() for param in params]).numpy()
        end += param.nbytes
    return first.as_strided(((end - first.data_ptr()) // first.itemsize,), (1,)).numpy()


def network_input(
    model: "Algorithm", see: Callable[[Tensor], Tensor] | None, obs: NDArray[Any]
) -> NDArray[np.float32]:
    """The networks' input for rows of observations, `[n, inputs]`; with None for `see` these are
    the rows, as floats."""
    if see is None and obs.dtype == np.float32:
        return obs
    rows = model._tensor(obs)
    with torch.no_grad():
        seen = rows if see is None else see(rows)
    found: NDArray[np.float32] = seen.contiguous().numpy()
    return found


def require_plain_parameters(params: list[Tensor]) -> None:
    """Raise `Unfit` unless they are float32 on the CPU, and none is listed twice."""
    if any(param.dtype != torch.float32 or param.device.type != "cpu" for param in params):
        raise Unfit("a parameter is not float32 on the CPU")
    if len({id(param) for param in params}) < len(params):
        raise Unfit("networks share parameters")


def require_plain_adam(optimizer: Any, params: list[Tensor]) -> None:
    """Raise `Unfit` unless `optimizer` is Adam without extras, for exactly these parameters."""
    if not all(param.requires_grad for param in params):
        raise Unfit("a parameter is frozen")
    require_adam_without_extras(optimizer)
    if {id(param) for param in optimizer.param_groups[0]["params"]} != {id(p) for p in params}:
        raise Unfit("the optimizer has other parameters than the network")


def require_adam_without_extras(optimizer: Any) -> None:
    """Raise `Unfit` unless a step of `optimizer` is that of the paper, the same for all
    parameters."""
    groups: list[dict[str, Any]] = getattr(optimizer, "param_groups", [])
    if type(optimizer) is not torch.optim.Adam or len(groups) != 1:
        raise Unfit(f"the optimizer is a {type(optimizer).__name__}, or has several groups")
    extras = ("weight_decay", "amsgrad", "maximize", "differentiable", "decoupled_weight_decay")
    if any(groups[0].get(extra) for extra in extras) or isinstance(groups[0]["lr"], Tensor):
        raise Unfit("Adam runs with weight decay, amsgrad or the like")
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        raise Unfit("Adam has a hook")


class Watch:
    """Notices changes of modules and optimisers that were recognised before. A check is made at
    every update, so it loops over attributes, parts and parameters in C."""

    def __init__(
        self, modules: Sequence[nn.Module], optimizers: Sequence[torch.optim.Optimizer]
    ) -> None:
        parts = [part for module in modules for part in module.modules()]
        self._hooks = [getattr(part, hooks) for part in parts for hooks in HOOKS]
        self._attributes = [vars(part) for part in parts]
        self._names: list[list[str]] = []  # of the attributes, when they were last looked through
        self._held: list[dict[str, Any]] = [
            held for part in parts for held in (part._modules, part._parameters)
        ]
        self._seen = self._parts()
        self._params = [param for module in modules for param in module.parameters()]
        self._learning = [param.requires_grad for param in self._params]
        self._optimizers = [(of, [*of.param_groups[0]["params"]]) for of in optimizers]

    def _parts(self) -> list[Any]:
        return [*chain.from_iterable(map(dict.values, self._held))]

    def require_undisturbed(self) -> None:
        """Raise `Unfit` if a module or optimiser has changed, or has hooks, which Rust would not
        call."""
        if any(self._hooks):
            raise Unfit("a module has a hook")
        names = [*map(list, self._attributes)]
        if names != self._names:
            if not METHODS.isdisjoint(chain.from_iterable(names)):
                raise Unfit("a method of a module is replaced")
            self._names = names
        parts = self._parts()
        if len(parts) != len(self._seen):
            raise Unfit("a module has another number of parts")
        if any(map(is_not, parts, self._seen)):
            raise Unfit("a part of a module is replaced")
        if any(map(BACKWARD_HOOKS, self._params)) or any(map(GRADIENT_HOOKS, self._params)):
            raise Unfit("a parameter has a hook")
        if [*map(REQUIRES_GRAD, self._params)] != self._learning:
            raise Unfit("a parameter is frozen, or no longer")
        for optimizer, params in self._optimizers:
            require_adam_without_extras(optimizer)
            found = optimizer.param_groups[0]["params"]
            if len(found) != len(params) or any(map(is_not, found, params)):
                raise Unfit("the optimizer has other parameters than the network")
