"""Which allocator a commit's Rust sources ask for. A build may leave it out, for example without
the feature that asks for it, and then no measurement shows it."""

from __future__ import annotations

import dataclasses
import re

from rlox_opt.project.artefacts import Artefact
from rlox_opt.project.commits import Commits

GLOBAL = "#[global_allocator]"
NONE = "none"
# Other attributes may stand between the two.
_STATIC = re.compile(
    re.escape(GLOBAL) + r"\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?static\s+\w+\s*:\s*([\w:]+)"
)
_BESIDE = re.compile(r"(^|/)(tests|examples|fuzz|benches)/")


def told(built: Artefact, commits: Commits) -> Artefact:
    """The same build, with what its commit's sources ask for added; a release has no sources."""
    if built.revision.is_release:
        return built
    asked = declared(commits, built.revision.commit)
    return dataclasses.replace(built, found={**built.found, GLOBAL: asked})


def declared(commits: Commits, commit: str) -> str:
    """The allocators that a commit's sources ask for, each with its file; "none" without any.
    Tests, examples and benchmarks do not count."""
    found = set()
    for path in commits.holding(commit, GLOBAL, "*.rs"):
        if not _BESIDE.search(path):
            named = _STATIC.findall(commits.text(commit, path))
            found |= {f"{name} in {path}" for name in named}
    return ", ".join(sorted(found)) or NONE
