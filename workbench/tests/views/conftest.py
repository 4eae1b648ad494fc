"""A realistic PPO report, made of samples whose composition is known."""

# ruff: noqa: E501  (a table reads best with a row a line)

from __future__ import annotations

import random
from typing import Any

import pytest
import toy_projects

from rlox_opt.project import cards
from rlox_opt.sampling import bottlenecks
from rlox_opt.sampling.attribution import attribute
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog

START = ["<module> (child.py)", "main (workloads/child.py)", "learn (toy/learner/ppo.py)"]
STEP = "step (toy/env/vec_env.py)"
UPDATE = "train (toy/learner/ppo.py)"
LINEAR = "forward (torch/nn/modules/linear.py)"

# phase, self seconds in the plain run, [(layer, part of the phase, stack)]
COMPOSITION: list[tuple[str, float, list[tuple[str, float, list[str]]]]] = [
    ("", 0.03, [("python", 1.0, ["collect (toy/learner/ppo.py)"])]),
    (
        "env_step",
        0.31,
        [
            ("rust", 0.52, [STEP, "toy_core::env::parallel::VecEnv::step_all (env/parallel.rs)"]),
            (
                "rust",
                0.13,
                [STEP, "toy_core::env::parallel::VecEnv::step_all (env/parallel.rs)", "malloc (libc.so.6)"],
            ),
            ("boundary", 0.2, [STEP, "pyo3::impl_::trampoline (pyo3-0.30.1/trampoline.rs)"]),
            ("numpy", 0.1, [STEP, "PyArray_NewFromDescr (numpy/_core/_multiarray_umath.so)"]),
            ("python", 0.05, [STEP]),
        ],
    ),
    (
        "policy_forward/action",
        0.62,
        [
            ("torch_inference", 0.8, ["act (toy/learner/seams.py)", LINEAR, "at::native::addmm (libtorch_cpu.so)"]),
            ("python", 0.2, ["act (toy/learner/seams.py)", LINEAR]),
        ],
    ),
    (
        "policy_forward/value",
        0.2,
        [("torch_inference", 1.0, ["get_value (toy/learner/policies.py)", "at::native::addmm (libtorch_cpu.so)"])],
    ),
    ("store", 0.06, [("torch_inference", 0.6, ["append (toy/learner/seams.py)", "at::native::cat (libtorch_cpu.so)"]),
                     ("python", 0.4, ["append (toy/learner/seams.py)"])]),
    ("gae_compute", 0.015, [("rust", 0.7, ["compute_gae_batched (toy/advantage/gae.py)", "toy_core::training::gae (training/gae.rs)"]),
                            ("boundary", 0.3, ["compute_gae_batched (toy/advantage/gae.py)"])]),
    ("gradient_update/minibatch", 0.05, [("torch_forward", 0.9, [UPDATE, "at::native::index (libtorch_cpu.so)"]), ("python", 0.1, [UPDATE])]),
    ("gradient_update/forward", 0.27, [("torch_forward", 0.85, [UPDATE, LINEAR, "at::native::addmm (libtorch_cpu.so)"]), ("python", 0.15, [UPDATE])]),
    ("gradient_update/backward", 0.33, [("torch_backward", 0.97, [UPDATE, "torch::autograd::Engine::execute (libtorch_cpu.so)"]), ("kernel", 0.03, [UPDATE, "clear_page_erms ([kernel])"])]),
    ("gradient_update/clip", 0.06, [("torch_optimizer", 0.7, [UPDATE, "clip_grad_norm_ (torch/nn/utils/clip_grad.py)"]), ("python", 0.3, [UPDATE])]),
    ("gradient_update/optimizer", 0.26, [("torch_optimizer", 0.8, [UPDATE, "_multi_tensor_adam (torch/optim/adam.py)", "at::native::_foreach_lerp_ (libtorch_cpu.so)"]), ("python", 0.2, [UPDATE, "_multi_tensor_adam (torch/optim/adam.py)"])]),
]  # fmt: skip
OWN = {phase: seconds for phase, seconds, _ in COMPOSITION}
SETTINGS = {"collector": "sync", "n_steps": 128, "batch_size": 512, "device": "cpu", "threads": 1}


def frame(text: str) -> Frame:
    name, _, module = text.rpartition(" (")
    return Frame(name, module.rstrip(")"), 12)


def sampled(tool: str, n: int, seed: int, slowed: str = "") -> Samples:
    """`n` samples drawn from `COMPOSITION`; phase `slowed` takes twice its time under the tool."""
    rng = random.Random(seed)
    cells = [
        (phase, layer, stack, seconds * part * (2 if phase == slowed else 1))
        for phase, seconds, parts in COMPOSITION
        for layer, part, stack in parts
    ]
    drawn = rng.choices(cells, [cell[3] for cell in cells], k=n)
    samples = [
        Sample(tuple(map(frame, START + stack)), phase, layer, 0.01, MAIN_THREAD)
        for phase, layer, stack, _ in drawn
    ]
    # Another thread's samples are no part of the training thread's time.
    samples += [
        Sample((frame("gomp_team_barrier (libgomp.so)"),), "", "torch_forward", 0.01, "omp")
    ] * 50
    return Samples(tool, samples, 0.01)


