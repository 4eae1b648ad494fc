"""git, called in one way: it reads the repository that is meant, whatever the environment and the
user's settings say, and writes nothing into it."""

import dataclasses
import os
import shlex
import subprocess
from pathlib import Path

import pytest
import toy_projects
import users_repository
from users_repository import fingerprint

from rlox_opt.project.commits import Commits
from rlox_opt.project.project import Project
from rlox_opt.system import commands, git, machine
from rlox_opt.system.usage import UsageError
from rlox_opt.views.site import diffs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A user's repository."""
    return users_repository.make(tmp_path / 'a:user\'s "own"')


@pytest.fixture
def project(root: Path) -> Project:
    """The same, whose builds are kept outside."""
    return toy_projects.of(root, cache="../cache")


@pytest.fixture
def revisions(project: Project) -> Commits:
    return project.commits


def every_use(project: Project) -> list[str]:
    """All that rlox asks of a user's repository; returns what is in its commits."""
    root, revisions = project.root, project.commits
    revisions.resolve(".")
    head = revisions.resolve("HEAD").commit
    assert revisions.dirty()
    assert machine.commit(root) == (head, True)
    assert diffs.known([head], root) == [head]
    with project.builds.checked_out(revisions.resolve(".")) as (checkout, _):
        assert (checkout / "edited").read_text() == "of this worktree alone\n"
    return [line for _, lines in diffs.texts(revisions.line(), root) for line in lines]


