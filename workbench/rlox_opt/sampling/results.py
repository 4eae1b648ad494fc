"""The report as it grows: the plain run's figures, each tool's section, and the conclusions."""

from __future__ import annotations

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from rlox_opt.project import cards
from rlox_opt.project.project import Project
from rlox_opt.sampling import bottlenecks, device, pyspy, windows
from rlox_opt.sampling.attribution import attribute
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.samples import Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.spec import Spec
from rlox_opt.sampling.torch_profiler import Event, TorchProfile
from rlox_opt.system.machine import commit, machine

SCHEMA = 1
SOURCES = ("perf", "py-spy", "scalene")  # of the ranking, the preciser first
_BREAKDOWN = "Update, per gradient step"
_LEAST_SAMPLES = 50
_BUSY = 0.05  # a warning is given if training waited for a CPU for more than this share

Json = dict[str, Any]


class Rates(NamedTuple):
    """How training went: steps per second, CPUs used, and the share of time without a CPU."""

    steps_per_s: float
    cpu_share: float
    delayed: float

    @property
    def undelayed(self) -> float:
        """Steps per second without the time in which other programs had the CPUs."""
        return self.steps_per_s / max(1e-9, 1 - self.delayed)


class Ticks(NamedTuple):
    """What a child process recorded: each tick has the monotonic ns, the environment steps, and of
    the training thread its CPU ns and the ns that it waited for a CPU. `start_ns` and `end_ns` are
    its tool's window, if the child knows it."""

    ticks: list[tuple[int, int, int, int]]
    start_ns: int
    end_ns: int

    def rates(self, start_ns: int, end_ns: int) -> Rates | None:
        """Rates between two times; None if there are too few ticks or no steps between them."""
        inside = [tick for tick in self.ticks if start_ns <= tick[0] <= end_ns]
        if len(inside) < 3 or inside[-1][0] <= inside[0][0] or inside[-1][1] <= inside[0][1]:
            return None
        wall_ns, steps, cpu_ns, delay_ns = (
            last - first for first, last in zip(inside[0], inside[-1], strict=True)
        )
        return Rates(steps / wall_ns * 1e9, cpu_ns / wall_ns, delay_ns / wall_ns)


@dataclass
class Findings:
    """What a profile found: the report, and the data behind its figures."""

    report: Json
    samples: dict[str, Samples] = field(default_factory=dict)
    spans: SpanLog | None = None
    torch_events: list[Event] = field(default_factory=list)
    self_seconds: dict[str, float] = field(default_factory=dict)
    steady: Rates | None = None  # of the plain run after warm-up


def skeleton(project: Project, spec: Spec, tools: Iterable[str]) -> Json:
    """A report of a run that has not begun, nor any of its tools."""
    now = datetime.now(timezone.utc)
    head, dirty = commit(project.top)
    return {
        "schema": SCHEMA,
        "complete": False,
        "incomplete": [],
        "warnings": [],
        "date": now.astimezone().strftime("%Y-%m-%d"),
        "date_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "algo": spec.algo,
        "env_id": spec.env_id,
        "total_timesteps": spec.total_timesteps,
        "n_envs": spec.trainer["n_envs"],
        "seed": spec.seed,
        "commit": head,
        "dirty": dirty,
        "features": project.installed.build_info().get("features", []),
        "machine": machine(),
        "versions": project.installed.versions(),
        "settings": spec.trainer | {"device": spec.device, "threads": spec.threads},
        "sps": None,
        "init_s": None,
        "train_s": None,
        "wall_s": None,
        "end_to_end": {},
        "mean_return": None,
        "random_return": None,
        "phases": [],
        "timing_overhead": None,
        "layers": [],
        "layer_source": None,
        "disagreement": [],
        "tools": {
            tool: {
                "status": "to do",
                "slowdown": None,
                "seconds": None,
                "why": None,
                "half_width": None,
                "samples": 0,
                "errors": 0,
                "layers": [],
            }
            for tool in tools
        },
        "micro": [],
        "crossings": [],
        "crossings_per": spec.crossings_per,
        "bottlenecks": [],
        "cards": [],
    }


