"""Which part, made faster, would make the whole faster, and by how much: the recorded programs
replayed with it, part by part."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from rlox_opt.sampling.processes.programs import HAND_OVER, NOT_BEGUN, UNKNOWN, Recorded, WorkPart
from rlox_opt.sampling.processes.replay import Program, path, replay

MOST = 20  # parts that are replayed
MOST_TIMES = 1000.0  # as fast is told of a program that nothing is left of
_LEAST = 0.01  # of the whole: what all threads together spend less on is not
_STRAGGLES = 1.2  # times what equal threads take at the median
_NOT_WORK = (HAND_OVER, UNKNOWN, NOT_BEGUN)


@dataclass(frozen=True)
class Gain:
    """What a part is worth. `seconds` is its work in all threads, `on_path` its share of the
    critical path; `twice`, `gone` and `evened` are the whole's time now over that with the part
    twice as fast, without it, and (of a straggler, else None) as fast as with its equals."""

    what: str
    kind: str  # "phase", "lock", "straggler"
    seconds: float
    on_path: float
    twice: float
    gone: float
    evened: float | None = None


@dataclass(frozen=True)
class Gains:
    """The most worthwhile first. `seconds` is what the replay of all as it was takes, `work` the
    seconds on a CPU by component and phase, `path` the share of the critical path by what it is
    spent on, `stuck` the threads that the replay lost."""

    seconds: float
    work: dict[str, float]
    path: dict[str, float]
    gains: list[Gain]
    stuck: list[str]


def gains(recorded: Recorded, cores: int) -> Gains:
    """Every part that is worth a replay, alone. Raises ValueError as `replay` does."""
    programs = recorded.programs
    work = _work(programs)
    base = replay(programs, cores, there=recorded.there)
    on_path = path(programs, base)
    whole = sum(on_path.values())
    if not whole:  # no time passed, or none of it on the way of those that matter
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
    """Seconds of each part, with what passes without a CPU or not; what nobody could make faster
    is none."""
    work: defaultdict[WorkPart, float] = defaultdict(float)
    for program in programs:
        for stretch in program.stretches:
            for part, seconds in (*stretch.cpu.items(), *(stretch.rest.items() if rest else ())):
                if isinstance(part, WorkPart) and part.path not in _NOT_WORK:
                    work[part] += seconds
    return work


def _groups(work: Mapping[WorkPart, float]) -> dict[tuple[str, str], set[WorkPart]]:
    """Parts that are made faster together: a phase in all equal threads, and what is done while a
    lock is held; the largest."""
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
    """Parts that take much longer in one thread than in its equals: what, which, and what would be
    left of it if it took as long as theirs."""
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
    """By component and phase, the largest first."""
    told: defaultdict[str, float] = defaultdict(float)
    for part, figure in figures.items():
        told[f"{part.kind}: {part.path}"] += figure
    return dict(sorted(told.items(), key=lambda item: -item[1]))
