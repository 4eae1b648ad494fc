"""The commits between two."""

from pathlib import Path

import pytest
import toy_projects
from users_repository import git

from rlox_opt.project.commits import Commits
from rlox_opt.system.usage import UsageError


def commit(repository: Path, title: str) -> None:
    git(repository, "commit", "--quiet", "--allow-empty", "-m", title)


@pytest.fixture
def revisions(repository: Path) -> Commits:
    return toy_projects.of(repository, cache=f"../{repository.name} cache").commits


def test_between_are_the_commits_after_good_up_to_bad(repository: Path, revisions: Commits) -> None:
    good, bad = revisions.resolve("v1"), revisions.resolve("main")
    found = revisions.between(good, bad)
    assert found == [git(repository, "rev-parse", name) for name in ("main~1", "main")]
    assert revisions.described(found[-1]).endswith("number 3")


def test_bad_must_descend_from_good(repository: Path, revisions: Commits) -> None:
    with pytest.raises(UsageError, match="does not descend from"):
        revisions.between(revisions.resolve("main"), revisions.resolve("side"))
    with pytest.raises(UsageError, match="are one commit"):
        revisions.between(revisions.resolve("main"), revisions.resolve("main"))


def test_a_good_commit_on_a_branch_that_was_merged_has_all_since_after_it(
    repository: Path, revisions: Commits
) -> None:
    git(repository, "checkout", "--quiet", "side")
    commit(repository, "first of the branch")
    commit(repository, "second of the branch")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-edit", "--no-ff", "side")
    commit(repository, "after the merge")
    found = revisions.between(revisions.resolve("side~1"), revisions.resolve("main"))
    names = ("side", "main~1", "main")
    assert found == [git(repository, "rev-parse", name).strip() for name in names]
