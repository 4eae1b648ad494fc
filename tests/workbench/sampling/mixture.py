"""A workload of known composition: `python mixture.py NAME FOLDER`.

Each component is almost only work of one layer, about 10 ms a call. A mixture says which components
each phase contains, and how many calls of each one visit of the phase makes; their order is drawn
anew. Phases are opened by literal blocks, as in the trainers. Rounds of visits alternate with
rounds in which every component is called alone and timed by the thread's CPU clock (waiting: by the
wall clock). These times are the truth, which no span and no sampler has measured.

It warms up, prints "ready", runs until its standard input closes, and writes what it measured.
"""

from __future__ import annotations

import gc
import itertools
import json
import os
import random
import select
import sys
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import torch
from rlox_opt.sampling.pyspy import SETTLE_S, allow_ptrace
from torch.autograd.graph import _engine_run_backward

import rlox
from rlox import _core
from rlox.timing import SpanLog, Timing

Plan = dict[str, dict[str, int]]

MIXTURES: dict[str, Plan] = {
    # Native environment, small networks; every phase of PPO holds two to four layers.
    "ppo": {
        "policy_forward": {"torch_inference": 2, "python": 1, "numpy": 1},
        "policy_forward/value": {"torch_inference": 1, "boundary": 1},
        "env_step": {"rust": 2, "boundary": 1, "python": 1, "kernel": 1},
        "gae_compute": {"rust": 1, "numpy": 1},
        "gradient_update": {"python": 1},
        "gradient_update/forward": {"torch_forward": 3, "python": 1, "idle": 1},
        "gradient_update/backward": {"torch_backward": 3, "numpy": 1, "boundary": 1},
        "gradient_update/optimizer": {"torch_optimizer": 2, "python": 1},
    },
    # A Python environment that also waits and calls the kernel; the update is most of the time.
    "sac": {
        "policy_forward": {"torch_inference": 1, "numpy": 1},
        "env_step": {"python": 1, "boundary": 1},
        "env_step/python_env": {"env_python": 3, "kernel": 1, "idle": 1, "rust": 1},
        "store": {"rust": 1, "boundary": 1, "numpy": 1},
        "gradient_update/sample": {"rust": 1, "boundary": 1, "kernel": 1},
        "gradient_update/critic/forward": {"torch_forward": 3, "numpy": 1, "rust": 1},
        "gradient_update/critic/backward": {"torch_backward": 3, "python": 1, "rust": 1},
        "gradient_update/critic/optimizer": {"torch_optimizer": 2, "kernel": 1, "idle": 1},
    },
    # The data plane in one phase, everything else small.
    "data": {
        "env_step": {"rust": 3, "boundary": 3, "numpy": 2, "python": 2, "kernel": 2, "idle": 2},
        "env_step/python_env": {"env_python": 1, "rust": 1},
        "policy_forward": {"torch_inference": 1, "rust": 1, "kernel": 1},
        "gradient_update/forward": {"torch_forward": 1, "boundary": 1},
        "gradient_update/backward": {"torch_backward": 1, "kernel": 1},
        "gradient_update/optimizer": {"torch_optimizer": 1, "rust": 1},
    },
    # Every layer that its phase allows, in every phase.
    "all": {
        "policy_forward": dict.fromkeys(
            ("torch_inference", "rust", "boundary", "numpy", "python", "kernel", "idle"), 1
        ),
        "env_step/python_env": dict.fromkeys(
            ("env_python", "rust", "boundary", "kernel", "idle", "torch_inference"), 1
        ),
        "gradient_update/forward": dict.fromkeys(
            ("torch_forward", "rust", "boundary", "numpy", "python", "kernel", "idle"), 1
        ),
        "gradient_update/backward": dict.fromkeys(
            ("torch_backward", "rust", "boundary", "numpy", "python", "kernel", "idle"), 1
        ),
        "gradient_update/optimizer": dict.fromkeys(
            ("torch_optimizer", "rust", "boundary", "numpy", "python", "kernel", "idle"), 1
        ),
    },
}