def log_of_spans(iterations: int = 40) -> SpanLog:
    log = SpanLog()
    log.paths = ["env_step", "gradient_update", "gradient_update/backward"]
    main = log.open_thread(MAIN_THREAD, 4242)
    now = log.monotonic_ns
    for _ in range(iterations):
        main.data.extend([0, now, now + 90_000, 2, now + 110_000, now + 150_000])
        main.data.extend([1, now + 100_000, now + 200_000])
        now += 210_000
    other = log.open_thread("collector", 4243)
    other.data.extend([0, log.monotonic_ns, now])
    return log


def phases() -> list[dict[str, Any]]:
    train = sum(OWN.values())
    seconds = {path: own for path, own in OWN.items() if path}
    for path, own in list(seconds.items()):
        if "/" in path:
            outer = path.rpartition("/")[0]
            seconds[outer] = seconds.get(outer, 0.0) + own
    order = ["env_step", "policy_forward", "store", "gae_compute", "gradient_update"]
    names = sorted(seconds, key=lambda path: (order.index(path.split("/")[0]), "/" in path))
    return [
        {"name": n, "seconds": seconds[n], "share": seconds[n] / train, "calls": 6272 if n in order[:3] else 392}
        for n in names
    ]  # fmt: skip


def report_of(samples: dict[str, Samples]) -> dict[str, Any]:
    known = cards.load(toy_projects.PROJECT)
    layers = {
        tool: [s._asdict() | {"ci95": list(s.ci95)} for s in attribute(found, OWN)]
        for tool, found in samples.items()
    }
    source = "perf"
    train = sum(OWN.values())
    return {
        "schema": 1, "algo": "ppo", "env_id": "CartPole-v1", "total_timesteps": 50_000, "n_envs": 8,
        "seed": 1, "date": "2026-11-21T12:00:00Z", "commit": "5779f75" + "0" * 33, "dirty": False,
        "features": [], "settings": SETTINGS,
        "machine": {"cpu": "Example CPU @ 2.80GHz", "cores": 2, "memory_gib": 15.6, "os": "Linux 12"},
        "versions": {"python": "3.11.9", "torch": "2.15.0", "toy": "0.1.0", "perf": None},
        "sps": 50_000 / train, "init_s": 0.043, "train_s": train, "wall_s": train + 0.4,
        "mean_return": 214.3, "phases": phases(), "layers": layers[source], "layer_source": source,
        "tools": {
            "py-spy": {"slowdown": 1.37, "samples": 2400, "errors": 3, "layers": layers["py-spy"]},
            "perf": {"slowdown": 1.04, "samples": 9000, "errors": 0, "layers": layers["perf"]},
            "scalene": {"slowdown": None, "samples": None, "errors": None, "layers": [],
                        "reason": "scalene is not installed.", "remedy": "pip install scalene"},
        },
        "micro": [
            {"group": "Rust primitives", "name": "VecEnv.step(64 envs)", "us": 48.4},
            {"group": "Rust primitives", "name": "compute_gae_batched(8x128)", "us": 34.7},
            {"group": "PyTorch operations (PPO, 8 envs)", "name": "get_value", "us": 19.0},
            {"group": "Update breakdown", "name": "backward", "us": 840.0, "share": 0.34},
        ],
        "crossings_per": "rollout",
        "crossings": [
            {"name": "VecEnv.step", "kind": "rust", "per_iteration": 128, "bytes": 29_696, "us": 4100.5},
            {"name": "compute_gae_batched", "kind": "rust", "per_iteration": 1, "bytes": 40_960, "us": 33.1},
            {"name": "policy: value", "kind": "torch", "per_iteration": 128, "bytes": 0, "us": 3300.0},
        ],
        "bottlenecks": bottlenecks.rank(samples[source], OWN, known, "ppo", SETTINGS),
        "cards": bottlenecks.bounds(samples[source], OWN, known, "ppo", SETTINGS),
    }  # fmt: skip


@pytest.fixture(scope="session")
def samples() -> dict[str, Samples]:
    return {
        "py-spy": sampled("py-spy", 2400, 1, slowed="env_step"),
        "perf": sampled("perf", 9000, 2),
    }


@pytest.fixture(scope="session")
def report(samples: dict[str, Samples]) -> dict[str, Any]:
    return report_of(samples)


@pytest.fixture
def spans() -> SpanLog:
    return log_of_spans()
