"""What a recording lacks, in one line."""

from __future__ import annotations

from collections.abc import Collection

from rlox_opt.history import recording
from rlox_opt.history.store import Entry
from rlox_opt.system.output import few, number_of


def told(entry: Entry, skipped: Collection[str]) -> str:
    """What an entry lacks, and what would bring it; "" if nothing is missing. `skipped` are the
    benchmarks that asked to be skipped."""
    reasons = {of["benchmark"]: of["reason"].partition("\n")[0] for of in entry.failures}
    parts = {of: why for of, why in reasons.items() if of in ("benchmarks", *recording.STAGES)}
    late = [of for of, why in parts.items() if why.startswith(recording.NO_TIME)]
    failed = [
        of
        for of in reasons
        if of not in parts and of not in skipped and not of.startswith(recording.CAUSE)
    ]
    said = []
    if failed:
        said.append(f"{number_of(len(failed), 'benchmark')} failed ({few(failed)})")
    if skipped:
        said.append(f"{number_of(len(skipped), 'benchmark')} asked to be skipped")
    said += [f"{of}: {why}" for of, why in parts.items() if of not in late]
    if late:
        names = " and ".join(filter(None, (", ".join(late[:-1]), late[-1])))
        said.append(f"{names}: {recording.NO_TIME}")
    restarts = [cell.restarts for cell in entry.cells if cell.kind == "time" and cell.restarts]
    short = bool(restarts) and max(restarts) < recording.RESTARTS
    if short:
        said.append(f"{number_of(max(restarts), 'restart')} each")
    remedy = ": a larger --budget, or --bench" if late or short else ""
    return "; ".join(said) + remedy
