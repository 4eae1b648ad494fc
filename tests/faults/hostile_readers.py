"""Files broken in every way of `hostile_files`, each given to the function that reads it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hostile_files
from campaign import Trial, random_of
from rlox_opt.history import acknowledged, claims, ledger, records, store
from rlox_opt.plan.testing import planted
from rlox_opt.project import calibration, cards
from rlox_opt.system.files import NotReadError
from rlox_opt.system.schema import read

NAME, SHORT, LONG = "hostile-readers", range(300), 6000
_ROOT = Path(__file__).parents[2]
_READERS: tuple[tuple[str, Callable[[Path], Any]], ...] = (
    ("asv_bench/history/*/*.json", store.read),
    ("optimizations/record/*/*_[pr]*[0-9].json", records.read),
    ("optimizations/record/*/*_ladder_*.json", lambda path: read(path, ledger.Ladder)),
    ("asv_bench/record/*/*_calibration.json", lambda path: read(path, calibration.Calibration)),
    ("optimizations/*.toml", cards.parse),
    ("asv_bench/acknowledged.toml", acknowledged.load),
    ("tests/pairs/planted.toml", planted.load),
    ("claims.toml", lambda path: read(path, claims.Book)),
)


def trial(seed: int, folder: Path) -> Trial:
    """Break a copy of a file and read it. It must be read, or refused in a line that names it."""
    rng = random_of(NAME, seed)
    pattern, reader = _READERS[seed % len(_READERS)]
    source = rng.choice(sorted(_ROOT.glob(pattern)))
    path = folder / source.name
    path.write_bytes(source.read_bytes())
    with hostile_files.broken(path, _FORMAT, rng) as how:
        found = Trial(seed, f"{source.name}, {how}")
        try:
            reader(path)
            found.counts["read"] += 1
        except NotReadError as error:
            found.counts["refused"] += 1
            if path.name not in str(error):
                found.fault(f"does not name the file: {error}")
            if len(str(error).splitlines()) > 1 or len(str(error)) > 1000:
                found.fault(f"is no line: {str(error)[:200]}")
        except BaseException:
            found.fault(traceback.format_exc(limit=-3).replace("\n", " | "))
    path.unlink(missing_ok=True)
    return found


_FORMAT = hostile_files.Format("", "", ())
