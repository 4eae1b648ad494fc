"""`make hostile`: calls of the extension by the million, and a record of the results."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path[:0] = [str(ROOT), str(HERE.parent), str(HERE)]

from long_runs import keep  # noqa: E402
from surface import surface  # noqa: E402

RECORDS = HERE / "record"
GOOD, FAILED, OWN_ERROR, INTERRUPTED = 0, 1, 3, 130  # as workbench/rlox_opt/system/exits.py
CALLS = 10_000_000
OF_A_BATCH, _FORKS, _OF_A_FORK = 50_000, 20, 100
_LIMIT_S, _TOLD_EVERY_S = 900.0, 10.0
_EXAMPLES = """\
examples:
  make hostile                            ten million calls: about a quarter of an hour on two cores
  make hostile ARGS="--calls 200000"      fewer
  make hostile ARGS="--seed 1000"         others

A seed decides a batch of calls, in a process of its own: of even seeds by one thread, of odd ones
by three and by forked children, where the order is the system's. What was found is told in a line
each, with the command that repeats it. The counts, by function and by what came of the call, go to
tests/boundary/record/MACHINE/.

exit codes (make turns each but 0 into 2):
  0  each call came back, or was refused with an exception; what can be checked was right
  1  something else happened, or a function was never called or never came back
  2  asked wrongly
  3  an error of its own
  130  interrupted: what is known is recorded
"""


@dataclass
class Batch:
    """The results of one seed's calls."""

    seed: int
    calls: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the calls; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make hostile", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add = parser.add_argument
    cores = len(os.sched_getaffinity(0))
    add("--calls", type=_positive, default=CALLS, help=f"in all (default: {CALLS})")
    add("--seed", type=int, default=0, help="of the first batch (default: 0)")
    add("--processes", type=_positive, default=cores, help="at once (default: one a core)")
    add("--json", action="store_true", help="print the record to stdout, nothing else")
    arguments = parser.parse_args(argv)
    try:
        return campaign(arguments)
    except OSError as error:  # nothing can be written
        _tell(f"make hostile: {error}")
        return OWN_ERROR


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"is {number}, expected at least 1")
    return number


