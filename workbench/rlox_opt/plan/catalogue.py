"""The cards for the verbs: all of them, or the one that an argument names."""

from __future__ import annotations

import argparse
import importlib.util

from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project


def all_cards(arguments: argparse.Namespace) -> list[Card]:
    """Every card. Ends the program with the code of a usage error if there is none. Raises
    NotReadError."""
    project: Project = arguments.project
    planned = cards.load(project)
    if not planned:
        new = project.cards / "new.py"
        would = (
            "`rlox-opt new` writes one" if new.exists() else "write one, a file NAME.toml, there"
        )
        arguments.parser.error(f"{project.cards}: holds no cards of optimisations; {would}")
    return planned


def card_named(arguments: argparse.Namespace, id_: str) -> Card:
    """The card with an id, in upper or lower case. Ends the program with the code of a usage error
    if there is none."""
    planned = {card.id: card for card in all_cards(arguments)}
    if id_.upper() not in planned:
        arguments.parser.error(f"ID {id_}: has no card; use one of {', '.join(planned).lower()}")
    return planned[id_.upper()]


def need_rich(parser: argparse.ArgumentParser) -> None:
    """End the program with the remedy if rich, which draws the tables, is not installed."""
    if importlib.util.find_spec("rich") is None:
        parser.error("rich is not installed: pip install rlox-opt, or use --json")
