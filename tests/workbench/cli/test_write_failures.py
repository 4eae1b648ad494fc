"""Nothing that was measured is lost where it cannot be written: it lies elsewhere or is printed;
and what can be found out before the work is."""

import contextlib
import json
import os
import resource
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import projects
import pytest
from command_line import rlox_opt, started
from rlox_opt.cli import calibrate, ladder
from rlox_opt.harness import restarts
from rlox_opt.harness.restarts import Reading
from rlox_opt.history import records, sides
from rlox_opt.plan import comparing, end_to_end
from rlox_opt.project import calibration
from rlox_opt.project.builds import Builds
from rlox_opt.project.commits import Commits
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race import training
from rlox_opt.race.environments import Peer, Training
from rlox_opt.system import machine

TYPED = {
    "cmp": ["cmp", "p13", "--restarts", "5", "--no-counts"],
    "ladder": ["ladder", "ppo"],
    "peers": ["peers", "ppo", "--runs", "5"],
    "calibrate": ["calibrate"],
}
# Of each, the last step of the work before its record.
LAST = {
    "cmp": (comparing, "result"),
    "ladder": (ladder, "climb"),
    "peers": (training, "standings"),
    "calibrate": (calibration, "rates"),
}
RACE = {"env_id": "CartPole-v1", "total_timesteps": 1000, "threads": 1, "reach": 60.0}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for everything: records go to `records`, and the temporary folder is `tmp`. The work
    of the verbs takes no time."""

    def twins(_: Any, cells: Any, *__: Any) -> Iterator[Any]:
        yield from ((cell, Reading(0.1, 0.0, 1.1, 1.0)) for cell in cells)

    def rounds(_: Any, variants: Any, *__: Any) -> Iterator[dict[str, float]]:
        yield from ({v.name: 1.0 + n / 1000 for v in variants} for n in range(5))

    class Compared:
        def __init__(self, *_: Any, **__: Any) -> None:
            self.readings = {"a": [SimpleNamespace(log_ratio=x / 1000) for x in range(5)]}
            self.failures: dict[str, Any] = {}

        def run(self, *_: Any, **__: Any) -> None:
            pass

    side = SimpleNamespace(names=lambda _: {"a": ["base", "head"]}, contests=None)
    every = [Peer(name, name, Path("driver.py"), "plain") for name in ("sb3", "rlox")]
    trained = Training(1.0, 0.0, 1000, [(n / 100, 10 * n, 100.0) for n in range(1, 101)])
    set_ = monkeypatch.setattr
    (tmp_path / "tmp").mkdir()
    set_("tempfile.tempdir", str(tmp_path / "tmp"))
    for module in (
        records,
        ladder,
        racing,
        calibration,
        machine,
    ):  # an absolute path takes all before it
        set_(module, "slug", lambda _: str(tmp_path / "records"), raising=False)
    ours = {name: str(getattr(projects.HERE, name)) for name in ("workloads", "cards")}
    monkeypatch.chdir(projects.described(tmp_path, **ours))
    (tmp_path / "crates").symlink_to(projects.ROOT / "crates")
    set_(restarts, "twins", twins)
    set_(end_to_end, "build_all", lambda *_: {})
    set_(end_to_end, "rounds", rounds)
    (tmp_path / "peers").mkdir()
    (tmp_path / "peers" / "peers.toml").write_text("[race.ppo]\n")
    set_(racing, "load", lambda *_: (dict(RACE), every))
    set_(racing, "digest", lambda *_: "")
    set_(racing, "python_of", lambda *_: Path(sys.executable))
    set_(racing, "train", lambda *_: trained)
    set_(Commits, "resolve", lambda *_: SimpleNamespace(commit="0" * 40))
    set_(Commits, "dirty", lambda *_: False)
    set_(Builds, "build", lambda *_: None)
    set_(calibrate, "measured_by", lambda project, *_: (project, None))
    set_(calibrate, "side_by_side", lambda *_: contextlib.nullcontext(side))
    set_(calibrate, "Comparison", Compared)
    return tmp_path


def measured(verb: str, text: str) -> None:
    """Assert that a record's text holds what was measured."""
    found = json.loads(text)
    of = {
        "cmp": lambda: found["results"][0]["restarts"] == 5,
        "ladder": lambda: found["rounds"] == 5,
        "peers": lambda: len(found["runs"]) == 10,
        "calibrate": lambda: len(found["log_ratios"]["a"]) == 5,
    }
    assert of[verb]()


def after_the_work(verb: str, breaks: Callable[[], object], set_: Any) -> None:
    """Have something break when all is measured."""
    module, name = LAST[verb]
    whole = getattr(module, name)

    def last(*arguments: Any) -> Any:
        breaks()
        return whole(*arguments)

    set_(module, name, last)


@pytest.mark.parametrize("verb", TYPED)
def test_with_its_folder_there_a_record_is_written(verb: str, tree: Path) -> None:
    done = rlox_opt(*TYPED[verb], "--json")
    assert done.returncode == 0, done.stderr
    (path,) = (tree / "records").glob("*.json")
    measured(verb, path.read_text())


