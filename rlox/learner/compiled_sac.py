"""R3: SAC's whole update (targets, critics, actor, temperature, Polyak) as one compiled graph.

The equations are those of `rlox.learner.sac.SAC`, called on `_Functional`, whose networks take
their parameters from flat vectors. Noise is drawn outside the graph, from the trainer's generator
and in the order of the eager update, so that both get the same noise.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad_and_value

from rlox.learner.compiled import Compiled, FlatModule, FlatTensors, adam_
from rlox.learner.flat import Flat
from rlox.learner.native.networks import Unfit

if TYPE_CHECKING:
    from rlox.learner.sac import SAC, Batch


# The methods that are compiled. They are taken from the trainer's class, so that a subclass may
# override them.
EQUATIONS = ("target_q", "critic_loss", "actor_loss", "alpha_loss")


class Updated(NamedTuple):
    """The results of one update: its losses, where that of a fixed temperature is None, and the
    critics' mean absolute TD errors `[B]`."""

    critic_loss: Tensor
    actor_loss: Tensor
    alpha_loss: Tensor | None
    td_errors: Tensor


class _FromNoise(nn.Module):
    """A policy as a module of observations and noise."""

    policy: Any

    def __init__(self, policy: nn.Module) -> None:
        super().__init__()
        self.policy = policy

    def forward(self, obs: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = self.policy.from_noise(obs, noise)
        return found


class _Policy:
    """A policy whose actions come from noise that is passed in place of a generator."""

    def __init__(self, module: nn.Module, parameters: dict[str, Tensor]) -> None:
        self.module, self.parameters = module, parameters

    def get_action_and_logprob(self, obs: Tensor, generator: Tensor) -> tuple[Tensor, Tensor]:
        found: tuple[Tensor, Tensor] = functional_call(
            self.module, self.parameters, (obs, generator)
        )
        return found


class _Temperature:
    """SAC's alpha from its logarithm."""

    def __init__(self, log_alpha: Tensor) -> None:
        self.log_alpha = log_alpha

    def __call__(self) -> Tensor:
        return self.log_alpha.exp()


class _Functional:
    """A stand-in for the trainer in SAC's equations, as functions of flat vectors."""

    def __init__(
        self,
        update: "CompiledUpdate",
        vectors: tuple[Tensor, Tensor, Tensor],
        log_alpha: Tensor,
        noise: Tensor,
    ) -> None:
        model, (actor, critic, target) = update.model, vectors
        self.gamma, self.target_entropy = model.gamma, model.target_entropy
        self.temperature = _Temperature(log_alpha)
        self.policy = _Policy(update.actor_module, update.actor.unflattened(actor))
        self._act_generator = noise
        self._module, self._target_module = model.critic, model.critic_target
        self._critic = update.critic.unflattened(critic)
        self._target = update.critic.unflattened(target)

    def critic(self, obs: Tensor, actions: Tensor) -> Any:
        """The critics' values."""
        return functional_call(self._module, self._critic, (obs, actions))

    def critic_target(self, obs: Tensor, actions: Tensor) -> Any:
        """The values of the target networks."""
        return functional_call(self._target_module, self._target, (obs, actions))


class EagerUpdate:
    """R3's baseline: operation by operation."""

    def __init__(self, model: "SAC") -> None:
        self.model = model

    def __call__(self, batch: "Batch") -> Updated:
        """One update from a batch."""
        return self.model.update(batch)


class CompiledUpdate(EagerUpdate):
    """R3's optimised form: one graph over flat vectors; operation by operation if it cannot be
    compiled.

    `report` describes the compilation.
    """

    def __init__(self, model: "SAC") -> None:
        super().__init__(model)
        self._compiled = Compiled("R3", self._update, model._compile_options)
        self.report = self._compiled.report
        model.compilations.append(self.report)
        if not hasattr(model.policy, "from_noise"):
            self._compiled.give_up(f"the policy ({type(model.policy).__name__}) has no from_noise")
            return
        self.actor_module = _FromNoise(model.policy)
        try:
            self.actor = FlatModule(self.actor_module, model.actor_optimizer)
            self.critic = FlatModule(model.critic, model.critic_optimizer)
            if {*map(id, self.actor.params)} & {*map(id, self.critic.params)}:
                raise Unfit("actor and critic share parameters")
            self._optimized = [self.actor, self.critic]
            if model.alpha_optimizer:
                self._optimized.append(FlatModule(model.temperature, model.alpha_optimizer))
            targets = dict(model.critic_target.named_parameters())
            self._target = Flat([targets[name] for name in self.critic.names], None)
        except Unfit as reason:
            self._compiled.give_up(str(reason))

    def _bind(self) -> None:
        """Bind the present tensors, since some may have been replaced."""
        try:
            self._require_own_equations()
            self._flats = [flat.bind() for flat in self._optimized]
        except Unfit as reason:
            self._compiled.give_up(str(reason))
            return
        if not self._target.holds():
            self._target = Flat(self._target.params, None)

    def _require_own_equations(self) -> None:
        replaced = [name for name in EQUATIONS if name in vars(self.model)]
        if self.model.update.__module__ != "rlox.learner.sac":
            replaced.append("update")
        if replaced:
            raise Unfit(f"{replaced[0]} is replaced")

    def __call__(self, batch: "Batch") -> Updated:
        model = self.model
        if not self.report.given_up:
            self._bind()
        if not self.report.given_up:
            generator = model._act_generator
            before = generator.get_state() if not self.report.graphs else None
            shape, device = batch.actions.shape, model.device
            noise = [torch.randn(shape, generator=generator, device=device) for _ in range(2)]
            tensors = batch._replace(indices=None)
            (target,) = self._target.tensors
            with model.timing.add_time("compiled"), torch.no_grad():
                found = self._compiled(len(batch.obs), tensors, noise, self._flats, target)
            if found is not None:
                return Updated(*found)
            if before is not None:  # undoes the draws of the failed attempt
                generator.set_state(before)
        return super().__call__(batch)

    def _update(
        self,
        batch: "Batch",
        noise: list[Tensor],
        flats: list[FlatTensors],
        target: Tensor,
    ) -> Updated:
        model, (actor, critic, *alpha) = self.model, flats
        sac = type(model)
        log_alpha = alpha[0].vector[0] if alpha else model.temperature.log_alpha.detach()

        def at(actor: Tensor, critic: Tensor, log_alpha: Tensor, drawn: Tensor) -> Any:
            return _Functional(self, (actor, critic, target), log_alpha, drawn)

        target_q = sac.target_q(at(actor.vector, critic.vector, log_alpha, noise[0]), batch)

        def critic_loss(vector: Tensor) -> tuple[Tensor, Tensor]:
            return sac.critic_loss(at(actor.vector, vector, log_alpha, noise[0]), batch, target_q)

        def actor_loss(vector: Tensor) -> tuple[Tensor, Tensor]:
            return sac.actor_loss(at(vector, critic.vector, log_alpha, noise[1]), batch)

        gradient, (loss_q, td_errors) = grad_and_value(critic_loss, has_aux=True)(critic.vector)
        adam_(critic, gradient, self.critic.eps)
        gradient, (loss_pi, log_probs) = grad_and_value(actor_loss, has_aux=True)(actor.vector)
        adam_(actor, gradient, self.actor.eps)
        loss_alpha = None
        if alpha:

            def alpha_loss(vector: Tensor) -> Tensor:
                return sac.alpha_loss(
                    at(actor.vector, critic.vector, vector[0], noise[1]), log_probs
                )

            gradient, loss_alpha = grad_and_value(alpha_loss)(alpha[0].vector)
            adam_(alpha[0], gradient, self._optimized[2].eps)
        target.lerp_(critic.vector, model.tau)
        return Updated(loss_q, loss_pi, loss_alpha, td_errors)
