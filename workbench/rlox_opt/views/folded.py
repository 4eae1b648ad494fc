"""Folded stacks: one line for each stack, outermost first; every flamegraph tool reads this
form."""

from __future__ import annotations

from collections import Counter

from rlox_opt.sampling.samples import Samples


def folded(samples: Samples) -> str:
    """ "phase;inner phase;frame;…;frame microseconds" for each distinct stack, sorted.

    Time is the samples' own, under the tool's slowdown; py-spy's is without its stops of work. It
    is not rescaled to the plain run.
    """
    stacks: Counter[str] = Counter()
    for sample in samples.samples:
        names = [*sample.phase.split("/"), *(frame.name for frame in sample.frames)]
        stack = ";".join(name.replace(";", ",").replace("\n", " ") for name in names if name)
        stacks[stack] += round(sample.weight * 1e6)
    return "".join(f"{stack or '(unknown)'} {count}\n" for stack, count in sorted(stacks.items()))
