"""`rlox-opt test`: its builds, whether twins agree, what its exit codes mean."""

import io
import json
import sys
from pathlib import Path
from typing import Any

import projects
import pytest
from command_line import rlox_opt
from rich.console import Console
from rlox_opt.plan.features import Features, features
from rlox_opt.plan.testing import agreement, answers, every_build
from rlox_opt.plan.testing.agreement import Agreement
from rlox_opt.plan.testing.every_build import Finished
from rlox_opt.project import cards
from rlox_opt.project.project import Project
from rlox_opt.system.commands import CannotTell, run
from rlox_opt.system.progress import Lines
from rlox_opt.system.usage import UsageError

TWINS = projects.HERE.settings.twins
FEATURES = features(projects.HERE)


def quiet() -> Lines:
    return Lines(Console(file=io.StringIO()))


# Arguments


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], ["ID", "all"]),
        (["p99"], ["p99", "there are p1, p2, ", ", and all"]),
        (["p5", "r1", "--planted"], ["r1", "that builds differ in", "p1, p2, "]),
        (["--builds", "--planted"], ["--planted", "not allowed"]),
        (["p5", "--only", "p5"], ["--only p5", "--builds"]),
        (["p5", "--builds", "--only", "p5"], ["--only", "leave the ids out"]),
        (["--builds", "--only", "none,p99"], ["--only p99", "all-p1"]),
    ],
)
def test_a_bad_argument_exits_2_with_one_line(arguments: list[str], says: list[str]) -> None:
    done = rlox_opt("test", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    for part in says:
        assert part in done.stderr


@pytest.mark.parametrize("arguments", [["p5"], ["p5", "--planted"], ["--builds", "--only", "p5"]])
def test_without_cargo_it_says_where_to_get_it(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    done = rlox_opt("test", *arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "rustup.rs" in done.stderr.splitlines()[-1]


@pytest.mark.slow
def test_the_training_loops_need_no_cargo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    done = rlox_opt("test", "r7")
    assert done.returncode == 0, done.stderr
    assert "all twins agree" in done.stdout


# Builds


def test_there_are_2n_plus_2_builds_and_no_two_are_the_same() -> None:
    n = len([card for card in cards.load(projects.HERE) if card.id.startswith("P")])
    sets = FEATURES.builds()
    assert len(sets) == 2 * n + 2
    assert len({name for name, _ in sets}) == len({features for _, features in sets}) == len(sets)


def test_p12_holds_p3_up() -> None:
    sets = dict(FEATURES.builds())
    assert sets["p3"] == ("opt-p3", "opt-p12")
    assert sets["p12"] == ("opt-p12",)
    assert set(sets["all"]) - set(sets["all-p12"]) == {"opt-p3", "opt-p12"}
    assert set(sets["all"]) - set(sets["all-p3"]) == {"opt-p3"}


def test_what_else_a_feature_turns_on_is_left_to_cargo(tmp_path: Path) -> None:
    manifest = tmp_path / "Cargo.toml"
    manifest.write_text(
        '[features]\nfast = []\nopt-p1 = ["dep:rayon", "fast", "opt-p2"]\nopt-p2 = []'
    )
    assert Features(manifest).of(["P1"]) == ("opt-p1", "opt-p2")
    with pytest.raises(UsageError, match="has no feature opt-p30"):
        Features(manifest).of(["P1", "P30"])


def test_one_optimisation_is_told_from_the_others_by_four_builds() -> None:
    every = tuple(f"opt-{id_.lower()}" for id_ in FEATURES.known())
    assert FEATURES.builds(["P5"]) == [
        ("none", ()),
        ("all", every),
        ("p5", ("opt-p5",)),
        ("all-p5", tuple(feature for feature in every if feature != "opt-p5")),
    ]


def build(name: str, digest: str = "0" * 16, green: bool = True, **more: str) -> Finished:
    golden = {"rollouts": digest} | more
    return Finished(name, (), green, 5 * green, 0, 1.0, golden, "" if green else "it broke")


def test_the_builds_with_another_golden_run_are_named() -> None:
    same = [build("none"), build("all"), build("p5")]
    assert every_build.differences(same) == []
    odd = [*same, build("p7", "1" * 16)]
    assert every_build.differences(odd) == [
        "golden run rollouts: p7 differ from the other builds",
    ]
    (lacks,) = every_build.differences([*same, build("p9", samples="2" * 16)])
    assert lacks.startswith("golden run samples: p9 ")


def test_a_golden_run_held_to_a_tolerance_differs_from_none() -> None:
    near = [build("p14", "close"), build("none"), build("p14-p5", "close")]
    assert every_build.differences(near) == []
    (odd,) = every_build.differences([*near, build("p5"), build("p7", "1" * 16)])
    assert odd == "golden run rollouts: p7 differ from the other builds"


def test_builds_without_golden_runs_are_not_all_green() -> None:
    bare = Finished("none", (), True, 5, 0, 1.0, {}, "")
    assert every_build.differences([bare, bare])


def ask_builds(monkeypatch: pytest.MonkeyPatch, outcomes: list[Any]) -> answers.Answer:
    left = iter(outcomes)

    def tested(root: Path, build: Any, hear: Any) -> Finished:
        outcome = next(left)
        if isinstance(outcome, type):
            raise outcome
        assert isinstance(outcome, Finished)
        return outcome

    monkeypatch.setattr(every_build, "tested", tested)
    return answers.of_builds(projects.HERE, [(f"b{i}", ()) for i in range(len(outcomes))], quiet())


def test_green_builds_exit_0_and_a_red_or_odd_one_exits_1(monkeypatch: pytest.MonkeyPatch) -> None:
    good = ask_builds(monkeypatch, [build("none"), build("all")])
    assert (good.status, good.verdict.startswith("2 builds, all green")) == (0, True)
    red = ask_builds(monkeypatch, [build("none"), build("p5", green=False)])
    assert (red.status, "it broke" in red.behind[0]) == (1, True)
    odd = ask_builds(monkeypatch, [build("none"), build("all"), build("p5", "1" * 16)])
    assert (odd.status, "p5 differ" in odd.verdict) == (1, True)


def test_interrupted_builds_are_told_as_far_as_they_came(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ask_builds(monkeypatch, [build("none"), KeyboardInterrupt, build("p5")])
    assert found.status == 130
    assert [row[0] for row in found.rows] == ["none"]
    assert not found.facts["complete"]


# Agreement


def test_a_twin_that_disagrees_exits_1_with_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    def rust(project: Project, ids: list[str], hear: Any) -> dict[str, Agreement]:
        return {id_: Agreement(id_ != "P7", 1.0, "the twins differ") for id_ in ids}

    monkeypatch.setattr(agreement, "rust", rust)
    monkeypatch.setattr(agreement, "python", lambda project, ids, hear: {})
    assert answers.of_agreement(projects.HERE, ["P5"], quiet()).status == 0
    found = answers.of_agreement(projects.HERE, ["P5", "P7"], quiet())
    assert found.status == 1
    assert "P7" in found.behind[0]


@pytest.mark.parametrize(
    ("ended", "differs", "status"),
    [
        (KeyboardInterrupt(), True, 130),
        (KeyboardInterrupt(), False, 130),
        (CannotTell("pytest could not run the tests of the pairs"), True, 1),
        (UsageError("pytest: is not installed"), True, 1),
    ],
)
def test_what_rust_found_is_told_where_python_does_not_get_to_its_end(
    monkeypatch: pytest.MonkeyPatch, ended: BaseException, differs: bool, status: int
) -> None:
    def python(*_: object) -> dict[str, Agreement]:
        raise ended

    found = {"P5": Agreement(not differs, 1.0, "the twins differ")}
    monkeypatch.setattr(agreement, "rust", lambda *_: found)
    monkeypatch.setattr(agreement, "python", python)
    answer = answers.of_agreement(projects.HERE, ["P5", "R10"], quiet())
    assert (answer.status, answer.facts["complete"]) == (status, False)
    assert [row["id"] for row in answer.facts["results"]] == ["P5"]
    assert answer.verdict.startswith("1 of 2 were tested: the twins of P5")
    if str(ended):
        assert str(ended) in answer.behind
    monkeypatch.setattr(agreement, "rust", lambda *_: {})
    if status == 1:  # nothing is known
        with pytest.raises(type(ended)):
            answers.of_agreement(projects.HERE, ["P5"], quiet())


@pytest.mark.parametrize(
    ("python", "status", "says"),
    [
        ({"P5": True, "R10": None}, 0, ["the twins of P5 agree", "R10 skipped: no device"]),
        ({"P5": True, "R10": True}, 0, ["all twins agree"]),
        ({"P5": False, "R10": None}, 1, ["the twins of P5 differ", "R10 skipped"]),
        ({"P5": None, "R10": None}, 2, ["P5 skipped: no device; R10 skipped: no device"]),
        ({"P5": True}, 2, ["the twins of P5 agree", "no pair holds the twins of R10"]),
        ({}, 2, ["no pair holds the twins of P5, R10; `make setup` builds"]),
    ],
)
def test_what_was_skipped_is_no_agreement(
    monkeypatch: pytest.MonkeyPatch, python: dict[str, bool | None], status: int, says: list[str]
) -> None:
    found = {id_: Agreement(passed, 1.0, "no device") for id_, passed in python.items()}
    monkeypatch.setattr(agreement, "rust", lambda project, ids, hear: {})
    monkeypatch.setattr(agreement, "python", lambda project, ids, hear: found)
    answer = answers.of_agreement(projects.HERE, ["P5", "R10"], quiet())
    assert answer.status == status
    for part in says:
        assert part in answer.verdict
    outcomes = {row["id"]: row["outcome"] for row in answer.facts["results"]}
    assert outcomes == {
        id_: found[id_].word if id_ in found else "untested" for id_ in ("P5", "R10")
    }


def test_a_test_that_pytest_skips_is_told_apart_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_ADDOPTS", "-x")  # what somebody is used to stops nothing here
    suite = tmp_path / "test_toys.py"
    suite.write_text(
        "import pytest\n"
        "@pytest.mark.parametrize('id_', ['R1', 'R2', 'R3'])\n"
        "def test_the_twins_agree(id_):\n"
        "    if id_ == 'R2': pytest.skip('there is no such device')\n"
        "    assert id_ != 'R3', 'they differ'\n"
    )
    found = agreement.pytest_outcomes(
        ["R3", "R1", "R2"], tmp_path, {"R": suite.name}, lambda line: None
    )
    assert {id_: of.word for id_, of in found.items()} == {
        "R1": "agree",
        "R2": "skipped",
        "R3": "differ",
    }
    assert found["R2"].output == "there is no such device"
    assert "they differ" in found["R3"].output


def test_what_this_machine_cannot_test_is_no_success() -> None:
    done = rlox_opt("test", "r10", "--json")
    (result,) = json.loads(done.stdout)["results"]
    if done.returncode == 0:
        assert result["python"] == {**result["python"], "passed": True, "reason": None}
    else:
        assert done.returncode == 2
        assert (result["outcome"], result["python"]["passed"]) == ("skipped", None)
        assert "torch finds no" in result["python"]["reason"]


def test_every_optimisation_has_a_test_by_the_name_that_the_verb_asks_for(
    request: pytest.FixtureRequest,
) -> None:
    """`test all` ended with pytest's "not found" where one had none."""
    listed = {
        (file, item.name)
        for file in TWINS.tests.values()
        for item in pytest.Module.from_parent(request.session, path=projects.ROOT / file).collect()
    }
    for card in cards.load(projects.HERE):
        file = TWINS.tests.get(card.id[0])
        if file and card.seam.kind != "build":
            assert (file, f"test_the_twins_agree[{card.id}]") in listed


# Commands


def test_a_command_is_heard_line_by_line_and_ended_in_time(tmp_path: Path) -> None:
    heard: list[str] = []
    program = "import sys, time; print('one'); print('two', file=sys.stderr); sys.exit(3)"
    done = run([sys.executable, "-c", program], tmp_path, hear=heard.append)
    assert (done.status, done.late) == (3, False)
    assert sorted(heard) == ["one", "two"]
    late = run([sys.executable, "-c", "import time; time.sleep(60)"], tmp_path, limit_s=0.5)
    assert late.late
    assert late.status != 0
