"""One optimisation on a page: what the card says, and what its records say of it."""

import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import measured
import projects
import pytest
from command_line import rlox_opt
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rlox_opt.cli import show as verb
from rlox_opt.project import cards
from rlox_opt.project.cards import Card
from rlox_opt.project.project import Project
from rlox_opt.system.machine import machine, slug
from rlox_opt.views import card as terminal
from rlox_opt.views.chart import RatioPoint, TextAxis

from rlox._core import build_info

card = partial(measured.card, project=projects.HERE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for part in ("crates", "rlox"):
        (tmp_path / part).symlink_to(projects.ROOT / part)
    return tmp_path / "optimizations" / "record"


def of(folder: Path) -> Project:
    """The project whose records lie in a folder."""
    return projects.of(folder.parents[1])


def shown(detail: dict[str, Any], width: int = 80) -> str:
    text = io.StringIO()
    Console(file=text, width=width, highlight=False).print(terminal.page(detail, width))
    return text.getvalue()


def line(text: str, start: str) -> str:
    return next(line for line in text.splitlines() if line.strip().startswith(start))


def test_the_page_says_what_the_card_says(folder: Path) -> None:
    told = " ".join(shown(verb.detail_of(of(folder), card("P5", finding="It pays."))).split())
    p5 = card("P5")
    assert p5.prediction is not None
    for text in (p5.title, p5.claim, p5.note, p5.prediction.why, "It pays.", "candidate"):
        assert " ".join(text.split()) in told
    assert "4.5–6.7× for sample_256 at n=1,000,000" in told
    build = "on" if "opt-p5" in build_info()["features"] else "off"
    assert f"opt-p5 is {build} in this build" in told
    assert "not yet" in told


@pytest.mark.parametrize("found", cards.load(projects.HERE), ids=lambda card: card.id)
def test_every_card_can_be_shown_and_has_its_code(found: Card) -> None:
    detail = verb.detail_of(projects.HERE, found)
    assert detail["seam"]["files"], found.seam.address
    assert found.title in shown(detail)
    assert json.loads(json.dumps(detail))["id"] == found.id


def test_the_files_of_a_seam_are_counted_as_they_lie() -> None:
    (file,) = verb.files("crates/rlox-core/src/buffer/min_priority.rs", projects.ROOT)
    text = (projects.HERE.cards.parent / file["path"]).read_text()
    assert file["lines"] == text.count("\n")
    twins = [Path(file["path"]).name for file in verb.files(card("P7").seam.address, projects.ROOT)]
    assert {"baseline.rs", "optimized.rs", "mod.rs"} <= set(twins)
    assert verb.files("crates/rlox-core/src/nowhere.rs", projects.ROOT) == []


def test_every_size_has_its_ratio_interval_and_verdict(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    text = shown(verb.detail_of(of(folder), card("P5")))
    assert "Measured 2026-11-20 10:00 on amd-epyc-7b13-4c" in text
    assert "5.31× (5.1–5.6), as predicted" in text
    assert line(text, "n=1,000,000").endswith("5.31× (5.1–5.6)       faster   ")
    assert "0.64× (0.55–0.74)     slower" in text
    assert "0.970× (0.900–1.050)  undecided" in text
    assert "12 → 0" in text
    assert "1.06 ms" in text


def test_the_prediction_is_a_band_on_its_own_line_only(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    text = shown(verb.detail_of(of(folder), card("P5")))
    banded = [line for line in text.splitlines() if "░" in line]
    assert [line.split()[0] for line in banded[:-1]] == ["n=1,000,000"]
    assert banded[-1].rstrip().endswith("░ predicted")


@pytest.mark.parametrize(("ratio", "says"), [(7.5, "more than"), (5.0, "as"), (3.0, "less than")])
def test_realised_is_held_to_the_prediction(folder: Path, ratio: float, says: str) -> None:
    result = measured.result("sample_256", {"n": 1_000_000}, ratio, (ratio, ratio), "faster")
    measured.p5(folder, "2026-11-20T10:00:00Z", results=[result])
    assert f", {says} predicted" in shown(verb.detail_of(of(folder), card("P5")))


def test_nothing_is_wider_than_the_terminal(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z")
    measured.p5(folder, "2026-11-21T10:00:00Z", machine())
    text = shown(verb.detail_of(of(folder), card("P5")))
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text


def test_records_of_this_machine_are_shown_and_the_others_listed(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z", machine())
    measured.p5(folder, "2026-11-21T10:00:00Z")
    text = shown(verb.detail_of(of(folder), card("P5")))
    assert f"Measured 2026-11-20 10:00 on {slug(machine())}" in text
    others = text.partition("Other records (1)")[2]
    assert "2026-11-21 10:00  amd-epyc-7b13-4c  5.31× (5.1–5.6)" in others


def test_a_broken_record_is_named_once(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z").write_text("{")
    assert verb.detail_of(of(folder), card("P5"))["records"] == []
    assert capsys.readouterr().err.count("\n") == 1


def test_what_was_not_counted_is_a_dash(folder: Path) -> None:
    result = measured.result("sample_256", {"n": 1_000_000}, 5.0, (4.9, 5.1), "faster")
    result |= dict.fromkeys(("instructions", "allocations", "aa", "baseline_s", "optimized_s"))
    measured.p5(folder, "2026-11-20T10:00:00Z", results=[result])
    calls = shown(verb.detail_of(of(folder), card("P5"))).partition("One call")[2]
    assert line(calls, "n=1,000,000").split()[1:] == ["–"] * 5


def test_json_holds_all_records_newest_first(folder: Path) -> None:
    measured.p5(folder, "2026-11-20T10:00:00Z", machine())
    measured.p5(folder, "2026-11-21T10:00:00Z")
    detail = verb.detail_of(of(folder), card("P5"))
    assert [record["date"][:10] for record in detail["records"]] == ["2026-11-21", "2026-11-20"]
    assert detail["shown"] == detail["records"][1]["path"]
    assert detail["records"][0]["results"][3]["ratio"] == 5.31


def test_json_is_the_card_and_nothing_else() -> None:
    done = rlox_opt("show", "P5", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["prediction"]["ratio"] == [4.5, 6.7]


@pytest.mark.parametrize("id_", ["p99", "5", "", "../p5"])
def test_an_id_without_a_card_exits_2_with_one_line(id_: str) -> None:
    done = rlox_opt("show", id_)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"ID {id_}: has no card" in done.stderr


def test_help_has_examples() -> None:
    assert "examples:" in rlox_opt("show", "--help").stdout


ratios = st.floats(0.01, 1000)


@given(
    st.lists(st.tuples(ratios, st.floats(1, 2), st.floats(1, 2)), min_size=1), st.integers(20, 60)
)
def test_a_point_lies_within_its_whiskers_and_all_within_the_axis(
    drawn: list[tuple[float, float, float]], width: int
) -> None:
    points = [RatioPoint(ratio, (ratio / below, ratio * above)) for ratio, below, above in drawn]
    axis = TextAxis(points, width)
    for point in points:
        row = axis.row(point)
        assert len(row) == width
        assert row.count("●") == 1
        assert axis.column(point.ci95[0]) <= row.index("●") <= axis.column(point.ci95[1])
        # A tenth more is never drawn further left.
        assert axis.column(point.ratio) <= axis.column(point.ratio * 1.1)


@given(st.lists(ratios, min_size=1), st.integers(20, 60))
def test_one_is_on_the_axis_and_labels_stand_apart(drawn: list[float], width: int) -> None:
    line, labels = TextAxis([RatioPoint(ratio, (ratio, ratio)) for ratio in drawn], width).scale()
    assert len(line) == width
    assert len(labels) <= width
    assert line.count("┼") == 1
    assert "1×" in labels.split()
    assert line.count("┴") + 1 == len(labels.split())
    assert all(float(label.removesuffix("×")) > 0 for label in labels.split())


def test_equal_factors_are_equal_distances() -> None:
    axis = TextAxis([RatioPoint(1.0, (0.1, 10.0))], 41)
    one = axis.column(1.0)
    assert axis.column(10.0) - one == one - axis.column(0.1)


def test_an_interval_that_holds_one_crosses_its_line() -> None:
    axis = TextAxis([RatioPoint(1.1, (0.8, 2.0))], 40)
    assert "┼" in axis.row(RatioPoint(1.3, (0.8, 2.0)))
    assert "│" in axis.row(RatioPoint(1.6, (1.5, 2.0)))
