"""Gives parameters their names in Stable-Baselines3, in a module's `state_dict` and when one is
loaded. Names of earlier versions of this library are accepted too."""

from collections.abc import Mapping
from typing import Any

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


def use_their_names(module: nn.Module, pairs: Pairs) -> None:
    """Make `module.state_dict()` have their names, and `load_state_dict` accept them."""
    module.register_state_dict_post_hook(  # type: ignore[no-untyped-call]
        _Renames(pairs, to_theirs=True)
    )
    module.register_load_state_dict_pre_hook(  # type: ignore[no-untyped-call]
        _Renames(pairs, to_theirs=False)
    )


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
