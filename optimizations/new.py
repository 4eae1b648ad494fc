"""What `rlox-opt new p30 "title"` does in this project: the parts of a new optimisation of the data
plane, to be filled in."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from rlox_opt.plan.catalogue import all_cards
from rlox_opt.system import exits, plugins

if TYPE_CHECKING:
    from optimizations import skeleton
    from optimizations.skeleton import New, SkeletonError
else:
    skeleton = plugins.load(Path(__file__).with_name("skeleton.py"))
    New, SkeletonError = skeleton.New, skeleton.SkeletonError

LAYERS = ("rust", "boundary")
LONGEST_TITLE = 70

_EXAMPLES = """\
examples:
  rlox-opt new p30 "Rewards scaled while they are stored"
  rlox-opt new p30 "Rewards scaled while they are stored" --in buffer --name reward_scale
  rlox-opt new p30 "Batches from a memory pool" --kind type --in buffer

Writes the seam with its twins, its place in the wirings, the switchboard's entry, the cargo
features, the pair and the card, and prints what to fill in. The pair compiles; its tests fail until
it is filled.
"""

_NEXT = """\
Next:
  1. {card}
     Say what it claims. What you expect goes in by rlox-opt predict {id}; then commit.
  2. {before}
     Write the baseline, as the code is today; its callers take the twin that {seam} names.
  3. {after}
     Write the optimised form, with the same signature.
  4. {pair}
     Draw its cases, choose its sizes. Until it is done this fails:
     cargo test -p rlox-bench {id}
  5. make setup && .venv/bin/rlox-opt cmp {id}
     Measure; then finding, record and status go into the card."""


def describe(parser: argparse.ArgumentParser) -> None:
    """Give the verb its arguments and examples."""
    parser.epilog = _EXAMPLES + exits.told(good="written")
    parser.add_argument("id", metavar="ID", help="an id that no card has, such as p30")
    parser.add_argument(
        "title", metavar="TITLE", help="what is varied, in a line without a full stop"
    )
    parser.add_argument(
        "--kind",
        choices=skeleton.KINDS,
        default="function",
        help="a module of functions, or a type behind a trait (default: function)",
    )
    parser.add_argument(
        "--layer",
        choices=LAYERS,
        default="rust",
        help="the part of the stack that gets faster (default: rust)",
    )
    parser.add_argument(
        "--in",
        dest="parent",
        metavar="MODULE",
        default="training",
        help="module of the core that the seam lies in (default: training)",
    )
    parser.add_argument("--name", help="the name of the seam's module (default: from the title)")


def run(arguments: argparse.Namespace) -> int:
    """Write the parts; returns the exit code."""
    root: Path = arguments.project.root
    try:
        new = new_of(arguments, {card.id for card in all_cards(arguments)}, root)
        texts = skeleton.plan(new, root)
        there = [path for path in texts if (root / path).exists()]
        changed = skeleton.uncommitted(there, root)
        if changed:
            raise SkeletonError(f"{changed[0]}: has changes; commit them first, to tell ours apart")
        skeleton.write(texts, root)
    except SkeletonError as error:
        arguments.parser.error(str(error))
    for path in texts:
        print(f"  {'edited ' if path in there else 'written'}  {path}")
    print(f"\n{next_steps(new)}")
    return 0


def new_of(arguments: argparse.Namespace, taken: set[str], tree: Path) -> New:
    """What was asked for. Raises `SkeletonError` where it cannot be had."""
    id_, title = arguments.id.lower(), arguments.title.strip()
    if re.fullmatch(r"r[1-9]\d*", id_):
        raise SkeletonError(
            f"ID {id_}: is of a Python seam, which `new` does not write yet; use a P"
        )
    if not re.fullmatch(r"p[1-9]\d*", id_):
        raise SkeletonError(f"ID {arguments.id}: use p and a number, for example p30")
    if id_.upper() in taken:
        raise SkeletonError(f"ID {id_}: has a card already; `rlox-opt show {id_}` shows it")
    free = next(f"p{n}" for n in range(1, len(taken) + 2) if f"P{n}" not in taken)
    if id_ != free:
        raise SkeletonError(f"ID {id_}: leaves a gap; use {free}")
    if not title:
        raise SkeletonError("title: is empty; say what is varied, in a line")
    if len(title) > LONGEST_TITLE:
        raise SkeletonError(f"title: has {len(title)} characters; use at most {LONGEST_TITLE}")
    if not title.isprintable():
        raise SkeletonError(f"title {title!r}: use one line of printable characters")
    modules = skeleton.parents(tree)
    if arguments.parent not in modules:
        raise SkeletonError(f"--in {arguments.parent}: use one of {', '.join(modules)}")
    name = skeleton.name_from(title) if arguments.name is None else arguments.name
    skeleton.check_name(name, tree)
    return New(id_, title, name, arguments.kind, arguments.layer, arguments.parent)


def next_steps(new: New) -> str:
    """The five steps from the skeleton to a card with its figures."""
    function = new.kind == "function"
    return _NEXT.format(
        id=new.id,
        card=new.card,
        pair=new.pair,
        before=f"{new.address}/baseline.rs" if function else f"{new.address}, the baseline",
        after=f"{new.address}/optimized.rs" if function else f"{new.address}, the optimized",
        seam=f"W::{new.id.upper() if function else new.type_name}",
    )
