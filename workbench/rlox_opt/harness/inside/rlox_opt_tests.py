"""The pytest plug-in with which `rlox_opt_pytest_side` collects and runs tests. It replaces
pytest-benchmark and pytest-codspeed: it accepts their options and hooks, and ignores them."""

from __future__ import annotations

import functools
import inspect
import io
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import pytest_collection as with_rewritten_assertions
from _pytest.runner import runtestprotocol
from _pytest.skipping import evaluate_xfail_marks
from rlox_opt_benchmark import Benchmark, Call
from rlox_opt_suite import told

# Plug-ins that are switched off: those two by all their names, pytest-cov, which traces lines, and
# pytest-randomly, which sets other seeds in each process.
_MODULES = ("pytest_benchmark.plugin", "pytest_codspeed.plugin")
_BLOCKED = ("benchmark", "codspeed", *_MODULES, "pytest_cov", "randomly")
_FIXTURES = ("benchmark", "codspeed_benchmark")
_FLAGS = (
    "disable-gc", "skip", "disable", "enable", "only", "autosave", "save-data", "verbose", "quiet"
)  # fmt: skip
_VALUES = (
    "min-time", "max-time", "min-rounds", "timer", "calibration-precision", "warmup",
    "warmup-iterations", "save", "json", "compare", "compare-fail", "cprofile", "cprofile-loops",
    "cprofile-top", "cprofile-dump", "time-unit", "storage", "netrc", "sort", "group-by",
    "columns", "name", "histogram",
)  # fmt: skip
_OF_CODSPEED = ("mode", "warmup-time", "max-time", "max-rounds", "profile-folder")
_OPTIONS: dict[str, dict[str, Any]] = {
    **{f"--benchmark-{name}": {"action": "store_true", "default": False} for name in _FLAGS},
    **{f"--benchmark-{name}": {"nargs": "?", "default": None} for name in _VALUES},
    "--codspeed": {"action": "store_true", "default": False},
    **{f"--codspeed-{name}": {"default": None} for name in _OF_CODSPEED},
}
_MEASURES_AWAY = re.compile(r"\bbenchmark\b")


def run(side: Any, root: str, ini: str, files: Sequence[str], scratch: Path) -> str:
    """Run pytest in this process, which answers the side's commands meanwhile. Returns the reason
    if pytest ended before that."""
    asked = [f"--rootdir={root}", f"--confcutdir={root}", "-c", ini, "--capture=no"]
    # Each `tmp_path` goes with its test, as many runs could fill the disk. pytest before 7.3 has no
    # such setting, and looks at no value that it does not ask for.
    asked += [f"--basetemp={scratch / 'made'}", "-o", "tmp_path_retention_policy=failed"]
    asked += [word for name in _BLOCKED for word in ("-p", f"no:{name}")]
    own, said = sys.stderr, io.StringIO()
    sys.stderr = said  # until the side answers commands
    try:
        pytest.main([*asked, *files], plugins=[Tests(side, root, files, own)])
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return f"pytest does not start: {told(error)}"
    finally:
        sys.stderr = own
    lines = [line.strip() for line in said.getvalue().splitlines() if line.strip()]
    why = [line for line in lines if "rror" in line or line.startswith("E ")] or lines[-3:]
    return f"pytest does not start: {' '.join(why) or 'it says nothing'}"


class Hooks:
    """Hooks of pytest-benchmark that a conftest.py may define."""

    def pytest_benchmark_scale_unit(self, config, unit, benchmarks, best, worst, sort):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_generate_machine_info(self, config):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_update_machine_info(self, config, machine_info):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_generate_commit_info(self, config):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_update_commit_info(self, config, commit_info):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_group_stats(self, config, benchmarks, group_by):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_generate_json(  # type: ignore[no-untyped-def]
        self, config, benchmarks, include_data, machine_info, commit_info
    ):
        pass

    def pytest_benchmark_update_json(self, config, benchmarks, output_json):  # type: ignore[no-untyped-def]
        pass

    def pytest_benchmark_compare_machine_info(  # type: ignore[no-untyped-def]
        self, config, benchmarksession, machine_info, compared_benchmark
    ):
        pass


