"""Training runs with builds that differ in one optimisation, to see what it gains in training."""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rlox_opt.plan.extensions import Extension, build
from rlox_opt.plan.features import features
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.sampling import workloads
from rlox_opt.stats import paired
from rlox_opt.system.exits import CANNOT_TELL, DIFFERENCE, GOOD, INTERRUPTED
from rlox_opt.system.files import understood
from rlox_opt.system.output import say
from rlox_opt.system.schema import read

if TYPE_CHECKING:
    from rlox_opt.system.progress import Lines

_PATIENCE_S = 900


class TrainingDiffersError(RuntimeError):
    """Two builds trained to different parameters."""


@dataclass(frozen=True)
class Variant:
    """A build to train with, by cargo's `profile`. The training program is given the names of the
    `optimizations` to turn on."""

    name: str
    features: tuple[str, ...]
    optimizations: tuple[str, ...] = ()
    profile: str = "release"


def jobs(project: Project) -> Mapping[str, Mapping[str, Any]]:
    """The short runs that show what an optimisation gains in training, by name."""
    of = workloads.known(project)
    return of.JOBS if of else {}


def job_named(project: Project) -> Callable[[str], str]:
    """A function that reads the name of a job, for argparse."""
    names = sorted(jobs(project))

    def name(text: str) -> str:
        if text in names:
            return text
        there = f"there are {', '.join(names)}" if names else no_jobs(project)
        raise argparse.ArgumentTypeError(f"{text!r} is none; {there}")

    return name


def no_jobs(project: Project) -> str:
    """The message for a project without such runs."""
    path = project.workloads / "options.py"
    return f"this project names no training runs: JOBS of {path} would"


def on_path(project: Project, card: Card, algo: str) -> bool:
    """Whether the job `algo` executes the code that the card varies."""
    job = jobs(project)[algo]
    return any(spot.applies(job["algo"], job["settings"]) for spot in card.spot)


def variants_of(project: Project, card: Card) -> tuple[Variant, Variant]:
    """The builds without and with the optimisation. Both have what it needs and no other
    optimisation, and both have the profile of what ships unless the card is about the profile."""
    every, of = cards.load(project), features(project).of
    shipped = [other.id for other in every if other.seam.kind == "build"]
    after = of([*shipped, card.id] if card.in_build else shipped)
    before = tuple(feature for feature in after if feature != card.feature)
    on = () if card.in_build else (card.id,)
    return (
        Variant(f"without-{card.id.lower()}", before, (), profile(every, before)),
        Variant(f"with-{card.id.lower()}", after, on, profile(every, after)),
    )


def profile(every: Iterable[Card], on: Collection[str]) -> str:
    """The cargo profile of a build with these features: that of a card about the profile."""
    for card in every:
        if card.seam.profiles is not None:
            before, after = card.seam.profiles
            return after if card.feature in on else before
    return "release"


def build_all(
    project: Project, variants: Sequence[Variant], progress: Lines
) -> dict[str, Extension]:
    """The extension of each variant; each is built once."""
    built: dict[tuple[str, tuple[str, ...]], Extension] = {}
    for number, variant in enumerate(variants):
        progress.note(f"building {variant.name}", number / len(variants))
        of = variant.profile, variant.features
        if of not in built:
            built[of] = build(project, variant.name, variant.features, variant.profile)
    return {variant.name: built[variant.profile, variant.features] for variant in variants}


def train(
    project: Project, extension: Extension, algo: str, optimizations: Sequence[str]
) -> tuple[float, str]:
    """Train in one process. Returns the median seconds of its runs without compiling, and a digest
    of the parameters."""
    job = jobs(project)[algo]
    job = {**job, "settings": job["settings"] | {"optimizations": list(optimizations)}}
    command = [
        sys.executable,
        str(project.twins("training")),
        str(extension.path),
        json.dumps(job),
    ]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S)
    except subprocess.TimeoutExpired:
        what = f"training with {extension.path}"
        raise RuntimeError(f"{what} did not end within {_PATIENCE_S} s") from None
    if done.returncode:
        tail = done.stderr.strip().splitlines()[-1:]
        raise RuntimeError(f"training with {extension.path} failed: {''.join(tail)}")
    answer = json.loads(done.stdout)
    return statistics.median(answer["seconds"]), answer["digest"]


