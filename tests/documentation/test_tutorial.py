"""The tutorial shows what its commands print."""

from pathlib import Path

import pytest
import tutorial
from projects import ROOT
from tutorial import Command, DiffersError, File

PAGE = tutorial.PAGE.read_text(encoding="utf-8")


def test_its_project_is_the_one_of_the_examples() -> None:
    first: dict[str, str] = {}
    for step in tutorial.steps(PAGE):
        if isinstance(step, File):
            first.setdefault(step.name, step.text)
    folder = ROOT / "examples" / "words"
    there = {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.suffix in (".py", ".toml") and ".rlox-opt" not in path.parts
    }
    assert there == {name: first[name] for name in there}


def test_commands_and_their_outputs_are_read_off_the_page() -> None:
    steps = [step for step in tutorial.steps(PAGE) if isinstance(step, Command)]
    lines = PAGE.splitlines()
    assert "rlox-opt init" in [step.line for step in steps]
    for step in steps:
        assert lines[step.at - 1] == f"$ {step.line}"
        assert tuple(lines[step.at : step.at + len(step.shown)]) == step.shown


SHOWN = Command("rlox-opt diff", ("…", "f(100) 5.78  4.2–7.9 slower 5", "2 slower, in 10 s."), 0)


def test_figures_may_differ_and_words_may_not() -> None:
    now = "first\nf(100)  6.1 5–8  slower 10\nmore\n2 slower, in 8 s.\n"
    assert tutorial.present(SHOWN, now) == [
        "…", "f(100)  6.1 5–8  slower 10", "2 slower, in 8 s.",
    ]  # fmt: skip
    with pytest.raises(DiffersError, match="no longer prints"):
        tutorial.present(SHOWN, now.replace("slower 10", "faster 10"))


def test_lines_are_in_the_order_that_is_shown() -> None:
    with pytest.raises(DiffersError):
        tutorial.present(SHOWN, "2 slower, in 8 s.\nf(100)  6.1 5–8  slower 10\n")


def test_a_line_that_is_cut_is_told_by_what_there_is_of_it() -> None:
    command = Command("x", ("82 % words.py:8 word = one…",), 0)
    now = "97 % (90–99) words.py:8 word = one + two\n".replace("(90–99) ", "")
    assert tutorial.present(command, now) == ["97 % words.py:8 word = one + two…"]
    with pytest.raises(DiffersError):
        tutorial.present(command, "97 % words.py:9 found = one…\n".replace("found", "other"))


def test_a_run_goes_on_from_the_exit_code_before(tmp_path: Path) -> None:
    file = '```text title="a.txt"\nhello\n```\n'
    page = f"{file}\n```console\n$ cat a.txt; false\nhello\n$ echo $?\n7\n```\n"
    now = tutorial.run(page, tmp_path / "in", tutorial.environment())
    assert now == page.replace("\n7\n", "\n1\n")


@pytest.mark.slow
def test_the_page_shows_what_is_printed_now(tmp_path: Path) -> None:
    """All of it, from the first file to the last command, in a new folder."""
    now = tutorial.run(PAGE, tmp_path / "words", tutorial.environment())
    assert len(now.splitlines()) == len(PAGE.splitlines())
