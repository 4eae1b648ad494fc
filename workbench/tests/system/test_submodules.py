"""Submodules of our checkout come from the user's clone, or else from their address as git allows
it; nothing of the user's changes."""

import contextlib
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from asv_projects import FILES, commit, write
from users_repository import fingerprint, git

from rlox_opt.project.checkouts import alone, moved
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suites
from rlox_opt.system import submodules
from rlox_opt.system.git import Repository


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A folder in which a user's clone of a project was made, whose `vendor/lib` has a submodule
    `deep` of its own, and what they came from; and where all of it lies now."""
    place = tmp_path_factory.mktemp("submodules") / "place"
    deep, lib, home = (place / "from" / name for name in ("deep", "lib", "home"))
    commit(write(deep, {"deep.txt": "deep\n"}))
    commit(write(lib, {"lib.txt": "one\n"}))
    git(lib, "submodule", "--quiet", "add", str(deep), "deep")
    commit(lib)
    commit(write(home, FILES))
    git(home, "submodule", "--quiet", "add", "--name", "a lib", str(lib), "vendor/lib")
    commit(home)
    git(place, "clone", "--quiet", "--recurse-submodules", str(home), "clone")
    for hooks in [*place.rglob("hooks")]:  # git's examples, which are most of the files
        shutil.rmtree(hooks)
    return place, place.rename(place.with_name("kept"))


@pytest.fixture
def tmp_path(made: tuple[Path, Path]) -> Path:
    """The same folder for every test, since commits have the addresses of what was made there."""
    place, _ = made
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    return place


@pytest.fixture(autouse=True)
def without_the_users_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None that would allow or redirect a fetch; in a process that has asked nobody yet."""
    (tmp_path / "gitconfig").write_text("")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "gitconfig"))
    monkeypatch.setattr(submodules, "_SILENT", {})


@pytest.fixture
def root(made: tuple[Path, Path], tmp_path: Path) -> Path:
    """The clone, made anew. What it came from is there as well."""
    shutil.copytree(made[1], tmp_path, symlinks=True, dirs_exist_ok=True)
    return tmp_path / "clone"


@contextlib.contextmanager
def unharmed(root: Path) -> Iterator[None]:
    before = fingerprint(root, ".rlox-opt")
    yield
    assert fingerprint(root, ".rlox-opt") == before


def held(root: Path, revision: str = "HEAD") -> tuple[Path, tuple[str, ...]]:
    """Our checkout at a revision of the user's, and what it lacks."""
    commits = Project.find(root).commits
    commit = commits.resolve(revision).commit
    with alone(commits.beside) as lock:
        return moved(commits.beside, lock, commits.repository(), commit)


def texts(folder: Path) -> dict[str, str]:
    found = (path for path in (folder / "vendor").rglob("*.txt"))
    return {str(path.relative_to(folder)): path.read_text() for path in found}


WHOLE = {"vendor/lib/lib.txt": "one\n", "vendor/lib/deep/deep.txt": "deep\n"}


def test_they_come_from_the_users_clone_where_their_addresses_are_gone(
    root: Path, tmp_path: Path
) -> None:
    shutil.rmtree(tmp_path / "from")
    with unharmed(root):
        checkout, lacking = held(root)
    assert (texts(checkout), lacking) == (WHOLE, ())
    assert git(checkout, "status", "--porcelain") == ""
    assert git(checkout / "vendor" / "lib", "status", "--porcelain") == ""


def test_a_linked_worktree_has_those_of_its_clone(root: Path, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "from")
    git(root, "worktree", "add", "--quiet", "--detach", str(tmp_path / "linked"))
    with unharmed(tmp_path / "linked"):
        checkout, lacking = held(tmp_path / "linked")
    assert (texts(checkout), lacking) == (WHOLE, ())