def rounds(
    project: Project,
    variants: Sequence[Variant],
    built: Mapping[str, Extension],
    algo: str,
    count: int,
) -> Iterator[dict[str, float]]:
    """`count` rounds; in each, seconds of one training with every variant, in random order. Some
    optimisations round differently: their cards give a tolerance. Raises `TrainingDiffersError` if
    variants that have the same ones of these switched on end with different parameters."""
    every = cards.load(project)
    rounding = {name for card in every if card.tolerance for name in (card.id, card.feature)}
    for _ in range(count):
        trained = {
            variant: train(project, built[variant.name], algo, variant.optimizations)
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
    """Seconds with the build `before` over seconds with `after`, paired within rounds."""
    return paired.estimate([math.log(row[before] / row[after]) for row in times])


def bound(project: Project, card: Card, algo: str) -> dict[str, Any] | None:
    """The most that the optimisation could gain by Amdahl's law, from the newest recorded profile
    of a run like the job `algo`: `{bound, bound_ci95, profile}`."""
    job = jobs(project)[algo]
    # The settings that decide which code runs. Cards about a setting concern what is learnt.
    steps = [other for other in cards.load(project) if other.seam.kind != "setting"]
    deciding = {key for step in steps for spot in step.spot for key in spot.conditions}
    told = {key: value for key, value in job["settings"].items() if key in deciding}
    for path in sorted((project.root / "profiles").glob("*/report.json"), reverse=True):
        report = read(path, dict[str, Any])
        # A profile of several processes names neither.
        alike = (report.get("algo"), report.get("env_id")) == (job["algo"], job["env_id"])
        with understood(path, "report"):
            if not alike or any(report["settings"].get(key) != told[key] for key in told):
                continue
            limit = next((c for c in report["cards"] if c["id"] == card.id), None)
            if limit and limit["bound"] is not None:
                of = {key: limit[key] for key in ("bound", "bound_ci95")}
                return of | {"profile": str(path.parent.relative_to(project.root))}
    return None


def run(chosen: Sequence[Card], arguments: argparse.Namespace) -> int:
    """`rlox-opt cmp … --end-to-end ALGO`."""
    project: Project = arguments.project
    algo: str = arguments.end_to_end
    error: Callable[[str], Any] = arguments.parser.error
    for card in chosen:
        if not on_path(project, card, algo):
            elsewhere = ", ".join(dict.fromkeys(a for spot in card.spot for a in spot.algos))
            where = f"only on that of {elsewhere}" if elsewhere else "on no trainer's path"
            error(f"--end-to-end {algo}: {card.id}'s seam does not lie on its path, {where}")
    from rlox_opt.system.progress import reporter

    results, code = [], GOOD
    with reporter() as progress:
        for card in chosen:
            progress.begin(f"{card.id} in training {algo}")
            try:
                results.append(compare(project, card, algo, arguments.restarts, progress))
            except KeyboardInterrupt:
                progress.end("interrupted")
                code = INTERRUPTED
                break
            except RuntimeError as problem:
                say(f"rlox-opt cmp: {card.id}: {problem}", stderr=True)
                code = DIFFERENCE if isinstance(problem, TrainingDiffersError) else CANNOT_TELL
                break
            progress.end("done" if results[-1]["complete"] else "interrupted")
            if not results[-1]["complete"]:
                code = INTERRUPTED
                break
    if arguments.json and results:
        print(json.dumps(results if len(chosen) > 1 else results[0]))
    else:
        for result in results:
            say("\n".join(sentences(result)))
    return code


def compare(project: Project, card: Card, algo: str, most: int, progress: Lines) -> dict[str, Any]:
    """The effect of one optimisation on a training run; after Ctrl-C, by the rounds so far."""
    before, after = variants_of(project, card)
    limit = bound(project, card, algo)
    built = build_all(project, [before, after], progress)
    times: list[dict[str, float]] = []
    verdict, complete = "undecided", True
    try:
        while verdict == "undecided" and (look := paired.next_look(len(times), most)) is not None:
            for row in rounds(project, (before, after), built, algo, look - len(times)):
                times.append(row)
                progress.note(f"round {len(times)}", len(times) / most)
            verdict = gain(times, before.name, after.name).verdict
    except KeyboardInterrupt:
        if not times:
            raise
        complete = False
    estimate = gain(times, before.name, after.name)
    return {
        "id": card.id,
        "algo": algo,
        "job": jobs(project)[algo],
        "ratio": estimate.ratio,
        "ci95": estimate.ci95,
        "verdict": verdict,
        "restarts": estimate.restarts,
        "complete": complete,
        "bound": limit,
    }


def sentences(result: Mapping[str, Any]) -> list[str]:
    """The result of an end-to-end comparison as sentences."""
    from rlox_opt.views import units

    job = result["job"]
    lines = [
        f"{result['id']} in training {result['algo'].upper()}: {units.factor(result['ratio'])} "
        f"({units.factors(result['ci95'])}), {result['verdict']}, {result['restarts']} rounds"
        f"{'' if result['complete'] else ' before it was interrupted'}"
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