@pytest.mark.parametrize("verb", TYPED)
def test_a_record_that_cannot_be_written_lies_in_the_temporary_folder(
    verb: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after_the_work(verb, (tree / "records").touch, monkeypatch.setattr)
    done = rlox_opt(*TYPED[verb])
    assert done.returncode == 3
    (kept,) = (tree / "tmp").iterdir()
    measured(verb, kept.read_text())
    said = done.stderr.splitlines()[-1]
    assert f": cannot write {tree}/records/" in said
    assert f"; what it should hold is in {kept}" in said
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", TYPED)
def test_on_a_full_disk_a_record_is_printed(
    verb: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        full = (resource.RLIMIT_FSIZE, (0, hard))
        after_the_work(verb, lambda: resource.setrlimit(*full), monkeypatch.setattr)
        done = rlox_opt(*TYPED[verb])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert done.returncode == 3
    measured(verb, done.stdout)
    said = done.stderr.splitlines()[-1]
    assert f": cannot write {tree}/records/" in said
    assert ": File too large; what it should hold is printed" in said
    assert not list((tree / "tmp").iterdir())


@pytest.mark.parametrize("verb", TYPED)
def test_a_folder_of_records_that_cannot_be_written_is_found_before_the_work(
    verb: str, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "records").touch()
    begun: list[str] = []
    after_the_work(verb, lambda: begun.append(verb), monkeypatch.setattr)
    done = rlox_opt(*TYPED[verb])
    assert done.returncode == 3
    assert done.stderr.endswith(f"cannot write {tree}/records: Not a directory\n")
    assert not begun
    if verb in ("cmp", "peers"):  # which can be told to write none
        assert rlox_opt(*TYPED[verb], "--no-record", "--json").returncode == 0


def test_record_finds_out_before_it_builds(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tree / "history").touch()
    monkeypatch.undo()
    project = projects.of(projects.ROOT, state=str(tree))
    monkeypatch.setattr(Project, "here", lambda: project)
    monkeypatch.setattr(Builds, "build", lambda *_: pytest.fail("builds"))
    done = rlox_opt("record", "HEAD")
    assert done.returncode == 3
    assert done.stderr.startswith(f"rlox-opt record: cannot write {tree}/history/")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("out", ["/proc/x", "/dev/null/x", "/proc/1/x/y"])
@pytest.mark.parametrize("what", ["ppo", __file__])
def test_profile_finds_out_before_it_trains(
    out: str, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlox_opt.sampling.driver.profile", lambda *_: pytest.fail("trains"))
    monkeypatch.setattr("rlox_opt.cli.profile_script.profile", lambda *_, **__: pytest.fail("runs"))
    monkeypatch.setattr("signal.signal", lambda *_: None)
    done = rlox_opt("profile", what, "--out", out)
    assert done.returncode == 3
    assert f": cannot write {Path(out).parent}: " in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("page", "code", "says"),
    [
        ("/proc/x.html", 3, "cannot write /proc: "),
        ("/dev/null", 2, "--page /dev/null: is no regular file; name another"),
        ("/nowhere/x.html", 2, "--page /nowhere/x.html: no such folder"),
    ],
)
def test_profile_diff_finds_out_before_it_compares(
    page: str, code: int, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sides, "are_folders", lambda _: pytest.fail("compares"))
    done = rlox_opt("profile", "diff", "a", "b", "--page", page)
    assert done.returncode == code
    assert says in done.stderr
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("redirected", "why"), [(">/dev/full", "No space left on device"), (">&-", "Bad file")]
)
def test_what_stdout_cannot_take_lies_in_the_temporary_folder(
    redirected: str, why: str, tmp_path: Path
) -> None:
    whole = rlox_opt("list", "--json")
    shell = ["sh", "-c", f'exec "$0" "$@" {redirected}']
    temporary = os.environ | {"TMPDIR": str(tmp_path)}
    done = started("list", "--json", under=shell, env=temporary)
    assert done.returncode == 3
    (kept,) = tmp_path.iterdir()
    assert kept.read_text() == whole.stdout
    *_, said = done.stderr.splitlines()
    assert f"cannot write standard output: {why}" in said
    assert str(kept) in said
    assert "Exception ignored" not in done.stderr


def test_help_on_a_full_disk_is_not_given_out_for_shown(tmp_path: Path) -> None:
    temporary = os.environ | {"TMPDIR": str(tmp_path)}
    with Path("/dev/full").open("w") as full:
        done = started("--help", stdout=full, env=temporary)
    assert done.returncode == 3
    assert done.stderr.count("\n") == 1


def test_what_stderr_cannot_take_stops_nothing() -> None:
    with Path("/dev/full").open("w") as full:
        done = started("list", "--json", stderr=full)
    assert done.returncode == 0
    assert json.loads(done.stdout)