def add_plain(findings: Findings, spec: Spec, folder: Path) -> None:
    """Put into the report what the plain run's child has written so far."""
    report = findings.report
    result = _read(folder / "result.json")
    if result is not None and report["sps"] is None:
        _add_run(findings, spec, result)
        findings.spans = SpanLog.load(folder / "spans.bin")
        report["micro"] = _breakdown(result, spec.update)
    if (table := _read(folder / "crossings.json")) is not None:
        report["crossings"] = table
    if (rows := _read(folder / "micro.json")) is not None and result is not None:
        report["micro"] = rows + _breakdown(result, spec.update)
    if (random := _read(folder / "random.json")) is not None:
        report["random_return"] = random["mean_return"]


def _add_run(findings: Findings, spec: Spec, run: Json) -> None:
    train_s, phases = run["train_s"], run["phases"]
    findings.self_seconds = {phase["name"]: phase["self_seconds"] for phase in phases}
    findings.self_seconds[""] = max(0.0, train_s - sum(findings.self_seconds.values()))
    ticks = Ticks([tuple(tick) for tick in run["ticks"]], 0, 0)
    warm = [tick for tick in ticks.ticks if tick[1] >= spec.warmup_steps]
    steady = ticks.rates(warm[0][0], warm[-1][0]) if warm else None
    # A short run has too few ticks for a steady rate, and only the speed of the whole run.
    findings.steady = steady or Rates(run["steps"] / train_s, 1.0, 0.0)
    whole = ticks.rates(0, ticks.ticks[-1][0])
    if whole and whole.delayed > _BUSY:
        findings.report["warnings"].append(
            f"The machine was busy: for {100 * whole.delayed:.0f} % of the plain run it waited "
            "for a CPU that others held; its speed and phases are those of a busy machine."
        )
    span_s = run["span_ns"] * run["spans"] / 1e9
    times = {
        "sps": run["steps"] / train_s,
        "init_s": run["init_s"],
        "train_s": train_s,
        "wall_s": run["init_s"] + train_s,
    }
    findings.report |= times | {
        "mean_return": run["mean_return"],
        "settings": run["settings"] | findings.report["settings"],
        "end_to_end": times
        | {key: run[key] for key in ("import_s", "steps", "episodes", "updates")}
        | {
            "steady_sps": steady.steps_per_s if steady else None,
            "cpu_share": whole.cpu_share if whole else None,
            "delayed_share": whole.delayed if whole else None,
        },
        "phases": [phase | {"share": phase["seconds"] / train_s} for phase in phases],
        "threads": {name: tree for name, tree in run["threads"].items() if tree and tree != phases},
        "timing_overhead": {
            "ns_per_span": run["span_ns"],
            "spans": run["spans"],
            "seconds": span_s,
            "share": span_s / train_s,
        },
    }


def add_samples(
    findings: Findings, tool: str, samples: Samples, ticks: Ticks, window: tuple[int, int]
) -> None:
    """Put a sampler's section into the report.

    Raises:
        ValueError: there are too few samples.
    """
    if len(samples.samples) < _LEAST_SAMPLES:
        raise ValueError(f"{len(samples.samples)} samples are too few; ask for more --seconds")
    _add_slowdown(findings, tool, ticks, window)
    slowdown = findings.report["tools"][tool]["slowdown"]
    if tool == "py-spy" and slowdown:
        samples = pyspy.without_stops(samples, slowdown)
    layers = attribute(samples, findings.self_seconds)
    findings.samples[tool] = samples
    findings.report["tools"][tool] |= {
        "samples": len(samples.samples),
        "errors": samples.errors,
        "half_width": windows.half_width(layers),
        "layers": [layer._asdict() for layer in layers],
    }


def sampled(findings: Findings) -> dict[str, Json]:
    """The sections of the samplers that are done, the preciser first."""
    return {tool: findings.report["tools"][tool] for tool in SOURCES if tool in findings.samples}


def add_torch(
    findings: Findings, recorded: TorchProfile, ticks: Ticks, classifier: Classifier
) -> None:
    """Put torch.profiler's section into the report. It divides the time into torch's layers alone.

    Torch's share of a phase under the profiler is taken for its share in the plain run.
    """
    _add_slowdown(findings, "torch.profiler", ticks, (ticks.start_ns, ticks.end_ns))
    layers: defaultdict[str, float] = defaultdict(float)
    for phase, fraction in recorded.fractions.items():
        layer = classifier.role("torch", (), phase)
        layers[layer] += fraction * findings.self_seconds.get(phase, 0.0)
    total = sum(findings.self_seconds.values())
    findings.report["tools"]["torch.profiler"] |= {
        "seconds": (ticks.end_ns - ticks.start_ns) / 1e9,
        "why": recorded.ended,
        "samples": len(recorded.events),
        "updates": recorded.updates,
        "ops": recorded.ops,
        "device": device.told(recorded.waited, recorded.uses),
        "layers": [
            {"name": name, "seconds": seconds, "share": seconds / total, "ci95": None}
            for name, seconds in sorted(layers.items(), key=lambda item: -item[1])
        ],
    }


