"""`rlox-opt peers`: what is raced, and that a failure of a peer stays its own."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import toy_projects

from rlox_opt.cli import main as cli
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.environments import Peer, PeerError, Training
from rlox_opt.system.exits import INTERRUPTED
from rlox_opt.system.files import NotReadError

# A peer for the tests: takes as long, gets as far or fails as its form says.
DRIVER = """
import json, sys, time
job = json.loads(sys.argv[1])
form = job["form"]
if form == "fails":
    sys.exit("no such luck")
if form == "hangs":
    time.sleep(600)
speed = {"quick": 2.0, "plain": 1.0}[form]
episodes = [(n / speed, 10 * n, 20.0 + n + job["seed"]) for n in range(1, 101)]
outcome = {"train_s": 120 / speed, "compile_s": 20 / speed, "steps": 1000, "episodes": episodes}
open(job["out"], "w").write(json.dumps(outcome))
"""
RACE = {"env_id": "CartPole-v1", "total_timesteps": 1000, "threads": 1, "reach": 60.0}


def peer(name: str, form: str) -> Peer:
    return Peer(name, f"{name}, made up", Path("driver.py").absolute(), form)


@pytest.fixture
def made_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four peers that are scripts of this file, in a tree of their own."""
    monkeypatch.chdir(toy_projects.described(tmp_path, peers=".", cache="cache"))
    every = [peer("sb3", "plain"), peer("rlox", "quick"), peer("bad", "fails"), peer("s", "hangs")]
    (tmp_path / "peers.toml").write_text("[race.ppo]\n")
    (tmp_path / "driver.py").write_text(DRIVER)
    (tmp_path / "run.py").write_text("")
    monkeypatch.setattr(racing, "load", lambda *_: (dict(RACE), every))
    return tmp_path


