"""`asv continuous`, run for real on commits of a toy: side by side, with asv's table and codes."""

import json
import math
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import toy_packages
from asv import _stats
from asv.commands import compare
from asv.commands.continuous import Continuous
from asv_runner.statistics import compute_stats
from rlox_opt.stats.family import Judgement
from users_repository import git

from asv_bench.injected.tools import rows
from asv_bench.side_by_side import Contest, install, is_different

pytestmark = pytest.mark.timeout(900)  # more than the budget, which a busy machine may need

ROOT = Path(__file__).parents[2]
ENVIRONMENT = f"""
import pathlib, venv
from asv.environment import Environment

class Toy(Environment):
    tool_name = "toy"

    def __init__(self, conf, python, requirements, tagged_env_vars):
        self._python, self._requirements = python, requirements
        super().__init__(conf, python, requirements, tagged_env_vars)

    def _setup(self):
        venv.create(self._path, with_pip=False, symlinks=True)
        (there,) = pathlib.Path(self._path).glob("lib/*/site-packages")
        paths = {sysconfig.get_path("purelib")!r}, self._path + "/toy"
        (there / "toy.pth").write_text("\\n".join(paths))

    def run(self, args, **kwargs):
        return self.run_executable("python", args, **kwargs)
"""
COPY = """
import shutil, sys
shutil.rmtree(sys.argv[2], ignore_errors=True)
shutil.copytree(*sys.argv[1:])
"""
MORE = """
import rlox
from asv_runner.benchmarks.mark import SkipNotImplemented

def time_skipped():
    if rlox.NAME == "skips":
        raise SkipNotImplemented("not for this one")
    if rlox.NAME == "broken":
        raise RuntimeError("broken where the other skips")
"""
# A plug-in beside ours, for shorter contests: what is compared here differs by much, or not at all.
QUICK = """
from rlox_opt.harness import packages

packages._CONTEST_S = 0.02
"""
HURRIED = """
from asv_bench import side_by_side

side_by_side.BUDGET_S = 0.0
"""
Done = subprocess.CompletedProcess[str]
Run = Callable[..., Done]


@pytest.fixture(scope="module")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a tag for each version of a package `rlox`, and asv's configuration."""
    root = tmp_path_factory.mktemp("toy")
    made = root / "made"
    git(root, "init", "--quiet", "--initial-branch=main")
    for tag, settings in {
        "base": {},
        "slow": {"passes": 60},
        **{name: {"name": name} for name in ("raises", "crashes", "old", "skips", "broken")},
    }.items():
        shutil.rmtree(root / "src", ignore_errors=True)
        shutil.copytree(toy_packages.package(made, **settings), root / "src")  # type: ignore[arg-type]
        (root / "src" / "toy").rename(root / "src" / "rlox")
        git(root, "add", "src")
        git(root, "commit", "--quiet", "-m", tag)
        git(root, "tag", tag)
    (root / "src" / "rlox" / "helper.py").write_text("# A comment.\nPASSES = 10\n")
    git(root, "commit", "--quiet", "-a", "-m", "comment")
    benchmarks = toy_packages.benchmarks(root / "bench", "rlox")
    (benchmarks / "more.py").write_text(MORE)
    (root / "toy_environment.py").write_text(ENVIRONMENT)
    (root / "quick.py").write_text(QUICK)
    (root / "hurried.py").write_text(HURRIED)
    (root / "put_there.py").write_text(COPY)
    configuration = {
        "version": 1, "project": "toy", "repo": ".", "branches": ["main"],
        "environment_type": "toy", "pythons": [f"3.{sys.version_info.minor}"],
        "plugins": [".toy_environment", ".asv_bench.plugin", ".quick"],
        "benchmark_dir": "bench/benchmarks",
        "build_command": ["python {conf_dir}/put_there.py {build_dir}/src {build_cache_dir}/built"],
        "install_command": ["python {conf_dir}/put_there.py {build_cache_dir}/built {env_dir}/toy"],
        "uninstall_command": [],
    }  # fmt: skip
    (root / "asv.conf.json").write_text(json.dumps(configuration))
    return root


@pytest.fixture(scope="module")
def asv(toy: Path) -> Run:
    def run(*arguments: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "asv", *arguments],
            cwd=toy,
            env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(toy)},
            capture_output=True,
            text=True,
        )

    return run


@pytest.fixture(scope="module")
def commented(asv: Run) -> Done:
    """A commit, compared with one that adds a comment."""
    chosen = "toys.(time_work|time_steady|Sized|peak)"
    return asv("continuous", "-f", "2", "base", "main", "-b", chosen)


