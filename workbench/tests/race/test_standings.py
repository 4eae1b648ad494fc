"""What a race comes to: standings over its rounds, the picture and the page."""

import math
from typing import Any
from xml.etree import ElementTree

import pytest

from rlox_opt.race.environments import Training
from rlox_opt.race.standings import row_of, standings
from rlox_opt.views import html, markdown, race
from rlox_opt.views.race_picture import picture

RACE = {"env_id": "CartPole-v1", "total_timesteps": 1000, "threads": 1, "reach": 60.0}


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


def test_shares_of_the_limit_are_paired_by_round_and_shown() -> None:
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
    told, usual = (markdown.text(race.document(each)) for each in (found, raced()))
    assert "| × alone |" in told
    assert "as soon as sb3 or alone in the same round" in told
    assert "- **Build**: release, avx2" in told
    assert "0.25× (0.25–0.25)" in told
    assert "PPO on CartPole-v1" in told
    assert "alone" not in usual
    assert "| sb3 | 101 | 1× |" in usual  # to itself there is no interval


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
        "build": {"profile": "release", "features": [], "instructions": "avx2"},
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
    for text in (markdown.text(race.document(found)), html.page(race.document(found))):
        assert "gone" in text
        assert "does not install: no wheel" in text
        assert "never" in text
        assert "20.00×" in text
    assert "<slow>" not in html.page(race.document(found))
    assert "&lt;slow&gt;" in html.page(race.document(found))


def test_the_fastest_is_a_trainer_and_not_the_limit() -> None:
    found = raced()
    told = "<dt>the fastest</dt><dd>{}</dd>"
    assert told.format("rlox") in html.page(race.document(found))
    found["job"] = RACE | {"limit": "rlox"}
    assert told.format("sb3") in html.page(race.document(found))
    found["table"] = [one | {"trains": one["peer"] == "slow"} for one in found["table"]]
    assert told.format("slow") in html.page(race.document(found))