def components() -> dict[str, Callable[[], object]]:
    """One function for each layer, made so that a call takes the same time alone and among others.

    A call takes about 10 ms. With less, the lines of Python around the native work, which run with
    cold caches, would add up to a layer of their own. Buffers have about 100 KiB, so that what the
    other components leave in the cache hardly matters.
    """
    torch.manual_seed(0)
    rotation = torch.linalg.qr(torch.randn(192, 192)).Q.contiguous()  # its powers stay finite
    few, many = torch.rand(96, 192), torch.rand(192, 192)
    weight = torch.randn(192, 192).requires_grad_()

    def loss(h: torch.Tensor) -> torch.Tensor:
        for _ in range(9):
            h = torch.special.i0e(torch.mm(h, weight))
        return h.sum()

    graph, ones = (loss(many),), (torch.ones(()),)

    def backward() -> None:  # what Tensor.backward calls, without its Python
        _engine_run_backward(graph, ones, True, False, (), accumulate_grad=True)

    params, grads, means, squares = ([torch.rand(6000) for _ in range(16)] for _ in range(4))
    steps = [torch.tensor(1.0) for _ in params]
    fused_adam = partial(  # what torch.optim.Adam(fused=True) calls, without its Python
        torch._fused_adam_,
        *(params, grads, means, squares, [], steps),
        **{"lr": 1e-5, "beta1": 0.9, "beta2": 0.999, "weight_decay": 0.0, "eps": 1e-8},
        **{"amsgrad": False, "maximize": False},
    )

    def optimize() -> None:
        for _ in range(120):
            fused_adam()

    def spin() -> int:
        total = 0
        for i in range(150_000):
            total += i * i
        return total

    signal, kernel = np.linspace(0, 1, 8000), np.linspace(0, 1, 7500)
    log_probs = np.linspace(-1, 0, 1 << 17).reshape(8, -1)  # 8 rows: too few for worker threads

    def token_kl() -> None:
        for _ in range(15):
            rlox.compute_token_kl(log_probs, log_probs)

    crossing = np.linspace(0, 1, 96_000)

    def cross() -> None:
        deque(map(_core.roundtrip, itertools.repeat(crossing, 300)), maxlen=0)

    random_device, buffer = os.open("/dev/urandom", os.O_RDONLY), [bytearray(1 << 16)]

    def read_random() -> None:  # in small reads, since a sampler's stop cuts a read short
        for _ in range(45):
            os.readv(random_device, buffer)

    cartpole = gymnasium.make("CartPole-v1")
    cartpole.reset(seed=0)

    def step_env() -> None:
        for i in range(750):
            _, _, terminated, truncated, _ = cartpole.step(i & 1)
            if terminated or truncated:
                cartpole.reset()

    return {
        "rust": token_kl,
        "torch_inference": lambda: torch.linalg.matrix_power(rotation, 1 << 60),
        "torch_forward": lambda: loss(few),
        "torch_backward": backward,
        "torch_optimizer": optimize,
        "python": spin,
        "numpy": lambda: np.convolve(signal, kernel),
        "env_python": step_env,
        "boundary": cross,
        "kernel": read_random,
        "idle": lambda: time.sleep(0.01),
    }


def spread(names: list[str], draw: random.Random) -> list[str]:
    """A random order in which no component follows itself, since a repeated call takes less
    time."""
    while True:
        order = draw.sample(names, len(names))
        if all(a != b for a, b in itertools.pairwise(order)):
            return order


class Mixture:
    """The calls of each phase, shuffled at each visit, inside the phase's blocks."""

    def __init__(self, plan: Plan, calls: dict[str, Callable[[], object]]) -> None:
        draw = random.Random(0)
        self.orders: dict[str, itertools.cycle[list[Callable[[], object]]]] = {}
        for phase, content in plan.items():
            names = [name for name, count in content.items() for _ in range(count)]
            orders = [spread(names, draw) for _ in range(64)]
            self.orders[phase] = itertools.cycle([[calls[n] for n in order] for order in orders])
        self.timing = Timing()

    def run(self, phase: str) -> None:
        if phase in self.orders:
            for call in next(self.orders[phase]):
                call()

    def visit(self) -> None:
        timing, run = self.timing, self.run
        with timing.add_time("policy_forward"):
            run("policy_forward")
            with timing.add_time("value"):
                run("policy_forward/value")
        with timing.add_time("env_step"):
            run("env_step")
            with timing.add_time("python_env"):
                run("env_step/python_env")
        with timing.add_time("store"):
            run("store")
        with timing.add_time("gae_compute"):
            run("gae_compute")
        with timing.add_time("gradient_update"):
            run("gradient_update")
            with timing.add_time("sample"):
                run("gradient_update/sample")
            with timing.add_time("forward"):
                run("gradient_update/forward")
            with timing.add_time("backward"):
                run("gradient_update/backward")
            with timing.add_time("optimizer"):
                run("gradient_update/optimizer")
            with timing.add_time("critic"):
                with timing.add_time("forward"):
                    run("gradient_update/critic/forward")
                with timing.add_time("backward"):
                    run("gradient_update/critic/backward")
                with timing.add_time("optimizer"):
                    run("gradient_update/critic/optimizer")


def sampler_settles(mixture: Mixture) -> None:
    """A function whose name marks the samples that do not count."""
    until = time.monotonic() + SETTLE_S
    while time.monotonic() < until:
        mixture.visit()


def main(name: str, folder: Path) -> None:
    torch.set_num_threads(1)
    allow_ptrace()
    gc.disable()
    calls = components()
    mixture = Mixture(MIXTURES[name], calls)
    for _ in range(5):
        mixture.visit()
    mixture.timing.spans = spans = SpanLog()
    costs: list[tuple[int, str, int]] = []  # when, which component, nanoseconds
    print("ready", flush=True)
    sampler_settles(mixture)
    while not select.select([sys.stdin], [], [], 0)[0]:
        mixture.visit()
        for alone in random.sample(list(calls), len(calls)):
            clock = time.perf_counter_ns if alone == "idle" else time.thread_time_ns
            start = clock()
            calls[alone]()
            costs.append((time.perf_counter_ns(), alone, clock() - start))
    spans.save(folder / "spans")
    (folder / "costs.json").write_text(json.dumps(costs))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
