"""Files of a repository that change neither a built package nor how it is measured. A commit that
changes only such files needs no recording.

All other files count: sources of an extension may lie in any folder, even in another project of the
repository. Recording a commit in vain takes minutes; leaving out a commit that mattered is an error
that nobody notices. Texts for people go into a build only as metadata and docstrings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlox_opt.project.project import Project

_FOLDERS = (
    *("doc", "docs", "test", "tests"),
    *(".circleci", ".devcontainer", ".github", ".gitlab", ".idea", ".vscode"),
)
# By name, in the folder itself. .gitignore and .gitattributes are not among them, since some
# back-ends choose by these what they pack.
_FILES = (
    *("*.md", "*.rst", ".editorconfig", ".pre-commit-config.yaml"),
    *(".appveyor.yml", ".cirrus.yml", ".codecov.yml", ".coveragerc", ".gitlab-ci.yml"),
    *(".readthedocs.yaml", ".readthedocs.yml", ".travis.yml"),
    *("appveyor.yml", "azure-pipelines.yml", "codecov.yml", "noxfile.py", "tox.ini"),
)
_WRITTEN = ("history", "record", "pages")  # within the state folder, by the workbench
_OURS = (*_WRITTEN, "acknowledged.toml")


def everything_but(
    home: PurePosixPath, inside: Sequence[PurePosixPath], state: str
) -> tuple[str, ...]:
    """The paths that count, as patterns for git from the top: all but what lies at the top or in
    the folder of the project `home` for people or for CI services, and but the workbench's own
    results in its folder `state`. A folder that contains something built or measured (`inside`) is
    not left out."""
    tops = [*dict.fromkeys((PurePosixPath(), home))]
    folders = [top / name for top in tops for name in _FOLDERS]
    left_out = [of for of in folders if not any(path.is_relative_to(of) for path in inside)]
    left_out += (PurePosixPath(of) for of in _within(home, state, _OURS))
    return (
        ".",
        *(f":(exclude,literal){path}" for path in left_out),
        *(f":(exclude,glob){as_it_is(top)}{name}" for top in tops for name in _FILES),
    )


def dirty(project: Project) -> bool:
    """Whether the working tree differs from HEAD, in more than the workbench's own results. Raises
    UsageError where git is missing or fails."""
    return project.commits.dirty(*_within(project.within, project.settings.state, _WRITTEN))


def _within(home: PurePosixPath, state: str, names: Sequence[str]) -> Iterator[str]:
    """Names in the folder `state` of the project `home`, as paths from the top of the repository;
    none where that folder lies elsewhere."""
    paths = (posixpath.normpath(home / state / name) for name in names)
    return (path for path in paths if not path.startswith(("../", "/")))


def as_it_is(folder: PurePosixPath) -> str:
    """A folder as the beginning of a git pattern."""
    text = "" if folder == PurePosixPath() else f"{folder}/"
    return re.sub(r"([*?[\\])", r"\\\1", text)