def test_each_commit_has_its_own_and_what_stays_the_same_keeps_its_time_stamp(
    root: Path,
) -> None:
    lib = root / "vendor" / "lib"
    commit(lib, {"lib.txt": "two\n"})
    commit(root)
    git(root, "rm", "--quiet", "-r", "vendor")
    commit(root, {"vendor/lib/own.txt": "a file\n"})
    stamps = []
    for revision, text in (("HEAD~2", "one\n"), ("HEAD~1", "two\n"), ("HEAD~2", "one\n")):
        checkout, lacking = held(root, revision)
        (checkout / "vendor" / "lib" / "left by a build.o").touch()
        assert texts(checkout) == WHOLE | {"vendor/lib/lib.txt": text}
        assert lacking == ()
        stamps.append((checkout / "vendor/lib/deep/deep.txt").stat().st_mtime_ns)
    assert len({*stamps}) == 1
    for revision, there in (("HEAD", {"vendor/lib/own.txt": "a file\n"}), ("HEAD~1", None)):
        checkout, _ = held(root, revision)
        assert texts(checkout) == (there or WHOLE | {"vendor/lib/lib.txt": "two\n"})
        assert not (checkout / "vendor" / "lib" / "left by a build.o").exists()
    checkout, _ = held(root, "HEAD~3")
    assert not (checkout / "vendor").exists()


def test_the_working_tree_has_the_commit_that_its_submodule_is_at(root: Path) -> None:
    commit(root / "vendor" / "lib", {"lib.txt": "not committed above\n"})
    with unharmed(root):
        checkout, lacking = held(root, ".")
    assert texts(checkout)["vendor/lib/lib.txt"] == "not committed above\n"
    assert lacking == ()


def test_one_that_is_broken_is_made_anew(root: Path) -> None:
    checkout, _ = held(root)
    shutil.rmtree(checkout / "vendor" / "lib" / ".git" / "objects")
    assert texts(held(root)[0]) == WHOLE


def test_nothing_is_removed_behind_a_link_that_a_build_left(root: Path, tmp_path: Path) -> None:
    checkout, _ = held(root)
    other = write(tmp_path / "other", {"lib/precious.txt": "mine\n"})
    shutil.rmtree(checkout / "vendor")
    (checkout / "vendor").symlink_to(other)
    held(root, "HEAD~1")
    assert (other / "lib" / "precious.txt").read_text() == "mine\n"
    assert texts(held(root)[0]) == WHOLE


def bare(root: Path, tmp_path: Path) -> Path:
    """A clone that has loaded no submodule."""
    git(tmp_path, "clone", "--quiet", str(tmp_path / "from" / "home"), "bare")
    return tmp_path / "bare"


def test_what_git_would_not_take_from_a_commits_address_is_told_with_the_remedy(
    root: Path, tmp_path: Path
) -> None:
    with unharmed(bare(root, tmp_path)):
        checkout, (told,) = held(tmp_path / "bare")
    assert told.startswith(f"vendor/lib: cannot be fetched from {tmp_path}/from/lib: fatal:")
    assert "transport 'file' not allowed" in told
    assert "`git submodule update --init --recursive` in your clone brings it" in told
    assert [*(checkout / "vendor" / "lib").iterdir()] == []


def test_they_are_fetched_where_git_allows_it_and_kept(root: Path, tmp_path: Path) -> None:
    (tmp_path / "gitconfig").write_text("[protocol.file]\nallow = always\n")
    with unharmed(bare(root, tmp_path)):
        assert texts(held(tmp_path / "bare")[0]) == WHOLE
        shutil.rmtree(tmp_path / "from")
        shutil.rmtree(tmp_path / "bare/.rlox-opt/cache/revisions/checkout")
        assert texts(held(tmp_path / "bare")[0]) == WHOLE


def test_an_address_may_be_told_from_that_of_the_repository(root: Path, tmp_path: Path) -> None:
    (tmp_path / "gitconfig").write_text("[protocol.file]\nallow = always\n")
    git(tmp_path / "from" / "home", "config", "-f", ".gitmodules", "submodule.a lib.url", "../lib")
    commit(tmp_path / "from" / "home")
    assert texts(held(bare(root, tmp_path))[0]) == WHOLE


