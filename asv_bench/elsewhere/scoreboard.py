"""`python -m asv_bench.elsewhere.scoreboard` writes scoreboard.md: how many known slowdowns of
other projects each tool found, counted over the newest records of each project.

The README cites this page. The Trust page of `rlox-opt publish` has every commit behind the counts.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rlox_opt.system import schema
from rlox_opt.views.site.scores import scoreboard

from asv_bench import markdown

PAGE = Path(__file__).parent / "scoreboard.md"
RECORDS = Path(__file__).parents[1] / "record"


def records(until: str = "") -> dict[str, dict[str, list[dict[str, Any]]]]:
    """The records by machine, up to and including the date `until`; "" takes all."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: {"elsewhere": []})
    for path in sorted(RECORDS.glob("*/*_elsewhere.json")):
        record = schema.read(path, dict[str, Any])
        if not until or str(record["date"]) <= until:
            found[path.parent.name]["elsewhere"].append(record)
    return found


def page(found: Mapping[str, Mapping[str, list[dict[str, Any]]]]) -> str:
    """The page in Markdown, with the date and the commit of the newest record.

    Raises:
        ValueError: there is no record.
    """
    score = scoreboard(found)
    if score is None:
        raise ValueError(f"{RECORDS}: holds no record of asv_bench.elsewhere; run that first")
    newest = max((of for kinds in found.values() for of in kinds["elsewhere"]),
                 key=lambda of: str(of["date"]))  # fmt: skip
    machines = " and ".join(sorted({_name(of) for kinds in found.values()
                                    for of in kinds["elsewhere"]}))  # fmt: skip
    (counts, told), (each, _), *_, (measured, _) = score.tables
    words = (
        f"{score.told} {told} Flagged beside: other benchmarks of the same commit that were called "
        "slower."
    )
    return "\n".join([
        "# Are slowdowns of other projects found?", "",
        textwrap.fill(words, 112, break_on_hyphens=False), "",
        f"Date: {newest['date']}; Commit: {newest['commit']}; Machine: {machines}, "
        f"{newest['machine']['cores']} cores.", "",
        *markdown.table(counts.columns, counts.rows), "",
        *(f"{tool} failed at {commit}: {outcome.removeprefix('failed: ').removesuffix(' …')}.\n"
          for commit, _, tool, outcome, *_ in each.rows if outcome.startswith("failed: ")),
        f"{measured.caption}; some of these commits of rlox-opt are not in this repository:", "",
        *markdown.table(measured.columns, measured.rows),
    ]) + "\n"  # fmt: skip


def _name(record: Mapping[str, Any]) -> str:
    """The processor's first two words: "AMD EPYC"."""
    return " ".join(str(record["machine"]["cpu"]).replace("(R)", "").replace(",", "").split()[:2])


if __name__ == "__main__":
    PAGE.write_text(page(records()), encoding="utf-8")
    print(PAGE)
