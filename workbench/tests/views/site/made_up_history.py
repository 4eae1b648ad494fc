"""A made-up history: benchmarks with noise and known steps, two machines, profiles with stacks."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import NamedTuple

import msgspec
import toy_projects

from rlox_opt.history import store
from rlox_opt.history.ledger import Line, lines
from rlox_opt.history.records import Record, Result
from rlox_opt.history.store import UNITS, Cell, Entry, Profile
from rlox_opt.project.project import Project
from rlox_opt.views import site
from rlox_opt.views.site import Published
from rlox_opt.views.site.model import History

MACHINES = (
    {"cpu": "Example CPU @ 2.80GHz", "cores": 2},
    {"cpu": "Other CPU 9000", "cores": 8},
)
FEATURES: tuple[tuple[str, ...], ...] = (("accepted",), ())
START = datetime(2026, 1, 5, 9, 30, tzinfo=timezone.utc)
SUBJECTS = (
    "Rows are copied once, not twice",
    "Typos in the docs",
    "GAE: the last step peeled off",
    "Buffers know their own size & say it <in bytes>",
    "Tests of wrap-around",
    "A release build links the whole program at once, so that calls across crates can be inlined",
)
NAMES = (
    "data_plane.Gae.time_gae(128)",
    "data_plane.Gae.time_gae(2048)",
    "data_plane.GaeBatched.time_gae_batched((256, 2048), 'env_major')",
    "data_plane.Sample.time_sample((256, 28224))",
    "data_plane.EnvStep.time_step(64)",
    "pairs.Pairs.time_ten_calls('P5 sample_256 n=1000', 'optimized')",
)
LAYERS = {
    "rust": 0.14, "torch_inference": 0.17, "torch_forward": 0.16, "torch_backward": 0.18,
    "torch_optimizer": 0.12, "python": 0.11, "numpy": 0.04, "boundary": 0.05, "kernel": 0.03,
}  # fmt: skip
PHASES = {
    "env_step": 0.2, "policy_forward/action": 0.22, "gradient_update/forward": 0.18,
    "gradient_update/backward": 0.22, "gradient_update/optimizer": 0.14,
    "outside all phases": 0.04,
}  # fmt: skip


FAILURES = ({"benchmark": "data_plane.Push.time_push(4)", "reason": "timed out after 60 s"},)

CAUSE = {
    "ratio": 1.15, "layer": "rust", "layers": {"rust": 0.93, "python": 0.12, "kernel": -0.05},
    "function": "training::gae::baseline", "function_share": 0.9,
}  # fmt: skip


class Step(NamedTuple):
    """From commit number `at` on, benchmark number `benchmark` takes `factor` times as long; the
    number after the last is training."""

    benchmark: int
    at: int
    factor: float


def write(
    folder: Path,
    commits: int = 30,
    benchmarks: int = len(NAMES),
    steps: Sequence[Step] = (Step(1, 12, 1.15), Step(3, 20, 0.8)),
    noise: float = 0.005,
    moved_at: int | None = 24,
    features: Sequence[tuple[str, ...]] = FEATURES,
    profiled_every: int = 1,
    hashes: Sequence[str] | None = None,
    first: int = 0,
    minutes: int = 30,
    kinds: Sequence[str] = tuple(UNITS),
) -> list[str]:
    """Append entries to the store in `folder`, measured `minutes` after each commit; returns the
    commits' hashes.

    From commit `moved_at` on everything runs on another machine, in 0.6 times the time; ratios to
    the control stay. Commits before `first` are left out, so that a history can be continued.
    """
    names = hashes or [hashlib.sha1(f"toy {n}".encode()).hexdigest() for n in range(commits)]
    for n, name in enumerate(names):
        if n < first:
            continue
        machine = MACHINES[moved_at is not None and n >= moved_at]
        for of in features:
            rng = random.Random(f"{n} {of}")
            entry = Entry(
                commit=name,
                parent=names[n - 1] if n else None,
                subject=SUBJECTS[n % len(SUBJECTS)],
                committed=START + timedelta(hours=7 * n),
                date=START + timedelta(hours=7 * n, minutes=minutes, seconds=len(of)),
                machine=machine,
                toolchain={"rustc": "1.95.0", "python": "3.11.9"},
                profile="release",
                features=of,
                control={"commit": names[0], "features": []},
                seconds=118.5,
                complete=True,
                cells=tuple(
                    cell
                    for cell in (
                        *_cells(rng, n, benchmarks, steps, noise, machine, of),
                        *_training(rng, _factor(steps, benchmarks, n)),
                    )
                    if cell.kind in kinds
                ),
                profiles=_profiles(rng, n) if n % profiled_every == 0 else {},
                failures=FAILURES if n == 7 else (),
                causes={
                    benchmark_name(s.benchmark): CAUSE for s in steps if s.at == n and s.factor > 1
                },
                built={"allocator": "mimalloc" if n < 9 else "off", "profile": "release"},
            )
            store.append(entry, folder)
    return list(names)


def benchmark_name(number: int) -> str:
    """Real-looking ones first."""
    return NAMES[number] if number < len(NAMES) else f"toy.Bench{number // 4}.time_case({number})"


def _cells(
    rng: random.Random,
    n: int,
    benchmarks: int,
    steps: Sequence[Step],
    noise: float,
    machine: dict[str, object],
    features: tuple[str, ...],
) -> list[Cell]:
    speed = 1.0 if machine is MACHINES[0] else 0.6
    gain = 0.7 if features else 1.0
    out = []
    for number in range(benchmarks):
        name, base = benchmark_name(number), 1e-6 * 3.0 ** (number % 9)
        factor = gain * _factor(steps, number, n)
        ratio = factor * rng.gauss(1, noise)
        hour = speed * rng.gauss(1, 0.04)  # the machine's mood, which the control shares
        ends = (ratio * (1 - 2.6 * noise), ratio * (1 + 2.6 * noise))
        out.append(Cell(name, "time", base * ratio * hour, ratio, ends, 10))
        out.append(Cell(name, "instructions", float(round(1e10 * base * factor))))
        if number < len(NAMES):
            rust = factor * rng.gauss(1, noise)
            out.append(Cell(name, "criterion", 0.8 * base * rust * hour))
            out.append(Cell(name, "allocations", float(3 + number)))
            out.append(Cell(name, "peak_memory", 4e7 * rng.gauss(1, 0.001)))
    return out


def _factor(steps: Sequence[Step], benchmark: int, n: int) -> float:
    """What the steps up to commit `n` come to."""
    return math.prod(s.factor for s in steps if s.benchmark == benchmark and n >= s.at)


def _training(rng: random.Random, factor: float) -> list[Cell]:
    return [
        Cell(f"train.{algo}", "steps", sps * ratio, ratio, (ratio * 0.98, ratio * 1.02), 3)
        for algo, sps in (("ppo", 12_000.0), ("sac", 110.0))
        for ratio in (1.2 / factor * rng.gauss(1, 0.008),)
    ]


def _profiles(rng: random.Random, n: int) -> dict[str, Profile]:
    out = {}
    for algo in ("ppo", "sac"):
        # From commit 12 on Rust takes more: what the slower GAE costs.
        weights = {
            layer: share * (1.6 if layer == "rust" and n >= 12 else 1)
            for layer, share in LAYERS.items()
        }
        drawn = rng.choices(list(weights), list(weights.values()), k=2400)
        phases = rng.choices(list(PHASES), list(PHASES.values()), k=2400)
        stacks: dict[str, int] = {}
        for layer, phase in zip(drawn, phases, strict=True):
            stack = ";".join(
                [
                    *phase.split("/"),
                    f"toy/learner/{algo}.py:learn",
                    f"{layer}::call",
                    f"{layer}::kernel<{algo}>",
                ]
            )
            stacks[stack] = stacks.get(stack, 0) + 1
        out[algo] = Profile(
            samples=2400,
            layers={layer: drawn.count(layer) / 2400 for layer in weights},
            phases={phase: phases.count(phase) / 2400 for phase in PHASES},
            functions={
                f"{layer}:{layer}::kernel<{algo}>": drawn.count(layer) / 2400 for layer in weights
            },
            folded="".join(f"{stack} {count}\n" for stack, count in sorted(stacks.items())),
        )
    return out


def ledger() -> list[Line]:
    """The toy project's cards, and some that were measured after them, a day each: as predicted,
    less and more."""
    known = lines(toy_projects.PROJECT)
    like = next(line.card for line in known if line.card.id == "P5")
    assert like.prediction is not None
    middle = math.sqrt(math.prod(like.prediction.ratio))
    for n, off in enumerate((1, 0.7, 1.05, 1, 1.9, 0.95, 1.1, 2.5, 1, 0.3, 1.02, 1.4)):
        ratio = middle * off
        ends = 0.9 * ratio, 1.1 * ratio
        of = like.prediction
        result = Result(of.workload, of.size, ratio, ends, "faster", 10)
        made = Record(f"P{30 + n}", START + timedelta(days=n), None, None, MACHINES[0],
                      {}, 1.0, True, (result,))  # fmt: skip
        card = msgspec.structs.replace(like, id=made.id, status="candidate", record="")
        known.append(Line(card, [made], (made, result)))
    return known


def publish(
    out: Path,
    history: History,
    ledger: Sequence[Line] = (),
    project: Project = toy_projects.PROJECT,
) -> Published:
    """Make the pages of a history, with this repository's commits and calibrations."""
    return site.publish(out, history, ledger, project)
