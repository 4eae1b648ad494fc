"""How much faster the whole would be if one part were faster: the recorded programs are replayed
with each part changed in turn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rlox_opt.sampling.processes.programs import HAND_OVER, NOT_BEGUN, UNKNOWN, Recorded, WorkPart
from rlox_opt.sampling.processes.replay import Program, path, replay

MOST = 20  # parts that are replayed
MOST_TIMES = 1000.0  # the largest factor, for a program of which nothing would be left
_LEAST = 0.01  # of the whole time: parts on which all threads together spend less are left out
_STRAGGLES = 1.2  # a straggler takes this many times the median of its equals
_NOT_WORK = (HAND_OVER, UNKNOWN, NOT_BEGUN)


@dataclass(frozen=True)
class Gain:
    """What making a part faster would bring. `seconds` is its work in all threads, `on_path` its
    share of the critical path. `twice`, `gone` and `evened` are the whole's time now divided by its
    time with the part twice as fast, without the part, and (for a straggler, otherwise None) with
    the part as fast as its equals'."""

    what: str
    kind: str  # "phase", "lock", "straggler"
    seconds: float
    on_path: float
    twice: float
    gone: float
    evened: float | None = None


@dataclass(frozen=True)
class Gains:
    """The parts that bring most come first. `seconds` is the length of the unchanged replay, `work`
    the CPU seconds by component and phase, `path` the share of the critical path by kind of work,
    `stuck` the threads that could not be replayed to their end."""

    seconds: float
    work: dict[str, float]
    path: dict[str, float]
    gains: list[Gain]
    stuck: list[str]


def gains(recorded: Recorded, cores: int) -> Gains:
    """Every part that is worth a replay, each on its own. Raises ValueError as `replay` does."""
    programs = recorded.programs
    work = _work(programs)
    base = replay(programs, cores, there=recorded.there)
    on_path = path(programs, base)
    whole = sum(on_path.values())
    if not whole:  # no time passed in the threads that end the run
        return Gains(base.seconds, {}, {}, [], base.stuck)

    def ratio(parts: Collection[WorkPart], left: float) -> float:
        def scale(part: object) -> float:
            return left if part in parts else 1.0

        taken = replay(programs, cores, scale, recorded.there).seconds
        return base.seconds / max(taken, base.seconds / MOST_TIMES)

    ranked = []
    for (kind, what), parts in _groups(work).items():
        seconds = sum(work[part] for part in parts)
        shown = sum(on_path.get(part, 0.0) for part in parts) / whole
        ranked.append(Gain(what, kind, seconds, shown, ratio(parts, 0.5), ratio(parts, 0.0)))
    for what, part, left in _stragglers(work):
        shown = on_path.get(part, 0.0) / whole
        sped = (ratio([part], of) for of in (0.5, 0.0, left))
        ranked.append(Gain(what, "straggler", work[part], shown, *sped))
    ranked.sort(key=lambda gain: (-gain.gone, -gain.seconds))
    shares = {part: seconds / whole for part, seconds in on_path.items()}
    on_cpu = _work(programs, rest=False)
    return Gains(base.seconds, _told(on_cpu), _told(shares), ranked, base.stuck)


def _work(programs: Sequence[Program], rest: bool = True) -> dict[WorkPart, float]:
    """Seconds of each part, on a CPU or not. Parts that nobody could make faster are left out."""
    work: defaultdict[WorkPart, float] = defaultdict(float)
    for program in programs:
        for stretch in program.stretches:
            for part, seconds in (*stretch.cpu.items(), *(stretch.rest.items() if rest else ())):
                if isinstance(part, WorkPart) and part.path not in _NOT_WORK:
                    work[part] += seconds
    return work


def _groups(work: Mapping[WorkPart, float]) -> dict[tuple[str, str], set[WorkPart]]:
    """Parts that become faster together: a phase in all equal threads, and the work done while a
    lock is held; the largest groups."""
    groups: defaultdict[tuple[str, str], set[WorkPart]] = defaultdict(set)
    for part in work:
        groups["phase", f"{part.kind}: {part.path}"].add(part)
        if part.lock:
            groups["lock", f"{part.lock}, while it is held"].add(part)
    seconds = {name: sum(work[part] for part in parts) for name, parts in groups.items()}
    least = _LEAST * sum(work.values())
    ranked = sorted((n for n in groups if seconds[n] >= least), key=lambda n: -seconds[n])
    return {name: groups[name] for name in ranked[:MOST]}


def _stragglers(work: Mapping[WorkPart, float]) -> list[tuple[str, WorkPart, float]]:
    """Parts that take much longer in one thread than in its equals: the thread, the part, and the
    fraction that would be left if it took as long as theirs."""
    equal: defaultdict[tuple[str, str, str], dict[WorkPart, float]] = defaultdict(dict)
    for part, seconds in work.items():
        equal[part.kind, part.path, part.lock][part] = seconds
    least, slow = _LEAST * sum(work.values()), []
    for parts in equal.values():
        for part, seconds in parts.items():
            others = [of for other, of in parts.items() if other is not part]
            usual = median(others) if others else seconds
            if seconds > _STRAGGLES * usual and seconds - usual >= least:
                slow.append((f"{part.track} alone: {part.path}", part, usual / seconds))
    return slow


def _told(figures: Mapping[Any, float]) -> dict[str, float]:
    """The figures by component and phase, the largest first."""
    told: defaultdict[str, float] = defaultdict(float)
    for part, figure in figures.items():
        told[f"{part.kind}: {part.path}"] += figure
    return dict(sorted(told.items(), key=lambda item: -item[1]))
