"""One case against all engines: they are prepared, compared with the reference, and timed in turn.

A round is a slice of calls of every engine, in random order. An engine with long calls has fewer
rounds, but at least one. A restart's reading of an engine is the median of its rounds. Of two
engines it is the median of ln(time of one / time of the other) over the rounds of both.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from rlox_opt.harness.restarts import ContestError
from rlox_opt.race.primitives.cases import Case, WrongError
from rlox_opt.race.primitives.engines import MissingError, Process, Processes, one_line, validate

_SLICE_S = 0.0005
_ROUNDS = 25
_MOST_S = 2.0  # seconds of one engine in one restart
_EACH = 40  # calls that are timed one by one in a round


def hold(
    processes: Processes,
    case: Case,
    ours: Sequence[str],
    each: bool,
    known: set[tuple[str, str]],
    tell: Callable[[str], None],
    resting: Collection[str] = (),
    weigh: bool = False,
) -> dict[str, Any]:
    """One restart of a case, without the engines that are `resting`.

    Returns `times`, by engine {"s": median seconds of a call, "rounds"}; with `each` also "p99_s";
    with `weigh` also "share" (CPU time over wall time), "held" (bytes of a call's result), "peak"
    (bytes that Python and NumPy allocate within a call) and "faults" (its page faults). `ratios`
    are ln(ours / theirs), by one of `ours` and the engine. `left_out` says why an engine has no
    times, except for cases that it does not offer. `known` are the (engine, case) whose results
    were right before; new ones are added. `tell` is called with what is being done.
    """
    left_out: dict[str, str] = {}
    fits: dict[str, tuple[int, float]] = {}
    taking: dict[str, Process] = {}
    for name, process in processes:
        if name in resting:
            continue
        tell(f"{name} is prepared")
        try:
            process("prepare", case.family, case.size)
            if (name, case.key) not in known:
                validate(process, case)
                known.add((name, case.key))
            fits[name] = process("fit", _SLICE_S)
            taking[name] = process
        except MissingError:
            continue
        except WrongError as wrong:
            left_out[name] = f"is wrong: {wrong}"
        except ContestError as problem:
            left_out[name] = f"fails: {one_line(problem)}"
    rounds, singles = _rounds(taking, fits, each, left_out, tell)
    weights: dict[str, dict[str, float]] = {}
    for name, process in taking.items():
        try:
            if weigh:
                share = process("share", fits[name][0])
                weights[name] = {"share": share, **process("memory")}
            process("forget")
        except ContestError:
            process.close()
    times = {name: [s for s in row if s is not None] for name, row in rounds.items()}
    return {
        "times": {
            name: {
                "s": statistics.median(seconds),
                "rounds": len(seconds),
                **_p99(singles.get(name)),
                **weights.get(name, {}),
            }
            for name, seconds in times.items()
        },
        "ratios": {one: _ratios(rounds, one) for one in ours if one in rounds},
        "left_out": left_out,
    }


def _rounds(
    taking: dict[str, Process],
    fits: Mapping[str, tuple[int, float]],
    each: bool,
    left_out: dict[str, str],
    tell: Callable[[str], None],
) -> tuple[dict[str, list[float | None]], dict[str, list[int]]]:
    """Seconds of a call by engine and round, None where the engine was left out of a round; and
    nanoseconds of single calls."""
    rng = random.Random()
    # An engine that takes too long for another round keeps the time from its first call.
    rounds: dict[str, list[float | None]] = {
        name: [took] if took > _MOST_S else [] for name, (_, took) in fits.items()
    }
    singles: dict[str, list[int]] = {}
    spent = dict.fromkeys(taking, 0.0)
    for number in range(_ROUNDS):
        tell(f"round {number + 1} of {_ROUNDS}")
        for name in rng.sample(list(taking), len(taking)):
            calls, took = fits[name]
            if len(rounds[name]) > number:
                continue
            if spent[name] + calls * took > _MOST_S and number:
                rounds[name].append(None)
                continue
            try:
                seconds = taking[name]("time", calls)
                if each and _EACH * _ROUNDS * took <= _MOST_S:
                    singles.setdefault(name, []).extend(taking[name]("each", _EACH))
            except ContestError as problem:
                left_out[name] = f"fails: {one_line(problem)}"
                del rounds[name], taking[name]
                continue
            spent[name] += seconds
            rounds[name].append(seconds / calls)
    return rounds, singles


def _p99(nanoseconds: Sequence[int] | None) -> dict[str, float]:
    if not nanoseconds:
        return {}
    return {"p99_s": statistics.quantiles(nanoseconds, n=100)[98] / 1e9}


def _ratios(rounds: Mapping[str, Sequence[float | None]], one: str) -> dict[str, float]:
    ratios = {}
    for name, theirs in rounds.items():
        both = zip(rounds[one], theirs, strict=False)
        logs = [math.log(a / b) for a, b in both if a is not None and b is not None]
        if name != one and logs:
            ratios[name] = statistics.median(logs)
    return ratios
