"""Which kind of suite a project has, what its source tells of it, and what it requires."""

from pathlib import Path, PurePosixPath

import pytest
from asv_projects import conf, write

from rlox_opt.project import kinds
from rlox_opt.project.kinds import pytest_requires as requirements
from rlox_opt.project.kinds.pytest_benchmarks import Pytest
from rlox_opt.system.usage import UsageError

PYPROJECT = "[project]\nname = 'thing'\n"
TIMED = "def test_it(benchmark): ...\n"
TOP = PurePosixPath()


def test_an_asv_conf_json_comes_first_and_a_named_path_before_all(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": PYPROJECT, "tests/test_it.py": TIMED})
    assert kinds.chosen(tmp_path, TOP).kind == "pytest"
    write(tmp_path, {"asv.conf.json": conf(), "benchmarks/all.py": "def time_it(): ..."})
    assert kinds.chosen(tmp_path, TOP).kind == "asv"
    assert kinds.chosen(tmp_path, TOP, "benchmarks").kind == "asv"
    for wanted in ("tests", "tests/test_it.py"):
        found = kinds.chosen(tmp_path, TOP, wanted)
        assert (found.kind, found.suite) == ("pytest", PurePosixPath(wanted))


def test_several_suites_are_told_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, {"pyproject.toml": PYPROJECT, "tests/test_it.py": TIMED})
    monkeypatch.setattr(kinds, "OTHERS", (Pytest(), Pytest()))
    told = r'has several suites: tests/test_it\.py \(pytest\), .*suite = "tests/test_it\.py" under'
    with pytest.raises(UsageError, match=told):
        kinds.chosen(tmp_path, TOP)


SOURCE = """
import pytest

@pytest.fixture
def timed(benchmark): return benchmark

@pytest.fixture
def timed_twice(timed): return timed

def test_by_a_fixture_of_a_fixture(timed_twice): ...

@pytest.mark.parametrize("n", [1, 2])
def test_parametrised(n, benchmark): ...

@pytest.mark.benchmark(group="x")
def test_marked(): ...

def test_no_benchmark(): ...

class TestAll:
    pytestmark = [pytest.mark.benchmark]
    def test_method(self): ...
    def helper(self): ...
    class TestInner:
        def test_inner(self, *, benchmark): ...

if True:
    async def test_async(benchmark): ...

def bench_lost(benchmark): ...
"""


def test_the_source_tells_benchmarks_and_what_is_never_collected(tmp_path: Path) -> None:
    files = {"pyproject.toml": PYPROJECT, "tests/test_it.py": SOURCE, "tests/speed.py": TIMED}
    broken = {"tests/test_broken.py": "def (benchmark:\n", "tests/test_no.py": "X = 1\n"}
    write(tmp_path, {**files, **broken})
    suite = tmp_path / "tests"
    assert Pytest().benchmarks(suite) == [
        "tests/speed.py::test_it",
        *(
            f"tests/test_it.py::{name}"
            for name in (
                "test_by_a_fixture_of_a_fixture",
                "test_parametrised",
                "test_marked",
                "TestAll::test_method",
                "TestAll::TestInner::test_inner",
                "test_async",
            )
        ),
    ]
    (lost,) = Pytest().uncovered(suite)
    assert lost.startswith("tests/test_it.py:30: bench_lost is never collected: pytest takes")
    own = f"{PYPROJECT}[tool.pytest.ini_options]\npython_functions = 'bench_*'\n"
    write(tmp_path, {"pyproject.toml": own})
    assert Pytest().uncovered(suite) == []


@pytest.mark.parametrize(
    ("path", "another"),
    [
        ("tests/test_it.py", True),
        ("conftest.py", True),
        ("tests/test_no.py", False),
        ("pyproject.toml", False),
    ],
)
def test_a_digest_of_benchmarks_tells_whether_they_are_written_otherwise(
    path: str, another: bool, tmp_path: Path
) -> None:
    files = {"conftest.py": "", "tests/test_it.py": TIMED, "tests/test_no.py": "X = 1\n"}
    files["pyproject.toml"] = PYPROJECT
    one = write(tmp_path / "one", files)
    other = write(tmp_path / "other", {**files, path: f"{files[path]}# other\n"})
    here, there = (Pytest().digest(root / "tests") for root in (one, other))
    assert (here != there) == another


def test_a_file_that_pytest_alone_would_not_collect_is_covered_and_a_note_says_so(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"pyproject.toml": PYPROJECT, "tests/speed.py": TIMED})
    assert Pytest().uncovered(tmp_path / "tests") == []
    _, note = kinds.chosen(tmp_path, TOP).notes
    assert note.startswith("tests/speed.py: its 1 benchmarks are collected, although pytest alone")
    own = f"{PYPROJECT}[tool.pytest.ini_options]\npython_files = 'speed.py'\n"
    write(tmp_path, {"pyproject.toml": own})
    assert len(kinds.chosen(tmp_path, TOP).notes) == 1


