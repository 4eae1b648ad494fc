"""Cards as the verbs take them: all of them, or the one that an argument names."""

from __future__ import annotations

import argparse
import importlib.util

from rlox_opt.project import cards
from rlox_opt.project.cards import Card, CardError


def all_cards(parser: argparse.ArgumentParser) -> list[Card]:
    """Every card; ends the program, asked wrongly, where they cannot be read."""
    try:
        found = cards.load()
    except CardError as error:
        parser.error(str(error))
    if not found:
        parser.error("there are no cards: optimizations/ lies in the repository, not in the wheel")
    return found


def card_named(parser: argparse.ArgumentParser, id_: str) -> Card:
    """The card with an id, in either case; ends the program, asked wrongly, where there is none."""
    found = {card.id: card for card in all_cards(parser)}
    if id_.upper() not in found:
        parser.error(f"ID {id_}: has no card; use one of {', '.join(found).lower()}")
    return found[id_.upper()]


def need_rich(parser: argparse.ArgumentParser) -> None:
    """End the program with the remedy where rich, which draws the tables, is not installed."""
    if importlib.util.find_spec("rich") is None:
        parser.error("rich is not installed: pip install rlox-opt, or use --json")
