"""Generalised state-dependent exploration (gSDE), Raffin, Kober and Stulp 2020 (arXiv 2005.05719).

The noise of an action is a linear function of the policy's last hidden layer. The function's
weights are drawn anew only now and then. So noise does not jump from step to step as independent
normals do, which protects a robot's motors.
"""

import torch
from torch import Tensor, nn
from torch.distributions import Normal

from rlox.learner.arguments import Unsupported
from rlox.learner.distributions import HALF_LOG_2PI, gaussian_log_prob, log_slope_of_tanh
from rlox.learner.heads import Head

EPSILON = 1e-6  # added to variances, so that none is 0
EDGE = torch.finfo(torch.float32).eps  # squashed actions are kept this far from -1 and 1


class StateDependent(Head):
    """Actions `mean + latent @ weights`. The input has means and latent features side by side.

    `weights`, `[n_latent, act_dim]`, are normal with deviations `get_std()`. So an action is normal
    with variance `latent**2 @ get_std()**2`, and its density is that of equation 8. `log_std` has a
    number for each weight, or with `full_std=False` for each latent feature. `use_expln` replaces
    exp by a function that grows more slowly. With `squashes` actions go through tanh into [-1, 1].
    """

    needs_latent = True
    normals: Tensor  # `[n, n_latent, act_dim]`, the weights before scaling

    def __init__(
        self,
        n_latent: int,
        act_dim: int,
        log_std_init: float,
        full_std: bool = True,
        use_expln: bool = False,
        squashes: bool = False,
    ) -> None:
        super().__init__()
        self.n_inputs, self.use_expln, self.squashes = act_dim, use_expln, squashes
        shape = n_latent, act_dim if full_std else 1
        self.log_std = nn.Parameter(torch.full(shape, float(log_std_init)))
        self.register_buffer("normals", torch.empty(0), persistent=False)
        self.reset_noise()

    def reset_noise(self, n: int = 1, generator: torch.Generator | None = None) -> None:
        """Draw `n` matrices of weights. A batch of `n` observations uses one for each; other
        batches use the first one."""
        shape = n, len(self.log_std), self.n_inputs
        self.normals = torch.randn(shape, generator=generator, device=self.log_std.device)

    def get_std(self) -> Tensor:
        """Deviations of the weights, `[n_latent, act_dim]`."""
        std = self.log_std.exp()
        if self.use_expln:
            above = self.log_std.clamp(min=0).log1p() + 1
            std = torch.where(self.log_std <= 0, self.log_std.clamp(max=0).exp(), above)
        return std.expand(-1, self.n_inputs)

    def draw_unsquashed(self, said: Tensor, deterministic: bool) -> Tensor:
        """Actions before tanh."""
        mean, latent = self._parts(said)
        if deterministic:
            return mean
        weights = self.get_std() * self.normals
        if len(weights) == len(latent):
            return mean + torch.bmm(latent.unsqueeze(1), weights).squeeze(1)
        return mean + latent @ weights[0]

    def draw(self, said: Tensor, deterministic: bool, generator: torch.Generator | None) -> Tensor:
        """Actions from the matrices that `reset_noise` has drawn; `generator` is not used."""
        actions = self.draw_unsquashed(said, deterministic)
        return actions.tanh() if self.squashes else actions

    def log_prob_unsquashed(self, said: Tensor, actions: Tensor) -> Tensor:
        """Log-densities `[B]` of the results for `actions` before tanh."""
        mean, _ = self._parts(said)
        found = gaussian_log_prob(actions, mean, self._log_deviation(said))
        return found - log_slope_of_tanh(actions).sum(dim=-1) if self.squashes else found

    def log_prob(self, said: Tensor, actions: Tensor) -> Tensor:
        if self.squashes:
            actions = actions.clamp(EDGE - 1, 1 - EDGE).atanh()
        return self.log_prob_unsquashed(said, actions)

    def entropy(self, said: Tensor) -> Tensor | None:
        if self.squashes:
            return None  # there is no formula
        return (self._log_deviation(said) + 0.5 + HALF_LOG_2PI).sum(dim=-1)

    def torch_distribution(self, said: Tensor) -> Normal:
        if self.squashes:
            raise Unsupported("get_distribution: not for a policy with squash_output=True")
        return Normal(self._parts(said)[0], self._log_deviation(said).exp())

    def _parts(self, said: Tensor) -> tuple[Tensor, Tensor]:
        return said[:, : self.n_inputs], said[:, self.n_inputs :]

    def _log_deviation(self, said: Tensor) -> Tensor:
        _, latent = self._parts(said)
        variance = latent.square() @ self.get_std().square()
        return 0.5 * (variance + EPSILON).log()