def test_a_file_of_tests_that_this_python_cannot_parse_is_left_to_the_one_that_runs_it(
    tmp_path: Path,
) -> None:
    newer = {"tests/test_newer.py": "def (benchmark:\n", "tests/helper.py": "def (benchmark:\n"}
    files = {"pyproject.toml": PYPROJECT, "tests/test_it.py": TIMED, **newer}
    root, folder = write(tmp_path / "user", files), tmp_path / "scratch"
    folder.mkdir()
    laid = Pytest().laid_out(root / "tests", kinds.chosen(root, TOP), (), folder)
    assert [*laid.settings["files"]] == ["tests/test_it.py", "tests/test_newer.py"]


COSTS = """
import pytest

@pytest.mark.parametrize("n", LISTED_ELSEWHERE)
def test_of_some_cases(benchmark, n): ...

@pytest.mark.parametrize("n", [1, 2])
class TestOfCases:
    @pytest.mark.parametrize("m", argvalues=(1, 2))
    def test_four(self, benchmark, n, m): ...
    def test_two(self, benchmark, n): ...

def test_of_a_fixture(benchmark, data): ...

def test_of_rounds(benchmark):
    benchmark.pedantic(int, rounds=9)

def test_light(benchmark): ...

def test_as_light(benchmark): ...
"""


def test_the_lightest_has_the_fewest_cases_then_fixtures_then_no_rounds_of_its_own(
    tmp_path: Path,
) -> None:
    write(tmp_path, {"pyproject.toml": PYPROJECT, "tests/test_it.py": COSTS})
    suite = tmp_path / "tests"
    left = Pytest().benchmarks(suite)
    order: list[str] = []
    while left:
        order.append(Pytest().lightest(suite, left))
        left.remove(order[-1])
    assert [name.rpartition("::")[2] for name in order] == [
        "test_light", "test_as_light", "test_of_rounds", "test_of_a_fixture", "test_two",
        "test_four", "test_of_some_cases",
    ]  # fmt: skip


DECORATED = """
import pytest

@pytest.mark.parametrize("fixture", ["a", "b"])
def test_dumps(benchmark, fixture): ...

@pytest.mark.skipif(True, reason="needs fixture data")
def test_loads(benchmark): ...
"""


def test_a_decorator_that_only_names_a_fixture_makes_none(tmp_path: Path) -> None:
    write(tmp_path, {"pyproject.toml": PYPROJECT, "tests/test_it.py": DECORATED})
    names = [f"tests/test_it.py::{name}" for name in ("test_dumps", "test_loads")]
    assert Pytest().benchmarks(tmp_path / "tests") == names


@pytest.mark.parametrize(
    "line", ["from pytest_codspeed import Fixture", 'pytest.importorskip("pytest_codspeed")']
)
def test_a_plug_in_that_the_suite_imports_is_among_what_it_requires(
    line: str, tmp_path: Path
) -> None:
    group = "[dependency-groups]\na = ['pytest', 'numpy']\n"
    write(tmp_path, {"pyproject.toml": group, "tests/test_it.py": f"{line}\n{TIMED}"})
    found = kinds.chosen(tmp_path, TOP)
    assert found.requirements == ("pytest", "numpy", "pytest-codspeed")
    assert "what the dependency group a and an import in the suite say;" in found.notes[0]
    write(tmp_path, {"pyproject.toml": group.replace("numpy", "pytest_codspeed>=3")})
    assert kinds.chosen(tmp_path, TOP).requirements == ("pytest", "pytest_codspeed>=3")


EXTRAS = """
[project]
name = "My.Thing"
[project.optional-dependencies]
docs = ["sphinx"]
fast = ["numpy>=2"]
test = ["my-thing[fast]", "pytest>=8", "pytest-codspeed; python_version > '3'"]
"""
POETRY = """
[tool.poetry.group.dev.dependencies]
python = "^3.9"
pytest = "^8"
pytest_benchmark = { version = "^4", extras = ["histogram"] }
"""


@pytest.mark.parametrize(
    ("files", "taken", "source"),
    [
        ({}, ("pytest>=7",), ""),
        (
            {"pyproject.toml": EXTRAS},
            ("numpy>=2", "pytest>=8", "pytest-codspeed; python_version > '3'"),
            "the extra test",
        ),
        ({"pyproject.toml": POETRY}, ("pytest", "pytest_benchmark"), "poetry's group dev"),
        (
            {
                "pyproject.toml": "[dependency-groups]\na = ['pytest']\n",
                "requirements/tests.txt": "-r base.txt\n-e .\n"
                "pytest-benchmark==4 \\\n    --hash=x:0\n",
                "requirements/base.txt": "# what all need\nattrs>=22  # for its slots\n--pre\n",
            },
            ("attrs>=22", "pytest-benchmark==4", "pytest"),
            "requirements/tests.txt and the dependency group a",
        ),
        ({"pyproject.toml": "[dependency-groups]\na = ['pytest']\n"}, ("pytest",),
         "the dependency group a"),
    ],
    ids=["nothing", "an extra", "poetry", "a file", "pytest alone"],
)  # fmt: skip
def test_what_tests_require_is_found_where_projects_write_it(
    files: dict[str, str], taken: tuple[str, ...], source: str, tmp_path: Path
) -> None:
    write(tmp_path, files)
    assert requirements.found(tmp_path) == (taken, source)
