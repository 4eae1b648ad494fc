"""Which allocator a commit's Rust sources ask for. A build may leave it out, as one without its
feature does, and then nothing that is measured tells of it."""

from __future__ import annotations

import dataclasses
import re

from rlox_opt.project.artefacts import Artefact
from rlox_opt.project.commits import Commits

GLOBAL = "#[global_allocator]"
NONE = "none"
# Other attributes may stand between.
_STATIC = re.compile(
    re.escape(GLOBAL) + r"\s*(?:#\[[^\]]*\]\s*)*(?:pub\s+)?static\s+\w+\s*:\s*([\w:]+)"
)
_BESIDE = re.compile(r"(^|/)(tests|examples|fuzz|benches)/")


def told(built: Artefact, commits: Commits) -> Artefact:
    """The same, of which is known what its commit's sources ask for; a release has none."""
    if built.revision.is_release:
        return built
    asked = declared(commits, built.revision.commit)
    return dataclasses.replace(built, found={**built.found, GLOBAL: asked})


def declared(commits: Commits, commit: str) -> str:
    """Those of a commit's sources, each with its file; "none" where there is none. Those of its
    tests, examples and benchmarks do not count."""
    found = set()
    for path in commits.holding(commit, GLOBAL, "*.rs"):
        if not _BESIDE.search(path):
            named = _STATIC.findall(commits.text(commit, path))
            found |= {f"{name} in {path}" for name in named}
    return ", ".join(sorted(found)) or NONE
