"""A project that knows nothing of the workbench, from `init` to its pages: by the installed command
in a process of its own, and where that is not the point in this one. What its user has is the same
afterwards, to the byte."""

import json
import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import small_projects
import strangers
import users_repository
from strangers import DECIDED, QUICK, ROUGH, SHORT, SPENT, SURE, asked, asked_here, here
from survivors import bearing, none_left, wait_for

from rlox_opt.project.interpreters import installed, running

pytestmark = pytest.mark.timeout(900)  # for a busy machine
FEW_OF_MEMORY = "from rlox_opt.project import side_by_side as s; s._MEMORY_RESTARTS = 5"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """The project, which all tests share, and its commits."""
    folder = tmp_path_factory.mktemp("stranger") / "a user's thing"
    return folder, strangers.project(folder)


@pytest.fixture
def root(made: tuple[Path, list[str]]) -> Iterator[Path]:
    """Its folder, in which the test leaves nothing but what is the tool's."""
    with strangers.untouched(made[0]):
        yield made[0]


@pytest.fixture
def commits(made: tuple[Path, list[str]]) -> list[str]:
    """Its commits, the oldest first."""
    return made[1]


def test_init_finds_all_writes_nothing_and_says_what_to_run(root: Path) -> None:
    done = strangers.rlox_opt(root, "init")
    assert done.returncode == 0, done.stderr
    *_, last = done.stdout.splitlines()
    assert last == "run next:    rlox-opt diff HEAD~1 HEAD --bench '^later.time_fresh'"
    assert {line.split()[0] for line in done.stdout.splitlines() if line} >= {
        "package", "repository", "build", "suite", "environment", "python",
    }  # fmt: skip
    found = asked_here(root, "init")
    assert found["lacking"] == found["notes"] == found["uncovered"] == []
    assert found["written"] is None


def test_all_kinds_of_benchmarks_are_compared(root: Path, commits: list[str]) -> None:
    first = f"{QUICK}\n{ROUGH}\n{FEW_OF_MEMORY}"
    found = asked(root, "diff", commits[0], commits[-1], *DECIDED, first=first)
    verdicts = {row["benchmark"]: row["verdict"] for row in found["results"] + found["memory"]}
    every = [
        f"work.Work.time_work({n}, {kind})" for n in (100, 2000) for kind in ("'one kind'", None)
    ]
    timed = [*every, "work.Work.time_elsewhere(2000, 'one kind')", "work.Cached.time_cached"]
    assert {verdicts[name] for name in timed} == {"slower"}
    assert verdicts["work.Cached.track_size"] == "slower", "9 is an eighth more than 8"
    assert verdicts["work.peakmem_list"] in ("same", "undecided")
    assert "work.timeraw_import" in verdicts
    assert {row["benchmark"] for row in found["skipped"]} == {
        f"work.Work.time_elsewhere({n}, None)" for n in (100, 2000)
    }
    assert found["missing"] == [{"benchmark": "later.time_fresh", "side": "base"}]
    assert found["failures"] == []
    why = "ImportError: cannot import name 'fresh' from 'thing' (thing.py)"
    assert found["broken"] == {"base": {"benchmarks.later": why}, "head": {}}


def test_the_gate_has_an_exit_code_for_each_outcome(root: Path, commits: list[str]) -> None:
    process = partial(strangers.rlox_opt, first=QUICK)

    def code(*words: str, by: Callable[..., CompletedProcess[str]] = here) -> tuple[int, str]:
        done = by(root, "gate", commits[0], *words, "--bench", "cached", *SURE)
        return done.returncode, done.stderr.splitlines()[-1].removeprefix("rlox-opt gate: ")

    assert code(commits[5]) == (0, "no regression: both packages are byte for byte the same")
    assert code(commits[-1], "--threshold", "20000") == (0, "no regression")
    assert code(commits[-1], by=process)[0] == 1
    failing = "cannot tell: 1 benchmark could not be measured, or not be read"
    assert code(commits[strangers.FAILING]) == (2, failing)
    assert code(commits[strangers.NOT_BUILT])[0] == 2


def test_a_bisection_goes_around_what_does_not_build_and_what_fails(
    root: Path, commits: list[str]
) -> None:
    found = asked_here(root, "bisect", commits[0], commits[8], "--bench", "time_cached")
    assert found["verdict"] == "found"
    assert found["commit"] == commits[strangers.SLOWER]
    assert set(found["skipped"]) == {commits[strangers.NOT_BUILT], commits[strangers.FAILING]}
    assert found["ratio"] > 2


