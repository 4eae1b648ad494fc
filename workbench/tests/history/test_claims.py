"""Beliefs about claims: a figure is its record's, none is unbound, and old records are told."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.cli.main import main
from rlox_opt.history import claims
from rlox_opt.history.claims import CheckedClaim
from rlox_opt.history.figures import FigureError, figure, read
from rlox_opt.history.passages import passages
from rlox_opt.system.files import NotReadError

DATE = "2026-11-23"
RECORD: dict[str, Any] = {
    "date": f"{DATE}T07:22:08Z",
    "dirty": False,
    "machine": {"cpu": "AMD EPYC", "cores": 2},
    "share": 0.04,
    "returns": {"ours": [1.0, 2.0, 6.0]},
    "cells": {"a.b (1, 2)": {"ratio": 1.132}},
    "table": [
        {"peer": "sb3", "runs": 5, "speed": 1000.0, "ci": [0.9, 1.1], "of": {"verdict": "same"}},
        {"peer": "rlox", "runs": 5, "speed": 29870.0, "ci": [1, 2], "of": {"verdict": "ahead"}},
    ],
}
SAYS = "It is {times} times as fast"
FIGURES = {"times": "ratio(table[peer=rlox].speed, table[peer=sb3].speed) .1f"}
TEXT = f"# Speed\n\nIt is 29.9 times as fast (AMD EPYC, {DATE}).\n"


class Project:
    """A repository with one text, one record and its claims."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet")
        (root / "code.py").write_text("x = 1\n")
        self.commit("code")
        record = RECORD | {"commit": self.git("rev-parse", "HEAD").strip()}
        self.write(TEXT, record)

    def git(self, *words: str) -> str:
        identity = ("-c", "user.name=toy", "-c", "user.email=toy@localhost")
        done = subprocess.run(
            ["git", *identity, *words], cwd=self.root, capture_output=True, text=True, check=True
        )
        return done.stdout

    def commit(self, subject: str) -> None:
        self.git("add", "-A")
        self.git("commit", "--quiet", "--allow-empty", "-m", subject)

    def write(
        self,
        text: str = TEXT,
        record: dict[str, Any] | None = None,
        figures: dict[str, str] = FIGURES,
        plain: tuple[str, ...] = (),
        says: str = SAYS,
        measures: tuple[str, ...] = ("code.py",),
    ) -> "Project":
        (self.root / "README.md").write_text(text)
        if record is not None:
            (self.root / "record.json").write_text(json.dumps(record))
        rows = ", ".join(f"{name} = {json.dumps(asked)}" for name, asked in figures.items())
        (self.root / "claims.toml").write_text(f"""\
texts = ["README.md"]
[record.race]
path = "record.json"
rounds = "min(table[*].runs)"
measures = {json.dumps(measures)}
[[claim]]
text = "README.md"
record = "race"
says = "{says}"
figures = {{ {rows} }}
[plain]
"README.md" = {json.dumps(plain)}
""")
        return self

    def check(self) -> tuple[CheckedClaim, list[str]]:
        (one,), loose = claims.check(self.root / "claims.toml")
        return one, loose


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def test_a_figure_that_is_its_records_is_clean(project: Project) -> None:
    one, loose = project.check()
    assert (one.figures, one.line, one.wrong, one.stale, loose) == (
        {"times": "29.9"},
        3,
        [],
        [],
        [],
    )


def test_a_figure_that_differs_is_told_with_both(project: Project) -> None:
    one, _ = project.write(TEXT.replace("29.9", "30.9")).check()
    assert one.wrong == ["times: the text says 30.9, the record 29.9"]


def test_a_sentence_that_is_gone_is_told(project: Project) -> None:
    one, _ = project.write(TEXT.replace("as fast", "as quick")).check()
    assert one.wrong == ["stands nowhere: It is 29.9 times as fast"]


