"""What the lines below a table of verdicts say."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from rlox_opt.harness.packages import Failure, Reading
from rlox_opt.harness.sequential import Comparison
from rlox_opt.project.artefacts import Artefact
from rlox_opt.project.commits import Revision
from rlox_opt.project.side_by_side import ComparedBuilds
from rlox_opt.stats.family import Judgement
from rlox_opt.views import verdicts

BEYOND = Judgement(1.03, (1.02, 1.04), "undecided", 5, 0.002, "slower")
WIDE = Judgement(1.03, (1.00, 1.06), "undecided", 5, 0.2, "slower")


def held_back(**judgements: Judgement) -> list[str]:
    times = Comparison([*judgements])
    times.judgements = judgements
    return [*verdicts._held_back(cast(Any, SimpleNamespace(times=times)))]


def test_who_is_undecided_because_there_are_many_benchmarks_is_named() -> None:
    (said,) = held_back(one=BEYOND, other=WIDE)
    assert said.startswith("one: undecided, although")
    assert "among 2 benchmarks" in said


def test_who_has_a_wide_interval_is_not() -> None:
    assert held_back(other=WIDE) == []


def test_the_largest_change_that_an_interval_holds_is_told() -> None:
    times = Comparison(["slower", "faster", "same"])
    times.judgements = {
        "slower": Judgement(1.04, (0.95, 1.138), "undecided", 5, 0.2, "slower"),
        "faster": Judgement(0.98, (0.87, 1.10), "undecided", 5, 0.2, "same"),
        "same": Judgement(1.0, (0.5, 2.0), "same", 5, 0.2, "same"),
    }
    (said,) = verdicts._left_open(cast(Any, SimpleNamespace(times=times)))
    assert "leaves open is one of 13.8 %, of slower." in said


def skipped(*reasons: str, side: str | None = None) -> list[str]:
    """What is said where benchmarks a, b, c and so on are skipped for these reasons."""
    failures = (Failure(side, reason, skipped=True) for reason in reasons)
    return [*verdicts._skipped(dict(zip("abcdefghijklmnop", failures, strict=False)))]


def test_few_skipped_benchmarks_are_told_one_by_one() -> None:
    assert skipped("no GPU", "no CPU", "no GPU", side="head") == [
        "a: skipped in head: no GPU",
        "b: skipped in head: no CPU",
        "c: skipped in head: no GPU",
    ]


def test_many_skipped_benchmarks_are_told_by_their_reasons() -> None:
    assert skipped("Requires NumPy", "not today", *["Requires NumPy"] * 6) == [
        "7 benchmarks are skipped: Requires NumPy, such as a, c, d",
        "b: skipped: not today",
    ]
    (said,) = skipped(*["Requires NumPy"] * 6, side="base")
    assert said == "6 benchmarks are skipped in base: Requires NumPy, such as a, b, c"


def test_of_those_that_asv_skips_it_is_told_that_they_ask_for_it() -> None:
    for reason in ("NotImplementedError", "NotImplementedError: not of this kind"):
        (said,) = skipped(*[reason] * 6)
        assert said == f"6 benchmarks are skipped, as they ask for by {reason}, such as a, b, c"


def test_of_many_reasons_the_rare_ones_are_told_together() -> None:
    *told, last = skipped(*(f"n is {number}" for number in range(10)))
    assert told == [f"{name}: skipped: n is {number}" for number, name in enumerate("abcde")]
    assert last == "skipped for other reasons: f, g, h and 2 more"


def test_many_benchmarks_that_fail_alike_are_told_in_one_line() -> None:
    failures = {name: Failure("base", "OSError: no data") for name in "abcde"}
    alone = [f"{name}: fails in base: OSError: no data" for name in "abcde"]
    other = {"z": Failure(None, "ended by SIGKILL")}
    last = "z: fails: ended by SIGKILL"
    assert [*verdicts._failed(failures | other)] == [*alone, last]
    failures["f"] = Failure("head", "OSError: no data")
    together = "a, b, c and 3 more: fail in base or head: OSError: no data"
    assert [*verdicts._failed(failures | other)] == [together, last]


def test_where_a_file_of_tests_lacks_data_it_is_told_how_to_have_it() -> None:
    reason = "FileNotFoundError: [Errno 2] No such file or directory: 'data/big.txt'"
    of_both = {side: {"tests/test_it.py": reason} for side in ("base", "head")}
    (said,) = verdicts._broken(of_both)
    assert said.startswith(f"tests/test_it.py: cannot be read in base and head: {reason}; only ")
    loader = "libx.so.1: cannot open shared object file: No such file or directory"
    for other in ("no such name", loader):
        (said,) = verdicts._broken({"head": {"tests/test_it.py": f"ImportError: {other}"}})
        assert said == f"tests/test_it.py: cannot be read in head: ImportError: {other}"


def lacking(module: str, *notes: str) -> str:
    """What is said, after the reason, where a part of the suite imports a module that is not
    there."""
    reason = f"ModuleNotFoundError: No module named {module!r}"
    side = SimpleNamespace(packages=("thing", "_thing"))
    found = SimpleNamespace(
        broken={"head": {"benchmarks.files": reason}},
        notes=notes,
        base=side,
        head=side,
        missing={},
        skipped=dict,
        failures=dict,
    )
    (said,) = verdicts.not_measured(cast(Any, found))
    return said.removeprefix(f"benchmarks.files: cannot be read in head: {reason}")


def test_where_a_module_is_not_there_it_is_told_how_to_add_it() -> None:
    assert lacking("packaging") == "; --with packaging adds it, if that is what PyPI calls it"
    assert lacking("packaging", "packaging is not in the environment: … --with 'packaging'") == ""
    for own in ("thing", "_thing", "benchmarks", "files", "scipy.gone", "tkinter"):
        assert lacking(own) == ""


def test_a_pull_request_is_told_names_reasons_and_notes_as_they_are() -> None:
    """No bar ends a cell, no `<class 'int'>` is lost, and nobody called somebody is told."""
    times = Comparison([])
    spread = (-1e-4, 1e-4, 0.0, 2e-4, -2e-4)
    times.readings["io.time_x('a|b')"] = [Reading(0.1 + x, 0.0, 1.0, 1.0) for x in spread]
    times.look()
    times.failures = {"io.time_y(<class 'int'>)": Failure("head", "ValueError: of @somebody")}
    of = Artefact(Revision("HEAD", "0" * 40), Path(), (), {}, 0.0)
    notes = ("_as_ is: a@b",)
    found = ComparedBuilds(of, of, times, Comparison([]), {}, notes=notes, complete=True)
    lines = [*verdicts.markdown(found)]
    assert sum(line.startswith(r"| `io.time_x('a\|b')` | 1.105") for line in lines) == 1
    assert r"- \_as\_ is: a@b" in lines
    failed = r"- io.time_y(\<class 'int'\>): fails in head: ValueError: of @&#8203;somebody"
    assert failed in lines
