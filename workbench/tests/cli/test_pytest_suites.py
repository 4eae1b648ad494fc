"""A project whose benchmarks are pytest's, from `init` to its verdicts: by the installed command in
a process of its own, and where that is not the point in this one. What its user has is the same
afterwards, to the byte."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_projects
import strangers
import users_repository
from strangers import SHORT, SURE

QUICK = "from rlox_opt.harness import packages as p; p._CONTEST_S, p._CONTESTS = 0.03, 2"
SPEED = "tests/test_speed.py::"
pytestmark = pytest.mark.timeout(900)  # for a busy machine


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str], Path]:
    """The project, which all tests share, its commits, and the index of packages."""
    folder = tmp_path_factory.mktemp("pytest") / "a user's thing"
    commits = pytest_projects.project(folder)
    return folder, commits, pytest_projects.index(folder.parent / "index")


@pytest.fixture
def root(made: tuple[Path, list[str], Path]) -> Iterator[Path]:
    """Its folder, in which the test leaves nothing but what is the tool's."""
    with strangers.untouched(made[0]):
        yield made[0]


@pytest.fixture
def commits(made: tuple[Path, list[str], Path]) -> list[str]:
    """Its commits, the oldest first."""
    return made[1]


def asked(root: Path, *words: str, code: int = 0, first: str = QUICK) -> Any:
    """What a verb says as JSON, with the project's own index."""
    index = f"{root.parent / 'index'}"
    return strangers.asked(root, *words, code=code, first=first, UV_FIND_LINKS=index)


def test_init_finds_the_suite_and_what_its_tests_require(root: Path) -> None:
    done = strangers.here(root, "init")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    named = "'^tests/later_test.py::test_fresh'"
    assert last == f"run next:    rlox-opt diff HEAD~1 HEAD --bench {named}"
    assert "tests, 16 benchmark functions  (pytest's: tests that take" in done.stdout
    assert "has what the dependency group test says; --with" in done.stdout
    assert strangers.asked_here(root, "init")["written"] is None


def test_the_source_alone_shows_little_and_that_is_told(root: Path) -> None:
    done = strangers.here(root, "lint-suite", "--static")
    told = "a pytest suite: only uncollected benchmarks are looked for; run without --static"
    assert done.stderr.startswith(told)


def test_benchmarks_are_compared_in_whichever_way_they_are_written(
    root: Path, commits: list[str]
) -> None:
    found = asked(root, "diff", commits[0], commits[-1], *SURE)
    verdicts = {row["benchmark"].removeprefix(SPEED): row["verdict"] for row in found["results"]}
    assert verdicts == dict.fromkeys((
        "test_as_a_function[list]", "test_as_a_function[tuple]", "test_as_a_decorator",
        "test_by_another_fixture", "test_of_a_size[100]", "test_of_a_size[300]",
        "test_with_arguments", "test_with_a_setup", "test_that_bears_one_call",
        "test_that_changes_its_state", "TestOfAClass::test_method", "test_marked",
    ), "slower"), found["failures"]  # fmt: skip
    assert {row["benchmark"].removeprefix(SPEED): row["reason"] for row in found["skipped"]} == {
        "test_skipped": "not on this machine",
        "test_skipped_on_the_way": "not today",
        "test_expected_to_fail": "it is expected to fail: known",
    }
    failed = {row["benchmark"].removeprefix(SPEED): row for row in found["failures"]}
    assert failed.keys() == {"test_wrong", "test_without_a_call"}
    assert failed["test_wrong"]["side"] == "head"
    assert failed["test_wrong"]["reason"].startswith("AssertionError: assert 27 == 24")
    assert "never calls what is to be timed" in failed["test_without_a_call"]["reason"]
    assert found["missing"] == [{"benchmark": "tests/later_test.py::test_fresh", "side": "base"}]
    why = "ImportError: cannot import name 'fresh' from 'thing' (thing.py)"
    assert found["broken"] == {"base": {"tests/later_test.py": why}, "head": {}}
    drifted = [note for note in found["notes"] if "its calls change what they work on" in note]
    assert [note.partition(": ")[0] for note in drifted] == [f"{SPEED}test_that_changes_its_state"]


@pytest.mark.slow
def test_a_bisection_finds_the_commit(root: Path, commits: list[str]) -> None:
    words = "bisect", commits[0], commits[-1], "--bench", "as_a_decorator"
    found = asked(root, *words, first=strangers.QUICK)
    assert found["verdict"] == "found"
    assert found["commit"] == commits[2]


@pytest.mark.slow
def test_a_commit_is_recorded_and_the_machine_calibrated(
    made: tuple[Path, list[str], Path], commits: list[str]
) -> None:
    root, _, _ = made
    before = users_repository.fingerprint(root, own=".rlox-opt")
    bench = ("--bench", "as_a_decorator|changes_its_state")
    found = asked(root, "record", commits[2], *bench, "--budget", "20")
    assert len(found["recorded"]) == 1
    assert found["noticed"].keys() == {f"{SPEED}test_that_changes_its_state"}
    calibrated = asked(root, "calibrate", "--budget", "20", "--bench", "as_a_decorator")
    assert calibrated["benchmarks"].keys() == {f"{SPEED}test_as_a_decorator"}
    assert users_repository.fingerprint(root, own=".rlox-opt") == before


@pytest.mark.slow
def test_the_working_tree_and_a_file_may_be_the_suite(
    root: Path, commits: list[str], tmp_path: Path
) -> None:
    other = tmp_path / "test_mine.py"
    other.write_text("import thing\n\ndef test_mine(benchmark):\n    benchmark(thing.work, [1])\n")
    for suite, name in ((".", f"{SPEED}test_marked"), (f"{other}", "test_mine.py::test_mine")):
        sides = commits[0], commits[2], "--suite", suite, "--bench", "test_marked|test_mine"
        found = asked(root, "diff", *sides, *SHORT)
        assert [row["benchmark"] for row in found["results"]] == [name], found


@pytest.mark.parametrize(
    ("files", "words", "said"),
    [
        (
            {"tests/conftest.py": "import nothing_there\n"},
            (),
            "No module named 'nothing_there'",
        ),
        (
            {"notes.py": "X = 1\n"},
            ("--suite", "notes.py"),
            "is no suite; name an asv.conf.json",
        ),
        ({}, ("--bench", "nothing"), "matches no benchmark; there are 17, such as"),
    ],
    ids=["a broken conftest", "no suite", "no such benchmark"],
)
def test_what_cannot_be_measured_is_told_in_one_line(
    files: dict[str, str], words: tuple[str, ...], said: str, tmp_path: Path, made: Any
) -> None:
    folder, (commit, *_), index = made  # which may have what was built by other tests
    if files:
        folder, commit = tmp_path / "user", "HEAD"
        users_repository.make(folder, [{**pytest_projects.HISTORY[0], **files}, {"more": ""}])
    asks = ("diff", commit, commit, "--anyway", *words)
    done = strangers.here(folder, *asks, UV_FIND_LINKS=f"{index}")
    assert done.returncode in (2, 3), done.stdout
    assert said in done.stderr.splitlines()[-1], done.stderr
    assert "Traceback" not in done.stderr
