"""Revisions: found, or refused in a line; the working tree as a commit that leaves no trace."""

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import toy_projects

from rlox_opt.project import builds
from rlox_opt.project.builders import cargo
from rlox_opt.project.builders.cargo import ByCargo, Laboratory, is_as_written
from rlox_opt.project.builds import Cargo, NotBuiltError
from rlox_opt.project.commits import Commits, Revision, later
from rlox_opt.project.project import Project
from rlox_opt.system.usage import UsageError


def git(folder: Path, *arguments: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(
        ["git", *who, *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(repository: Path) -> Project:
    """The repository, whose builds are kept beside it."""
    manifest = Cargo(crate="toy-python", manifest="Cargo.toml")
    return toy_projects.of(repository, cache=f"../{repository.name} cache", build=manifest)


@pytest.fixture
def revisions(project: Project) -> Commits:
    return project.commits


def test_a_revision_is_what_git_says(repository: Path, revisions: Commits) -> None:
    found = revisions.resolve("v1")
    assert found.commit == git(repository, "rev-parse", "v1")
    assert found.features is None
    assert found.title == f"v1 ({found.commit[:10]})"


def test_features_come_after_a_plus(repository: Path, revisions: Commits) -> None:
    assert revisions.resolve("HEAD+opt-p7,opt-p5").features == ("opt-p5", "opt-p7")
    assert revisions.resolve("HEAD+none").features == ()
    with pytest.raises(UsageError, match="'opt p5' is no cargo feature; write HEAD"):
        revisions.resolve("HEAD+opt p5")


@pytest.mark.parametrize("text", ["nothing", "--help", "HEAD~9", ""])
def test_a_revision_that_does_not_exist_is_named(
    repository: Path, revisions: Commits, text: str
) -> None:
    with pytest.raises(UsageError, match=f"'{text}': is no commit of this repository; name "):
        revisions.resolve(text)


@pytest.fixture
def branched(repository: Path) -> str:
    """The commit at which main and `side` parted; `side`, which is checked out, has one more."""
    git(repository, "checkout", "--quiet", "side")
    git(repository, "commit", "--quiet", "--allow-empty", "-m", "of side")
    return git(repository, "rev-parse", "main~1")


@pytest.mark.parametrize("text", ["main...side", "side...main", "main...", "...main", "main...."])
def test_three_dots_name_where_two_parted(branched: str, revisions: Commits, text: str) -> None:
    found = revisions.resolve(text)
    assert (found.commit, found.features) == (branched, None)
    assert found.title == f"{text} ({branched[:10]})"
    assert [of.commit for of in revisions.span(text)] == [branched]


def test_the_ends_of_three_dots_are_commits_that_have_one_in_common(
    branched: str, repository: Path, revisions: Commits
) -> None:
    assert revisions.resolve("main...side+opt-p5").features == ("opt-p5",)
    with pytest.raises(UsageError, match="'nothing': is no commit of this repository; name "):
        revisions.resolve("main...nothing")
    with pytest.raises(UsageError, match=r"'\.\.\.': is no commit of this repository; name "):
        revisions.resolve("...")
    git(repository, "checkout", "--quiet", "--orphan", "apart")
    git(repository, "commit", "--quiet", "-m", "apart")
    with pytest.raises(UsageError, match=r"^main and HEAD have no commit in common; name a base"):
        revisions.resolve("main...")


@pytest.mark.parametrize(
    ("base", "compared_with"),
    [
        ("main", "HEAD"),
        ("main+opt-p5", "HEAD"),
        ("pypi:networkx==3.2", "HEAD"),
        ("main...", "HEAD"),
        ("main...side", "side"),
        ("main...side+none", "side+none"),
        ("main....", "."),
    ],
)
def test_what_branched_off_is_compared_with_where_it_did(base: str, compared_with: str) -> None:
    assert later(base) == compared_with


def test_a_shallow_clone_is_told_how_to_get_the_rest(
    repository: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    shallow = tmp_path_factory.mktemp("clone") / "shallow"
    git(repository, "clone", "--quiet", "--depth=1", f"file://{repository}", str(shallow))
    with pytest.raises(UsageError, match="git fetch --unshallow"):
        toy_projects.of(shallow).commits.resolve("HEAD~1")


def test_outside_a_checkout_there_are_no_revisions(tmp_path: Path) -> None:
    project = toy_projects.of(tmp_path)
    revisions = project.commits
    for text in ("HEAD", "."):
        with pytest.raises(UsageError, match="is no git checkout"):
            revisions.resolve(text)
    with pytest.raises(UsageError, match="is no git checkout"):
        project.builds.build(Revision("a", "1" * 40))
    assert revisions.line() == []
    assert [*tmp_path.iterdir()] == []


def test_the_working_tree_is_a_commit_with_its_changes_and_new_files(
    repository: Path, revisions: Commits
) -> None:
    (repository / "file").write_text("changed\n")
    (repository / "new").write_text("new\n")
    before = git(repository, "status", "--porcelain"), git(repository, "for-each-ref")
    found = revisions.resolve(".")
    assert revisions.text(found.commit, "file") == "changed\n"
    assert revisions.text(found.commit, "new") == "new\n"
    assert revisions.about(found.commit)[0] == git(repository, "rev-parse", "HEAD")
    assert (git(repository, "status", "--porcelain"), git(repository, "for-each-ref")) == before
    assert revisions.resolve(".").commit == found.commit  # and so its build is found again
    assert revisions.dirty()


def test_a_commit_of_a_hostile_file_is_no_option(
    project: Project, revisions: Commits, tmp_path: Path
) -> None:
    commit = f"--output={tmp_path / 'written'}"
    before = sorted(tmp_path.rglob("*"))
    for ask in (revisions.about, revisions.described, lambda of: revisions.ancestors(of, 1)):
        with pytest.raises(UsageError, match="failed: fatal: "):
            ask(commit)
    assert revisions.text(commit, "file") == ""
    with pytest.raises(UsageError, match="is no commit's hash"):
        project.builds.build(Revision("a", commit))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_span_is_every_commit_of_it_with_the_features_asked_for(
    repository: Path, revisions: Commits
) -> None:
    commits = [git(repository, "rev-parse", name) for name in ("main~1", "main")]
    found = revisions.span("v1..main+opt-p5")
    assert [(of.commit, of.features) for of in found] == [(c, ("opt-p5",)) for c in commits]
    assert found[0].title == f"{commits[0][:10]}+opt-p5"
    assert [of.commit for of in revisions.span("v1..")] == commits
    (one,) = revisions.span("main")
    assert (one.commit, one.features) == (commits[1], None)
    with pytest.raises(UsageError, match="'nothing': is no commit"):
        revisions.span("nothing..main")


def test_a_commit_is_told_with_its_parent_and_its_ancestors(
    repository: Path, revisions: Commits
) -> None:
    first, second, third = (git(repository, "rev-parse", n) for n in ("v1", "main~1", "main"))
    parent, committed, subject = revisions.about(third)
    assert (parent, subject) == (second, "number 3")
    assert committed.timestamp() == int(git(repository, "show", "-s", "--format=%ct", third))
    assert revisions.about(first)[0] is None
    assert revisions.ancestors(third, 5) == [second, first]
    assert revisions.ancestors(third, 1) == [second]
    assert revisions.text(second, "file") == "2\n"
    assert revisions.text(second, "nothing") == ""


SAYS = """
import pathlib, sys
SAYS = eval((pathlib.Path(__file__).parent / "says").read_text())

def build_info():
    return SAYS
"""


@pytest.fixture
def compiled(repository: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Commits of a package that needs no compiler, and whose sources of Rust change with each but
    the last; what was compiled is noted. Each package tells what is in its file `says`."""
    compiled: list[str] = []
    (repository / "toy").mkdir()
    (repository / "crates").mkdir()
    (repository / "toy" / "__init__.py").write_text(SAYS)
    for number in (4, 5, 5):
        (repository / "crates" / "lib.rs").write_text(f"{number}\n")
        (repository / "toy" / "says").write_text(f"{len(compiled)}\n")
        git(repository, "add", "--all")
        git(repository, "commit", "--quiet", "--allow-empty", "-m", f"Rust {number}")

    def compile_(self: ByCargo, revision: Revision, features: object, at: Path, to: Path) -> None:
        compiled.append(revision.commit)
        to.write_text("an extension")

    monkeypatch.setattr(ByCargo, "_compile", compile_)
    monkeypatch.setattr(cargo, "outside", lambda _: ())  # which takes as long as all the rest
    return compiled


@pytest.fixture
def says(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """What the next package that is assembled says of its extension."""
    told: dict[str, object] = {"profile": "release", "features": []}
    assemble = ByCargo._assemble

    def assembled(
        self: ByCargo, of: Revision, checkout: Path, extension: Path, folder: Path, library: str
    ) -> None:
        assemble(self, of, checkout, extension, folder, library)
        (folder / "toy" / "says").write_text(repr(told))

    monkeypatch.setattr(ByCargo, "_assemble", assembled)
    return told


def test_a_build_of_another_commit_is_refused_and_not_kept(
    compiled: list[str], says: dict[str, object], project: Project, revisions: Commits
) -> None:
    asked, other = (revisions.resolve(name) for name in ("main", "main~2"))
    says["commit"] = other.commit
    for _ in range(2):  # nothing of it is left that the second build could take
        with pytest.raises(NotBuiltError, match=f"the extension says commit {other.commit}"):
            project.builds.build(asked)
        assert not list(project.revisions.glob("extension-*.so"))
        assert not list(project.revisions.glob(f"{asked.commit[:12]}-*"))
    assert compiled == [asked.commit] * 2
    # Its Rust is that of the commit before, which may have compiled it.
    says["commit"] = git(project.root, "rev-parse", "main~1")
    assert project.builds.build(asked).folder.is_dir()
    assert project.builds.build(asked).seconds >= 0
    assert compiled == [asked.commit] * 3, "the second took the first's"


def test_a_laboratory_is_built_where_twins_are_wanted_and_the_commit_has_one(
    compiled: list[str],
    says: dict[str, object],
    project: Project,
    revisions: Commits,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def compile_(self: ByCargo, of: Revision, _: object, at: Path, to: Path, *more: object) -> None:
        compiled.append("the laboratory" if more else of.commit)
        to.write_text("an extension")

    @contextlib.contextmanager
    def worker(extension: Path, _: object) -> Iterator[Callable[[str], dict[str, object]]]:
        yield lambda asked: {**says, "commit": twins_say} if asked == "build" else {}

    monkeypatch.setattr(ByCargo, "_compile", compile_)
    monkeypatch.setattr(cargo, "worker", worker)
    of = Laboratory("toy-laboratory", "_laboratory")
    by = Cargo(crate="toy-python", manifest="Cargo.toml", laboratory=of)
    of_twins = replace(project.builds, by=by, twins=True)
    (project.root / "Cargo.lock").write_text('name = "toy-python"\n')
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "without one")
    before = revisions.resolve("main")
    says["commit"] = twins_say = before.commit
    without = of_twins.build(before)
    assert without.laboratory == without.extension

    (project.root / "Cargo.lock").write_text('name = "toy-laboratory"\n')
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "with one")
    after = revisions.resolve("main")
    says["commit"] = after.commit
    assert replace(of_twins, twins=False).build(after).laboratory.parts[-1].startswith("_core.")
    with pytest.raises(NotBuiltError, match=f"the extension says commit {before.commit}"):
        of_twins.build(after)
    twins_say = after.commit
    built = of_twins.build(after)
    assert built.laboratory.name.startswith("_laboratory.")
    assert built.laboratory.read_text() == "an extension"
    assert compiled == [before.commit, *[after.commit, "the laboratory"] * 2]  # once refused


def test_a_commit_that_changes_neither_package_nor_rust_gives_the_same_package(
    compiled: list[str], says: dict[str, object], project: Project, revisions: Commits
) -> None:
    before = revisions.resolve("main")
    (project.root / "workbench").mkdir()
    (project.root / "workbench" / "tool.py").write_text("TOOL = 1\n")
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "-m", "Of the tool alone")
    says["commit"] = before.commit
    one, other = (project.builds.build(of) for of in (before, revisions.resolve("main")))
    assert one.revision != other.revision
    assert builds.same_parts(one, other) == ["extension", "python"]
    assert compiled == [before.commit]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"commit": "unknown"}, "commit unknown"),
        ({"commit": "a\0b"}, "commit a\0b"),
        ({"profile": "debug"}, "profile debug"),
        ({"features": ["opt-p5"]}, r"features \['opt-p5'\]"),
        ({}, "commit None"),
    ],
)
def test_a_build_that_is_not_what_was_asked_for_is_refused(
    compiled: list[str],
    says: dict[str, object],
    project: Project,
    revisions: Commits,
    wrong: dict[str, object],
    told: str,
) -> None:
    asked = revisions.resolve("main")
    if wrong:
        says["commit"] = asked.commit
    says |= wrong
    with pytest.raises(NotBuiltError, match=f"the extension says {told}, which is not"):
        project.builds.build(asked)
    assert not list(project.revisions.glob("extension-*.so"))


@pytest.mark.parametrize("wrong", [{"commit": 0}, {"features": 3}, {"profile": None}])
def test_a_build_that_says_nothing_sensible_is_refused(
    compiled: list[str], says: dict[str, object], project: Project, wrong: dict[str, object]
) -> None:
    says |= wrong
    with pytest.raises(NotBuiltError, match=r"its build_info\(\) is none: Expected `"):
        project.builds.build(project.commits.resolve("main"))


def test_a_subject_cannot_steer_the_terminal(repository: Path, revisions: Commits) -> None:
    message = "bell \x07 escape \x1b[31m \u202e right to left"
    git(repository, "commit", "--quiet", "--allow-empty", "--message", message)
    said = revisions.described(git(repository, "rev-parse", "HEAD"))
    assert said.isprintable()
    assert "bell \N{REPLACEMENT CHARACTER} escape" in said


@pytest.mark.parametrize("kind", ["pipe", "link", "dangling link", "folder"])
def test_a_build_whose_library_is_no_regular_file_is_not_read(tmp_path: Path, kind: str) -> None:
    """A pipe never ends, and a link to a device may not either."""
    library, written = tmp_path / "library.so", tmp_path / "written.so"
    assert is_as_written(library)  # not there yet
    written.write_bytes(b"")
    assert is_as_written(written)
    match kind:
        case "pipe":
            os.mkfifo(library)
        case "link":
            library.symlink_to("/dev/full")
        case "dangling link":
            library.symlink_to(tmp_path / "nothing")
        case "folder":
            library.mkdir()
    assert not is_as_written(library)
