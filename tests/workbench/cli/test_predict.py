"""`rlox-opt predict`: as wide as earlier errors, before the work, and git's history says so."""

import contextlib
import json
import math
import shutil
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import projects
import pytest
from command_line import rlox_opt
from rlox_opt.cli.predict import with_prediction
from rlox_opt.history import ledger, predicted
from rlox_opt.history.predicted import Checked
from rlox_opt.plan import precedence
from rlox_opt.project import cards
from rlox_opt.project.cards import Prediction
from users_repository import git

ROOT = projects.HERE.cards.parent
FREE = (
    f"p{1 + max(int(card.id[1:]) for card in cards.load(projects.HERE) if card.id.startswith('P'))}"
)
WHY = 'A "load" of 2 ns goes, of the 7 that a step takes; C:\\temp stays.'
PREDICT = ("predict", FREE, "--ratio", "1.4", "--why", WHY, "--size", "n=100000")

# Before `predict` there was only "before it was measured"; who comes after these is held to more.
FIRST = {f"P{n}" for n in range(1, 26)} | {f"R{n}" for n in range(1, 17)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with the cards and the code that most of them vary; the next optimisation is a
    skeleton in it, committed. Who changes it has a copy."""
    root = tmp_path_factory.mktemp("predict") / "made"
    for part in ("crates", "optimizations"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    projects.described(root)
    git(root, "init", "--quiet", "--initial-branch=main")
    (root / ".gitignore").write_text("__pycache__/\n")
    commit(root, "all there is")
    assert run(root, "new", FREE, "Rewards scaled").returncode == 0
    commit(root, "a skeleton")
    return root


@pytest.fixture
def checkout(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "checkout", symlinks=True)


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """rlox-opt there, in this process."""
    with contextlib.chdir(checkout):
        return rlox_opt(*arguments)


def commit(checkout: Path, message: str) -> str:
    git(checkout, "add", "--all")
    git(checkout, "commit", "--quiet", "-m", message)
    return git(checkout, "rev-parse", "HEAD")


def told(checkout: Path) -> tuple[int, dict[str, Any]]:
    done = run(checkout, "predict", FREE, "--json")
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def card_of(checkout: Path) -> Path:
    (path,) = (checkout / "optimizations").glob(f"{FREE}_*.toml")
    return path


def work(checkout: Path) -> None:
    """Write the optimised form."""
    (path,) = (checkout / "crates" / "rlox-core" / "src" / "training").glob("*scaled*/optimized.rs")
    text = path.read_text()
    assert "is not written yet" in text
    path.write_text(text.replace(f"{FREE.upper()}: optimized.rs is not written yet", "empty input"))


def test_a_prediction_before_the_work_is_found_to_be_that(checkout: Path) -> None:
    assert told(checkout)[0] == 2, "nothing is predicted"
    done = run(checkout, *PREDICT, "--json")
    assert done.returncode == 0, done.stderr
    written = json.loads(done.stdout)
    assert written["prediction"] == {
        "workload": "rewards_scaled",
        "size": {"n": 100_000},
        "ratio": written["prediction"]["ratio"],
        "why": WHY,
    }
    low, high = written["prediction"]["ratio"]
    assert math.sqrt(low * high) == pytest.approx(1.4, rel=0.01)
    all_cards = cards.load(projects.HERE)
    measured = [card for card in all_cards if card.layer == "rust" and card.record]
    assert written["width"] == {"errors": len(measured), "layer": "rust", "coverage": 0.8}
    code, found = told(checkout)
    assert (code, found["verdict"]) == (2, "not committed")

    made = commit(checkout, "what is expected")
    code, found = told(checkout)
    assert (code, found["verdict"]) == (0, "before the work")
    assert found["commits"] == {"prediction": made, "work": None, "record": None}

    work(checkout)
    late = run(checkout, *PREDICT)
    assert late.returncode == 2
    assert "its optimised form is written already; a prediction comes before that" in late.stderr
    after = commit(checkout, "the optimised form")
    code, found = told(checkout)
    assert (code, found["verdict"]) == (0, "before the work")
    assert found["commits"] == {"prediction": made, "work": after, "record": None}


def test_a_card_may_have_any_name_of_a_file(checkout: Path) -> None:
    card_of(checkout).rename(checkout / "optimizations" / "scaled.toml")
    commit(checkout, "renamed")
    done = run(checkout, *PREDICT)
    assert done.returncode == 0, done.stderr
    commit(checkout, "what is expected")
    code, found = told(checkout)
    assert (code, found["verdict"]) == (0, "before the work")


def test_a_prediction_with_the_work_or_after_it_is_told(checkout: Path) -> None:
    done = run(checkout, *PREDICT)
    assert done.returncode == 0, done.stderr
    assert "Commit it before the optimised form is written" in done.stdout
    work(checkout)
    commit(checkout, "both at once")
    code, found = told(checkout)
    assert (code, found["verdict"]) == (1, "with the work")

    path = card_of(checkout)
    (line,) = (row for row in path.read_text().splitlines() if row.startswith("ratio = "))
    path.write_text(path.read_text().replace(line, "ratio = [2.0, 2.5]"))
    commit(checkout, "another one")
    assert told(checkout)[1]["verdict"] == "after the work"


def test_what_was_measured_is_not_predicted_any_more(checkout: Path) -> None:
    assert run(checkout, *PREDICT).returncode == 0
    commit(checkout, "what is expected")
    record = checkout / "optimizations" / "record" / "m" / f"2026-11-24T000000Z_{FREE}.json"
    record.parent.mkdir()
    record.write_text("{}")
    commit(checkout, "measured")
    late = run(checkout, *PREDICT)
    assert late.returncode == 2
    assert "was measured already" in late.stderr
    assert told(checkout)[1]["verdict"] == "before the work"

    path = card_of(checkout)
    (line,) = (row for row in path.read_text().splitlines() if row.startswith("ratio = "))
    path.write_text(path.read_text().replace(line, "ratio = [2.0, 2.5]"))
    changed = commit(checkout, "it came out like this")
    code, found = told(checkout)
    assert (code, found["verdict"]) == (1, "after it was measured")
    assert found["commits"]["prediction"] == changed

    path.write_text(path.read_text().replace("ratio = [2.0, 2.5]", line))
    assert told(checkout)[1]["verdict"] == "before the work", "put back"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((FREE, "--ratio", "0", "--why", "x", "--size", "n=1000"), "--ratio: is 0.0"),
        ((FREE, "--ratio", "nan", "--why", "x", "--size", "n=1000"), "--ratio: is nan"),
        ((FREE, "--ratio", "1.4", "--why", " ", "--size", "n=1000"), "--why: is not given"),
        ((FREE, "--ratio", "1.4", "--why", "x"), "--size: is not given; use one of n=1000"),
        ((FREE, "--ratio", "1.4", "--why", "x", "--size", "n=7"), "--size: is 'n=7'; use"),
        ((FREE, "--ratio", "1.4", "--why", "x", "--workload", "y"), "--workload: is 'y'; use"),
        ((FREE, "--why", "x", "--size", "n=1000"), "--ratio: is not given"),
        (("all", "--ratio", "1.4"), "--ratio: is of one optimisation"),
        (("p99",), "ID p99: has no card"),
        (("p5", "--ratio", "2", "--why", "x", "--workload", "set_256", "--size", "n=1000"),
         "P5: was measured already"),
    ],
)  # fmt: skip
def test_a_bad_prediction_is_refused_in_one_line_and_changes_nothing(
    made: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], says: str
) -> None:
    monkeypatch.chdir(made)
    done = rlox_opt("predict", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert says in done.stderr
    assert git(made, "status", "--porcelain") == ""


@pytest.mark.slow
def test_the_history_says_of_every_card_when_it_was_predicted() -> None:
    """R16's prediction was once raised after it was measured."""
    if git(ROOT, "rev-parse", "--is-shallow-repository") == "true":
        pytest.skip("the history is cut off")
    found = {
        card.id: precedence.course(projects.HERE, card).verdict
        for card in cards.load(projects.HERE)
    }
    late = {id_ for id_, verdict in found.items() if verdict == precedence.MEASURED}
    assert not late
    new = {id_: verdict for id_, verdict in found.items() if id_ not in FIRST}
    assert set(new.values()) <= {precedence.BEFORE, precedence.NONE}, new


# The width


def known(n: int, error: float, layer: str = "rust", claimed: float = math.log(2)) -> list[Checked]:
    """Predictions of a ratio, the k-th of which was off by k errors."""
    at = datetime(2026, 11, 21, tzinfo=UTC)
    return [
        Checked(
            f"P{k}",
            layer,
            at + timedelta(hours=k),
            claimed,
            claimed + (-1) ** k * k * error * (claimed + 0.05),
            False,
        )
        for k in range(1, n + 1)
    ]


def test_the_width_is_the_size_of_error_that_four_of_five_stay_within() -> None:
    # Of nine errors of sizes 1 to 9 tenths of a claim, the ceil(0.8 * 10) = 8th.
    found = predicted.width(3.0, "rust", known(9, 0.1))
    assert found is not None
    reach = 0.8 * (math.log(3) + 0.05)
    assert (found.errors, found.layer) == (9, "rust")
    assert math.log(found.low) == pytest.approx(math.log(3) - reach)
    assert math.log(found.high) == pytest.approx(math.log(3) + reach)


def test_a_layer_with_too_few_errors_takes_those_of_all() -> None:
    few = [*known(3, 0.1, "python"), *known(5, 0.01)]
    found = predicted.width(2.0, "python", few)
    assert found is not None
    assert (found.errors, found.layer) == (8, None)
    assert predicted.width(2.0, "python", known(3, 0.1, "python")) is None


def test_who_claims_little_is_given_little_room() -> None:
    small, large = (predicted.width(ratio, "rust", known(9, 0.1)) for ratio in (1.02, 5.0))
    assert small is not None
    assert large is not None
    assert small.high / small.low < 1.13 < large.high / large.low


def test_coverage_counts_what_others_and_what_earlier_ones_would_have_held() -> None:
    """Four are needed for a width, so that the fifth is the first that any speak of."""
    # Sizes of errors 1 to 4, and 9: the widths with it hold the four, theirs does not hold it.
    of = [*known(4, 0.1), known(9, 0.1)[-1]]
    *start, last = predicted.over_time(of)
    assert [(sofar.left_out.of, sofar.earlier.of) for sofar in start] == [(0, 0)] * 4
    assert (last.told, last.left_out, last.earlier) == ((0, 5), (4, 5), (0, 1))


def test_the_ledger_reaches_its_target_where_cards_did_not() -> None:
    last = predicted.over_time(predicted.checked(ledger.lines(projects.HERE)))[-1]
    assert last.left_out.share >= predicted.COVERAGE - 0.01
    assert last.earlier.share >= predicted.COVERAGE - 0.01
    assert last.told.share < predicted.COVERAGE


# The card


@pytest.mark.parametrize("why", ['ends in "quotes"', '"""', "a\\b", "x " * 200])
def test_a_reason_is_read_as_it_was_written(tmp_path: Path, why: str) -> None:
    source = next(projects.HERE.cards.glob("p05_*.toml"))
    prediction = Prediction("sample_256", {"n": 1_000_000}, (3.0, 9.0), why)
    path = tmp_path / source.name
    path.write_text(with_prediction(source.read_text(), prediction))
    before, after = cards.parse(source), cards.parse(path)
    assert after.prediction is not None
    assert " ".join(after.prediction.why.split()) == " ".join(why.split())
    assert after.prediction.ratio == (3.0, 9.0)
    for key in ("claim", "seam", "spot", "sizes", "finding"):
        assert getattr(after, key) == getattr(before, key)
    assert path.read_text().count("[prediction]") == 1