@pytest.mark.parametrize("without", ["AMD EPYC", DATE])
def test_machine_and_date_stand_beside(project: Project, without: str) -> None:
    one, _ = project.write(TEXT.replace(without, "somewhere")).check()
    (wrong,) = one.wrong
    assert without in wrong
    # The target of a link is not seen; a path that is shown is.
    path = f"peers/record/amd-epyc-2c/{DATE}T072208Z_ppo.json"
    words = "It is 29.9 times as fast"
    assert len(project.write(f"{words} ([record]({path})).").check()[0].wrong) == 2
    assert project.write(f"{words} (`{path}`).").check()[0].wrong == []


@pytest.mark.parametrize(
    "more",
    [
        "It takes 3 s.", "It takes 1,024 µs.", "A share of 4 %.", "Nearly 2× as much.",
        "It needs 1.5 of them.", "Found in 9 of 10 runs.", "It is ten times as fast.",
        "It takes five seconds.", "Pages in a second.", "| a | 12 |", "- 58 MB of it",
        "1. That takes 7 minutes.",
    ],
)  # fmt: skip
def test_what_looks_like_a_measurement_needs_a_claim(project: Project, more: str) -> None:
    _, loose = project.write(f"{TEXT}\n{more}\n").check()
    (told,) = loose
    assert told.startswith("README.md:5: ")
    # A number that was not measured is named with the words around it.
    assert project.write(f"{TEXT}\n{more}\n", plain=(more.lstrip("-1. "),)).check()[1] == []


@pytest.mark.parametrize(
    "more",
    [
        "P25, R1 and CartPole-v1 on 2026-11-23 with rlox 1.2.0.", "Call `f(0.25)` in 3 places.",
        "See [it](of-2.5-s.md).", "    sleep 2.5 s", "```\n2.5 s\n```", "float32 and 2 cores",
    ],
)  # fmt: skip
def test_names_dates_code_and_counts_are_no_measurements(project: Project, more: str) -> None:
    assert project.write(f"{TEXT}\n{more}\n").check()[1] == []


def test_in_a_sentence_with_a_claim_every_number_is_bound(project: Project) -> None:
    text = TEXT.replace("fast (", "fast in 8 environments (")
    _, loose = project.write(text).check()
    assert len(loose) == 1
    assert "8" in loose[0]
    assert project.write(text, plain=("8 environments",)).check()[1] == []


def test_a_mark_that_marks_nothing_is_told(project: Project) -> None:
    assert project.write(plain=("9 lives",)).check()[1] == [
        "README.md: [plain] '9 lives' stands nowhere; remove it"
    ]


def test_a_record_that_no_claim_cites_is_told(project: Project) -> None:
    path = project.root / "claims.toml"
    record = '[record.old]\npath = "record.json"\nrounds = "5"\nmeasures = ["code.py"]\n'
    path.write_text(path.read_text().replace("[[claim]]", record + "[[claim]]"))
    assert project.check()[1] == ["[record.old]: no claim cites it; remove it"]


def test_a_record_is_stale_once_what_it_measured_has_changed(project: Project) -> None:
    (project.root / "other.py").write_text("y = 1\n")
    project.commit("something else")
    assert project.check()[0].stale == []
    (project.root / "code.py").write_text("x = 2\n")
    project.commit("what was measured")
    assert project.check()[0].stale == ["older than a change of code.py:x"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"dirty": True}, "of a tree with uncommitted changes"),
        ({"dirty": None}, "does not say whether its tree had uncommitted changes"),
        ({"commit": "f" * 40}, f"of a commit that is not here ({'f' * 40})"),
        ({"table": [row | {"runs": 3} for row in RECORD["table"]]}, "of 3 rounds, fewer than 5"),
    ],
)
def test_a_record_that_cannot_be_relied_on_is_stale(
    project: Project, change: dict[str, Any], said: str
) -> None:
    record = json.loads((project.root / "record.json").read_text())
    assert project.write(record=record | change).check()[0].stale == [said]


def test_a_record_of_diff_is_of_its_head(project: Project) -> None:
    """Whose commit is named `head`, and is never of uncommitted changes."""
    of_diff = {name: told for name, told in RECORD.items() if name != "dirty"}
    head = project.git("rev-parse", "HEAD").strip()
    one, _ = project.write(record=of_diff | {"base": "0" * 40, "head": head}).check()
    assert (one.commit, one.stale) == (head, [])
    (project.root / "code.py").write_text("x = 2\n")
    project.commit("changes what was measured")
    assert project.check()[0].stale == ["older than a change of code.py:x"]


