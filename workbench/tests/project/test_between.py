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
    with pytest.raises(UsageError, match=r"does not descend from .*; name the older one first$"):
        revisions.between(revisions.resolve("main"), revisions.resolve("side"))
    with pytest.raises(UsageError, match="are one commit"):
        revisions.between(revisions.resolve("main"), revisions.resolve("main"))


@pytest.mark.parametrize(
    ("good", "names"),
    [
        ("side~1", ("main~2", "main~1", "main")),
        ("v1", ("main~3", "main~2", "main~1", "main")),
    ],
)
def test_all_candidates_are_on_the_line_of_bad_and_none_is_missing_before_a_merge(
    repository: Path, revisions: Commits, good: str, names: tuple[str, ...]
) -> None:
    git(repository, "checkout", "--quiet", "side")
    commit(repository, "first of the branch")
    commit(repository, "second of the branch")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-edit", "--no-ff", "side")
    commit(repository, "after the merge")
    found = revisions.between(revisions.resolve(good), revisions.resolve("main"))
    assert found == [git(repository, "rev-parse", name) for name in names]


def test_where_two_parted_is_what_a_search_may_begin_with(
    repository: Path, revisions: Commits
) -> None:
    """As for the tag of a release that lies on a branch for maintenance."""
    git(repository, "checkout", "--quiet", "side")
    commit(repository, "of the release")
    git(repository, "tag", "0.25.2")
    good, bad = revisions.resolve("0.25.2"), revisions.resolve("main")
    parted = git(repository, "rev-parse", "main~1")
    with pytest.raises(UsageError) as error:
        revisions.between(good, bad)
    assert str(error.value) == (
        f"{bad.title} does not descend from {good.title}: they parted at {parted[:10]}; name "
        "0.25.2...main in place of 0.25.2"
    )
    instead = revisions.resolve("0.25.2...main")
    assert revisions.between(instead, bad) == [bad.commit]
    assert [of.commit for of in revisions.span("0.25.2...main..main")] == [bad.commit]
