"""A project with pytest benchmarks: a back-end of its own, every way in which pytest-benchmark and
pytest-codspeed are used, and no [tool.rlox-opt]."""

import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path

import small_projects
import users_repository

PYPROJECT = f"""{small_projects.PYPROJECT}
[dependency-groups]
lint = ["a-linter"]
test = ["pytest", {{ include-group = "bench" }}]
bench = ["pytest-benchmark"]
[tool.pytest.ini_options]
addopts = [
    "-n", "2", "--dist", "loadscope", "--benchmark-disable", "--benchmark-skip", "--cov=thing",
    "--strict-markers", "-m", "not benchmark",
]
testpaths = ["tests"]
markers = ["slow: takes long"]
"""
CONFTEST = '''
import pytest

def pytest_addoption(parser):
    parser.addoption("--size", type=int, default=300)

def pytest_benchmark_update_machine_info(config, machine_info):
    machine_info["of"] = "ours"

@pytest.fixture(scope="session", params=["list", "tuple"])
def kind(request):
    """Made once, of two kinds."""
    return {"list": list, "tuple": tuple}[request.param]

@pytest.fixture(scope="session")
def data(request, kind):
    return kind(range(request.config.getoption("--size")))

@pytest.fixture
def timed(benchmark):
    """The fixture by another name."""
    return benchmark
'''
SUITE = '''
"""Of all ways."""
import sys

import pytest
import thing

from helpers import LIMIT


def test_as_a_function(benchmark, data):
    assert benchmark(thing.work, data) == sum(data)


def test_as_a_decorator(benchmark):
    @benchmark
    def total():
        return thing.work(range(LIMIT))
    assert total == sum(range(LIMIT))


def test_by_another_fixture(timed):
    timed(thing.work, range(LIMIT))


@pytest.mark.benchmark(group="sizes")
@pytest.mark.parametrize("n", [100, 300])
def test_of_a_size(benchmark, n):
    benchmark.extra_info["n"] = n
    benchmark(thing.work, data=range(n))
    assert benchmark.stats.stats.min > 0 and benchmark.stats["rounds"] > 0


def test_with_arguments(benchmark):
    result = benchmark.pedantic(
        thing.work, args=(range(LIMIT),), kwargs={}, rounds=7, iterations=3, warmup_rounds=1)
    assert result == sum(range(LIMIT))


def test_with_a_setup(benchmark):
    def fresh():
        return (list(range(LIMIT)),), {}

    def used_up(data):
        total = thing.work(data)
        data.clear()
        return total

    assert benchmark.pedantic(used_up, setup=fresh, rounds=5) == sum(range(LIMIT))


def test_that_bears_one_call(benchmark):
    left = [range(LIMIT)]
    assert benchmark.pedantic(lambda: thing.work(left.pop())) == sum(range(LIMIT))


def test_that_changes_its_state(benchmark):
    grown = []

    def grow():
        grown.extend(range(20))
        thing.work(grown)
    benchmark(grow)


class TestOfAClass:
    @pytest.fixture(autouse=True)
    def numbers(self):
        self.numbers = [*range(LIMIT)]

    def test_method(self, benchmark):
        benchmark(thing.work, self.numbers)


@pytest.mark.benchmark
def test_marked():
    assert thing.work(range(LIMIT)) == sum(range(LIMIT))


@pytest.mark.skip(reason="not on this machine")
def test_skipped(benchmark):
    raise AssertionError


def test_skipped_on_the_way(benchmark):
    benchmark(lambda: pytest.skip("not today"))


@pytest.mark.xfail(reason="known")
def test_expected_to_fail(benchmark):
    benchmark(lambda: 1 / 0)


def test_wrong(benchmark):
    assert benchmark(thing.size, 3) == 24


def test_without_a_call(benchmark):
    pass


@pytest.mark.slow
def test_that_is_no_benchmark():
    sys.exit("is never run")
'''
LATER = """
import pytest
from thing import fresh  # which no commit had before

pytestmark = pytest.mark.benchmark


def test_fresh():
    fresh()
"""
OTHER = "import nothing_of_the_kind  # a test that needs what is not there\n"


def thing(passes: int = 1, more: str = "", size: int = 8) -> str:
    """The package's module, whose `work` passes over its input so often."""
    return (
        f"def work(data):\n    for _ in range({passes}):\n        total = sum(data)\n"
        f"    return total\n\ndef size(n):\n    return {size} * n\n{more}"
    )


HISTORY: tuple[Mapping[str, str], ...] = (
    {
        **small_projects.own(thing()),
        "pyproject.toml": PYPROJECT,
        "tests/conftest.py": CONFTEST,
        "tests/helpers.py": "LIMIT = 200\n",
        "tests/test_speed.py": SUITE,
        "tests/test_other.py": OTHER,
    },
    {"README.md": "A thing.\n"},
    {"thing.py": thing(passes=6)},
    {
        "thing.py": thing(passes=6, more="\ndef fresh():\n    return work(range(99))\n", size=9),
        "tests/later_test.py": LATER,
    },
)
"""Where it becomes slower is the third."""


def project(folder: Path) -> list[str]:
    """The repository; its commits, the oldest first."""
    users_repository.make(folder, HISTORY)
    line = users_repository.git(folder, "rev-list", "--first-parent", "--reverse", "main")
    return line.split()


def index(folder: Path) -> Path:
    """A folder of wheels that serves as an index: pytest with its requirements, as installed here,
    and a pytest-benchmark that must not be loaded."""
    for name in ("pytest", "pluggy", "iniconfig", "packaging", "pygments"):
        _installed(folder, name)
    folder_of = folder / "pytest_benchmark-5.0-py3-none-any.whl"
    info = "pytest_benchmark-5.0.dist-info"
    files = {
        "pytest_benchmark/__init__.py": "",
        "pytest_benchmark/plugin.py": "raise ImportError('it is loaded')\n",
        f"{info}/entry_points.txt": "[pytest11]\nbenchmark = pytest_benchmark.plugin\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: pytest-benchmark\nVersion: 5.0\n",
        f"{info}/WHEEL": _WHEEL,
    }
    _zipped(folder_of, {name: text.encode() for name, text in files.items()}, info)
    return folder


_WHEEL = "Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _installed(folder: Path, name: str) -> None:
    """A wheel of a pure package that is installed here."""
    of = metadata.distribution(name)
    info = f"{name}-{of.version}.dist-info"
    files = {
        str(path): Path(str(path.locate())).read_bytes()
        for path in of.files or ()
        if ".." not in path.parts and path.suffix != ".pyc" and path.name not in _OF_AN_INSTALLATION
    }
    _zipped(folder / f"{name}-{of.version}-py3-none-any.whl", files, info)


_OF_AN_INSTALLATION = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")


def _zipped(path: Path, files: dict[str, bytes], info: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    record = "".join(f"{name},,\n" for name in [*files, f"{info}/RECORD"])
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in {**files, f"{info}/RECORD": record.encode()}.items():
            wheel.writestr(name, content)