@pytest.mark.slow
def test_a_history_is_recorded_and_published_under_its_name(
    made: tuple[Path, list[str]], commits: list[str]
) -> None:
    root, _ = made
    before = users_repository.fingerprint(root, own=".rlox-opt")
    span = [commits[0], commits[5], commits[strangers.NOT_BUILT], commits[6], commits[8]]
    words = ["record", *span, "--bench", "cached|peakmem", "--budget", "6"]
    found = asked(root, *words)
    assert len(found["recorded"]) == 4
    kept = [Path(path).read_text() for path in found["recorded"].values()]
    assert not [text for text in kept if re.search(r'[" (=]/\w', text)], "no folder of this machine"
    ((title, why),) = found["failed"].items()
    assert title.startswith(commits[strangers.NOT_BUILT][:10])
    assert why.startswith("does not build (")
    assert "no such header" in why
    assert len(asked(root, *words)["passed"]) == 4
    done = strangers.rlox_opt(root, "regressions", "--json")
    told = json.loads(done.stdout)
    assert done.returncode == told["exit_code"] in (0, 1), "five recordings may show it or not"
    assert told["unrecorded"]["commits"] == 9
    published = asked(root, "publish")
    assert published["commits"] == 5
    pages = Path(published["index"]).parent
    index = (pages / "index.html").read_text()
    assert "thing performance history" in index
    for page in pages.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r"rlox(?!-opt)", text), page
        assert f"{root}" not in text, page
    calibrated = asked(root, "calibrate", "--budget", "20", "--bench", "cached")
    assert calibrated["benchmarks"].keys() == {"work.Cached.time_cached"}
    assert users_repository.fingerprint(root, own=".rlox-opt") == before


def test_sides_may_have_another_suite(root: Path, commits: list[str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "mine.py").write_text(
        "import thing\n\ndef time_mine():\n    thing.work(range(500))\n"
    )
    for suite, name in (
        (f"{tmp_path / 'mine'}", "mine.time_mine"),
        (commits[0], "work.Cached.time_cached"),
    ):
        sides = commits[0], commits[-1], "--suite", suite
        found = asked_here(root, "diff", *sides, "--bench", "mine|time_cached", *SPENT)
        assert [row["benchmark"] for row in found["results"]] == [name]
        assert found["broken"] == {"base": {}, "head": {}}


def test_the_working_tree_is_a_side_with_its_own_suite(root: Path, commits: list[str]) -> None:
    found = asked_here(root, "diff", commits[0], ".", "--bench", "time_cached", *SURE)
    assert [row["verdict"] for row in found["results"]] == ["slower"]
    done = here(root, "diff", "HEAD", ".", *SHORT)
    assert "the same: nothing was measured (--anyway does)." in done.stdout


def test_sides_may_have_other_interpreters(root: Path) -> None:
    others = [of for of in installed() if of.abi.split("-")[1:] != running().abi.split("-")[1:]]
    if not others:
        pytest.skip("one interpreter is installed")
    sides = "--python", f"head:{others[0].version}", "--bench", "time_cached"
    done = here(root, "diff", "HEAD", "HEAD", *sides, *SPENT)
    assert done.returncode == 0, done.stderr
    assert "the interpreter, as was asked for: " in " ".join(done.stderr.split())
    assert "byte for byte the same: any difference is that of what they run with." in done.stdout


def test_sides_may_have_other_requirements(root: Path, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        small_projects.wheel(tmp_path / "index", "alpha", version)
    sides = "--with", "base:alpha==1.0", "--with", "head:alpha==2.0", "--bench", "time_cached"
    words = ("diff", "HEAD", "HEAD", *sides, *SPENT)
    found = asked_here(root, *words, UV_FIND_LINKS=f"{tmp_path / 'index'}")
    assert [row["benchmark"] for row in found["results"]] == ["work.Cached.time_cached"]
    assert any("alpha" in note for note in found["notes"])


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
@pytest.mark.parametrize("when", ["building", "measuring"])
def test_what_is_ended_in_the_middle_leaves_the_user_as_it_was(
    tmp_path: Path, mark: str, how: signal.Signals, when: str
) -> None:
    root = tmp_path / "user"
    commits = strangers.project(root)
    one = r"time_work\(2000, None"
    sides = ["diff", commits[0], commits[-1], "--bench", one, "--no-counts"]
    # A build that is looked for lasts until it is found, however busy the machine is.
    env = strangers.environment(BACK_END_S="600" if when == "building" else "0")
    with strangers.untouched(root):
        running = subprocess.Popen(
            strangers.command(*sides), cwd=root, env=env, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        what = "rlox_opt_side" if when == "measuring" else "build"
        wait_for(lambda: running.poll() is not None or any(what in of for of in bearing(mark)))
        assert running.poll() is None
        running.send_signal(how)
        out, err = running.communicate(timeout=60)
        assert none_left(mark)
    assert running.returncode == (130 if how == signal.SIGINT else -9)
    assert "Traceback" not in out + err
    with strangers.untouched(root):
        done = here(root, *sides, "--no-coverage", "--restarts", "10")
        assert done.returncode == 0, done.stderr
        assert "slower" in done.stdout
    assert not [*(root / ".rlox-opt").rglob(".rlox-making-*")]


@pytest.mark.slow
def test_names_do_not_break_within_a_word_where_there_is_room(
    root: Path, commits: list[str]
) -> None:
    sides = commits[0], commits[-1], "--bench", "elsewhere"
    for columns in (60, 80, 120):
        done = strangers.rlox_opt(root, "diff", *sides, *SHORT, first=QUICK, COLUMNS=f"{columns}")
        lines = done.stdout.splitlines()
        assert max(map(len, lines)) <= columns
        rows = "\n".join(lines[: lines.index("")])
        assert "time_elsewhere" in rows
        assert "'one kind')" in rows
