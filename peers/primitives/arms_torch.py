"""The formulas of TRL's trainers in torch: `form` "eager", or "compiled" by torch.compile.

TRL divides by the standard deviation with Bessel's correction plus 1e-4. Here it is the
population's plus 1e-8, so that all engines compute the same numbers by the same operations.
"""

from functools import partial

import inputs
import torch
from arm import FORM, THREADS, function

torch.set_num_threads(THREADS)


def _made(form):
    return torch.compile(form, dynamic=False) if FORM == "compiled" else form


def token_kl(rows, tokens, dtype):
    def form(policy, reference):
        d = reference - policy
        return (torch.exp(d) - d - 1).sum(1)

    columns = [torch.from_numpy(x) for x in inputs.log_probs(rows, tokens, dtype)]
    return function(partial(_made(form), *columns), "kl")


def group_advantages(groups, size):
    def form(rewards):
        grouped = rewards.view(-1, size)
        mean = grouped.mean(dim=1).repeat_interleave(size, dim=0)
        std = grouped.std(dim=1, unbiased=False).repeat_interleave(size, dim=0)
        return (rewards - mean) / (std + 1e-8)

    rewards = torch.from_numpy(inputs.group_rewards(groups, size))
    return function(partial(_made(form), rewards), "advantages")
