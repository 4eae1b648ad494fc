"""Where a suite comes from, and what is told where it comes from nowhere."""

import os
import shutil
from pathlib import Path, PurePosixPath

import asv_projects
import pytest
from asv_projects import FILES, SUITE, commit, conf, make, write
from users_repository import fingerprint, git

from rlox_opt.project.asv_configuration import Configuration
from rlox_opt.project.commits import Revision
from rlox_opt.project.project import Project
from rlox_opt.project.suites import Suite, Suites, uncovered
from rlox_opt.system.usage import UsageError


def of(root: Path, revision: str = "HEAD", given: str | None = None) -> Suite:
    project = Project.find(root)
    return Suites(project).of(project.commits.resolve(revision), given)


def names(suite: Suite) -> list[str]:
    return sorted(path.name for path in suite.folder.iterdir())


def test_a_commits_suite_is_taken_out_with_all_that_lies_beside_it(tmp_path: Path) -> None:
    root = make(tmp_path / "thing", {**FILES, "data/numbers.txt": "1 2 3\n"})
    write(root, {"benchmarks/benchmarks/later.py": SUITE})
    (root / "data" / "numbers.txt").unlink()
    before = fingerprint(root)
    suite = of(root)
    assert suite.folder.is_relative_to(root / ".rlox-opt" / "cache")
    assert names(suite) == ["__init__.py", "all.py"]
    assert (suite.folder.parents[1] / "data" / "numbers.txt").read_text() == "1 2 3\n"
    assert not (suite.folder.parents[1] / ".git").exists()
    assert suite.configuration.requirements == ("numpy",)
    assert suite.text.startswith("HEAD (")
    of_ours = {name for name in fingerprint(root) if name.startswith(".rlox-opt")}
    assert {k: v for k, v in fingerprint(root).items() if k not in of_ours} == before
    assert git(root, "status", "--porcelain").count(".rlox-opt") == 0


def test_what_was_taken_out_is_taken_again_and_half_of_it_never(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            of(root)
    assert not [path for path in (root / ".rlox-opt/cache/suites").iterdir() if len(path.name) > 30]
    first = of(root)
    (first.folder / "mark").touch()
    commit(root)  # another commit with the same tree
    assert of(root).folder == first.folder
    assert "mark" in names(of(root))


def test_only_the_newest_trees_are_kept(tmp_path: Path) -> None:
    root = make(tmp_path)
    suites = []
    for number in range(10):
        commit(root, {"data.txt": f"{number}\n"})
        suites.append(of(root))
        os.utime(suites[-1].folder.parents[1], (number, number))
    assert [suite.folder.is_dir() for suite in suites] == [False] * 2 + [True] * 8


def test_the_working_tree_has_its_own(tmp_path: Path) -> None:
    root = make(tmp_path)
    write(root, {"benchmarks/benchmarks/later.py": SUITE})
    for suite in (of(root, "."), of(root, "HEAD", ".")):
        assert suite.folder == root / "benchmarks" / "benchmarks"
        assert "later.py" in names(suite)


def test_an_older_suite_is_found_where_it_lay(tmp_path: Path) -> None:
    root = make(tmp_path, {"asv.conf.json": conf(benchmark_dir="bench"), "bench/all.py": SUITE})
    write(root, {"pyproject.toml": '[tool.rlox-opt]\nsuite = "new"\n', "new/all.py": SUITE})
    shutil.rmtree(root / "bench")
    (root / "asv.conf.json").unlink()
    commit(root)
    assert of(root).folder.name == "new"
    assert of(root, "HEAD~1").folder.name == "bench"


def test_a_commit_without_one_may_be_given_that_of_another(tmp_path: Path) -> None:
    bare = {name: text for name, text in FILES.items() if not name.startswith("bench")}
    root = make(tmp_path, bare)
    commit(root, FILES)
    with pytest.raises(UsageError, match=r"HEAD~1 \(.*has no suite: .*; --suite \. gives it"):
        of(root, "HEAD~1")
    assert names(of(root, "HEAD~1", "main")) == ["__init__.py", "all.py"]
    shutil.rmtree(root / "benchmarks")
    with pytest.raises(UsageError, match=r"has no suite: .*; --suite REV gives it"):
        of(root, "HEAD~1")


def test_a_release_needs_one(tmp_path: Path) -> None:
    project = Project.find(make(tmp_path))
    release = Revision("pypi:my-thing==1.0", "pypi:my-thing==1.0")
    with pytest.raises(UsageError, match=r"pypi:my-thing==1\.0: a release has no suite; --suite"):
        Suites(project).of(release)
    assert Suites(project).of(release, "HEAD").text.startswith("HEAD")


def test_a_folder_may_have_a_configuration_or_be_the_benchmarks(tmp_path: Path) -> None:
    root = make(tmp_path / "thing")
    url = conf(repo="https://host/thing.git", benchmark_dir="b", matrix={"scipy": []})
    other = make(tmp_path / "other", {"asv.conf.json": url, "b/all.py": SUITE})
    suite = of(root, "HEAD", str(other))
    assert (suite.folder, suite.configuration.requirements) == (other / "b", ("scipy",))
    assert suite.configuration.project == Project.find(root).within
    assert not suite.configuration.notes
    loose = write(tmp_path / "loose", {"all.py": SUITE})
    suite = of(root, "HEAD", str(loose))
    assert suite.folder == loose
    assert suite.configuration.requirements == ("numpy",), "the project's own"


def test_a_suite_beside_the_repository_is_that_of_all_commits(tmp_path: Path) -> None:
    table = f'{asv_projects.PYPROJECT}\n[tool.rlox-opt]\nsuite = "../suite"\n'
    root = make(tmp_path / "thing", {"pyproject.toml": table, "my_thing.py": ""})
    write(tmp_path / "suite", {"all.py": SUITE})
    for revision in ("HEAD", "."):
        assert of(root, revision).folder == tmp_path / "suite"
    assert "../suite" not in Project.find(root).measured
    write(tmp_path / "suite", {"asv.conf.json": conf(benchmark_dir="b"), "b/all.py": SUITE})
    assert of(root).folder == tmp_path / "suite" / "b"


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"pyproject.toml": asv_projects.PYPROJECT}, "HEAD .*: has no suite: no asv.conf"),
        ({"asv.conf.json": conf()}, "HEAD .*: has no suite: benchmarks, named by asv.conf.json"),
        ({"asv.conf.json": conf(), "benchmarks/a.py": "x = 1\n"}, "has no benchmark: no function"),
        ({"asv.conf.json": conf(), "benchmarks/a.py": "f(time_s)\n"}, "has no benchmark"),
        ({"asv.conf.json": "{"}, r"HEAD .*: asv\.conf\.json, line 1: is no JSON"),
        ({"asv.conf.json": conf(), "b/asv.conf.json": conf()}, r"several .*: asv\.conf\.json, b/"),
        ({"asv.conf.json/x": ""}, r"HEAD .*: asv\.conf\.json: is a folder; name a file"),
        ({"asv.conf.json": conf(repo="https://host/x.git")}, "has nothing to build: no pyproject"),
        ({"asv.conf.json": conf(benchmark_dir="..")}, "`benchmark_dir` is '..', outside"),
    ],
)
def test_what_is_no_suite_is_told_in_one_line(
    files: dict[str, str], told: str, tmp_path: Path
) -> None:
    root = make(tmp_path, files)
    with pytest.raises(UsageError, match=told) as raised:
        of(root)
    assert "\n" not in str(raised.value)
    assert ".rlox-opt/cache" not in str(raised.value)


