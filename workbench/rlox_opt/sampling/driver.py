"""Profiles one training run with several tools, each in a child process of its own.

The first run is plain and of full length: it gives the true speed and the true seconds of each
phase. Each tool then records for a window after warm-up. A tool slows the program, so it only shows
what each phase consists of. A tool that is missing, forbidden or fails leaves its reason in the
report, and the others go on.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from rlox_opt.project.project import Project
from rlox_opt.sampling import perf, pyspy, results, scalene, torch_profiler, windows
from rlox_opt.sampling.layers import Classifier
from rlox_opt.sampling.results import Findings as Findings
from rlox_opt.sampling.samples import Samples
from rlox_opt.sampling.spans import SpanLog
from rlox_opt.sampling.spec import Job, Spec
from rlox_opt.system.ending import not_interrupted
from rlox_opt.system.process import Child, ChildError, end
from rlox_opt.system.scratch import scratch

_START_UP_S = 15.0  # of a child process, for the estimate of the remaining time
SILENCE_S = 600.0  # a child process without any output for so long is taken to hang
_LATE_S = 120.0  # what a sampler may take beyond its window to read symbols and write its file

SAMPLERS = {"py-spy": pyspy, "perf": perf}


class Progress(Protocol):
    """Shows how the work goes on."""

    def plan(self, steps: Sequence[tuple[str, float]]) -> None:
        """The steps to come, each with the seconds that it may take."""

    def begin(self, title: str) -> None:
        """A step begins."""

    def note(self, text: str, fraction: float | None = None) -> None:
        """What the step is doing, and how much of it is done."""

    def end(self, text: str) -> None:
        """The step is over, with this outcome."""


def profile(project: Project, job: Job, progress: Progress) -> Findings:
    """Do the plain run and run the tools. An interruption keeps what is finished.

    Raises:
        ChildError: the plain run failed, so that there is nothing to report.
    """
    started = time.perf_counter()
    title = "plain run"  # also while that is being prepared
    findings = Findings(results.skeleton(project, job.spec, job.tools))
    estimates = [(tool, _START_UP_S + windows.longest(tool, job.seconds)) for tool in job.tools]
    progress.plan([("plain run", _START_UP_S * 2), *estimates])
    try:
        with scratch() as within:
            for title in ("plain run", *job.tools):
                folder = within / title
                folder.mkdir()
                progress.begin(title)
                if title == "plain run":
                    progress.end(_plain(job, findings, folder, progress))
                else:
                    progress.end(_tool(project, job, findings, title, folder, progress))
        findings.report["complete"] = True
    except KeyboardInterrupt:
        findings.report["incomplete"].append(f"It was interrupted during: {title}.")
        for tool in findings.report["tools"].values():
            if tool["status"] == "to do":
                tool |= {"status": "interrupted", "reason": "The run was interrupted before."}
        progress.end("interrupted")
    progress.plan([])
    with not_interrupted():  # a further Ctrl-C would lose all that is there
        results.conclude(project, findings)
    findings.report["profile_s"] = round(time.perf_counter() - started, 2)
    return findings


def _plain(job: Job, findings: Findings, folder: Path, progress: Progress) -> str:
    spec = replace(job.spec, folder=str(folder))
    try:
        with child_of(spec) as child:
            for message in child.messages(SILENCE_S):
                _note(message, progress, spec.total_timesteps)
                results.add_plain(findings, spec, folder)
    except ChildError as error:
        # A failure after training does not make the training's figures wrong.
        if findings.report["sps"] is None:
            raise
        findings.report["incomplete"].append(f"After the plain run its process failed: {error}")
    except KeyboardInterrupt:
        results.add_plain(findings, spec, folder)
        raise
    results.add_plain(findings, spec, folder)
    return f"{findings.report['sps']:,.0f} steps/s, {findings.report['train_s']:.2f} s of training"


def _tool(
    project: Project, job: Job, findings: Findings, tool: str, folder: Path, progress: Progress
) -> str:
    """Run one tool, and put into the report what it found or why it failed."""
    section = findings.report["tools"][tool]
    run = {"scalene": _scalene, "torch.profiler": _torch_profiler}.get(tool, _sampler)
    classifier = Classifier(project.settings.layers)
    module = {**SAMPLERS, "scalene": scalene}.get(tool)
    try:
        missing: str | None = None if module is None else module.unavailable()
        if missing:
            reason, _, remedy = missing.partition("; ")
            section |= {"status": "unavailable", "reason": reason, "remedy": remedy}
            return missing
        window = windows.planned(tool, job.seconds, results.sampled(findings))
        section |= window._asdict()
        spec = replace(job.spec, folder=str(folder), seconds=window.seconds)
        run(spec, findings, tool, classifier, progress)
    # An error of one tool, of whatever kind, must not lose the others' results.
    except Exception as error:
        reason = results.anonymous(f"{tool} failed: {error}", project.root)
        section |= {"status": "failed", "reason": reason}
        return reason.splitlines()[0]
    section["status"] = "ok"
    if tool == "perf" and (unseen := perf.unseen()):
        findings.report["incomplete"].append(f"{unseen}.")
    slowdown = section["slowdown"]
    slower = f", training slowed {slowdown:.2f}×" if slowdown else ""
    what = "events" if tool == "torch.profiler" else "samples"
    return f"{section['samples']:,} {what}{slower}"


def _sampler(
    spec: Spec, findings: Findings, tool: str, classifier: Classifier, progress: Progress
) -> None:
    samples, bounds = sampled(spec, tool, classifier, progress)
    results.add_samples(findings, tool, samples, results.read_ticks(Path(spec.folder)), bounds)


def sampled(
    spec: Spec,
    tool: str,
    classifier: Classifier,
    progress: Progress,
    package: Path | None = None,
) -> tuple[Samples, tuple[int, int]]:
    """The samples that py-spy or perf took of a child process, which trained until it was stopped,
    and the beginning and end of their window in ns. `package` is the folder of another build.

    Raises:
        ChildError: the child failed.
        ValueError: the tool left no samples.
    """
    module = SAMPLERS[tool]
    spec = replace(spec, mode="attached", settle=module.SETTLE_S)
    folder, seconds = Path(spec.folder), spec.settle + spec.seconds
    with child_of(spec, package) as child:
        for message in child.messages(SILENCE_S):
            _note(message, progress)
            if message.get("ready"):
                break
        child.require_alive()
        sampler = module.attach(child.pid, seconds, folder)
        start, end = _watch(child, sampler, seconds, progress)
        child.stop()
        for message in child.messages(SILENCE_S):
            _note(message, progress)
    progress.note("reading its samples", 1.0)
    samples = module.load(folder, classifier, SpanLog.load(folder / "spans.bin"))
    window = round(spec.seconds * 1e9)
    # py-spy reads symbols before it samples, perf afterwards, so the window lies at that end.
    return samples, ((end - window, end) if tool == "py-spy" else (start, start + window))


def _watch(
    child: Child, sampler: subprocess.Popen[bytes], seconds: float, progress: Progress
) -> tuple[int, int]:
    """Wait for the sampler. Returns when it began and ended, in ns of the monotonic clock."""
    start = time.perf_counter_ns()
    try:
        while sampler.poll() is None:
            child.require_alive()
            elapsed = (time.perf_counter_ns() - start) / 1e9
            if elapsed > seconds + _LATE_S:
                raise ChildError(f"the sampler was not done {_LATE_S:.0f} s after its window")
            progress.note("sampling", min(1.0, elapsed / seconds))
            time.sleep(0.1)
    finally:
        end(sampler)
    return start, time.perf_counter_ns()


def _scalene(
    spec: Spec, findings: Findings, tool: str, classifier: Classifier, progress: Progress
) -> None:
    spec = replace(spec, mode="scalene")
    folder = Path(spec.folder)
    ready = 0.0
    with child_of(spec, command=scalene.command(spec, folder)) as child:
        for message in child.messages(SILENCE_S):
            if message.get("ready"):
                ready = time.monotonic()
            done = (time.monotonic() - ready) / spec.seconds if ready else None
            _note(message, progress, fraction=done)
    ticks = results.read_ticks(folder)
    start = ticks.start_ns
    window = (start, start + round(spec.seconds * 1e9))
    samples = scalene.load(folder, classifier, spec.seconds)
    findings.report["tools"][tool]["lines"] = scalene.lines(folder, classifier)
    results.add_samples(findings, tool, samples, ticks, window)


def _torch_profiler(
    spec: Spec, findings: Findings, tool: str, classifier: Classifier, progress: Progress
) -> None:
    spec = replace(spec, mode="torch_profiler")
    folder = Path(spec.folder)
    with child_of(spec) as child:
        for message in child.messages(SILENCE_S):
            _note(message, progress)
    ticks = results.read_ticks(folder)
    spans = SpanLog.load(folder / "spans.bin")
    recorded = torch_profiler.load(folder, spans)
    findings.torch_events = torch_profiler.with_phases(recorded.events, spans)
    results.add_torch(findings, recorded, ticks, classifier)


def _note(
    message: dict[str, Any],
    progress: Progress,
    total: int | None = None,
    fraction: float | None = None,
) -> None:
    if "doing" in message:
        progress.note(message["doing"], fraction)
    elif "steps" in message and total:
        progress.note(f"{message['steps']:,} steps", min(1.0, message["steps"] / total))
    elif fraction is not None:
        progress.note("sampling", min(1.0, fraction))


def child_of(
    spec: Spec, package: Path | None = None, command: Sequence[str] | None = None
) -> Child:
    """A child process that works as the spec says, in the spec's folder. `package` is a folder with
    another build than the installed one; `command` takes the place of the child's usual command."""
    of = [] if package is None else [str(package)]
    words = command or [sys.executable, spec.child, str(spec.save()), *of]
    return Child(words, Path(spec.folder), environment(spec))


def environment(spec: Spec) -> dict[str, str]:
    """The variables for a run: this process's, a fixed hash seed, the spec's number of threads."""
    threads = str(spec.threads)
    return os.environ | {
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": threads,
        "MKL_NUM_THREADS": threads,
        "OPENBLAS_NUM_THREADS": threads,
    }