class Fixtures:
    """The fixtures in place of pytest-benchmark's and pytest-codspeed's."""

    def __init__(self, side: Any) -> None:
        self._side = side

    @pytest.fixture
    def benchmark(self, request: Any) -> Any:
        """The object that a test calls."""
        return Benchmark(request, self._side.stop)

    @pytest.fixture
    def codspeed_benchmark(self, benchmark: Any) -> Any:
        """pytest-codspeed's other name for the fixture."""
        return benchmark


class Tests:
    """The plug-in: it collects the tests, and runs one of them on command."""

    def __init__(self, side: Any, root: str, files: Sequence[str], stderr: Any) -> None:
        self._side = side
        self._stderr = stderr
        self._root = root
        self._files = files
        self._session: Any = None
        self.items: dict[str, Any] = {}
        self.broken: dict[str, str] = {}
        self._deselected = 0  # benchmarks
        self._last: Any = None
        self._ready: Callable[[], object] = int
        self._reports: list[Any] = []
        self._error: BaseException | None = None

    @pytest.hookimpl
    def pytest_addhooks(self, pluginmanager: Any) -> None:
        pluginmanager.add_hookspecs(Hooks)

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(
        self, early_config: Any, parser: Any, args: Any
    ) -> Iterator[None]:
        """Before the tests' own plug-ins are read: add those plug-ins' options that are lacking.
        After that: remove the options that are still unknown."""
        group = parser.getgroup("benchmark")
        groups = (parser._anonymous, *parser._groups)
        there = {name for each in groups for option in each.options for name in option.names()}
        for name, how in _OPTIONS.items():
            if name not in there:
                group.addoption(name, **how)
        # The value of an option that is unknown may be a word of its own. pytest would take it for
        # a folder with tests, and import the conftest.py there.
        early_config.known_args_namespace.file_or_dir = [*self._files]
        # A setting that nobody knows is no error. This is for pytest before 9, and since then.
        early_config.known_args_namespace.strict_config = False
        early_config._inicache["strict_config"] = False
        # Nor where warnings are errors: what the command line says of them counts last.
        asked = early_config.known_args_namespace
        ignored = [*(asked.pythonwarnings or ()), "ignore::pytest.PytestConfigWarning"]
        asked.pythonwarnings = ignored
        yield
        if early_config.pluginmanager.hasplugin("xdist"):
            args += ["-n0", "--dist=no"]  # tests must run in this process
        unknown = parser.parse_known_and_unknown_args([*args])[1]
        args[:] = [word for word in args if word not in unknown]

    @pytest.hookimpl(tryfirst=True)
    def pytest_configure(self, config: Any) -> None:
        for name in _FIXTURES:
            config.addinivalue_line("markers", f"{name}: what is timed")
        if _MEASURES_AWAY.search(config.option.markexpr or ""):
            config.option.markexpr = ""  # `-m "not benchmark"` is a setting for testing
        config.option.usepdb = False

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: Any) -> bool:
        sys.stderr = self._stderr
        # Registered last, since another plug-in may have a fixture with the same name.
        session.config.pluginmanager.register(Fixtures(self._side))
        with_rewritten_assertions(session)
        return True  # nothing is collected now, but on command

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: Any) -> bool:
        self._session = session
        self._side.serve(self)
        return True

    def collect(self, files: Sequence[str]) -> None:
        """Collect files of the suite. What cannot be read is noted in `broken`."""
        self.items, self.broken, self._deselected = {}, {}, 0
        try:
            found = self._session.perform_collect([str(Path(self._root, of)) for of in files])
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # such as an import that calls sys.exit
            self.broken.setdefault("the suite", told(error))
            return
        for item in found:
            if self._is_benchmark(item):
                self.items[item.nodeid] = item
        if self._deselected and not self.items:
            why = (
                f"its conftest.py or its options deselect all {self._deselected} benchmarks; an "
                "option may select them: PYTEST_ADDOPTS='--…' rlox-opt diff …"
            )
            self.broken = {"the suite": why, **self.broken}  # first, as one reason alone is told

    @pytest.hookimpl
    def pytest_deselected(self, items: Sequence[Any]) -> None:
        self._deselected += sum(map(self._is_benchmark, items))

    def _is_benchmark(self, item: Any) -> bool:
        fixtures = getattr(item, "fixturenames", ())
        return any(of in fixtures or item.get_closest_marker(of) for of in _FIXTURES)

    def named(self, name: str) -> Any:
        """The test with this name. Raises LookupError."""
        if name in self.items:
            return self.items[name]
        reasons = "; ".join(f"{where}: {why}" for where, why in self.broken.items())
        raise LookupError(f"the suite has no {name} here" + (f" ({reasons})" if reasons else ""))

    def timeout(self, name: str) -> float | None:
        """Seconds that a mark of pytest-timeout allows the benchmark; None without one."""
        marker = self.items[name].get_closest_marker("timeout")
        seconds = next(iter(marker.args), marker.kwargs.get("timeout")) if marker else None
        return float(seconds) if isinstance(seconds, (int, float)) and seconds > 0 else None

    @pytest.hookimpl
    def pytest_collectreport(self, report: Any) -> None:
        if report.skipped:
            self.broken.setdefault(report.nodeid, f"skipped: {_of_skip(report)}")
        elif report.failed:
            self.broken.setdefault(report.nodeid, str(report.longrepr).strip().split("\n")[-1])

    @pytest.hookimpl
    def pytest_exception_interact(self, node: Any, call: Any) -> None:
        error = call.excinfo.value
        if isinstance(error, pytest.Collector.CollectError):
            error = error.__cause__ or error
        if isinstance(node, pytest.Item):
            self._error = self._error or error
        else:
            self.broken[node.nodeid] = told(error)

    def run(self, name: str, ready: Callable[[], object]) -> tuple[str, bool]:
        """Run a test. `ready` is called after its fixtures and before the test itself. Returns the
        reason of a failure or a skip, "" for neither, and whether the test was skipped."""
        item = self.named(name)
        try:
            Path.cwd()
        except FileNotFoundError:  # the last test ended within its `tmp_path`
            os.chdir(self._root)
        if self._last is not None and self._last is not item:
            self._session._setupstate.teardown_exact(item.parent)  # fixtures no later test shares
        self._last, self._reports, self._error, self._ready = item, [], None, ready
        # A test marked as expected to fail may hang, so the mark is asked for before it runs.
        expected = evaluate_xfail_marks(item)
        if expected:
            return f"it is expected to fail: {expected.reason or 'no reason given'}", True
        # The fixtures that it shares with the next test stay, as they do between two tests.
        runtestprotocol(item, log=True, nextitem=item.parent)
        for report in self._reports:
            if report.failed:
                why = told(self._error) if self._error else str(report.longrepr)
                return (why if report.when == "call" else f"its {report.when} fails: {why}"), False
            if report.skipped:
                expects = getattr(report, "wasxfail", None)
                told_so = _of_skip(report) if expects is None else f"it expects to fail: {expects}"
                return told_so, True
        return "", False

    @pytest.hookimpl
    def pytest_runtest_logreport(self, report: Any) -> None:
        self._reports.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: Any) -> bool | None:
        """Time a marked test without the fixture as a whole."""
        self._ready()
        if self._within or {*_FIXTURES} & {*pyfuncitem.fixturenames}:
            return None
        if not self._is_benchmark(pyfuncitem):
            return None
        names = pyfuncitem._fixtureinfo.argnames
        given = {name: pyfuncitem.funcargs[name] for name in names}
        call = functools.partial(pyfuncitem.obj, **given)
        if _is_async(pyfuncitem.obj):
            call = functools.partial(self._as_their_plug_in_does, pyfuncitem)
        self._side.stop(Call(call))
        return True

    _within = False

    def _as_their_plug_in_does(self, item: Any) -> None:
        self._within = True
        try:
            item.ihook.pytest_pyfunc_call(pyfuncitem=item)
        finally:
            self._within = False


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function)


def _of_skip(report: Any) -> str:
    """The reason of a skip. pytest keeps it in a tuple, after the file and the line."""
    said = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return said.replace("Skipped: ", "", 1)
