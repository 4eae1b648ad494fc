"""`rlox-opt bisect`: the commit, or no commit, but never a guess."""

import math
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import small_projects
import toy_projects

from rlox_opt.cli import bisect
from rlox_opt.cli.bisect import Bisection, Search, most_comparisons
from rlox_opt.cli.main import main
from rlox_opt.harness.packages import Failure, Reading
from rlox_opt.harness.restarts import ContestError
from rlox_opt.project.builds import Artefact, Builds, NotBuiltError
from rlox_opt.project.commits import Commits, Revision
from rlox_opt.stats.paired import LOOKS
from rlox_opt.system.progress import reporter
from rlox_opt.system.usage import UsageError

BAD = Revision("16", "16")
REFUSED = "the package asks for Python >=3.99: install one that fits"
NAMES = {"data.time_it": ["base", "head"], "data.time_it_too": ["base", "head"]}


class History:
    """Commits 0 … n, of which `first_bad` made `data.time_it` slower by `change`."""

    def __init__(self, n: int, first_bad: int, change: float, spread: float = 0.003) -> None:
        self.n, self.first_bad, self.change, self.spread = n, first_bad, change, spread
        self.broken: set[int] = set()
        self.refused: set[int] = set()
        self.notes: tuple[str, ...] = ()
        self.built: list[Revision] = []
        self.fails = False
        self._rng = random.Random(n + first_bad)

    def build(self, revision: Revision) -> Artefact:
        self.built.append(revision)
        if int(revision.commit) in self.broken:
            raise NotBuiltError(f"{revision.title} does not build")
        if int(revision.commit) in self.refused:
            raise UsageError(REFUSED)
        return Artefact(revision, Path(), revision.features or (), {}, 0.0, notes=self.notes)

    @contextmanager
    def side_by_side(self, base: Artefact, head: Artefact) -> Iterator["Pair"]:
        yield Pair(self, int(base.revision.commit), int(head.revision.commit))

    def reading(self, base: int, head: int) -> Reading:
        log_ratio = math.log1p(self.change) * ((head >= self.first_bad) - (base >= self.first_bad))
        return Reading(log_ratio + self._rng.gauss(0, self.spread), 0.0, 1.0, 1.0)


class Parted(History):
    """GOOD, 0, is of a branch that made the benchmark faster; -1 is the commit before 1."""

    def reading(self, base: int, head: int) -> Reading:
        log_ratio = math.log1p(self.change) * (base == 0 and head != 0)
        return Reading(log_ratio + self._rng.gauss(0, self.spread), 0.0, 1.0, 1.0)


class Pair:
    """Two commits of a history, side by side."""

    def __init__(self, history: History, base: int, head: int) -> None:
        self._of, self._base, self._head = history, base, head

    def names(self, kind: str) -> dict[str, list[str]]:
        return NAMES

    def contests(self, names: Sequence[str], seed: int) -> Iterator[tuple[str, Reading | Failure]]:
        for name in names:
            broken = Failure("base", "ValueError: no")
            yield name, broken if self._of.fails else self._of.reading(self._base, self._head)

    def told(self) -> dict[str, str]:
        return {"data.time_it": "its calls change what they work on"}


def searched(
    history: History,
    monkeypatch: pytest.MonkeyPatch,
    bench: str = "data.time_it",
    bad: Revision = BAD,
    before: str = "",
) -> Search:
    monkeypatch.setattr(Builds, "build", lambda self, revision, like=None: history.build(revision))
    monkeypatch.setattr(bisect, "side_by_side", lambda of, *sides: history.side_by_side(*sides))
    monkeypatch.setattr(Commits, "described", lambda self, commit: f"commit {commit}")
    search = Search("0", [str(number) for number in range(1, history.n + 1)], before)
    search.high = history.n - 1
    with reporter() as progress:
        Bisection(toy_projects.PROJECT, search, bench, progress, bad).run()
    return search