def test_commands_that_only_the_working_tree_has_are_told_and_how_to_use_them(
    tmp_path: Path,
) -> None:
    root = make(tmp_path)
    for name in ("asv.conf.json", "pyproject.toml"):
        (root / name).unlink(missing_ok=True)
    shutil.rmtree(root / "benchmarks")
    commit(root)
    (root / "pyproject.toml").write_text('[tool.rlox-opt.suite]\ncommands = ["true"]\n')
    told = (
        r"has no suite: pyproject\.toml is not in it; --suite \. gives it that of the working tree"
    )
    with pytest.raises(UsageError, match=told):
        of(root)


def test_a_link_to_nowhere_is_told(tmp_path: Path) -> None:
    root = make(tmp_path)
    (root / "asv.conf.json").symlink_to("nowhere")
    shutil.rmtree(root / "benchmarks")
    commit(root)
    with pytest.raises(UsageError, match=r"asv\.conf\.json: cannot be read: No such file"):
        of(root)


def test_what_is_given_must_be_a_folder_or_a_commit(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--suite nothing: is no folder here, and 'nothing': is"):
        of(make(tmp_path), "HEAD", "nothing")


def test_what_looks_like_a_benchmark_and_is_none_is_told(tmp_path: Path) -> None:
    text = """\
import helpers

class Suite:
    def setup(self): ...
    def setup_cache(self): ...
    def teardown(self): ...
    def time_good(self): self.bench_part()
    def bench_part(self): ...
    def helper(self): ...
    @property
    def test_property(self): ...
    def test_polygon(self): ...
    def benchmark_it(self): ...
    def memoryUse(self): ...
    def time_twice(self): ...
    def time_twice(self): ...
    class Inner:
        def time_inner(self): ...

class _Base:
    def time_inherited(self): ...

class Real(_Base): ...

class _Alone:
    def time_alone(self): ...

class Names:
    def test_nothing(self): ...

def bench_function(): ...
"""
    lost = "def time_lost(): ...\n"
    write(tmp_path / "suite", {"a.py": text, "sub/lost.py": lost, "broken.py": "def (:\n"})
    path = PurePosixPath("suite")
    suite = Suite(tmp_path / "suite", Configuration(path, path, PurePosixPath()), "")
    told = uncovered(suite)
    for said in (
        "suite/a.py:12: Suite.test_polygon is never",
        "suite/a.py:13: Suite.benchmark_it is never",
        "suite/a.py:14: Suite.memoryUse is never",
        "suite/a.py:15: Suite.time_twice is never collected: line 16 defines another",
        "suite/a.py:17: Suite.Inner: its 1 benchmarks are never collected: a class within a class",
        "suite/a.py:25: _Alone: its 1 benchmarks are never collected: the name of the class begins",
        "suite/a.py:31: bench_function is never",
        "suite/sub/lost.py: its 1 benchmarks are never collected: suite/sub has no __init__.py",
        "suite/broken.py: is no Python: ",
    ):
        assert any(one.startswith(said) for one in told), (said, told)
    assert len(told) == 9, told
