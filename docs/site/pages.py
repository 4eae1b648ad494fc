"""The pages of the site in the order of its navigation: what each is made of, and where it lies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VERBS, SETTINGS, EXITS, HOME = "verbs", "settings", "exits", "README.md"


@dataclass(frozen=True)
class Page:
    """`source` is a file of the repository, or what is generated; `path` is where the page lies in
    the site."""

    title: str
    source: str
    path: str


SECTIONS: dict[str, tuple[Page, ...]] = {
    "": (
        Page("Home", HOME, "index.md"),
        Page("Tutorial", "docs/tutorial.md", "tutorial.md"),
    ),
    "Guides": (
        Page("Compare commits", "docs/guides/comparing-commits.md", "guides/commits.md"),
        Page("Suites by asv", "docs/guides/asv.md", "guides/asv.md"),
        Page("Suites by pytest", "docs/guides/pytest-benchmark.md", "guides/pytest-benchmark.md"),
        Page("Suites by criterion", "docs/guides/criterion.md", "guides/criterion.md"),
        Page("Pull requests", "docs/guides/pull-requests.md", "guides/pull-requests.md"),
        Page("Keep a history", "docs/guides/history.md", "guides/history.md"),
        Page("Profile a training", "docs/guides/profiling-training.md", "guides/training.md"),
        Page("Profile several processes", "docs/guides/several-processes.md",
             "guides/processes.md"),
        Page("Train with rlox", "docs/library.md", "guides/library.md"),
        Page("Add an optimisation", "docs/guides/adding-an-optimisation.md",
             "guides/optimisation.md"),
        Page("Examples", "examples/README.md", "guides/examples.md"),
    ),
    "Reference": (
        Page("What is found of a project", "workbench/README.md", "reference/project.md"),
        Page("Settings", SETTINGS, "reference/settings.md"),
        Page("Exit codes", EXITS, "reference/exit-codes.md"),
        Page("Verbs of rlox-opt", VERBS, "reference/verbs/index.md"),
        Page("Trainers", "docs/site/python/trainers.md", "reference/python/trainers.md"),
        Page("Callbacks", "docs/site/python/callbacks.md", "reference/python/callbacks.md"),
        Page("Environments", "docs/site/python/environments.md",
             "reference/python/environments.md"),
        Page("Replay buffers", "docs/site/python/buffers.md", "reference/python/buffers.md"),
        Page("Advantages", "docs/site/python/advantages.md", "reference/python/advantages.md"),
        Page("Timing", "docs/site/python/timing.md", "reference/python/timing.md"),
    ),
    "Explanation": (
        Page("How we measure", "METHODOLOGY.md", "explanation/methodology.md"),
        Page("How far a verdict can be trusted", "docs/trust.md", "explanation/trust.md"),
        Page("Glossary", "docs/glossary.md", "explanation/glossary.md"),
        Page("Changes", "CHANGELOG.md", "explanation/changelog.md"),
        Page("Security", "SECURITY.md", "explanation/security.md"),
        Page("Contributing", "CONTRIBUTING.md", "explanation/contributing.md"),
    ),
    "This repository": (
        Page("Optimisations", "docs/optimisations.md", "repository/optimisations.md"),
        Page("Rivals", "docs/rivals.md", "repository/rivals.md"),
        Page("Processors", "docs/processors.md", "repository/processors.md"),
    ),
}  # fmt: skip


def every() -> Iterator[Page]:
    """All pages that the navigation names; the page of the verbs stands for a folder of pages."""
    for pages in SECTIONS.values():
        yield from pages


def by_source() -> dict[str, str]:
    """Where a file of the repository is found in the site."""
    return {page.source: page.path for page in every()}