def test_a_race_leaves_out_who_fails_or_hangs_and_goes_on(
    made_up: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    train = racing.train

    def limited(one: Peer, python: Path, job: Any, limit_s: float, *rest: Any) -> Training:
        # Who hangs is given little of the limit, so that on a busy machine the others have enough.
        return train(one, python, job, limit_s / 100 if one.name == "s" else limit_s, *rest)

    monkeypatch.setattr(racing, "train", limited)
    assert cli.main(["peers", "ppo", "--runs", "2", "--time-limit", "200", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "bad failed with status 1: no such luck (round 1)" in said.err
    assert "s did not end within 2 s (round 1)" in said.err
    assert {name: row["runs"] for row in found["table"] for name in [row["peer"]]} == {
        "sb3": 2,
        "rlox": 2,
    }
    (record,) = made_up.glob("record/*/*_ppo.json")
    assert json.loads(record.read_text())["runs"] == found["runs"]
    assert {path.suffix for path in record.parent.iterdir()} == {".json", ".svg", ".md", ".html"}


def test_an_interrupted_race_keeps_its_runs_and_goes_on_with_the_others(
    made_up: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["peers", "ppo", "--runs", "2", "--only", "sb3,rlox", "--json"]
    ran: list[tuple[str, int]] = []
    train = racing.train

    def interrupted(one: Peer, python: Path, job: Any, *rest: Any) -> Training:
        if len(ran) == 3:
            raise KeyboardInterrupt
        ran.append((one.name, job["seed"]))
        return train(one, python, job, *rest)

    monkeypatch.setattr(racing, "train", interrupted)
    assert cli.main(command) == INTERRUPTED
    assert "3 runs are kept" in capsys.readouterr().err
    before, ran[:] = list(ran), []
    (kept,) = made_up.glob("cache/peers/ppo-*.jsonl")
    kept.write_text(kept.read_text() + '{"round": 1, "pe')  # a run that was being written
    assert cli.main(command) == 0
    every = {(name, seed) for name in ("sb3", "rlox") for seed in (0, 1)}
    assert {*before, *ran} == every
    assert len(ran) == 1
    assert len(json.loads(capsys.readouterr().out)["runs"]) == 4
    ran[:] = []
    monkeypatch.setattr(racing, "train", train)
    assert cli.main(command) == 0, "a race that is recorded begins anew"


def test_a_race_without_a_record_leaves_nothing_to_the_next(made_up: Path) -> None:
    assert cli.main(["peers", "ppo", "--runs", "1", "--only", "rlox", "--no-record", "--json"]) == 0
    assert not list(made_up.glob("cache/peers/*.jsonl"))
    assert not (made_up / "record").exists()


@pytest.mark.parametrize("reach", ["nan", "inf", "much"])
def test_a_return_to_be_reached_is_a_number(
    reach: str, made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["peers", "ppo", "--reach", reach])
    assert f"--reach: is '{reach}', expected a number" in capsys.readouterr().err


def test_an_unknown_peer_is_refused(made_up: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.main(["peers", "ppo", "--only", "sb4"])
    assert "--only: is 'sb4', expected some of sb3, rlox" in capsys.readouterr().err


LISTED = """
[race.ppo]
env_id = "CartPole-v1"
total_timesteps = 1000
threads = 1
reach = 60.0
gamma = 0.99

[race.hopper]
like = "ppo"
env_id = "Hopper-v5"
peers = ["c", "a"]

[[peer]]
name = "a"
what = "one"
driver = "driver.py"
forms = { ppo = "quick", sac = "plain" }

[[peer]]
name = "b"
what = "two"
driver = "driver.py"
forms = { sac = "plain" }

[[peer]]
name = "c"
what = "three"
driver = "driver.py"
trains = false
forms = { ppo = "plain" }
"""


def listed(folder: Path, text: str) -> Project:
    """A project with this list of peers."""
    project = Project.find(toy_projects.described(folder, peers="."))
    (folder / "peers.toml").write_text(text)
    return project


def test_a_race_like_another_has_its_settings_and_its_own(tmp_path: Path) -> None:
    project = listed(tmp_path, LISTED)
    job, peers = racing.load(project, "hopper")
    assert job == {
        "env_id": "Hopper-v5",
        "total_timesteps": 1000,
        "threads": 1,
        "reach": 60.0,
        "gamma": 0.99,
        "algo": "ppo",
    }
    told = [(one.name, one.form, one.trains) for one in peers]
    assert told == [("c", "plain", False), ("a", "quick", True)]
    job, peers = racing.load(project, "ppo")
    assert (job["env_id"], job["algo"]) == ("CartPole-v1", "ppo")
    assert [one.name for one in peers] == ["a", "c"]


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ('peers = ["c", "a"]', 'peers = ["c", "b"]', "b"),
        ('like = "ppo"', 'like = "dqn"', "dqn"),
        ("gamma = 0.99", 'like = "hopper"', "hopper is like ppo, which is like another"),
    ],
)
def test_a_list_that_names_what_is_not_there_is_refused(
    before: str, after: str, why: str, tmp_path: Path
) -> None:
    assert before in LISTED
    with pytest.raises(NotReadError, match=why):
        racing.load(listed(tmp_path, LISTED.replace(before, after)), "hopper")


def with_lock(folder: Path, text: str) -> Peer:
    """A peer whose lock file has this text."""
    lock = folder / "locks" / "x.lock"
    lock.parent.mkdir()
    lock.write_text(text)
    return Peer("x", "", Path("driver.py"), "", lock)


def test_a_peer_that_cannot_be_installed_says_why(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_lock(made_up, "no-such-thing @ ./nowhere\n")
    with pytest.raises(PeerError, match="does not install"):
        racing.python_of(one, made_up / "cache" / "peers")
    assert not list((made_up / "cache" / "peers").iterdir()), "no half environment is left"


def test_a_version_is_read_from_the_peers_environment(made_up: Path) -> None:
    (made_up / "locks").mkdir()
    (made_up / "locks" / "x.in").write_text("some-thing==1.5\nother\n")
    info = made_up / "x" / "lib" / "python3.11" / "site-packages" / "some_thing-1.5.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: some-thing\nVersion: 1.5\n")
    python = made_up / "x" / "bin" / "python"
    one = Peer("x", "", Path("driver.py"), "", made_up / "locks" / "x.lock")
    assert racing.version(one, python) == "some-thing 1.5"
    assert racing.version(one, python, "other") == ""


def test_compilers_of_peers_begin_with_empty_caches(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        monkeypatch.setenv(name, str(made_up))
    with racing.environment(peer("x", "plain")) as env:
        assert "JAX_COMPILATION_CACHE_DIR" not in env
        assert not list(Path(env["TORCHINDUCTOR_CACHE_DIR"]).iterdir())


def test_two_commands_at_once_make_one_environment(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_lock(made_up, "")
    others: list[Path] = []

    def uv(*arguments: str) -> None:
        if arguments[0] == "venv":
            (Path(arguments[-1]) / "bin").mkdir()
            (Path(arguments[-1]) / "bin" / "python").touch()
        elif not others:
            others.append(Path())
            others.append(
                racing.python_of(one, made_up / "cache" / "peers")
            )  # the other command, from first to last

    monkeypatch.setattr(racing, "_uv", uv)
    assert racing.python_of(one, made_up / "cache" / "peers") == others[1]
    assert len(list((made_up / "cache" / "peers").iterdir())) == 1, "no half environment is left"


def test_an_environment_whose_interpreter_was_removed_is_made_anew(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = with_lock(made_up, "")

    def uv(*arguments: str) -> None:
        if arguments[0] == "venv":
            (Path(arguments[-1]) / "bin").mkdir()
            (Path(arguments[-1]) / "bin" / "python").symlink_to(sys.executable)

    monkeypatch.setattr(racing, "_uv", uv)
    python = racing.python_of(one, made_up / "cache" / "peers")
    python.unlink()
    python.symlink_to(made_up / "gone")
    assert racing.python_of(one, made_up / "cache" / "peers") == python
    assert python.exists()


def test_this_interpreter_runs_the_peers_without_a_lock() -> None:
    assert racing.python_of(peer("rlox", "quick"), Path("nowhere")) == Path(sys.executable)
