"""`rlox-opt claims`: every figure of the texts beside the record that it is from."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from rlox_opt.cli.types import pattern
from rlox_opt.history import claims
from rlox_opt.history.claims import FEW, CheckedClaim
from rlox_opt.project.project import Project
from rlox_opt.system import exits
from rlox_opt.system.exits import DIFFERENCE, GOOD
from rlox_opt.system.output import say

_EXAMPLES = f"""\
examples:
  rlox-opt claims
  rlox-opt claims --only 'ppo|sac' --flagged
  rlox-opt claims --json |
    jq -r '.claims[] | select(.stale != []) | .record' | sort -u

claims.toml names the texts, and binds each of their figures to a record and a path in it:

  [record.ppo]
  path = "peers/record/amd-epyc-2c/2026-11-23T072208Z_ppo.json"
  rounds = "table[peer=rlox].runs"
  measures = ["rlox/learner", "crates/rlox-core/src", "!crates/rlox-core/src/llm"]

  [[claim]]
  text = "README.md"
  record = "ppo"
  says = "{{speed}} times as fast as Stable-Baselines3"
  figures = {{ speed = "table[peer=rlox].sps_ratio.ratio .1f" }}

A claim is stale where its record is of a tree with uncommitted changes, has fewer than {FEW}
rounds, or is older than a change of the code that it measures. (Changes of comments, docstrings,
imports and Rust's test modules do not count, nor does code that is moved.) Measure anew, or claim
less. Where the text tells how it was, as a changelog does, `measures` is empty: no change makes the
record stale, and the claim is marked "past". A number that was not measured, such as a default or a
size, is listed under [plain], with the words around it.
Machine and date of the record stand beside each figure. `rlox_opt.history.figures` tells what a
path may be.
"""


def add_to(verbs: Any, project: Project) -> None:
    """Add the verb to the command line."""
    parser = verbs.add_parser(
        "claims",
        help="compare the figures that texts claim with the records they come from",
        description="List the figures that texts claim, each with the commit, the machine and the "
        "date of its record. Tell where a text differs from its record, and where the code has "
        "changed since the record.",
        epilog=_EXAMPLES
        + exits.told(
            good="every figure is its record's, and every record holds",
            difference="a text differs, a figure is unbound, or a record is stale",
        ),
    )
    add = parser.add_argument
    add("--only", metavar="REGEX", type=pattern, default=re.compile(""),
        help="only claims in whose text, words or record it is found")  # fmt: skip
    add("--flagged", action="store_true", help="only claims that are wrong or stale")
    add("--claims", metavar="FILE", type=Path, default=project.root / "claims.toml",
        help="default: claims.toml of this project")  # fmt: skip
    add("--json", action="store_true", help="print JSON to stdout, nothing else")
    parser.set_defaults(run=run, parser=parser)


def run(arguments: argparse.Namespace) -> int:
    """List; returns the exit code."""
    checked, loose = claims.check(arguments.claims)
    chosen = [one for one in checked if arguments.only.search(_words(one))]
    shown = [one for one in chosen if one.wrong or one.stale or not arguments.flagged]
    code = DIFFERENCE if loose or any(one.wrong or one.stale for one in chosen) else GOOD
    if arguments.json:
        rows = [_row(one) for one in shown]
        print(json.dumps({"claims": rows, "loose": loose, "exit_code": code}, indent=1))
        return code
    for line in lines(shown, loose):
        say(line)
    wrong, stale = sum(bool(one.wrong) for one in chosen), sum(bool(one.stale) for one in chosen)
    past = sum(one.source.past for one in chosen)
    say(
        f"rlox-opt claims: {len(chosen)} claims, {past or 'none'} of the past; the texts of "
        f"{wrong or 'none'} differ, the records of {stale or 'none'} are stale; "
        f"{len(loose) or 'no'} figures are unbound",
        stderr=True,
    )
    return code


def lines(listed: Sequence[CheckedClaim], loose: Sequence[str]) -> Iterator[str]:
    """A paragraph for each claim, then what is bound to nothing."""
    for one in listed:
        figures = ", ".join(f"{name} {said}" for name, said in one.figures.items())
        yield f"{one.claim.text}:{one.line or '?'}  {figures}"
        past = " · past" if one.source.past else ""
        yield f"    {one.commit[:10]} · {one.machine} · {one.date} · {one.source.path}{past}"
        yield from (f"    differs: {what}" for what in one.wrong)
        yield from (f"    stale: {what}" for what in one.stale)
    if loose:
        yield "Bound to nothing"
        yield from (f"    {what}" for what in loose)


def _words(one: CheckedClaim) -> str:
    return f"{one.claim.text} {one.claim.record} {one.claim.says} {one.source.path}"


def _row(one: CheckedClaim) -> dict[str, Any]:
    return {
        "text": one.claim.text,
        "line": one.line,
        "says": one.claim.says,
        "figures": one.figures,
        "record": one.source.path,
        "commit": one.commit,
        "machine": one.machine,
        "date": one.date,
        "past": one.source.past,
        "differs": one.wrong,
        "stale": one.stale,
    }