@pytest.mark.parametrize(
    ("url", "base", "whole"),
    [
        ("../x.git", "https://host/a/b.git", "https://host/a/x.git"),
        ("../../x", "git@host:a/b.git", "git@host:x"),
        ("./x", "https://host/a", "https://host/a/x"),
        ("https://host/x", "anything", "https://host/x"),
    ],
)
def test_addresses_are_told_as_git_tells_them(
    url: str, base: str, whole: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(Repository, "setting", lambda self, name: base)
    assert submodules._absolute(url, Repository(tmp_path, tmp_path, tmp_path)) == whole


def test_a_host_that_says_nothing_is_waited_for_once_and_not_long(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submodules, "_LIMIT_S", 1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        url = f"http://user:secret@127.0.0.1:{port}/lib"
        git(bare(root, tmp_path), "config", "submodule.a lib.url", url)
        for _ in range(2):
            _, (told,) = held(tmp_path / "bare")
            assert f"nothing came from http://127.0.0.1:{port}/lib within 1 s" in told
            assert "secret" not in told
        silent.setblocking(False)
        # On a busy machine git may not have got so far as to ask within the limit.
        with contextlib.suppress(BlockingIOError):
            silent.accept()
        with pytest.raises(BlockingIOError):
            silent.accept()


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"url": "--upload-pack=touch x"}, "no address that could be fetched from: '--upload"),
        ({"url": "ext::sh -c 'touch x'"}, "transport 'ext' not allowed"),
        ({"url": ""}, "no address that could be fetched from: ''"),
        ({"update": "none"}, ""),
    ],
)
def test_what_a_commit_says_of_its_submodules_runs_nothing(
    root: Path, tmp_path: Path, settings: dict[str, str], told: str
) -> None:
    for name, value in settings.items():
        git(
            tmp_path / "from" / "home", "config", "-f", ".gitmodules", f"submodule.a lib.{name}",
            value,
        )  # fmt: skip
    commit(tmp_path / "from" / "home")
    checkout, lacking = held(bare(root, tmp_path))
    assert [told in of for of in lacking] == ([True] if told else [])
    assert not [*tmp_path.rglob("x")]
    assert texts(checkout) == {}


def test_a_name_that_leads_elsewhere_is_not_followed(root: Path, tmp_path: Path) -> None:
    text = (root / ".gitmodules").read_text()
    (root / ".git" / "modules" / "a lib").rename(tmp_path / "elsewhere")
    shutil.rmtree(root / "vendor" / "lib")
    (root / "vendor" / "lib").mkdir()
    write(root, {".gitmodules": text.replace("a lib", "../../../elsewhere")})
    git(root, "add", ".gitmodules")
    git(root, "commit", "--quiet", "-m", "a commit")
    shutil.rmtree(tmp_path / "from")
    checkout, lacking = held(root)
    assert len(lacking) == 1
    assert texts(checkout) == {}


def test_a_suite_that_is_taken_out_of_a_commit_has_them(root: Path, tmp_path: Path) -> None:
    project = Project.find(root)
    with unharmed(root):
        suite = Suites(project).of(project.commits.resolve("HEAD"))
    top = suite.folder.parents[1]
    assert texts(top) == WHOLE
    assert not [*top.rglob(".git")]
    assert not any("not checked out" in note for note in suite.configuration.notes)


def test_what_a_suite_lacks_is_told_until_it_is_there(root: Path, tmp_path: Path) -> None:
    project = Project.find(bare(root, tmp_path))
    head = project.commits.resolve("HEAD")
    for _ in range(2):
        suite = Suites(project).of(head)
        assert "not checked out for the suite: vendor/lib: cannot" in suite.configuration.notes[-1]
    git(project.root, "submodule", "--quiet", "update", "--init", "--recursive")
    suite = Suites(project).of(head)
    assert texts(suite.folder.parents[1]) == WHOLE
    assert not any("not checked out" in note for note in suite.configuration.notes)
