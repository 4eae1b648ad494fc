"""Gives parameters their names in Stable-Baselines3, in a module's `state_dict` and when one is
loaded. Names of earlier versions of this library are accepted too."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

# Beginnings of our names, and of theirs; `{last}` is the number of a Sequential's last layer.
Pairs = Mapping[str, str]
ACTOR_CRITIC: Pairs = {
    "actor.{last}.": "action_net.",
    "actor.": "mlp_extractor.policy_net.",
    "critic.{last}.": "value_net.",
    "critic.": "mlp_extractor.value_net.",
}
HEAD: Pairs = {"head.log_std": "log_std"}
SQUASHED: Pairs = {"trunk.0.": "latent_pi.", "mean.": "mu."}
NOISY: Pairs = {**SQUASHED, **HEAD}
NOISY_CLIPPED: Pairs = {**NOISY, "mean.": "mu.0."}
TWO_CRITICS: Pairs = {"q1.": "qf0.", "q2.": "qf1."}
SQUASHED_WITHIN: Pairs = {f"net.{name}": name for name in ("latent_pi.", "mu.", "log_std.")}
CRITICS_WITHIN: Pairs = {"twins.qf": "qf"}


def use_their_names(module: nn.Module, pairs: Pairs) -> None:
    """Make `module.state_dict()` have their names, and `load_state_dict` accept them."""
    module.register_state_dict_post_hook(  # type: ignore[no-untyped-call]
        _Renames(pairs, to_theirs=True)
    )
    module.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
        _Renames(pairs, to_theirs=False)
    )


def repeat_features_extractor(module: nn.Module) -> None:
    """Make `module.state_dict()` have the `features_extractor` under the other names, too, that
    Stable-Baselines3's policies have for it, and `load_state_dict` accept these."""
    module.register_state_dict_post_hook(_with_repeated)  # type: ignore[no-untyped-call]
    module.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
        _without_repeated
    )


def _repeated(module: nn.Module, prefix: str) -> list[str]:
    names = ["pi_features_extractor", "vf_features_extractor"]
    return [f"{prefix}{name}." for name in names if getattr(module, name, None) is None]


def _with_repeated(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    own = f"{prefix}features_extractor."
    found = {k.removeprefix(own): value for k, value in state.items() if k.startswith(own)}
    for name in _repeated(module, prefix):
        state.update({f"{name}{key}": value for key, value in found.items()})


def _without_repeated(module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
    for name in _repeated(module, prefix):
        for key in [key for key in state if key.startswith(name)]:
            del state[key]


def in_our_order(
    state: dict[str, Any],
    optimizer: torch.optim.Optimizer,
    module: nn.Module,
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The `state` of an optimiser, which numbers parameters in the order of the weights `given`
    with it, for the `optimizer` of `module`. Unchanged if these are not the module's weights."""
    groups, names = optimizer.param_groups, dict[int, str]()
    for name, value in module.state_dict(keep_vars=True).items():
        names.setdefault(id(value), name)
    own = [names.get(id(one), "") for group in groups for one in group["params"]]
    theirs = [name for name in given if name in own]
    if theirs == own or sorted(theirs) != sorted(own) or len(groups) > 1:
        return state
    held = {theirs[number]: one for number, one in state["state"].items()}
    ours = {number: held[name] for number, name in enumerate(own) if name in held}
    return {**state, "state": ours}


class _Renames:
    """A hook that renames the entries of a `state_dict`."""

    def __init__(self, pairs: Pairs, to_theirs: bool) -> None:
        self.pairs, self.to_theirs = pairs, to_theirs

    def __call__(self, module: nn.Module, state: dict[str, Any], prefix: str, *_: Any) -> None:
        pairs = self._pairs(module)
        entries = list(state.items())
        state.clear()  # filled again in the same order
        for name, value in entries:
            state[self._renamed(name, prefix, pairs)] = value

    def _renamed(self, name: str, prefix: str, pairs: list[tuple[str, str]]) -> str:
        for own, theirs in pairs:
            before, after = (own, theirs) if self.to_theirs else (theirs, own)
            if name.startswith(f"{prefix}{before}"):
                return f"{prefix}{after}{name.removeprefix(f'{prefix}{before}')}"
        return name

    def _pairs(self, module: nn.Module) -> list[tuple[str, str]]:
        found = []
        for own, theirs in self.pairs.items():
            part = getattr(module, own.split(".")[0], None)
            last = len(part) - 1 if isinstance(part, nn.Sequential) else 0
            found.append((own.format(last=last), theirs))
        return found