def samples(toy: Path, tag: str, benchmark: str) -> list[float]:
    """Those that asv keeps of a benchmark without parameters."""
    (path,) = (toy / "results").glob(f"*/{git(toy, 'rev-parse', tag)[:8]}-*.json")
    kept = json.loads(path.read_text())
    of = dict(zip(kept["result_columns"], kept["results"][benchmark], strict=False))
    return list(of["samples"][0])


def test_a_slower_commit_is_marked_and_ends_with_one(asv: Run, toy: Path) -> None:
    done = asv(
        "continuous", "-f", "1.3", "base", "slow", "-b", "toys.(time_work|time_steady|Sized|track)"
    )
    assert done.returncode == 1, done.stdout + done.stderr
    ((name, cell),) = rows(done.stdout)
    assert (name, cell["verdict"]) == ("toys.time_work", "slower")
    assert cell["ratio"] is not None
    assert 4.2 < cell["ratio"] < 8.4  # six times the work; with room for a busy machine
    assert "PERFORMANCE DECREASED" in done.stdout
    assert "4 times, both commits side by side" in done.stdout
    assert "1 slower, 0 faster" in done.stdout
    # One number a process, as many on both sides: those of one process are not independent.
    of = [samples(toy, tag, "toys.time_work") for tag in ("base", "slow")]
    assert len(of[0]) == len(of[1]) in (5, 10, 20, 40)


@pytest.mark.slow
def test_a_faster_commit_is_marked_and_ends_with_zero(asv: Run) -> None:
    done = asv("continuous", "-f", "1.3", "slow", "base", "-b", "time_work")
    assert done.returncode == 0, done.stdout + done.stderr
    ((_, cell),) = rows(done.stdout)
    assert cell["verdict"] == "faster"


def test_a_comment_changes_nothing(commented: Done) -> None:
    assert commented.returncode == 0, commented.stdout + commented.stderr
    assert not [*rows(commented.stdout)]
    assert "4 times, both commits side by side" in commented.stdout
    assert "0 slower, 0 faster, 4 the same (within 100%)" in commented.stdout
    assert "NOT SIGNIFICANTLY CHANGED" in commented.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("base", "head", "why"),
    [("base", "raises", "no such thing"), ("crashes", "base", "exit status 3")],
)
def test_a_benchmark_that_fails_is_told_and_ends_with_two(
    asv: Run, base: str, head: str, why: str
) -> None:
    done = asv("continuous", "-f", "3", "-e", base, head, "-b", "time_(steady|raises|crashes)")
    assert done.returncode == 2, done.stdout + done.stderr
    assert why in done.stdout + done.stderr
    # On the side that does.
    assert done.stdout.count(" failed\n") == done.stdout.count(why) == 1
    assert not [*rows(done.stdout)]


@pytest.mark.slow
def test_what_one_side_skips_or_lacks_is_not_compared(asv: Run) -> None:
    shown = ("--no-only-changed", "-b", "time_(new|skipped|steady)")
    for base in ("old", "skips"):
        done = asv("continuous", "-f", "3", base, "base", *shown)
        assert done.returncode == 0, done.stdout + done.stderr
        ratios = {name: cell["ratio"] for name, cell in rows(done.stdout)}
        gone = {"old": "toys.time_new", "skips": "more.time_skipped"}[base]
        assert [name for name, ratio in ratios.items() if ratio is None] == [gone]
        assert len(ratios) == 3


@pytest.mark.slow
def test_what_is_broken_where_the_other_side_skips_is_not_hidden(asv: Run) -> None:
    done = asv("continuous", "-e", "skips", "broken", "-b", "time_skipped")
    assert done.returncode == 2, done.stdout + done.stderr
    assert "broken where the other skips" in done.stdout + done.stderr


@pytest.mark.slow
def test_asv_takes_its_own_samples_where_it_is_asked_to(asv: Run, toy: Path) -> None:
    done = asv("continuous", "base", "main", "-b", "time_work", "-a", "rounds=2", "-a", "repeat=3")
    assert done.returncode in (0, 1), done.stdout + done.stderr
    assert "asv does, by its own samples" in done.stdout
    assert "side by side in" not in done.stdout
    assert len(samples(toy, "main", "toys.time_work")) == 2 * 3


