"""The operating curve: simulated runs say what the verdicts promise, and the page shows them."""

import json
import random
import re
from collections import Counter
from pathlib import Path

import projects
import pytest
from rlox_opt.views.site import trust as page

from asv_bench import operating_curve


def shares(slowdown: float, scatter: float, threshold: float, runs: int = 200) -> dict[str, float]:
    rng = random.Random(1)
    counts = Counter(
        operating_curve.verdict(rng, slowdown, scatter, threshold) for _ in range(runs)
    )
    return {verdict: n / runs for verdict, n in counts.items()}


@pytest.mark.parametrize("scatter", operating_curve.SCATTERS)
def test_what_is_within_the_threshold_is_not_called_slower(scatter: float) -> None:
    assert shares(2.0, scatter, 3.0).get("slower", 0.0) <= 0.01


def test_what_is_far_beyond_it_is_called_slower_and_no_change_the_same() -> None:
    assert shares(8.0, 2.0, 3.0) == {"slower": 1.0}
    assert shares(0.0, 1.0, 3.0) == {"same": 1.0}


def test_more_scatter_leaves_more_undecided() -> None:
    undecided = [shares(2.0, scatter, 1.0).get("undecided", 0.0) for scatter in (0.2, 2.0, 5.0)]
    assert undecided == sorted(undecided)
    assert undecided[-1] > undecided[0]


def test_a_curve_is_kept_and_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(operating_curve, "PROJECT", projects.of(projects.ROOT, state=str(tmp_path)))
    monkeypatch.setattr(operating_curve, "SLOWDOWNS", {3.0: (0.0, 4.0, 8.0)})
    monkeypatch.setattr(operating_curve, "SCATTERS", (1.0, 5.0))
    monkeypatch.setattr("sys.argv", ["operating_curve.py", "--runs", "20"])
    assert operating_curve.main() == 0
    assert "8 % slower: slower 1.000" in capsys.readouterr().out
    (path,) = tmp_path.glob("record/*/*_operating-curve.json")
    points = json.loads(path.read_text())["points"]
    assert [sum(point["shares"].values()) for point in points] == [1.0] * 6

    text = page.trust(page.read(tmp_path / "record")).of("rlox")
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) == 2  # one a scatter
    # Where nothing changed, all of the height is "same": from the floor to the top.
    same = re.search(r'points="40\.0,([\d.]+) [^"]*" class="same"', pictures[0])
    assert same is not None
    assert float(same[1]) == 8.0
    assert "slowdowns from 4 % on called slower in half of the runs" in pictures[0]
