"""Training runs with builds that differ in one optimisation: what a call's gain is worth there."""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlox_opt.plan.extensions import Extension, build
from rlox_opt.plan.features import features_of
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.stats import paired
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.files import read_json, understood
from rlox_opt.system.machine import ROOT

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_WORKER = ROOT / "workloads" / "training_worker.py"
_PATIENCE_S = 900
_P6 = "opt-p6"
_PATHS = ("collector", "prioritized")  # settings that put seams on the path

# Short runs: the trainers as they come, and with the settings that put further seams on the path.
JOBS: dict[str, dict[str, Any]] = {
    "ppo": {
        "algo": "ppo",
        "env_id": "CartPole-v1",
        "settings": {"n_envs": 8, "collector": "sync"},
        "warmup": 2_048,
        "steps": 10_240,
        "repeats": 2,
        "threads": 1,
    },
    "sac": {
        "algo": "sac",
        "env_id": "Pendulum-v1",
        "settings": {"n_envs": 1, "prioritized": False, "learning_starts": 100},
        "warmup": 110,
        "steps": 600,
        "repeats": 1,
        "threads": 1,
    },
}
JOBS["ppo-async"] = JOBS["ppo"] | {"settings": {"n_envs": 8, "collector": "async"}}
# Few updates: what varies is the buffer.
JOBS["sac-prioritized"] = JOBS["sac"] | {
    "settings": {"n_envs": 1, "prioritized": True, "learning_starts": 2_900},
    "warmup": 2_910,
    "steps": 3_000,
}


class TrainingDiffersError(RuntimeError):
    """Two builds trained to different parameters."""


@dataclass(frozen=True)
class Variant:
    """A build to train with, and the optimisations of the training loop that are on. `opt-p6`
    stands for the cargo profile of what ships."""

    name: str
    features: tuple[str, ...]
    optimizations: tuple[str, ...] = ()

    @property
    def profile(self) -> str:
        """The cargo profile."""
        return "release" if _P6 in self.features else "release-baseline"


def on_path(card: Card, algo: str) -> bool:
    """Whether a run of `JOBS[algo]` passes through the card's seam."""
    job = JOBS[algo]
    return any(spot.applies(job["algo"], job["settings"]) for spot in card.spot)


def variants_of(card: Card) -> tuple[Variant, Variant]:
    """The builds without and with the optimisation: both with what it needs, without all others,
    and, unless that is the question, in the profile of what ships."""
    without, with_ = f"without-{card.id.lower()}", f"with-{card.id.lower()}"
    if card.id.startswith("R"):
        shipped = features_of(["P6"])
        return Variant(without, shipped), Variant(with_, shipped, (card.id,))
    after = features_of([card.id] if card.feature == _P6 else ["P6", card.id])
    before = tuple(feature for feature in after if feature != card.feature)
    return Variant(without, before), Variant(with_, after)


def build_all(variants: Sequence[Variant], progress: Lines) -> dict[str, Extension]:
    """The extension of each variant; each is built once."""
    built: dict[tuple[str, tuple[str, ...]], Extension] = {}
    for number, variant in enumerate(variants):
        progress.note(f"building {variant.name}", number / len(variants))
        of = variant.profile, variant.features
        if of not in built:
            built[of] = build(variant.name, variant.features, variant.profile)
    return {variant.name: built[variant.profile, variant.features] for variant in variants}


def train(extension: Extension, algo: str, optimizations: Sequence[str]) -> tuple[float, str]:
    """One process that trains: median seconds of its runs, compiling not counted, and the digest
    of the parameters."""
    job = JOBS[algo]
    job = job | {"settings": job["settings"] | {"optimizations": list(optimizations)}}
    command = [sys.executable, str(_WORKER), str(extension.path), json.dumps(job)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        what = f"training with {extension.path.name}"
        raise RuntimeError(f"{what} did not end within {_PATIENCE_S} s") from None
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-1:]
        raise RuntimeError(f"training with {extension.path.name} failed: {''.join(tail)}")
    answer = json.loads(done.stdout)
    return statistics.median(answer["seconds"]), answer["digest"]


def rounds(
    variants: Sequence[Variant], built: Mapping[str, Extension], algo: str, count: int
) -> Iterator[dict[str, float]]:
    """`count` rounds: seconds of one training with every variant, in random order. Raises
    `TrainingDiffersError` where the parameters are not the same, among variants that have the same
    optimisations on that round differently (their cards give a tolerance)."""
    rounding = {name for card in cards.load() if card.tolerance for name in (card.id, card.feature)}
    for _ in range(count):
        trained = {
            variant: train(built[variant.name], algo, variant.optimizations)
            for variant in random.sample(variants, len(variants))
        }
        alike: dict[frozenset[str], dict[str, str]] = {}
        for variant, (_, digest) in trained.items():
            on = rounding.intersection(variant.optimizations + variant.features)
            alike.setdefault(frozenset(on), {})[variant.name] = digest
        for digests in alike.values():
            common = statistics.mode(digests.values())
            others = sorted(name for name, digest in digests.items() if digest != common)
            if others:
                raise TrainingDiffersError(
                    f"{', '.join(others)} trained to other parameters than the rest"
                )
        yield {variant.name: seconds for variant, (seconds, _) in trained.items()}


