"""The code of commits as pages: from git, trimmed, and without git as well."""

import subprocess
from datetime import datetime, timezone
from pathlib import Path

import pytest

from rlox_opt.views.site import diffs
from rlox_opt.views.site.model import Commit


def git(root: Path, *arguments: str) -> str:
    who = ("-c", "user.name=toy", "-c", "user.email=toy@localhost")
    done = subprocess.run(
        ["git", "-C", str(root), *who, *arguments], check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    for text in ("one <b>\n", "two\n"):
        (tmp_path / "file.rs").write_text(text)
        git(tmp_path, "add", "file.rs")
        git(tmp_path, "commit", "--quiet", "--message", f"Say {text}")
    return tmp_path


def commit(name: str) -> Commit:
    return Commit(0, name, None, "A <subject>", datetime(2026, 1, 1, tzinfo=timezone.utc), ())


def test_each_commit_has_its_own_patch(repository: Path) -> None:
    names = git(repository, "rev-list", "HEAD").split()
    found = dict(diffs.texts(names, repository))
    assert list(found) == names
    assert "-one <b>" in found[names[0]]
    assert "+two" in found[names[0]]
    assert "+one <b>" in found[names[1]]
    assert "-two" not in found[names[0]]
    assert "+two" not in found[names[1]]


def test_a_merge_is_shown_against_its_first_parent(repository: Path) -> None:
    git(repository, "checkout", "--quiet", "-b", "side", "HEAD~1")
    (repository / "side.rs").write_text("aside\n")
    git(repository, "add", "side.rs")
    git(repository, "commit", "--quiet", "--message", "Aside")
    git(repository, "checkout", "--quiet", "main")
    git(repository, "merge", "--quiet", "--no-ff", "--message", "Merge", "side")
    (lines,) = dict(diffs.texts([git(repository, "rev-parse", "HEAD")], repository)).values()
    assert "+aside" in lines
    assert "+two" not in lines


def test_long_patches_and_long_lines_are_trimmed_and_say_so(repository: Path) -> None:
    (repository / "file.rs").write_text("x" * 1000 + "\n" + "line\n" * 5000)
    git(repository, "commit", "--quiet", "--all", "--message", "Long")
    (lines,) = dict(diffs.texts([git(repository, "rev-parse", "HEAD")], repository)).values()
    assert len(lines) == diffs.LINES + 1
    assert lines[-1].startswith("… and ")
    assert lines[-1].endswith(" more lines, which `git show` has")
    assert max(map(len, lines)) <= 401


def test_commits_that_the_repository_lacks_are_known_to_be_lacking(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    assert diffs.known([head, "f" * 40], repository) == [head]


def test_without_a_repository_no_commit_is_known(tmp_path: Path) -> None:
    assert diffs.known(["f" * 40], tmp_path / "nowhere") == []
    assert dict(diffs.texts([], tmp_path)) == {}


def test_the_page_escapes_the_patch_and_marks_its_lines() -> None:
    page = diffs.diff_page(commit("a" * 40), ["+<script>", "-gone", "@@ -1 +1 @@", " same"]).of(
        "rlox"
    )
    assert '<span class="added">+&lt;script&gt;</span>' in page
    assert '<span class="removed">-gone</span>' in page
    assert "A &lt;subject&gt;" in page
    assert "<script>" not in page.replace('<script src="', "")


def test_the_page_of_an_unknown_commit_says_so() -> None:
    assert "does not have this commit" in diffs.diff_page(commit("a" * 40), None).of("rlox")