def conclude(project: Project, findings: Findings) -> None:
    """Rank the layers and the bottlenecks by the best tool that worked, and note disagreements."""
    report, tools = findings.report, findings.report["tools"]
    source = next(iter(sampled(findings)), None)
    report["layer_source"] = source
    report["disagreement"] = _disagreement(tools)
    if source is None:
        return
    if source == "py-spy" and (tools[source]["slowdown"] or 1.0) > pyspy.HELD_UP:
        report["warnings"].append(
            f"py-spy slowed training {tools[source]['slowdown']:.1f} times: it could not keep its "
            "pace, and its shares may be off by more than 3 points; repeat on a quieter machine."
        )
    report["layers"] = tools[source]["layers"]
    settings = report["settings"]
    switched_on = {*report["features"], *settings.get("optimizations", ())}
    every = cards.load(project)
    on = {card.id for card in every if switched_on & {card.feature, card.id}}
    run = (findings.samples[source], findings.self_seconds, every, report["algo"], settings)
    report["bottlenecks"] = bottlenecks.rank(*run, on)
    report["cards"] = bottlenecks.bounds(*run)


def read_ticks(folder: Path) -> Ticks:
    """The ticks that a child process wrote. ValueError if it wrote none."""
    result = _read(folder / "result.json")
    if result is None:
        raise ValueError("the training under it ended without a result")
    ticks = [tuple(tick) for tick in result["ticks"]]
    return Ticks(ticks, result.get("start_ns", 0), result.get("end_ns", 0))


def anonymous(text: str, root: Path) -> str:
    """The text without this machine's folders, among them the project's `root`."""
    for folder in (str(root), sys.prefix, sys.base_prefix, os.path.expanduser("~")):  # noqa: PTH111
        if len(folder) > 1:
            text = text.replace(folder + "/", "")
    return text


def _add_slowdown(findings: Findings, tool: str, ticks: Ticks, window: tuple[int, int]) -> None:
    """The plain run's steady rate divided by the rate under the tool.

    Another program may disturb one of the two runs only. So time in which either waited for a CPU
    is left out; on a quiet machine there is hardly any.
    """
    rates = ticks.rates(*window)
    if rates is not None and findings.steady is not None:
        findings.report["tools"][tool] |= {
            "slowdown": findings.steady.undelayed / rates.undelayed,
            "cpu_share": rates.cpu_share,
            "delayed_share": rates.delayed,
        }


def _disagreement(tools: Mapping[str, Json]) -> list[Json]:
    """For each layer its share by each tool, and the largest difference; the largest first."""
    views = {
        tool: {layer["name"]: layer["share"] for layer in section["layers"]}
        for tool, section in tools.items()
        if section["layers"]
    }
    names = {name for view in views.values() for name in view}
    rows = []
    for name in names:
        shares = {tool: view[name] for tool, view in views.items() if name in view}
        if len(shares) > 1:
            spread = max(shares.values()) - min(shares.values())
            rows.append({"name": name, "shares": shares, "spread": spread})
    return sorted(rows, key=lambda row: (-row["spread"], row["name"]))


def _breakdown(run: Json, update: str) -> list[Json]:
    """The parts of the phase `update` for each gradient step, by the plain run's clock. This is no
    benchmark."""
    phases, updates = run["phases"], run["updates"]
    whole = next((phase for phase in phases if phase["name"] == update), None)
    if whole is None or not updates:
        return []
    parts = [(phase["name"].rpartition("/"), phase["seconds"]) for phase in phases]
    rows = [(name, seconds) for (outer, _, name), seconds in parts if outer == update]
    rows.append(("the rest", whole["self_seconds"]))
    return [
        {
            "group": _BREAKDOWN,
            "name": name,
            "us": seconds / updates * 1e6,
            "share": seconds / whole["seconds"],
        }
        for name, seconds in rows
    ]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