def gain(times: Sequence[Mapping[str, float]], before: str, after: str) -> paired.Estimate:
    """Seconds with the build `before` / seconds with `after`, paired within rounds."""
    return paired.estimate([math.log(row[before] / row[after]) for row in times])


def bound(card: Card, algo: str) -> dict[str, Any] | None:
    """The most the optimisation could gain by Amdahl's law, from the newest recorded profile of
    such a run as `JOBS[algo]`: `{bound, bound_ci95, profile}`."""
    job = JOBS[algo]
    told = {key: job["settings"][key] for key in _PATHS if key in job["settings"]}
    for path in sorted((ROOT / "profiles").glob("*/report.json"), reverse=True):
        report = read_json(path)
        # That of several processes names neither.
        alike = (report.get("algo"), report.get("env_id")) == (job["algo"], job["env_id"])
        with understood(path, "report"):
            if not alike or any(report["settings"].get(key) != told[key] for key in told):
                continue
            found = next((c for c in report["cards"] if c["id"] == card.id), None)
            if found and found["bound"] is not None:
                of = {key: found[key] for key in ("bound", "bound_ci95")}
                return of | {"profile": str(path.parent.relative_to(ROOT))}
    return None


def run(chosen: Sequence[Card], arguments: argparse.Namespace) -> int:
    """`rlox-opt cmp … --end-to-end ALGO`."""
    algo: str = arguments.end_to_end
    error: Callable[[str], Any] = arguments.parser.error
    for card in chosen:
        if not on_path(card, algo):
            elsewhere = ", ".join(dict.fromkeys(a for spot in card.spot for a in spot.algos))
            where = f"only on that of {elsewhere}" if elsewhere else "on no trainer's path"
            error(f"--end-to-end {algo}: {card.id}'s seam does not lie on its path, {where}")
    from rlox_opt.system.progress import reporter

    found, code = [], GOOD
    with reporter() as progress:
        for card in chosen:
            progress.begin(f"{card.id} in training {algo}")
            try:
                found.append(compare(card, algo, arguments.restarts, progress))
            except KeyboardInterrupt:
                progress.end("interrupted")
                code = INTERRUPTED
                break
            except RuntimeError as problem:
                print(f"rlox-opt cmp: {card.id}: {problem}", file=sys.stderr)
                code = DIFFERENCE if isinstance(problem, TrainingDiffersError) else CANNOT_TELL
                break
            progress.end("done")
    if arguments.json and found:
        print(json.dumps(found if len(found) > 1 else found[0]))
    else:
        for result in found:
            print("\n".join(sentences(result)))
    return code


def compare(card: Card, algo: str, most: int, progress: Lines) -> dict[str, Any]:
    """The effect of one optimisation on a training run."""
    before, after = variants_of(card)
    built = build_all([before, after], progress)
    times: list[dict[str, float]] = []
    while (look := paired.next_look(len(times), most)) is not None:
        for row in rounds((before, after), built, algo, look - len(times)):
            times.append(row)
            progress.note(f"round {len(times)}", len(times) / most)
        estimate = gain(times, before.name, after.name)
        if estimate.verdict != "undecided":
            break
    return {
        "id": card.id,
        "algo": algo,
        "job": JOBS[algo],
        "ratio": estimate.ratio,
        "ci95": estimate.ci95,
        "verdict": estimate.verdict,
        "restarts": estimate.restarts,
        "bound": bound(card, algo),
    }


def sentences(result: Mapping[str, Any]) -> list[str]:
    """What an end-to-end comparison found, for people."""
    from rlox_opt.views import units

    job = JOBS[result["algo"]]
    lines = [
        f"{result['id']} in training {result['algo'].upper()}: {units.factor(result['ratio'])} "
        f"({units.factors(result['ci95'])}), {result['verdict']}, {result['restarts']} rounds"
    ]
    if result["verdict"] in ("same", "undecided"):
        limit = result["bound"]
        lines.append(
            "The effect lies below the noise. "
            + (
                f"By Amdahl's law it is at most {units.factor(limit['bound'])} "
                f"({units.factors(limit['bound_ci95'])}; {limit['profile']})."
                if limit
                else "No recorded profile bounds it: run `rlox-opt profile "
                f"{job['algo']}` with {job['settings']}."
            )
        )
    return lines
