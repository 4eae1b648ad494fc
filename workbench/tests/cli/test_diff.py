"""`rlox-opt diff` and `gate`: what they find, how they say it, and what they refuse."""

import argparse
import json
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import small_projects
import toy_history
import toy_packages
import toy_projects
import users_repository
from command_line import rlox_opt

from rlox_opt.cli import diff, gate
from rlox_opt.cli.main import main
from rlox_opt.harness import packages as packages_module
from rlox_opt.harness.packages import Failure
from rlox_opt.harness.sequential import Comparison
from rlox_opt.harness.side_processes import Suite
from rlox_opt.project import side_by_side, thresholds
from rlox_opt.project.builds import Artefact, Builds
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.project.project import Project
from rlox_opt.project.side_by_side import ComparedBuilds, Meant
from rlox_opt.system.progress import Lines, reporter
from rlox_opt.system.usage import UsageError
from rlox_opt.views import verdicts

Measure = Callable[..., ComparedBuilds]


def arguments(*texts: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    diff.add_arguments(parser, toy_projects.PROJECT)
    return parser.parse_args(["base", "--restarts", "5", "--no-counts", *texts])


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Measure:
    """What diff finds between two toy packages."""
    toy_packages.benchmarks(tmp_path)
    project = toy_projects.of(tmp_path, suite="benchmarks")
    toy_history.quick(monkeypatch.setattr)
    monkeypatch.setattr(side_by_side, "_MEMORY_RESTARTS", 5)

    def of(
        base: dict[str, object],
        head: dict[str, object],
        *texts: str,
        progress: Lines | None = None,
    ) -> ComparedBuilds:
        sides = []
        for name, settings in (("base", base), ("head", head)):
            folder = toy_packages.package(tmp_path / name, **settings)  # type: ignore[arg-type]
            digests = {"python": repr(settings), "extension": "none"}
            of = Revision(name, name * 10)
            sides.append(Artefact(of, folder, (), digests, 1.0, packages=("toy",)))
        with reporter() as lines:
            asked = arguments(*texts)
            return side_by_side.measured(project, sides[0], sides[1], asked, progress or lines)

    return of


def test_more_work_is_slower(measure: Measure) -> None:
    """A hundred times as much, as the gate's; by a threshold soon decided on the rest."""
    texts = ("--bench", "work|Sized|track", "--restarts", "10", "--threshold", "30")
    found = measure({"passes": 1}, {"passes": 100, "size": 20}, *texts)
    facts = side_by_side.facts(found)
    assert set(facts) >= {"base", "head", "machine", "results", "aa", "seconds"}
    by_name = {row["benchmark"]: row for row in facts["results"]}
    assert by_name.keys() == {"toys.time_work", *(f"toys.Sized.time_sized({n})" for n in (1, 2))}
    slower = by_name["toys.time_work"]
    assert slower["verdict"] == "slower"
    assert slower["ci99"][0] < slower["ratio"] < slower["ci99"][1]
    assert slower["restarts"] in (5, 10)  # ten where a neighbour disturbs one of five
    assert slower["instructions"] == {"base": None, "head": None}  # not asked for
    assert {row["benchmark"] for row in facts["aa"]} == by_name.keys()
    (size,) = facts["memory"]
    assert (size["benchmark"], size["ratio"], size["verdict"]) == (
        "toys.track_size",
        pytest.approx(2),
        "slower",
    )
    assert facts["complete"]
    assert gate.decision(found)[0] == 1
    json.dumps(facts)


def test_a_change_of_the_working_tree_is_noted_and_what_rlox_opt_keeps_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The build fails, which ends the comparison after the note."""
    table = '[tool.rlox-opt]\npackage = "toy"\nsuite = "benchmarks"\n'
    build = 'build = { by = "command", command = ["false"] }\n'
    files = {"pyproject.toml": table + build, "benchmarks/toys.py": "def time_it():\n    pass\n"}
    small_projects.repository(tmp_path, files)
    for kept in ("history/m/one.json", "record/m/one.json", "pages/index.html"):
        (tmp_path / ".rlox-opt" / kept).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / ".rlox-opt" / kept).write_text("{}")
    monkeypatch.chdir(tmp_path)
    note = "note: the working tree has changes, which are not measured"
    done = rlox_opt("diff", "HEAD", "HEAD")
    assert done.returncode == 2
    assert note not in done.stderr
    (tmp_path / ".rlox-opt/acknowledged.toml").write_text("")
    assert note in rlox_opt("diff", "HEAD", "HEAD").stderr


def test_what_fails_is_named_with_its_side_and_loses_no_other_result(measure: Measure) -> None:
    found = measure({}, {"name": "raises"}, "--bench", "raises|steady")
    assert list(verdicts.not_measured(found)) == [
        "toys.time_raises: fails in head: RuntimeError: no such thing"
    ]
    assert found.times.judgements.keys() == {"toys.time_steady"}
    assert gate.decision(found)[0] == 2


def test_a_benchmark_that_one_commit_lacks_is_said_to_be_missing_there(measure: Measure) -> None:
    found = measure({"name": "old"}, {}, "--bench", "new|steady", *toy_history.SPENT)
    assert list(verdicts.not_measured(found)) == ["toys.time_new: not in base"]


def test_a_pattern_that_matches_nothing_is_refused_with_names_that_exist(measure: Measure) -> None:
    with pytest.raises(
        UsageError, match=r"'gea' matches no benchmark; there are .* such as toys\."
    ):
        measure({}, {}, "--bench", "gea")


def test_a_part_of_a_pattern_that_matches_nothing_is_told(measure: Measure) -> None:
    found = measure({}, {}, "--bench", "gea|steady", *toy_history.SPENT)
    assert "--bench: 'gea' matches no benchmark" in found.notes


class _Interrupting(Lines):
    """Ctrl-C at the fourth restart."""

    def note(self, text: str, fraction: float | None = None) -> None:
        if text.startswith("restart 4"):
            raise KeyboardInterrupt


def test_an_interruption_keeps_what_is_known(measure: Measure) -> None:
    with reporter() as lines:
        interrupting = _Interrupting(lines.console)
    found = measure({}, {}, "--bench", "steady", progress=interrupting)
    assert not found.complete
    assert found.times.judgements["toys.time_steady"].restarts == 4
    assert "Interrupted: these are the verdicts so far." in list(verdicts.closing(found))
    assert gate.decision(found) == (130, "interrupted")


def test_identical_packages_end_a_comparison_unless_they_are_measured_anyway(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    digests, packages = {"python": "a", "x": "b"}, ("toy",)
    folder = toy_packages.package(tmp_path)
    built = Artefact(Revision("HEAD", "0" * 40), folder, (), digests, 0, packages=packages)
    monkeypatch.setattr(diff, "measured_by", toy_projects.by_its_own)
    monkeypatch.setattr(Commits, "resolve", lambda self, text: built.revision)
    monkeypatch.setattr(Commits, "dirty", lambda self, *left_out: False)
    monkeypatch.setattr(Commits, "text", lambda self, commit, path: "")
    monkeypatch.setattr(Builds, "check", lambda self, revision: None)
    monkeypatch.setattr(Builds, "build", lambda self, revision, like=None: built)
    toy_packages.benchmarks(tmp_path)
    monkeypatch.chdir(toy_projects.write(tmp_path, 'package = "toy"\nsuite = "benchmarks"'))
    toy_history.quick(monkeypatch.setattr)
    asked = ["HEAD", "HEAD", "--bench", "time_steady", "--no-counts", "--restarts", "5"]
    assert main(["diff", *asked]) == 0
    assert "the same: nothing was measured (--anyway does)." in capsys.readouterr().out
    assert main(["gate", *asked]) == 0
    assert "byte for byte the same" in capsys.readouterr().err
    assert main(["diff", *asked, "--anyway", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["results"]
    assert row["restarts"] == 5


SUITE = "def time_it():\n    pass\n"


def test_a_commit_that_changes_nothing_of_the_package_ends_a_comparison_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Compiled Python holds the time of its source, which says nothing of what it does."""
    build = "cp -r toy $0 && python -m compileall -q $0"
    table = (
        '[tool.rlox-opt]\npackage = "toy"\nsuite = "suite"\n'
        f'build = {{ by = "command", command = ["sh", "-c", "{build}", "{{out}}"] }}\n'
    )
    package = {"pyproject.toml": table, "toy/__init__.py": "", "suite/__init__.py": SUITE}
    root = users_repository.make(tmp_path / "user", [package, {"workbench/tool.py": "TOOL = 1\n"}])
    monkeypatch.chdir(root)
    assert main(["diff", "main~1", "main"]) == 0
    assert "the same: nothing was measured (--anyway does)." in capsys.readouterr().out
    assert main(["gate", "main~1", "main"]) == 0
    assert "byte for byte the same" in capsys.readouterr().err


def test_what_the_budget_does_not_suffice_for_is_named(measure: Measure) -> None:
    found = measure({}, {}, "--bench", "steady|Sized", "--budget", "0.1")
    assert len(found.unmeasured()) == 2
    assert gate.decision(found)[0] == 2
    said = "\n".join(verdicts.closing(found))
    assert f"The budget did not suffice for 2: {', '.join(found.unmeasured())}." in said
    assert "s more, 3 more would have a verdict." in said
    several = replace(found, times=Comparison([f"time_{n}" for n in range(30)]))
    said = "\n".join(verdicts.closing(several))
    assert "did not suffice for 30: time_0, time_1, time_2 and 27 more." in said
    assert side_by_side.facts(found)["unmeasured"] == found.unmeasured()


def test_identical_packages_are_said_to_be(measure: Measure) -> None:
    found = measure({}, {}, "--bench", "steady", *toy_history.SPENT)
    assert any("byte for byte the same" in line for line in verdicts.closing(found))
    other = replace(found, head=replace(found.head, digests={"python": "x", "extension": "none"}))
    assert any("nothing but the Python files" in line for line in verdicts.closing(other))


def made_up(of: Sequence[str], failures: Sequence[str] = ()) -> ComparedBuilds:
    """A comparison with these verdicts, on benchmarks called 0, 1, …"""
    comparison = Comparison([])
    shift = {"slower": 0.1, "faster": -0.1, "same": 0.0}
    for number, verdict in enumerate(of):
        ratios = [shift.get(verdict, 0.0) + x for x in (-1e-4, 1e-4, 0, 2e-4, -2e-4)]
        if verdict == "undecided":
            ratios = [-0.3, 0.2, 0.1, -0.2, 0.3]
        comparison.readings[str(number)] = [
            packages_module.Reading(ratio, 0.0, 1.0, 1.0) for ratio in ratios
        ]
    comparison.look()
    assert [j.verdict for j in comparison.judgements.values()] == list(of)
    comparison.failures = {name: Failure("head", "no") for name in failures}
    nobody = Artefact(Revision("HEAD", "0" * 40), Path(), (), {}, 0.0)
    return ComparedBuilds(nobody, nobody, comparison, Comparison([]), {}, complete=True)


def test_what_there_was_no_time_to_count_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    found = made_up(["same"] * 4)
    packages = packages_module.Packages({}, Suite(Path()), 1.0)
    monkeypatch.setattr(side_by_side.callgrind, "count_all", lambda *_: ["0", "1", "2", "3"])
    with reporter() as progress:
        side_by_side._count(found, packages, progress, 0.0)
    told = "no time to count 0, 1, 2 and 1 more; a larger --budget counts more"
    assert found.notes == (told,)


def test_a_table_for_a_pull_request_has_a_row_for_each_that_moved() -> None:
    lines = list(verdicts.markdown(made_up(["slower", "same", "undecided"], ["broken"])))
    rows = [line.split(" | ")[:3] for line in lines if line.startswith("| `")]
    assert [(name, verdict) for name, _, verdict in rows] == [
        ("| `0`", "slower"),
        ("| `2`", "rather slower"),
        ("| `1`", "same"),
    ]
    assert rows[0][1] == "1.105 (1.105–1.106)"
    assert "<details><summary>1 same</summary>\n" in lines
    assert "- broken: fails in head: no" in lines


def test_a_threshold_of_its_own_stands_beside_the_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = made_up(["slower", "same"])
    found.times.own = {"1": math.log1p(0.05)}
    rows = {row["benchmark"]: row["threshold"] for row in side_by_side.facts(found)["results"]}
    assert rows == {"0": pytest.approx(0.01), "1": pytest.approx(0.05)}
    said = "\n".join(verdicts.markdown(found))
    assert "| same (threshold 5 %) |" in said
    assert said.count("threshold 5 %") == 1
    verdicts.show(found)
    assert re.search(r"^1 .* same +5 % +5$", capsys.readouterr().out, re.MULTILINE)


def test_thresholds_come_from_the_projects_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = 'package = "toy"\n[tool.rlox-opt.thresholds]\n'
    root = toy_projects.write(tmp_path, table + '"io.*" = 5\n"a.time_x[1]" = 2\n"*" = 3')
    project = Project.find(root)
    own = {"io.read": 5, "a.time_x[1]": 2, "a.time_x1": 2, "b": 3}
    assert thresholds.own(project.settings.thresholds, own) == {
        n: math.log1p(p / 100) for n, p in own.items()
    }
    assert thresholds.unmatched(project.settings.thresholds, ["b"]) == [
        f"[tool.rlox-opt.thresholds]: {pattern!r} matches no benchmark that is measured"
        for pattern in ("io.*", "a.time_x[1]")
    ]
    monkeypatch.chdir(root)
    for wrong, says in {
        '"io.*" = 0': "`thresholds` has 0 for 'io.*'; it takes per cent, a number over 0",
        '"io.*" = "5 %"': "`thresholds` has '5 %' for 'io.*'; it takes per cent",
        '" " = 5': "`thresholds` has 5 for the pattern ' '; write the name of a benchmark",
    }.items():
        toy_projects.write(tmp_path, table + wrong)
        assert main(["diff", "HEAD"]) == 2
        assert f"pyproject.toml, line 3: [tool.rlox-opt]: {says}" in capsys.readouterr().err


def test_an_acknowledged_regression_passes_and_a_larger_one_fails() -> None:
    found = made_up(["slower", "same"])  # by 10.5 %
    found.meant = {"0": Meant(1.2, "checks its bounds")}
    assert gate.decision(found) == (0, "no regression but 1 acknowledged")
    said = "\n".join(verdicts.markdown(found))
    assert "| slower, acknowledged |" in said
    assert "0: acknowledged up to 1.2×: checks its bounds" in said
    row, other = side_by_side.facts(found)["results"]
    assert (row["acknowledged"], row["acknowledged_to"]) == ("checks its bounds", 1.2)
    assert (other["acknowledged"], other["acknowledged_to"]) == (None, None)
    found.meant = {"0": Meant(1.05, "checks its bounds")}
    beyond = "regression: 1 slower or larger, 1 of them by more than is acknowledged"
    assert gate.decision(found) == (1, beyond)
    assert "more than is acknowledged, which is 1.05×" in "\n".join(verdicts.closing(found))
    assert side_by_side.facts(found)["results"][0]["acknowledged"] is None


def test_what_is_undecided_is_told_with_what_would_decide_it() -> None:
    found = made_up(["same", "undecided"])
    found.times.names = ["0", "1"]
    assert gate.decision(found) == (
        2,
        "cannot tell: 1 undecided; 1 scatter too much for a verdict within 40 restarts, but may "
        "get one by a larger --threshold",
    )
    assert [row["more_restarts"] for row in side_by_side.facts(found)["results"]] == [0, None]


def test_how_both_were_built_stands_in_the_report() -> None:
    found = made_up(["same"])
    made = {"builder": "pip", "environment": "a==1\nb==2", "interpreter": "CPython 3.11"}
    found.base = replace(found.base, made=made, found={"optimisation": "-O2"})
    found.head = replace(found.base, found={"optimisation": "-O3"})
    found.notes = ("the commit changed how it is built: -O2, -O3.",)
    same = {"builder": "pip", "environment": "of 2 packages", "interpreter": "CPython 3.11"}
    assert side_by_side.facts(found)["built"] == {
        "same": same,
        "base": {"optimisation": "-O2"},
        "head": {"optimisation": "-O3"},
    }
    lines = list(verdicts.markdown(found))
    first = lines.index("- the commit changed how it is built: -O2, -O3.")
    assert lines[first + 1] == (
        "- both sides: builder pip, environment of 2 packages, interpreter CPython 3.11"
    )


def test_the_gate_tells_good_from_bad_from_cannot_tell() -> None:
    def code(*of: Any, **failures: Any) -> int:
        return gate.decision(made_up(*of, **failures))[0]

    assert code(["same", "faster"]) == 0
    assert code(["same", "slower", "undecided"], failures=["broken"]) == 1
    assert code(["same", "undecided"]) == 2
    assert code(["same"], failures=["broken"]) == 2
    assert code([]) == 2


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["diff", "nothing"], "'nothing': is no commit of this repository"),
        (["gate", "HEAD", "nothing"], "'nothing': is no commit of this repository"),
        (["diff", "HEAD", "--bench", "("], "--bench: is '(', no regular expression"),
        (["diff", "HEAD", "--threshold", "0"], "--threshold: is '0', expected a number over 0"),
        (["bisect", "HEAD", "HEAD", "--bench", "x"], "are one commit"),
        (["bisect", "HEAD~1", "HEAD"], "--bench"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_line(
    texts: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    toy_history.commits(tmp_path, [{}, {}])
    monkeypatch.chdir(tmp_path / "repository")
    with pytest.raises(SystemExit) as stopped:
        main(texts)
    assert stopped.value.code == 2
    said = capsys.readouterr().err
    assert says in said
    assert said.count("\n") == 1 + said.startswith("note:")


@pytest.mark.parametrize(
    "verb", ["diff", "gate", "bisect", "calibrate", "record", "regressions", "publish"]
)
def test_help_has_an_example(verb: str) -> None:
    done = rlox_opt(verb, "--help")
    assert done.returncode == 0
    assert f"  rlox-opt {verb}" in done.stdout
    assert "exit codes:\n  0  " in done.stdout