def test_what_is_measured_must_be_there_or_nothing_would_ever_change(project: Project) -> None:
    (project.root / "code.py").rename(project.root / "elsewhere.py")
    assert "measures code.py, which is not there" in project.check()[0].stale
    project.write(measures=("elsewhere.py", "!code.py"))
    assert "measures !code.py, which is not there" in project.check()[0].stale


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("table[peer=rlox].speed ,.0f", "29,870"),
        ("table[peer=rlox].ci[1] d", "2"),
        ("table[of.verdict=ahead].speed .0f", "29870"),
        ("ratio(table[peer=rlox].speed, table[peer=sb3].speed) .2f", "29.87"),
        ("ratio(table[peer=sb3].speed, 0.001) .0f", "1000000"),
        ("count(table[*]) d", "2"),
        ("count(table[peer=none]) d", "0"),
        ("min(table[*].speed) .0f", "1000"),
        ("max(table[*].speed) .0f", "29870"),
        ("sum(returns.ours[*]) d", "9"),
        ("mean(returns.ours[*]) .1f", "3.0"),
        ("median(returns.ours[*]) .1f", "2.0"),
        ("percent(share) d", "4"),
        ('more(cells["a.b (1, 2)"].ratio) .1f', "13.2"),
    ],
)
def test_a_figure_is_a_path_a_derivation_and_a_rounding(asked: str, said: str) -> None:
    assert figure(RECORD, asked) == said


def trial(percent: float, truth: float, own: str, beside: str) -> dict[str, Any]:
    """Of a slowdown of `a`, which spares `b`."""
    cells = {"a": {"verdict": own, "ci99": [1.02, 1.06]}, "b": {"verdict": beside}}
    return {"percent": percent, "truth": truth, "beside": ["b"], "cells": {"diff": cells}}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("scored(diff, found at 3) d", "1"),
        ("scored(diff, made at 3) d", "2"),  # what is truly 6 % is no slowdown of 3 %
        ("scored(diff, made at 10) d", "1"),
        ("scored(diff, beside) d", "1"),
        ("scored(diff, of beside) d", "4"),
        ("bound(diff, beside) .1f", "75.1"),
        ("scored(diff, inside) d", "3"),
        ("scored(diff, of inside) d", "5"),
        ("scored(diff, undecided) d", "2"),
        ("scored(diff, undecided beside) d", "1"),
    ],
)
def test_slowdowns_count_at_the_size_that_they_truly_have(asked: str, said: str) -> None:
    rows = [
        trial(3, 1.031, "slower", "same"),
        trial(3, 1.029, "undecided", "faster"),
        trial(3, 1.06, "slower", "same"),
        trial(10, 1.1, "slower", "undecided"),
        trial(0, 1.0, "same", "slower"),  # spares nothing, since nothing is slower
    ]
    assert figure({"rows": rows}, asked) == said


def test_flags_of_runs_in_which_nothing_changed_count_alone() -> None:
    rows = [trial(0, 1.0, "same", "faster"), trial(3, 1.03, "slower", "slower")]
    assert figure({"rows": rows}, "scored(diff, cells at 0) d") == "1"
    assert figure({"rows": rows}, "scored(diff, of cells at 0) d") == "2"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("table[peer=rlox].sped .1f", "there is no sped; there is peer, runs, speed"),
        ("table[*].speed .1f", "2 have it; name one"),
        ("table[peer=none].speed .1f", "nothing has it"),
        ("average(table[*].speed) .1f", "average: is no derivation"),
        ("table[peer=rlox].speed", "names no rounding"),
        ("table[peer=rlox].peer .1f", "IndexError"),
        ("table[0].speed x", "is no rounding"),
        ("returns.ours[first] d", "neither a number, nor"),
        ("ratio(share) .1f", "TypeError"),
        ('cells["a.b (1, 2)"].ratio .0f', "1.132 is not 1; round it to more digits"),
    ],
)
def test_a_path_that_leads_nowhere_says_what_is_there(asked: str, said: str) -> None:
    with pytest.raises(FigureError, match=r".*") as raised:
        figure(RECORD, asked)
    assert said in str(raised.value)


