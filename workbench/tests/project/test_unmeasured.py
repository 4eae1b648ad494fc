"""Which commits need no recording: none that could change what is built, or how it is measured."""

from pathlib import Path

import pytest
from asv_projects import FILES, PYPROJECT, SUITE, commit, conf, make

from rlox_opt.history.unrecorded import changing
from rlox_opt.project.project import Project
from rlox_opt.system.usage import UsageError

BUILT = (
    *("crates/core/src/lib.rs", "rust.rs", "ext/fast.c", "Cargo.lock", "Cargo.toml", "setup.py"),
    *("CMakeLists.txt", "MANIFEST.in", "requirements.txt", ".cargo/config.toml", ".gitignore"),
    *("thing/docs/text.md", "my_thing.py", "my_thing/tests/data.py", ".gitmodules", "src/x.py"),
)
NEVER = (
    *("README.md", "CHANGES.rst", "docs/index.txt", "doc/conf.py", "tests/test_a.py"),
    *(".github/workflows/ci.yml", ".gitlab-ci.yml", "tox.ini", ".rlox-opt/history/m/a.json"),
)


def needing(root: Path, project: Path, names: tuple[str, ...]) -> list[str]:
    """Of commits that change one file each, those that need a recording, by that file."""
    made = {commit(root, {name: "changed\n"}): name for name in names}
    changed = changing(Project.find(project))
    return [name for of, name in made.items() if of in changed]


def test_what_is_built_may_lie_anywhere_and_what_is_for_people_or_tests_is_not(
    tmp_path: Path,
) -> None:
    root = make(tmp_path)
    suite = ("benchmarks/benchmarks/all.py",)
    assert needing(root, root, BUILT + suite + NEVER) == [*BUILT, *suite]


def test_a_project_below_the_top_may_be_built_of_what_lies_beside_it(tmp_path: Path) -> None:
    files = {
        "python[a]/pyproject.toml": PYPROJECT,
        "python[a]/asv.conf.json": conf(repo="..", repo_subdir="python[a]"),
        "python[a]/benchmarks/all.py": SUITE,
    }
    root = make(tmp_path, files)
    of_both = (*NEVER, *(f"python[a]/{name}" for name in NEVER))
    there = ("core/lib.rs", "python[a]/core.c", "other/docs.c", "pythona/README.md")
    kept = (".rlox-opt/history/m/a.json",)  # which is not that of this project
    assert needing(root, root / "python[a]", (*of_both, *there)) == [*kept, *there]


@pytest.mark.parametrize("name", ["tests/bench/all.py", "docs/__init__.py"])
def test_a_suite_among_tests_and_a_package_that_is_called_docs_are_not_left_out(
    name: str, tmp_path: Path
) -> None:
    files = {
        "asv.conf.json": conf(benchmark_dir="tests/bench"),
        "pyproject.toml": PYPROJECT.replace("my-thing", "docs"),
        "tests/bench/all.py": SUITE.replace("my_thing", "docs"),
        "docs/__init__.py": "",
    }
    root = make(tmp_path, files)
    assert needing(root, root, (name, "tox.ini")) == [name]


def test_paths_that_git_does_not_take_are_told(tmp_path: Path) -> None:
    table = f'{PYPROJECT}\n[tool.rlox-opt]\nmeasured = ["../elsewhere"]\n'
    root = make(tmp_path, {**FILES, "pyproject.toml": table})
    with pytest.raises(UsageError, match=r"measured = \['\.\./elsewhere'\]: .*outside repository"):
        needing(root, root, ("rust.rs",))


def test_the_settings_say_otherwise(tmp_path: Path) -> None:
    table = f'{PYPROJECT}\n[tool.rlox-opt]\nmeasured = ["my_thing.py", "docs"]\n'
    root = make(tmp_path, {**FILES, "pyproject.toml": table})
    names = ("my_thing.py", "docs/x", "rust.rs", "setup.py")
    assert needing(root, root, names) == ["my_thing.py", "docs/x"]