def test_a_variable_that_redirects_git_is_not_followed(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = users_repository.git(root, "rev-parse", "HEAD")
    names = users_repository.git(root, "rev-parse", "--local-env-vars").split()
    for name in [*names, "GIT_CEILING_DIRECTORIES", "GIT_EXTERNAL_DIFF"]:
        monkeypatch.setenv(name, "1" if name == "GIT_CONFIG_COUNT" else str(tmp_path))
        git.of.cache_clear()
        assert machine.commit(root) == (head, True), name
        assert (
            f"{name}=" not in commands.run(["env", "-0"], tmp_path).output
        )  # nor by a build script
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", [b"line\nbreak", b"caf\xe9", b"-dash", b'colon:quote"'])
def test_a_checkout_is_made_whatever_the_folder_is_called(tmp_path: Path, name: bytes) -> None:
    root = users_repository.make(tmp_path / os.fsdecode(name))
    head = users_repository.git(root, "rev-parse", "HEAD")
    git.Checkout(tmp_path / "ours", lock=0).make(git.of(root), head)
    assert users_repository.git(tmp_path / "ours", "rev-parse", "HEAD") == head


def test_a_repository_around_the_folder_is_not_taken_for_its_own(
    root: Path, tmp_path: Path
) -> None:
    plain = users_repository.make(tmp_path / "plain")
    broken = {
        plain / "package": "failed: fatal: not a git repository",
        root / "package": "is no repository; git takes .* for its checkout",  # past the colon
    }
    for inner, said in broken.items():
        with pytest.raises(git.GitError, match="package: is no git checkout"):
            git.of(inner)
        (inner / ".git").mkdir()
        with pytest.raises(git.GitError, match=said):
            git.of(inner)
        assert machine.commit(inner) == (None, None)
        assert diffs.known(["HEAD"], inner) == []


def signed(commit: str) -> str:
    """The text of a commit with a signature, which nobody has looked at."""
    head, _, message = commit.partition("\n\n")
    mark = "-----{} PGP SIGNATURE-----"
    return f"{head}\ngpgsig {mark.format('BEGIN')}\n \n {mark.format('END')}\n\n{message}\n"


def test_the_users_settings_have_nothing_written_and_no_program_called(
    root: Path, project: Project, tmp_path: Path
) -> None:
    called, program = tmp_path / "called", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$0" >> {called}\nexec cat "$1"\n')
    program.chmod(0o755)
    text = tmp_path / "commit"
    text.write_text(signed(users_repository.git(root, "cat-file", "commit", "HEAD")))
    made = users_repository.git(root, "hash-object", "-t", "commit", "-w", str(text))
    users_repository.git(root, "update-ref", "HEAD", made)
    for hook in ("post-index-change", "post-checkout", "reference-transaction"):
        (root / ".git" / "hooks" / hook).symlink_to(program)
    settings = {
        "core.fsmonitor": program,
        "core.splitIndex": "true",
        "splitIndex.maxPercentChange": "0",
        "diff.external": program,
        "diff.shown.textconv": program,
        "diff.shown.cacheTextconv": "true",
        "gpg.program": program,
        "log.showSignature": "true",
        "color.ui": "always",
    }
    for name, value in settings.items():
        users_repository.git(root, "config", name, str(value))
    (root / ".git" / "info" / "attributes").write_text("README.md diff=shown\n")
    called.unlink(missing_ok=True)
    before = fingerprint(root)
    assert {"-one", "+two"} <= {*every_use(project)}
    assert fingerprint(root) == before
    assert not called.exists(), called.read_text()


def test_a_file_that_has_another_time_stamp_changes_no_index(root: Path, project: Project) -> None:
    os.utime(root / "staged", (1e9, 1e9))  # which `git status` would note
    before = fingerprint(root)
    every_use(project)
    assert fingerprint(root) == before


def test_only_reading_is_allowed_in_a_users_repository(root: Path) -> None:
    for verb in ("checkout", "clean", "add", "reset", "gc", "update-index", "-c"):
        for index in (None, root / "index"):
            with pytest.raises(ValueError, match="may write to"):
                dataclasses.replace(git.of(root), index=index).run(verb)
    with pytest.raises(ValueError, match="has no folder beside it"):
        git.of(root).commit("HEAD", "", "", lambda to: None)


@pytest.mark.parametrize("linked", [False, True])
def test_only_a_checkout_of_our_own_is_overwritten(
    root: Path, project: Project, revisions: Commits, tmp_path: Path, linked: bool
) -> None:
    folder = root
    if linked:
        with project.builds.checked_out(revisions.resolve("v1")) as (folder, _):
            folder.rename(tmp_path / "moved")
            folder.symlink_to(tmp_path / "moved")
    before = fingerprint(root)
    with pytest.raises(git.GitError, match="is no checkout of ours"):
        git.Checkout(folder, lock=0).move(git.of(root), revisions.resolve("v1~1").commit)
    assert fingerprint(root) == before


def test_commits_beside_are_read_like_any_other(root: Path, tmp_path: Path) -> None:
    ours = dataclasses.replace(git.of(root), beside=tmp_path / "objects")
    made = ours.commit("HEAD", "made", "somebody", lambda to: to.run("add", "edited"))
    assert ours.run("show", f"{made}:edited") == "of this worktree alone\n"
    assert ours.run("show", "-s", "--format=%an <%ae> %s", made) == (
        "somebody <somebody@localhost> made\n"
    )
    assert git.of(root).maybe("cat-file", "-e", made) is None


def test_without_git_a_line_says_so(
    root: Path, revisions: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    for known in (True, False):
        monkeypatch.setenv("PATH", str(root))
        with pytest.raises(UsageError, match=r"^git: is not on PATH; install it from https"):
            revisions.resolve("HEAD")
        assert (machine.commit(root), revisions.line()) == ((None, None), [])
        assert diffs.known(["HEAD"], root) == []
        if known:  # nor where the repository was found before
            monkeypatch.undo()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_another_users_repository_is_explained_and_the_remedy_is_one(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, revisions = project.root, project.commits
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "settings"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    for path in (root, root / ".git"):
        os.chown(path, 12345, 12345)
    with pytest.raises(UsageError, match="belongs to another user") as refused:
        revisions.resolve("HEAD")
    remedy = str(refused.value).partition(": git ")[2]
    subprocess.run(["git", *shlex.split(remedy)], check=True)
    assert revisions.resolve("HEAD").commit == machine.commit(root)[0]
    with project.builds.checked_out(revisions.resolve("v1")) as (checkout, _):
        os.chown(checkout, 12345, 12345)
        told = commands.run(["git", "rev-parse", "HEAD"], checkout, git.trusting(checkout))
    assert told.output.strip() == revisions.resolve("v1").commit  # as a build script asks


def test_a_subject_that_is_not_utf8_is_shown_as_well_as_can_be(
    root: Path, revisions: Commits, tmp_path: Path
) -> None:
    written = users_repository.git(root, "cat-file", "commit", "HEAD").encode()
    (tmp_path / "commit").write_bytes(written.replace(b"number 1", b"gr\xfc\xdfe\n"))
    head = users_repository.git(root, "hash-object", "-tcommit", "-w", str(tmp_path / "commit"))
    assert revisions.about(head)[2] == "gr\ufffd\ufffde"
    assert revisions.described(head).endswith("gr\ufffd\ufffde")
    assert "    gr\ufffd\ufffde" in dict(diffs.texts([head], root))[head]
