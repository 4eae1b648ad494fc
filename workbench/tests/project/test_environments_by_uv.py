"""Environments: what is asked for, whole or not at all, and the other side's where it may be."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import small_projects
from survivors import bearing, none_left, wait_for

from rlox_opt.project import interpreters
from rlox_opt.project.environments import (
    Environment,
    Environments,
    NotResolvedError,
    known,
    needed_by,
)
from rlox_opt.project.interpreters import chosen, running
from rlox_opt.system.usage import UsageError

# What lies there when it asks for versions, when these are kept, and while it installs them.
MOMENTS = (
    ".rlox-making-*/made/asked.txt", "locks/*.json", ".rlox-making-*/made/new",
    ".rlox-making-*/made/new/bin/python",
)  # fmt: skip


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """uv's, which knows the interpreter, and packages by the paths of their files alone."""
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture
def environments(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Environments:
    small_projects.index(tmp_path / "index", monkeypatch)
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    return Environments(tmp_path / "environments")


def forked(work: Callable[[], object]) -> int:
    """A process that does this, and then ends with 0."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def said(environment: Environment, program: str) -> str:
    command = [environment.python, "-I", "-c", program]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_an_environment_has_what_is_asked_for_and_is_shared(environments: Environments) -> None:
    made = environments.of(running(), ["beta"])
    assert made.locked == ("alpha==2.0", "beta==2.0")
    assert said(made, "import alpha, beta; print(alpha.VERSION, beta.VERSION)") == "2.0 2.0"
    assert environments.of(running(), ["beta", "alpha>1"]).python == made.python
    assert environments.of(running(), ["alpha"]).python != made.python


def test_the_versions_of_the_other_side_are_kept_unless_they_are_forbidden(
    environments: Environments,
) -> None:
    base = environments.of(running(), ["alpha==1.0"])
    assert environments.of(running(), ["alpha", "beta"], like=base).locked[0] == "alpha==1.0"
    assert environments.of(running(), ["alpha>1"], like=base).locked == ("alpha==2.0",)


def test_what_was_resolved_once_stays_so(environments: Environments, tmp_path: Path) -> None:
    before = environments.of(running(), ["alpha"])
    small_projects.wheel(tmp_path / "index", "alpha", "3.0")
    assert environments.of(running(), ["alpha"]) == before
    assert environments.of(running(), ["alpha>2"]).locked == ("alpha==3.0",)


def test_what_only_conda_has_is_left_out_and_told(environments: Environments) -> None:
    made = environments.of(running(), ["alpha", "libgeo>=3"], droppable=["alpha", "libgeo"])
    assert made.locked == ("alpha==2.0",)
    (note,) = made.notes
    assert note.startswith("libgeo is left out: PyPI has no wheel of it")
    assert environments.of(running(), ["alpha", "libgeo>=3"], droppable=["libgeo"]).notes == (note,)
    with pytest.raises(NotResolvedError, match="libgeo was not found"):
        environments.of(running(), ["alpha", "libgeo>=3"])


def test_a_version_without_a_wheel_is_told_and_its_package_is_not_left_out(
    environments: Environments, tmp_path: Path
) -> None:
    (tmp_path / "index" / "alpha-0.5.tar.gz").touch()
    asked = ["alpha==0.5", "alpha>=0.1"]
    for needed in ((), asked[1:]):
        with pytest.raises(NotResolvedError, match=r"alpha==0\.5 has no usable wheels"):
            environments.of(running(), asked, droppable=["alpha"], needed=needed)


def test_what_is_needed_is_never_left_out(environments: Environments) -> None:
    asked = ["alpha", "libgeo"]
    assert environments.of(running(), asked, droppable=["libgeo"]).locked == ("alpha==2.0",)
    with pytest.raises(NotResolvedError, match="libgeo was not found"):
        environments.of(running(), asked, droppable=["libgeo"], needed=["libgeo"])


@pytest.mark.parametrize("asked", [["alpha==9"], ["alpha==2.0", "beta==1.0"]])
def test_what_cannot_be_had_is_told_in_a_line_with_the_reason(
    environments: Environments, asked: list[str]
) -> None:
    with pytest.raises(NotResolvedError, match=r"^alpha==.* for Python .*: .*alpha") as told:
        environments.of(running(), asked, droppable=["alpha"])
    assert "\n" not in str(told.value)


def test_the_measured_package_is_not_installed_where_another_asks_for_it(
    environments: Environments,
) -> None:
    assert environments.of(running(), ["beta"], without="alpha").locked == ("beta==2.0",)


def test_two_processes_make_one_environment(environments: Environments, tmp_path: Path) -> None:
    told = [tmp_path / f"told {n}" for n in range(3)]

    def make(to: Path) -> None:
        to.write_text(str(environments.of(running(), ["beta==1.0"]).python))

    both = [forked(lambda to=to: make(to)) for to in told]
    assert [os.waitpid(process, 0)[1] for process in both] == [0, 0, 0]
    (made,) = {path.read_text() for path in told}
    assert said(Environment(Path(made)), "import alpha; print(alpha.VERSION)") == "1.5"


def test_one_that_was_killed_leaves_nothing_that_is_taken_for_whole(
    environments: Environments, mark: str
) -> None:
    killed = 0
    for moment in MOMENTS:
        before = {*environments.folder.glob(moment)}
        process = forked(lambda: environments.of(running(), ["beta==1.0"]))
        ended = 0
        while not ended and before >= {*environments.folder.glob(moment)}:
            time.sleep(0.001)
            ended, _ = os.waitpid(process, os.WNOHANG)
        if not ended:
            killed += 1
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)
        wait_for(lambda: not bearing(mark))  # uv goes on for a moment
    assert killed, "it is killed at the first moment at the least"
    assert none_left(mark)
    made = environments.of(running(), ["beta==1.0"])
    assert said(made, "import alpha; print(alpha.VERSION)") == "1.5"
    assert [*environments.folder.glob(".rlox-making-*")] == []


def test_a_suite_says_what_it_needs_itself(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("def time_a(): pass\n# from asv_runner import x, mem_x\n")
    assert needed_by(tmp_path) == ()
    (tmp_path / "b.py").write_text(
        "from asv_runner.benchmarks.mark import SkipNotImplemented\n\nclass A:\n"
        "    def mem_a(self): pass\n"
    )
    assert needed_by(tmp_path) == ("asv-runner", "pympler")


def test_an_interpreter_that_is_not_installed_is_told_with_those_that_are() -> None:
    with pytest.raises(UsageError, match=r"Python 3\.99 is not installed") as told:
        interpreters.named("3.99")
    assert running().version in str(told.value)
    with pytest.raises(UsageError, match="'/no/python' is no Python: write a version such as"):
        interpreters.named("/no/python")


def test_an_interpreter_is_taken_by_its_path(tmp_path: Path) -> None:
    assert interpreters.named(sys.executable).version == running().version
    (tmp_path / "python").write_text("#!/bin/sh\necho nothing\n")
    (tmp_path / "python").chmod(0o755)
    with pytest.raises(UsageError, match="is no Python that runs"):
        interpreters.named(str(tmp_path / "python"))


def test_the_interpreter_is_the_first_that_fits_and_another_is_told() -> None:
    own = running().version
    assert chosen("", [own], "") == (running(), "")
    assert chosen("", [], ">=3.8") == (running(), "")
    found, note = chosen("", ["3.99", own], ">=3.8")
    assert found == running()
    assert note.startswith(f"Python {own} runs it: Python 3.99 is not installed")
    assert chosen("", ["3.99"], "", like=str(running().path)) == (running(), "")
    with pytest.raises(UsageError, match=r"the package asks for Python >=3\.99, and there are"):
        chosen("", [], ">=3.99")


def test_uv_is_asked_for_interpreters_only_where_the_running_one_does_not_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interpreters, "installed", lambda: pytest.fail("uv is asked"))
    short = ".".join(running().version.split(".")[:2])
    assert chosen("", [], ">=3.8") == (running(), "")
    assert chosen("", [short], ">=3.8") == (running(), "")


def test_what_only_conda_names_is_left_out_for_on_pypi_it_may_be_a_strangers(
    tmp_path: Path,
) -> None:
    (tmp_path / "suite.py").write_text("import pandas as pd\n")
    asked = ["numpy", "pandas>=2", "geos", "cython"]
    kept, notes = known(asked, ["numpy", "pandas", "geos", "cython"], ["numpy", "cython"], tmp_path)
    assert kept == ("numpy", "pandas>=2", "cython")
    (note,) = notes
    assert note.startswith("geos is left out")
    assert "--with geos" in note
    _, notes = known(["a", "b>1"], ["a", "b"], [], tmp_path)
    assert notes[0].startswith("a, b>1 are left out: neither")
    # What pip is asked for is meant as it stands.
    assert known(["geos"], [], [], tmp_path) == (("geos",), [])
