"""py-spy: the portable sampler. It sees Python and native frames, and slows training by about a
third.

It samples wall time, also of waiting threads. Its output has no times, so the phase of a sample is
found by its Python lines. It sees neither the kernel nor threads that never ran Python.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from rlox_opt.sampling import onlooker
from rlox_opt.sampling.layers import GRAD, UNKNOWN, Classifier
from rlox_opt.sampling.owners import Stack, layers_of
from rlox_opt.sampling.phases import BACKWARD, part_by_line, phase_by_line, recorded_phase
from rlox_opt.sampling.processes.inside.rlox_opt_segments import allow_ptrace as allow_ptrace
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.spans import SpanLog

RAW = "pyspy.raw"
RATE = 100  # Hz; above it, native unwinding mostly slows the program

# py-spy stops the program to read a library's symbols when it first meets the library. It then
# takes all missed samples at once, hundreds of the same place. So it starts SETTLE_S before its
# window, and samples inside the function SETTLING are dropped.
SETTLE_S = 10.0
SETTLING = "sampler_settles"

# Stopping the program takes microseconds on a quiet machine and milliseconds on a crowded host.
# There py-spy falls behind and catches up with samples of one place, so its shares become wrong:
# beyond this slowdown they were seen to be off by more than 3 points.
HELD_UP = 1.4

_NOT_INSTALLED = "py-spy is not installed: pip install py-spy"
_THREAD = re.compile(r"thread \((?P<id>[^)]*)\)(?:: (?P<name>.*))?$")
_FRAME = re.compile(rf"{onlooker.FRAME}(?::(?P<line>\d+))?\)$")
_SEPARATOR = re.compile(r";(?! )")  # "[usize; 1]" is one name
_COUNTED = re.compile(r"Samples: (\d+) Errors: (\d+)")


@lru_cache(maxsize=1)
def unavailable() -> str | None:
    """Why py-spy cannot be used here, with the remedy; None: it can."""
    command = _command()
    if command is None:
        return _NOT_INSTALLED
    allow_ptrace()
    try:
        probe = subprocess.run(
            [command, "dump", "--nonblocking", "--pid", str(os.getpid())],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"py-spy fails here ({error}); try `py-spy dump` by hand"
    if probe.returncode == 0:
        return None
    if "ermission" in probe.stderr or "not permitted" in probe.stderr:
        return (
            "py-spy may not trace processes here; allow ptrace (in a container "
            "`--cap-add=SYS_PTRACE`, on a host `sysctl kernel.yama.ptrace_scope=0`, on macOS sudo)"
        )
    reason = probe.stderr.strip().splitlines()
    return f"py-spy fails here ({reason[0] if reason else 'no message'}); try `py-spy dump` by hand"


def attach(
    pid: int, seconds: float, folder: Path, rate: int = RATE, *, native: bool = True
) -> subprocess.Popen[bytes]:
    """Sample a running process for `seconds`; `load(folder)` reads the files that py-spy leaves.

    Without `native` py-spy sees Python functions only, and hardly slows the program.

    Raises:
        FileNotFoundError: py-spy is not installed.
    """
    words = [*_record(folder, rate), "--duration", str(max(1, round(seconds))), "--pid", str(pid)]
    if native:
        words.append("--native")
    return onlooker.start(words, folder / "pyspy.log")


def launching(folder: Path, rate: int) -> list[str]:
    """The words to put before a command so that py-spy runs and samples it. Python functions only;
    `load(folder)` reads the files that py-spy leaves.

    Raises:
        FileNotFoundError: py-spy is not installed.
    """
    return [*_record(folder, rate), "--subprocesses", "--"]


def _record(folder: Path, rate: int) -> list[str]:
    """The command with which py-spy records what `load` reads. Raises FileNotFoundError."""
    command = _command()
    if command is None:
        raise FileNotFoundError(_NOT_INSTALLED)
    return [
        *(command, "record", "--threads", "--idle", "--full-filenames"),
        *("--rate", str(rate), "--format", "raw", "--output", str(folder / RAW)),
    ]


def load(
    folder: Path,
    classifier: Classifier,
    spans: SpanLog | None = None,
    rate: int = RATE,
    *,
    parts: bool = False,
    made: str = UNKNOWN,
    pid: int = 0,
    phases: Collection[str] | None = None,
) -> Samples:
    """Read what `attach` left in the folder. `spans` is not needed: lines show the phases, and with
    `parts` also the part of torch's work. `made` is the owner of code made at run time. The thread
    `pid` is the main one, whatever the program calls it. `phases` are those that the program
    recorded; None: not known.

    Raises:
        ValueError: there is no profile; the message ends with what py-spy printed.
    """
    raw, log = folder / RAW, folder / "pyspy.log"
    if not raw.exists() or not raw.stat().st_size:
        raise ValueError(onlooker.nothing("py-spy", log))
    counted = _COUNTED.findall(onlooker.said(log))
    samples = Samples("py-spy", period_s=1 / rate, errors=int(counted[-1][1]) if counted else 0)
    seen: list[tuple[str, Stack, int]] = []
    with raw.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            stack, _, count = line.rstrip("\n").rpartition(" ")
            if stack and count.isdigit() and SETTLING not in stack:
                read = _stack(stack, samples.period_s, classifier, parts, str(pid))
                seen.append((*read, int(count)))
    if any(stack.part == BACKWARD for _, stack, _ in seen):  # gradients are used
        seen = [(who, stack._replace(part=stack.part or GRAD), n) for who, stack, n in seen]
    if phases is not None:
        seen = [
            (who, stack._replace(phase=recorded_phase(stack.phase, phases)), n)
            for who, stack, n in seen
        ]
    layers = layers_of([stack for _, stack, _ in seen], classifier, made)
    for (thread, of, times), layer in zip(seen, layers, strict=True):
        frames = classifier.shown(of.native)
        sample = Sample(frames, of.phase, layer, samples.period_s, thread)
        samples.samples.extend([sample] * times)
    return samples


def without_stops(samples: Samples, slowdown: float) -> Samples:
    """The samples, with those of work weighed by the time that it takes without py-spy.

    py-spy stops a thread that works, while a wait goes on. If training takes `slowdown` times as
    long, and a share w of its samples are waits, work takes s = slowdown (1 - w) / (1 - slowdown w)
    times as long. So a sample of work counts 1 / s. Where waits alone would fill the undisturbed
    time, or nothing was slowed, weights stay as they are.
    """
    ours = [sample for sample in samples.samples if sample.thread == MAIN_THREAD]
    total = sum(sample.weight for sample in ours)
    waits = sum(sample.weight for sample in ours if sample.layer == "idle") / total if total else 0
    if slowdown <= 1 or slowdown * waits >= 1:
        return samples
    work = (1 - slowdown * waits) / (slowdown * (1 - waits))
    return replace(
        samples,
        samples=[
            sample if sample.layer == "idle" else sample._replace(weight=work * sample.weight)
            for sample in samples.samples
        ],
    )


def _stack(
    text: str, period_s: float, classifier: Classifier, parts: bool, main: str
) -> tuple[str, Stack]:
    """The name of a thread, and its stack; `main` is the id of the main thread."""
    head, *rest = _SEPARATOR.split(text)
    if head.startswith("process "):  # one of several; its command may contain separators too
        while rest and not _THREAD.match(head):
            head, *rest = rest
    match = _THREAD.match(head)
    thread = MAIN_THREAD
    if match is None:
        rest.insert(0, head)
    elif match["id"] != main:
        thread = match["name"] or match["id"]
    full = tuple(_frame(text) for text in rest)
    python = tuple(frame for frame in full if classifier.is_python(frame))
    part = part_by_line(python) if parts else ""
    return thread, Stack(full, python, phase_by_line(full), part, False, period_s, 0)


@lru_cache(maxsize=65536)
def _frame(text: str) -> Frame:
    """One frame as py-spy writes it: `name (file.py:12)`, `name (lib.rs:12)`, `name (lib.so)`."""
    match = _FRAME.match(text)
    if match is None:
        return Frame(text, "[unknown]")
    line = match["line"]
    return Frame(match["name"], match["module"], int(line) if line else None)


def _command() -> str | None:
    """The py-spy that is installed beside this interpreter, otherwise the one on PATH."""
    beside = Path(sys.executable).parent / "py-spy"
    return str(beside) if beside.exists() else shutil.which("py-spy")