def test_the_verdict_is_ours_where_asvs_own_test_would_say_otherwise(tmp_path: Path) -> None:
    low, high = ([1.0 + n / 1000 + more for n in range(20)] for more in (0, 0.2))
    name, machine = "toys.Sized.time_sized", "machine"
    found = {
        ("env", f"{name}(1)"): (1.0, Judgement(1.2, (0.9, 1.5), "undecided", 20, 0.5, "slower")),
        ("env", f"{name}(2)"): (1.0, Judgement(1.05, (1.04, 1.06), "slower", 20, 0.0, "slower")),
    }
    contest = Contest(None, 1.03, tmp_path, judged=found)  # type: ignore[arg-type]
    _, stats = compute_stats(low, 1)

    def side(of: list[float]) -> list[tuple[object, ...]]:
        both = [[1.0, 1.0], [stats, stats], [of, of]]
        return [(name, [["1", "2"]], *both, "1", machine, "env")]

    def table(*_: object, resultset_1: Any, resultset_2: Any, **__: object) -> tuple[Any, Any]:
        return next(iter(resultset_1)), next(iter(resultset_2))

    base, head = contest.print_table(
        None, "a", "b", resultset_1=side(low), resultset_2=side(high), own=table
    )
    assert base[2] == [1.0, 1.0]
    assert head[2] == [1.2, 1.05]  # the ratio is that of the pairs
    differ = is_different(_stats.is_different)
    assert _stats.is_different(low, high, stats, stats)
    asked = zip(base[4], head[4], base[3], head[3], strict=True)
    assert [differ(*of) for of in asked] == [False, True]
    assert differ(low, high, stats, stats)  # of what is no time of ours, asv's test says


def test_what_was_restarted_once_is_not_flagged_and_what_was_not_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = Judgement(2.0, None, "undecided", 1, None, "slower")
    contest = Contest(None, 1.03, tmp_path, judged={("env", "time_once"): (1.0, one)})  # type: ignore[arg-type]
    contest.unmeasured = {("env", "time_never")}
    stats = [compute_stats([1.0], 1)[1]]

    def table(*_: object, resultset_1: Any, resultset_2: Any, **__: object) -> Any:
        return [*resultset_1], [*resultset_2]

    both = [
        [(name, [], [value], stats, [[value]], "1", "machine", "env")
         for name in ("time_once", "time_never")]
        for value in (1.0, 2.0)
    ]  # fmt: skip
    base, head = contest.print_table(
        None, "a", "b", resultset_1=both[0], resultset_2=both[1], own=table
    )
    own = _stats.is_different
    assert compare._is_result_better(1.0, 2.0, (stats[0], [1.0]), (stats[0], [2.0]), 1.03)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_stats, "is_different", is_different(own))
        values = (base[0][2][0], head[0][2][0])
        samples = (base[0][3][0], [1.0]), (head[0][3][0], [2.0])
        assert values == (1.0, 2.0)
        assert not compare._is_result_better(*values, *samples, 1.03)
    # What an earlier run found of the other row is not compared.
    assert all(math.isnan(side[1][2][0]) for side in (base, head))
    said = capsys.readouterr().out
    assert "The budget of 480 s did not suffice for time_never" in said
    assert "1 times, both commits side by side in 1 to 1 processes" in said


def test_what_the_budget_does_not_reach_keeps_the_results_that_it_has(
    commented: Done, asv: Run, toy: Path
) -> None:
    asked = ("continuous", "-f", "2", "base", "main", "-b", "toys.(time_work|time_steady)")
    assert commented.returncode == 0
    before = samples(toy, "main", "toys.time_work")
    settings = (toy / "asv.conf.json").read_text()
    (toy / "asv.conf.json").write_text(settings.replace('".quick"', '".quick", ".hurried"'))
    try:
        done = asv(*asked)
    finally:
        (toy / "asv.conf.json").write_text(settings)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The budget of 0 s did not suffice for toys.time_work" in done.stdout
    assert not [*rows(done.stdout)]
    assert len(samples(toy, "main", "toys.time_steady")) == 1  # which was tried
    assert samples(toy, "main", "toys.time_work") == before


def test_the_twins_are_left_out_unless_somebody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, Any]] = []
    monkeypatch.setattr(Continuous, "run", Continuous.run)  # put back at the end
    install(own=lambda conf, **options: asked.append(options))
    for options in ({"bench": None}, {"bench": ["pairs"]}, {"bench": None, "quick": True}):
        Continuous.run(conf=None, factor=1.1, **options)
    unasked, pairs, quick = asked
    (pattern,) = unasked["bench"]
    assert re.search(pattern, "data_plane.Gae.time_gae(128)")
    assert not re.search(pattern, "pairs.Pairs.time_ten_calls('P1 …', 'optimized')")
    assert pairs["bench"] == ["pairs"]
    assert unasked["attribute"] == pairs["attribute"] == {"rounds": 1}
    assert quick == {"factor": 1.1, "bench": None, "quick": True}
