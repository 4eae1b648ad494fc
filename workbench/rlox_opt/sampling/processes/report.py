"""The report of a run of several processes, as a dictionary that is also `report.json`.

- `schema`, `kind` ("processes"), `command`, `status` of the program, whether it was `interrupted`,
  `date`, `machine`, `versions`, `commit`, `dirty`, `options`, `sampler`, `wall_s`.
- `incomplete`, `warnings`: sentences on what is missing, and on what makes figures doubtful.
- `processes`: each `title`, `pid`, `parent`, `begin_s`, `end_s`, `how` it ended (None: killed), and
  its `threads`: `name`, `seconds`, `samples`, `layers`.
- `components`, `layers`, `ranking`: from `components`.
- `startup_s`: seconds in which the first process's main thread imported or compiled; they are in no
  share.
- `functions`, `lines`, `parts`: the program's own code with most time, from `hot`.
- `device`: what the host waited for on a device, from `on_device`; None without a device.
- `waiting`: which threads wait for which, and what each part is worth, from `analysis`; None where
  no thread recorded anything.
- `trace`: what the trace contains, and how the clocks were put on one axis.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any

from rlox_opt.project import installed
from rlox_opt.project.project import Project
from rlox_opt.sampling import perf
from rlox_opt.sampling.layers import STARTUP
from rlox_opt.sampling.processes import samplers
from rlox_opt.sampling.processes.analysis import analyse
from rlox_opt.sampling.processes.components import components, titles, together
from rlox_opt.sampling.processes.hot import Seen, hot, libraries, stacks_of
from rlox_opt.sampling.processes.inside.rlox_opt_segments import EXEC, FOLDER
from rlox_opt.sampling.processes.on_device import on_device
from rlox_opt.sampling.processes.run import RecordedProcess, RecordedRun
from rlox_opt.sampling.processes.sampled import read_samplers
from rlox_opt.sampling.processes.samples_file import read_samples
from rlox_opt.sampling.processes.threads import ThreadUse, threads_of
from rlox_opt.sampling.processes.trace import write_trace
from rlox_opt.sampling.results import anonymous
from rlox_opt.sampling.samples import MAIN_THREAD, Samples
from rlox_opt.sampling.whose import Whose
from rlox_opt.system.machine import commit

SCHEMA = 1
KIND = "processes"
_PASSING_S = 1.0  # a process that lived less than this and recorded nothing is left out
_DOUBTFUL_US = 100.0
_HELPERS = ("resource tracker", "fork server")  # multiprocessing's, which it may kill

Json = dict[str, Any]


def report(run: RecordedRun, trace: Path, project: Project) -> tuple[Json, Samples]:
    """Read all files of a run, and write its trace. Returns the report, and the samples of all work
    for a flamegraph."""
    rules = project.settings.layers
    scripts = [process.script for process in run.processes if process.script is not None]
    incomplete = read_samplers(run, Whose(rules, (), scripts=scripts))
    uses: dict[str, list[ThreadUse]] = {}
    seen: dict[str, Seen] = {}
    names = titles(run.processes)
    for process in run.processes:
        samples = read_samples(run.folder, process.key)
        uses[process.key] = threads_of(process, samples)
        if samples is not None:
            seen[process.key] = Seen(names[process.key], samples)
    shown = [process for process in run.processes if _worth_telling(process, uses[process.key])]
    layers, ranking = together(shown, uses)
    head, dirty = commit(_home(run))
    now = datetime.now(timezone.utc)
    told = write_trace(trace, run)
    start_ns = run.clock.after_ns
    every = [*seen.values()]
    threads = [*chain.from_iterable(uses.values())]
    report = {
        "schema": SCHEMA,
        "kind": KIND,
        "command": [anonymous(word, project.root) for word in run.about.command],
        "status": run.about.status,
        "interrupted": run.about.interrupted,
        "date": now.astimezone().strftime("%Y-%m-%d"),
        "date_utc": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": head,
        "dirty": dirty,
        "features": _features(run.processes),
        "machine": run.about.machine,
        "versions": _versions(run, libraries(every, rules)),
        "options": run.about.options,
        "sampler": run.about.sampler,
        "wall_s": _wall_s(run),
        "incomplete": [
            *incomplete,
            *_incomplete(run, shown, names, any(thread.phases for thread in threads)),
        ],
        "warnings": _warnings(run, told["clocks"], bool(ranking), any(t.samples for t in threads)),
        "processes": [_process(p, uses[p.key], names[p.key], start_ns) for p in shown],
        "components": components(shown, uses),
        "layers": layers,
        "ranking": ranking,
        "startup_s": _startup_s(run, uses),
        **hot(every, rules),
        "waiting": analyse(run),
        "device": on_device(run),
        "trace": told,
    }
    return report, stacks_of(every, rules)


def _home(run: RecordedRun) -> Path:
    """The folder of the program; for a module, the folder in which it was started."""
    script = "".join(run.about.command[1:2])
    return Path(script).absolute().parent if script.endswith(".py") else Path.cwd()


def _startup_s(run: RecordedRun, uses: Mapping[str, Sequence[ThreadUse]]) -> float:
    first = (process.key for process in run.processes if process.header.parent_key is None)
    main = (use for key in first for use in uses[key] if use.name == MAIN_THREAD)
    return sum(use.layers().get(STARTUP, 0.0) for use in main)


def _versions(run: RecordedRun, at_work: Collection[str]) -> dict[str, str]:
    """The versions of Python and of the libraries that were at work (of all loaded ones if that is
    not known), from the program's environment; and the sampler's, from this one."""
    versions: dict[str, set[str]] = {}
    for process in run.processes:
        loaded = process.loaded.get("versions", {})
        told = {n: v for n, v in loaded.items() if not at_work or n in at_work or n == "python"}
        for name, version in (told | process.loaded.get("built", {})).items():
            versions.setdefault(name, set()).add(version)
    told = {name: " and ".join(sorted(each)) for name, each in versions.items()}
    tool = run.about.sampler
    looked_on = installed.version(tool) if tool else None
    return told | ({tool: looked_on} if tool and looked_on else {})


def _features(processes: Sequence[RecordedProcess]) -> list[str] | None:
    """The features that our extension was built with; None if no process loaded it."""
    built = [p.loaded["features"] for p in processes if "features" in p.loaded]
    return list(dict.fromkeys(chain.from_iterable(built))) if built else None


def _worth_telling(process: RecordedProcess, uses: Sequence[ThreadUse]) -> bool:
    """Whether a process is in the tables. Helpers that lived shortly are only in the trace; the
    first process is always in the tables."""
    lived = (process.end_ns - process.begin_ns) / 1e9
    first = process.header.parent_key is None
    return first or lived >= _PASSING_S or any(use.phases for use in uses)


def _wall_s(run: RecordedRun) -> float:
    if run.about.end is not None:
        return (run.about.end.before_ns - run.clock.after_ns) / 1e9
    return max((p.end_ns - run.clock.after_ns for p in run.processes), default=0) / 1e9


def _incomplete(
    run: RecordedRun, shown: Sequence[RecordedProcess], names: dict[str, str], phased: bool
) -> list[str]:
    """Sentences on what is missing; `phased` says whether the program names phases."""
    told = []
    if run.about.interrupted:
        told.append("The program was interrupted; the figures are those of its time until then.")
    elif run.about.status:
        told.append(f"The program failed, with exit status {run.about.status}.")
    wordless = [p for p in run.processes if p.how is None and p.role not in _HELPERS]
    if left := _left_behind(run.folder):
        known = {p.header.pid: names[p.key] for p in run.processes}
        who = (known.get(pid, comm) for pid, comm in left.items())
        told.append(
            "Left behind, and running still when the program's first process had ended, so that "
            f"what they did from then on is missing: {', '.join(who)}."
        )
    if killed := [p for p in wordless if p in shown and p.header.pid not in left]:
        cause = (
            "Ended by rlox-opt, since they still ran two seconds after the program's first "
            "process, or killed before"
            if run.about.outlived
            else "Ended without a word, so killed"
        )
        told.append(
            f"{cause}, and without what was recorded in the last quarter of a second: "
            f"{', '.join(names[p.key] for p in killed)}."
        )
    gone = [
        p
        for p in shown
        if p.how == EXEC
        and not any(o.header.pid == p.header.pid and o.begin_ns > p.begin_ns for o in run.processes)
    ]
    if gone:
        told.append(
            "Replaced by a program that is not recorded (exec), which is not in the figures: "
            f"{', '.join(names[p.key] for p in gone)}."
        )
    if not run.processes:
        told.append(
            "No process was recorded. Is the program started by Python, without -I, -S or -E?"
        )
    for process in shown:
        if process.dropped_segments:
            told.append(
                f"{names[process.key]} ran too long to keep all: figures and trace are of its last "
                f"{process.recorded_s:.0f} s."
            )
    from_s, wall_s = run.about.options.get("from_s", 0.0), _wall_s(run)
    if run.processes and from_s > 0 and from_s >= wall_s:
        told.append(
            f"--from {from_s:g}: the run ended after {wall_s:.0f} s, so nothing was kept; use less."
        )
    if run.about.sampler is None:
        are = "; phases are" if phased else ""
        told.append(f"Nothing was sampled, so layers are not known{are}.")
        # If a sampler works here, the user chose to run without one.
        if why := samplers.why_none():
            told[-1] += f" {why}"
    if run.about.sampler == samplers.Perf.name and (unseen := perf.unseen()):
        told.append(f"{unseen}.")
    return told


def _left_behind(folder: Path) -> dict[int, str]:
    """Processes of the run that still exist: their names by their ids."""
    mark = os.fsencode(f"{FOLDER}={folder.absolute()}")
    left = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                left[int(process.name)] = (process / "comm").read_text().strip()
        except OSError:  # it has just ended, or belongs to another user
            continue
    return left


def _warnings(run: RecordedRun, clocks: Sequence[Json], ranked: bool, sampled: bool) -> list[str]:
    """Sentences on what makes figures doubtful, and on why there are none."""
    told = [
        f"The clock of {clock['process']} is another one; its times may be off by "
        f"{clock['error_us']:.0f} µs against the others'."
        for clock in clocks
        if clock["shift_us"] or clock["error_us"] > _DOUBTFUL_US
    ]
    if not ranked and run.about.sampler is not None:
        told.append(
            "Only start-up and waiting were sampled, so nothing is ranked."
            if sampled
            else "Nothing was sampled, so no layers are known. Give the program more to do."
        )
    if torch_s := run.about.options.get("torch_s"):
        told.append(
            f"torch.profiler looked on for {torch_s:g} s, and slowed them."
            if any(run.folder.glob("*.torch.*.jsonl"))
            else f"--torch {torch_s:g} recorded nothing: no process imported torch and worked."
        )
    return told


def _process(
    process: RecordedProcess, uses: Sequence[ThreadUse], title: str, start_ns: int
) -> Json:
    return {
        "key": process.key,
        "title": title,
        "name": process.name,
        "pid": process.header.pid,
        "parent": process.header.parent,
        "start": process.header.start,
        "how": process.how,
        "begin_s": (process.begin_ns - start_ns) / 1e9,
        "end_s": (process.end_ns - start_ns) / 1e9,
        "recorded_s": process.recorded_s,
        "threads": [
            {
                "name": use.name,
                "native_id": use.native_id,
                "seconds": use.seconds,
                "samples": use.samples,
                "phases": [phase._asdict() for phase in use.phases],
                "layers": [
                    {
                        "name": layer,
                        "seconds": seconds,
                        "share": seconds / use.seconds,
                        "ci95": use.interval(layer, seconds),
                    }
                    for layer, seconds in sorted(use.layers().items(), key=lambda item: -item[1])
                ],
            }
            for use in uses
        ],
    }