@pytest.mark.parametrize("first_bad", [1, 2, 31, 32, 33, 63, 64])
@pytest.mark.parametrize("change", [0.03, -0.04])
def test_the_commit_is_found_within_the_comparisons_promised(
    first_bad: int, change: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searched(History(64, first_bad, change), monkeypatch)
    facts = bisect.facts(search)
    assert facts["commit"] == str(first_bad)
    assert facts["ratio"] == pytest.approx(1 + change, abs=0.01)
    assert len(search.comparisons) <= most_comparisons(64) == 8


def test_every_commit_is_built_as_the_last_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(16, 7, 0.1)
    bad = Revision("16+fast", "16", ("fast",), "3.12", ("numpy==1.26",))
    search = searched(history, monkeypatch, bad=bad)
    assert len(history.built) > 3
    asked = {(of.features, of.python, of.extra) for of in history.built}
    assert asked == {(bad.features, bad.python, bad.extra)}
    facts = bisect.facts(search)
    assert facts["benchmark"] == "data.time_it"
    assert facts["built"]["same"]["features"] == "fast"


def test_both_ends_have_the_same_features(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["bisect", "HEAD+fast", "HEAD", "--bench", "time_it"])
    assert stopped.value.code == 2
    assert "HEAD+fast and HEAD ask for different features" in capsys.readouterr().err


def test_what_is_noticed_of_the_benchmark_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searched(History(20, 7, 0.1), monkeypatch)
    assert len(search.comparisons) > 1
    assert search.notes == ["data.time_it: its calls change what they work on"]


def test_of_a_history_of_one_commit_it_is_that_one(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searched(History(1, 1, 0.05), monkeypatch)
    assert bisect.facts(search)["commit"] == "1"
    assert len(search.comparisons) == 1


def test_ends_that_do_not_differ_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searched(History(64, 40, 0.0), monkeypatch)
    assert (search.verdict, len(search.comparisons)) == ("no change", 1)
    assert bisect.facts(search)["commit"] is None


def test_too_much_noise_is_undecided_and_not_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    search = searched(History(64, 40, 0.02, spread=0.12), monkeypatch)
    assert search.verdict in ("undecided", "no change")
    assert bisect.facts(search)["commit"] is None
    assert any(
        "Undecided" in line for line in bisect.sentences(search, toy_projects.PROJECT.commits)
    )


@pytest.mark.parametrize("first_bad", [1, 20, 40, 64])
def test_what_diff_could_not_decide_takes_more_restarts(
    first_bad: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = searched(History(64, first_bad, 0.045, spread=0.07), monkeypatch)
    assert bisect.facts(search)["commit"] == str(first_bad)
    assert max(compared["restarts"] for compared in search.comparisons) > LOOKS[-1]


def test_commits_that_do_not_build_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(16, 11, 0.05)
    history.broken = {7, 8, 9, 12, 13}
    search = searched(history, monkeypatch)
    assert bisect.facts(search)["commit"] == "11"
    assert "8" in search.skipped


def test_if_the_culprit_cannot_be_told_from_what_does_not_build_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(8, 4, 0.05)
    history.broken = {3, 4}
    search = searched(history, monkeypatch)
    assert search.verdict == "undecided"
    assert search.left() == ["3", "4", "5"]


def test_a_commit_that_is_refused_is_passed_over_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(16, 11, 0.05)
    history.refused = {7, 8}
    search = searched(history, monkeypatch)
    facts = bisect.facts(search)
    assert (facts["commit"], facts["skipped"]) == ("11", ["8", "7"])
    assert facts["reasons"] == dict.fromkeys(("8", "7"), REFUSED)
    said = [*bisect.sentences(search, toy_projects.PROJECT.commits)]
    assert f"passed over: 8, 7: {REFUSED}" in said


def test_a_commit_with_other_benches_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"8": "those of 8"}
    monkeypatch.setattr(bisect, "own_benches", lambda of: other.get(of.revision.commit, ""))
    facts = bisect.facts(searched(History(16, 11, 0.05), monkeypatch))
    assert (facts["commit"], facts["skipped"]) == ("11", ["8"])


def test_no_commit_is_blamed_where_the_one_before_it_has_other_benches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What GOOD and all up to 7 time may be another benchmark of the same name."""
    monkeypatch.setattr(bisect, "own_benches", lambda of: "old" * (int(of.revision.commit) < 8))
    search = searched(History(16, 8, 0.05), monkeypatch)
    assert (search.verdict, search.left()) == ("undecided", ["8"])
    monkeypatch.setattr(bisect, "own_benches", lambda of: "old" * (int(of.revision.commit) < 4))
    assert bisect.facts(searched(History(16, 8, 0.05), monkeypatch))["commit"] == "8"


def test_what_builds_note_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(16, 7, 0.1)
    history.notes = ("no wheel of it is there",)
    assert searched(history, monkeypatch).notes.count("no wheel of it is there") == 1


def test_no_commit_is_blamed_for_what_only_the_branch_of_good_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    search = searched(Parted(16, 0, 0.05), monkeypatch, before="-1")
    last = search.comparisons[-1]
    assert (search.verdict, last["base"], last["head"]) == ("undecided", "-1", "1")


def test_a_search_from_a_branch_knows_the_commit_before_the_first(tmp_path: Path) -> None:
    root = tmp_path / "thing"
    (left,) = small_projects.repository(root, {"a": "1\n"})
    small_projects.git(root, "checkout", "--quiet", "-b", "branch")
    small_projects.repository(root, {"b": "of the branch\n"})
    small_projects.git(root, "checkout", "--quiet", "main")
    (first,) = small_projects.repository(root, {"a": "2\n"})
    small_projects.git(root, "merge", "--quiet", "--no-edit", "branch")
    commits = Commits(root, tmp_path / "kept")
    good, bad = commits.resolve("branch"), commits.resolve("main")
    search = bisect.begun(commits, good, bad)
    assert (search.commits, search.before) == ([first, bad.commit], left)
    (note,) = search.notes
    assert "is not among the first parents of main" in note
    search = bisect.begun(commits, commits.resolve(left), bad)
    assert (search.commits, search.before, search.notes) == ([first, bad.commit], "", [])


def test_a_part_of_a_name_must_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert searched(History(2, 1, 0.1), monkeypatch, "it_too").verdict == "found"
    with pytest.raises(UsageError, match="'time' is part of the name of 2 benchmarks"):
        searched(History(2, 1, 0.1), monkeypatch, "time")
    with pytest.raises(UsageError, match=r"no benchmark; it takes one, such as [a-z]"):
        searched(History(2, 1, 0.1), monkeypatch, "gea")


def test_a_benchmark_that_fails_ends_the_search_with_its_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = History(4, 2, 0.1)
    history.fails = True
    with pytest.raises(ContestError, match="fails in base: ValueError: no"):
        searched(history, monkeypatch)
