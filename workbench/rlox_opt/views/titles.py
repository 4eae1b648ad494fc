"""Titles for the ids of layers and tools."""

from rlox_opt.sampling.layers import TITLES

__all__ = ["TITLES", "TOOLS_VIEW", "layer_title"]

TOOLS_VIEW = {
    "py-spy": "Python and native stacks; neither the kernel nor OpenMP's threads.",
    "perf": "Native and kernel stacks of every thread; no Python names before 3.12.",
    "scalene": "Totals per line; its split of a line into Python and native is not ranked.",
    "torch.profiler": "torch's own operations; silent about the rest.",
}


def layer_title(name: str) -> str:
    """The layer's title; an unknown id is its own title."""
    return TITLES.get(name, name)