def test_a_page_is_read_as_its_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "5 rounds. Date: 2026-11-23T14:51:36Z; Commit: a3c219567e47; Machine: AMD EPYC, 2 cores."
        "\n\n"
        "| on | ratio |\n|---|---:|\n| A, in Rust | 0.34× (0.30–0.39) |\n| B | 1,250 |\n"
    )
    record = read(page)
    assert (record["commit"], record["dirty"]) == ("a3c219567e47", False)
    assert record["machine"] == {"cpu": "AMD EPYC", "cores": 2}
    assert figure(record, "rows[on=A, in Rust].ratio .2f") == "0.34"
    assert figure(record, "nth(rows[on=A, in Rust].ratio, 2) .2f") == "0.39"
    assert figure(record, "rows[on=B].ratio ,d") == "1,250"


def test_a_passage_is_a_paragraph_an_item_or_a_row() -> None:
    found = passages("# A\n\none\ntwo\n- three\n  four\n\n    code\n\n| a |\n|---|\n# B\nfive\n")
    assert [(part.line, part.text) for part in found] == [
        (1, "# A"), (3, "one two"), (5, "- three four"), (10, "| a |"), (11, "|---|"), (12, "# B"),
        (13, "five"),
    ]  # fmt: skip
    assert "three" in found[0].section
    assert "five" not in found[0].section


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ("", 0, "1 claims, none of the past; the texts of none differ"),
        ("29.9 -> 31.9", 1, "differs: times: the text says 31.9, the record 29.9"),
        ("loose", 1, "9 s"),
        ("stale", 1, "stale: of a tree with uncommitted changes"),
    ],
)
def test_the_verb_ends_with_1_where_a_claim_is_stale_or_differs(
    project: Project, capsys: pytest.CaptureFixture[str], change: str, code: int, said: str
) -> None:
    if change == "loose":
        project.write(TEXT + "\nIt takes 9 s.\n")
    elif change == "stale":
        record = json.loads((project.root / "record.json").read_text())
        project.write(record=record | {"dirty": True})
    elif change:
        project.write(TEXT.replace(*change.split(" -> ")))
    asked = ["claims", "--claims", str(project.root / "claims.toml")]
    assert main(asked) == code
    out, err = capsys.readouterr()
    assert said in out + err
    assert "AMD EPYC, 2 cores · 2026-11-23 · record.json" in out
    assert main([*asked, "--json"]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["exit_code"] == code
    assert (
        told["claims"][0]["commit"]
        == json.loads((project.root / "record.json").read_text())["commit"]
    )
    assert (main([*asked, "--flagged"]), bool(capsys.readouterr().out)) == (code, bool(change))


def test_a_claim_of_the_past_is_marked_and_no_change_makes_it_stale(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    (project.root / "code.py").write_text("x = 2\n")
    project.commit("what was measured")
    project.write(measures=())
    asked = ["claims", "--claims", str(project.root / "claims.toml")]
    assert main(asked) == 0
    out, err = capsys.readouterr()
    assert "record.json · past\n" in out
    assert "1 claims, 1 of the past; " in err
    main([*asked, "--json"])
    assert json.loads(capsys.readouterr().out)["claims"][0]["past"] is True


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("record.json", None),
        ("record.json", "{"),
        ("claims.toml", "texts = 1"),
        ("README.md", None),
    ],
)
def test_the_verb_ends_with_2_where_a_file_is_missing_or_broken(
    project: Project, capsys: pytest.CaptureFixture[str], name: str, content: str | None
) -> None:
    (project.root / name).unlink()
    if content is not None:
        (project.root / name).write_text(content)
    with pytest.raises(SystemExit) as ended:
        main(["claims", "--claims", str(project.root / "claims.toml")])
    assert ended.value.code == 2
    assert name in capsys.readouterr().err
    with pytest.raises(NotReadError):
        claims.check(project.root / "claims.toml")
