"""`rlox-opt peers`: what is raced, that a peer's failure stays its own, what a race comes to."""

import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import toy_projects

from rlox_opt.cli import main as cli
from rlox_opt.project.project import Project
from rlox_opt.race import environments as racing
from rlox_opt.race.environments import Peer, PeerError, Training
from rlox_opt.race.standings import row_of, standings
from rlox_opt.system.exits import INTERRUPTED
from rlox_opt.system.files import NotReadError
from rlox_opt.views import race
from rlox_opt.views.race_picture import picture

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
    made_up: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["peers", "ppo", "--runs", "2", "--time-limit", "3", "--json"]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "bad failed with status 1: no such luck (round 1)" in said.err
    assert "s did not end within 3 s (round 1)" in said.err
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


def test_a_peer_that_cannot_be_installed_says_why(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made_up / "locks").mkdir()
    (made_up / "locks" / "x.lock").write_text("no-such-thing @ ./nowhere\n")
    with pytest.raises(PeerError, match="does not install"):
        one = Peer("x", "", Path("driver.py"), "", made_up / "locks" / "x.lock")
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


def test_two_commands_at_once_make_one_environment(
    made_up: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (made_up / "locks").mkdir()
    (made_up / "locks" / "x.lock").write_text("")
    one = Peer("x", "", Path("driver.py"), "", made_up / "locks" / "x.lock")
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


def episodes(*returns: float) -> Training:
    return Training(10.0, 2.0, 4000, [(0.1 * n, n, value) for n, value in enumerate(returns)])


def test_speed_is_that_of_the_whole_training_without_compiling() -> None:
    row = row_of("a", 0, episodes(*[1.0] * 60), reach=5.0)
    assert row["sps"] == 500.0
    assert row["reach_s"] is None
    assert row["final_return"] == 1.0


def test_the_return_is_reached_when_the_mean_of_fifty_episodes_is_that_high() -> None:
    # Forty of 0, then of 10: fifty of them have a mean of 8 once ten of 0 are left.
    row = row_of("a", 0, episodes(*[0.0] * 40, *[10.0] * 60), reach=8.0)
    assert row["reach_s"] == pytest.approx(0.1 * 79)
    assert row_of("a", 0, episodes(*[10.0] * 49), reach=8.0)["reach_s"] is None


def test_ratios_are_paired_by_round_and_have_intervals() -> None:
    rows = []
    for number, machine in enumerate((1.0, 0.5, 2.0, 1.5)):  # it is not always as fast
        for name, speed in (("sb3", 100.0), ("rlox", 300.0)):
            rows.append(row(name, number, speed * machine, 30.0 / (speed * machine)))
    first, second = standings(rows, ["sb3", "rlox"])
    assert first["sps_ratio"]["ratio"] == 1.0
    assert second["sps_ratio"]["ratio"] == pytest.approx(3.0)
    assert second["reach_ratio"]["ratio"] == pytest.approx(3.0)
    assert second["sps_ratio"]["ci95"] == pytest.approx([3.0, 3.0])
    noisy = [*rows, row("rlox", 4, 900.0, 1.0), row("sb3", 4, 100.0, 1.0)]
    # Of ln 3 four times and ln 9: the mean is 1.2 ln 3, its error 0.2 ln 3, Student's t 2.776.
    ends = standings(noisy, ["sb3", "rlox"])[1]["sps_ratio"]["ci95"]
    assert ends == pytest.approx([3 ** (1.2 - 0.2 * 2.776), 3 ** (1.2 + 0.2 * 2.776)], rel=1e-3)


def test_shares_of_the_limit_are_paired_by_round_and_shown(tmp_path: Path) -> None:
    rows = [
        row(name, number, sps * (1 + number), 1.0)
        for number in range(3)
        for name, sps in (("sb3", 100.0), ("alone", 400.0))
    ]
    table = standings(rows, ["sb3", "alone"], "alone")
    assert table[0]["limit_ratio"]["ratio"] == pytest.approx(0.25)
    assert table[1]["limit_ratio"]["ratio"] == 1.0
    assert all(row["limit_ratio"] is None for row in standings(rows, ["sb3"], "gone"))
    found = raced()
    found["job"] = RACE | {"algo": "ppo", "limit": "alone"}
    found["table"] = [row | {"what": "", "version": "", "ours": False} for row in table]
    assert "| × alone |" in race.markdown(found)
    assert "0.25× (0.25–0.25)" in race.markdown(found)
    assert "PPO on CartPole-v1" in race.markdown(found)
    assert "alone" not in race.markdown(raced())


def row(name: str, number: int, sps: float, reach_s: float | None) -> dict[str, Any]:
    return {
        "peer": name,
        "round": number,
        "sps": sps,
        "compile_s": 0.0,
        "reach_s": reach_s,
        "final_return": 100.0 + number,
    }


def raced() -> dict[str, Any]:
    """A race of three, one of which never got there."""
    rows = [
        row(name, number, sps * (1 + 0.01 * number), reach_s)
        for number in range(3)
        for name, sps, reach_s in (("sb3", 100.0, 5.0), ("rlox", 2000.0, 0.4), ("slow", 20.0, None))
    ]
    table = [
        found | {"what": f"<{found['peer']}>", "version": "", "ours": found["peer"] == "rlox"}
        for found in standings(rows, ["sb3", "rlox", "slow"])
    ]
    return {
        "race": "ppo",
        "job": RACE,
        "held_to": "sb3",
        "window": 50,
        "table": table,
        "left_out": {"gone": "does not install: no wheel"},
        "date": "2026-01-01T00:00:00Z",
        "commit": "0" * 40,
        "dirty": False,
        "machine": {"cpu": "one", "cores": 2},
    }


def test_the_picture_has_the_fastest_on_top_and_bars_from_one() -> None:
    svg = ElementTree.fromstring(picture(raced()))
    space = "{http://www.w3.org/2000/svg}"
    bars = svg.findall(f"{space}rect")
    assert [bar.attrib["class"] for bar in bars] == ["ours", "other", "other"]
    fast, same, slow = (float(bar.attrib["width"]) for bar in bars)
    assert same == 1.0
    assert fast / slow == pytest.approx(math.log(20) / math.log(5), rel=0.02)
    assert len(svg.findall(f"{space}circle")) == 2  # one of three never reached the return
    width = float(svg.attrib["width"])
    for bar in bars:
        assert 0 <= float(bar.attrib["x"]) <= width - float(bar.attrib["width"])


def test_the_picture_says_what_its_bars_and_rings_are_and_names_the_first_in_words() -> None:
    found = raced()
    found["table"][0]["what"] = "Stable-Baselines3"
    space = "{http://www.w3.org/2000/svg}"

    def told() -> list[str | None]:
        texts = ElementTree.fromstring(picture(found)).findall(f"{space}text")
        return [text.text for text in texts[:2]]

    title = "PPO on CartPole-v1: how many times as fast as Stable-Baselines3"
    bar = "bar: steps per second, without compiling (95 % interval)"
    ring = "; ring: how many times as soon a mean return of 60 is reached, with compiling"
    assert told() == [title, bar + ring]
    for row in found["table"]:
        row["reach_ratio"] = None
    assert told() == [title, bar]


def test_the_limit_is_named_in_the_picture_and_what_trains_nothing_has_no_bar() -> None:
    found = raced()
    found["job"] = {**RACE, "limit": "rlox"}
    space = "{http://www.w3.org/2000/svg}"

    def bars_and_texts() -> tuple[list[str], list[str | None]]:
        svg = ElementTree.fromstring(picture(found))
        bars = [bar.attrib["class"] for bar in svg.findall(f"{space}rect")]
        return bars, [text.text for text in svg.findall(f"{space}text")]

    bars, texts = bars_and_texts()
    assert (bars, "rlox, the limit" in texts) == (["other", "other"], True)
    found["table"] = [one | {"trains": one["peer"] == "sb3"} for one in found["table"]]
    bars, texts = bars_and_texts()
    assert bars == ["other"]
    assert {"rlox, the limit", "slow, no training", "sb3"} <= {*texts}


def test_an_older_record_says_in_words_which_peers_are_of_this_tree() -> None:
    found = raced()
    for row in found["table"]:
        ours = row.pop("ours")
        row["what"] = "this tree as it comes" if ours else "another"
    bars = ElementTree.fromstring(picture(found)).findall("{http://www.w3.org/2000/svg}rect")
    assert [bar.attrib["class"] for bar in bars] == ["ours", "other", "other"]


def test_page_and_markdown_say_the_same_and_who_was_left_out() -> None:
    found = raced()
    for text in (race.markdown(found), race.page(found)):
        assert "gone" in text
        assert "does not install: no wheel" in text
        assert "never" in text
        assert "20.00×" in text
    assert "<slow>" not in race.page(found)
    assert "&lt;slow&gt;" in race.page(found)


def test_the_fastest_is_a_trainer_and_not_the_limit() -> None:
    found = raced()
    told = "<dt>the fastest</dt><dd>{}</dd>"
    assert told.format("rlox") in race.page(found)
    found["job"] = RACE | {"limit": "rlox"}
    assert told.format("sb3") in race.page(found)
    found["table"] = [one | {"trains": one["peer"] == "slow"} for one in found["table"]]
    assert told.format("slow") in race.page(found)


def test_this_interpreter_runs_the_peers_without_a_lock() -> None:
    assert racing.python_of(peer("rlox", "quick"), Path("nowhere")) == Path(sys.executable)
