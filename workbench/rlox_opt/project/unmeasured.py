"""What of a repository changes neither a built package nor how it is measured, so that a commit
which changes nothing else needs no recording.

All else counts: sources of an extension may lie in any folder, also of another project of the
repository. To record a commit in vain takes minutes, to pass one over that made a difference is an
error that nobody sees. What a build takes of texts for people goes into metadata and docstrings.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

_FOLDERS = (
    *("doc", "docs", "test", "tests"),
    *(".circleci", ".devcontainer", ".github", ".gitlab", ".idea", ".vscode"),
)
# By name, in the folder itself. Not .gitignore, nor .gitattributes: by these some back-ends choose
# what they pack.
_FILES = (
    *("*.md", "*.rst", ".editorconfig", ".pre-commit-config.yaml"),
    *(".appveyor.yml", ".cirrus.yml", ".codecov.yml", ".coveragerc", ".gitlab-ci.yml"),
    *(".readthedocs.yaml", ".readthedocs.yml", ".travis.yml"),
    *("appveyor.yml", "azure-pipelines.yml", "codecov.yml", "noxfile.py", "tox.ini"),
)
_OURS = ("history", "record", "pages", "acknowledged.toml")  # within the state that we keep


def everything_but(
    home: PurePosixPath, inside: Sequence[PurePosixPath], state: str
) -> tuple[str, ...]:
    """What git takes for paths, from the top: all but what lies at the top, or in the folder of the
    project `home`, for people or for services that build, and what we keep in its folder `state`. A
    folder that something lies in that is built or measured (`inside`) is not left out."""
    tops = [*dict.fromkeys((PurePosixPath(), home))]
    folders = [top / name for top in tops for name in _FOLDERS]
    left_out = [of for of in folders if not any(path.is_relative_to(of) for path in inside)]
    kept = (posixpath.normpath(home / state / name) for name in _OURS)
    left_out += (PurePosixPath(of) for of in kept if not of.startswith(("../", "/")))
    return (
        ".",
        *(f":(exclude,literal){path}" for path in left_out),
        *(f":(exclude,glob){_as_it_is(top)}{name}" for top in tops for name in _FILES),
    )


def _as_it_is(folder: PurePosixPath) -> str:
    """How a folder begins a pattern of git's."""
    text = "" if folder == PurePosixPath() else f"{folder}/"
    return re.sub(r"([*?[\\])", r"\\\1", text)