def campaign(arguments: argparse.Namespace) -> int:
    """Run batch after batch, record and print the results; returns the exit code."""
    from rlox_opt.system import files

    where, start = _where(), time.monotonic()
    files.check_folder(RECORDS)
    n_batches = -(-arguments.calls // OF_A_BATCH)
    of_each = -(-arguments.calls // n_batches)
    seeds = range(arguments.seed, arguments.seed + n_batches)
    done: list[Batch] = []
    complete, told = True, start
    try:
        for batch in _held(seeds, of_each, arguments.processes):
            done.append(batch)
            for fault in batch.faults:
                _tell(fault)
            now = time.monotonic()
            if now - told > _TOLD_EVERY_S or len(done) == n_batches:
                told = now
                _tell(_progress(done, n_batches, now - start))
    except KeyboardInterrupt:
        complete = False
    record = where | _summed(done, time.monotonic() - start)
    record |= {"complete": complete, "seeds": sorted(batch.seed for batch in done)}
    if done:
        path = keep(record, table(record), RECORDS, "_hostile")
        _tell(str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path))
    print(json.dumps(record) if arguments.json else table(record), flush=True)
    if not complete:
        return INTERRUPTED
    return FAILED if record["faults"] or record["never_returned"] else GOOD


def _held(seeds: Sequence[int], calls: int, at_once: int) -> Iterator[Batch]:
    """The batches of `seeds` as they end. Leaving the loop early ends the batches that still
    run."""
    left, stop = iter(seeds), threading.Event()
    with ThreadPoolExecutor(at_once) as pool:
        running = {pool.submit(_batch, seed, calls, stop) for seed in islice(left, at_once)}
        try:
            while running:
                ended, running = wait(running, return_when=FIRST_COMPLETED)
                more = islice(left, len(ended))
                running |= {pool.submit(_batch, seed, calls, stop) for seed in more}
                yield from map(Future.result, ended)
        finally:
            stop.set()


def _batch(seed: int, calls: int, stop: threading.Event) -> Batch:
    """The calls of one seed, in a process that Ctrl-C does not reach."""
    found, words = Batch(seed), ["--seed", str(seed)]
    in_children = _FORKS * _OF_A_FORK if seed % 2 and calls > 2 * _FORKS * _OF_A_FORK else 0
    words += ["--count", str(calls - in_children), "--threads", str(1 + 2 * (seed % 2))]
    words += ["--forks", str(in_children // _OF_A_FORK)]
    # To write a backtrace takes locks.
    own = {"RUST_BACKTRACE": str(seed // 2 % 2), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(
        [sys.executable, str(HERE / "hostile.py"), *words], env={**os.environ, **own},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    end = time.monotonic() + _LIMIT_S
    while True:
        try:
            out, err = process.communicate(timeout=0.2)
            break
        except subprocess.TimeoutExpired:
            if not stop.is_set() and time.monotonic() < end:
                continue
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            found.faults.append(f"does not end within {_LIMIT_S:.0f} s")
            return found
    try:
        told = json.loads(out)
        found.counts.update(told["counts"])
        found.faults += told["fatal"]
    except ValueError:
        pass
    if process.returncode and not found.faults:
        code = process.returncode
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        found.faults.append(f"ended by {how}: {' '.join(err.split()[-40:])}")
    if err and not found.faults:
        found.faults.append(f"stderr: {' '.join(err.split()[:40])}")
    children = found.counts.pop("calls in children", 0)
    found.calls = found.counts.pop("calls", 0) + children
    found.counts["calls in children"] = children
    repeat = " ".join(
        [*(f"{k}={v}" for k, v in own.items()), "python tests/boundary/hostile.py", *words]
    )
    found.faults = [f"{' '.join(fault.split())} [{repeat}]" for fault in found.faults]
    return found


def _progress(done: Sequence[Batch], n_batches: int, seconds: float) -> str:
    calls, faults = sum(b.calls for b in done), sum(len(b.faults) for b in done)
    left = seconds / len(done) * (n_batches - len(done))
    return (
        f"{calls:,} calls, {faults} faults, {calls / seconds:,.0f} a second; {left:.0f} s to come"
    )


def _summed(done: Sequence[Batch], seconds: float) -> dict[str, Any]:
    """The counts of all batches, by function and by the call's result."""
    functions = dict[str, Counter[str]]()
    in_children = 0
    for batch in done:
        for what, n in batch.counts.items():
            name, _, outcome = what.rpartition(" ")
            if what == "calls in children":
                in_children += n
            else:
                functions.setdefault(name, Counter())[outcome] += n
    calls = sum(batch.calls for batch in done)
    return {
        "calls": calls,
        "calls_in_children": in_children,  # which tell what went wrong alone
        "seconds": round(seconds, 1),
        "calls_per_second": round(calls / seconds),
        "faults": [fault for batch in done for fault in batch.faults],
        "never_returned": sorted(
            of for of in surface() if not functions.get(of, {}).get("returned")
        ),
        "functions": {name: dict(of.most_common()) for name, of in sorted(functions.items())},
    }


def _where() -> dict[str, Any]:
    """The time, the commit, the machine and the build."""
    from rlox_opt.system.machine import commit, machine

    from rlox import _core

    revision, dirty = commit(ROOT)
    return {
        "schema": 1,
        "date": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
        "commit": revision,
        "dirty": dirty,
        "machine": machine(),
        "build": dict(_core.build_info()),
    }


def table(record: Mapping[str, Any]) -> str:
    """The record in Markdown."""
    dirty = " and changes" if record["dirty"] else ""
    faults = record["faults"]
    lines = [
        "# Calls of the extension",
        "",
        f"{record['date']}, commit {(record['commit'] or 'unknown')[:10]}{dirty}, "
        f"{record['machine']['cpu']}, {record['machine']['cores']} cores: "
        f"{record['calls']:,} calls, {record['calls_in_children']:,} of them in forked children, "
        f"in {record['seconds']:.0f} s; "
        f"{len(faults)} faults. Never came back: {', '.join(record['never_returned']) or 'none'}.",
        "",
        "| function | calls | returned | refused |",
        "|---|---:|---:|---|",
    ]
    for name, outcomes in record["functions"].items():
        refused = ", ".join(f"{n:,} {of}" for of, n in outcomes.items() if of != "returned")
        total = sum(outcomes.values())
        lines.append(f"| {name} | {total:,} | {outcomes.get('returned', 0):,} | {refused} |")
    if faults:
        lines += ["", *(f"- {line.replace('|', chr(0xA6))}" for line in faults)]
    return "\n".join(lines) + "\n"


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
