"""Code that the pages show is code that runs: Python is executed, command lines are read by the
real parser, settings by the real schema. What cannot be run says why, in a comment before it."""

import argparse
import contextlib
import io
import re
import shlex
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pages
import pytest
import yaml
from markdown_it import MarkdownIt
from projects import HERE, ROOT
from rlox_opt.cli import profile
from rlox_opt.cli.main import command_line
from rlox_opt.history.acknowledged import Acknowledgement
from rlox_opt.project.project import Settings

SOURCES = sorted(of for of in pages.by_source() if of.endswith(".md") and "docs/site/" not in of)
# Programs of a shell that do what everybody knows, and that are not ours.
KNOWN = {"asv", "cargo", "cd", "echo", "git", "mkdir", "pip", "source", "torchrun"}
STEPS = 256  # that a training of a page takes here
_COMMENT = re.compile(r"<!-- (not run|given):\s(.*?)-->", re.DOTALL)


@dataclass
class Block:
    """A block of code: where it stands, its language ("" of an indented one), its text; why it is
    not run, and what it is given."""

    source: str
    line: int
    kind: str
    text: str
    title: str = ""
    not_run: str = ""
    given: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"


def blocks(source: str, text: str) -> Iterator[Block]:
    """Those of a page, first to last."""
    said: list[tuple[str, str]] = []
    for token in MarkdownIt("commonmark").parse(text):
        if token.type == "html_block":
            said += _COMMENT.findall(token.content)
        elif token.type in ("fence", "code_block"):
            kind, _, more = token.info.partition(" ")
            block = Block(source, (token.map or [0])[0] + 1, kind, token.content, more)
            block.not_run = " ".join(words.strip() for of, words in said if of == "not run")
            block.given = [words for of, words in said if of == "given"]
            said = []
            yield block
    assert not said, f"{source}: a comment stands before no block: {said}"


def every() -> list[Block]:
    """Those of all pages."""
    return [
        block
        for source in SOURCES
        for block in blocks(source, (ROOT / source).read_text(encoding="utf-8"))
    ]


EVERY = every()
RUN = [block for block in EVERY if not block.not_run]


def commands(text: str) -> Iterator[list[str]]:
    """The commands of lines of a shell. What stands behind three blanks or `#` is a remark."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    for line in joined.splitlines():
        line = re.split(r"\s{3,}|(?:^|\s)# |^#!", line.removeprefix("$ ").strip())[0]
        reader = shlex.shlex(line, posix=True, punctuation_chars="&|<>")
        reader.whitespace_split = True
        reader.commenters = ""
        words: list[str] = []
        for word in [*reader, "&&"]:
            if word in ("&&", "||", "|"):
                if words:
                    yield words
                words = []
            else:
                words.append(word)


@cache
def parser() -> argparse.ArgumentParser:
    """What reads the command lines of this project."""
    return command_line(HERE)


def check_command(words: list[str]) -> None:
    """Raises AssertionError where a command is one that nobody could run."""
    words = [*words]
    for at, word in enumerate(words):
        if word.startswith((">", "<")):
            del words[at:]
            break
    while words and (words[0] == "exec" or re.match(r"[A-Z_]+=", words[0])):
        words.pop(0)
    program, *rest = words
    name = Path(program).name
    if name == "rlox-opt":
        given, _ = profile.split(rest, HERE)
        said = io.StringIO()
        try:
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
                parser().parse_args(given)
        except SystemExit as stopped:
            assert not stopped.code, f"{shlex.join(words)}: {said.getvalue()}"
    elif name == "make":
        targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M)
        assert {word for word in rest if "=" not in word} <= {*targets}, words
    elif name == "python":
        module = rest[0] == "-m"
        path = ROOT / (rest[1].replace(".", "/") if module else rest[0])
        assert path.exists() or path.with_suffix(".py").exists(), words
    else:
        assert name in KNOWN, f"{shlex.join(words)}: not known; say in a comment why it is not run"


def check_toml(text: str) -> None:
    """Raises where the text is no TOML, or our table in it is not as it should be."""
    table = tomllib.loads(text)
    if ours := table.get("tool", {}).get("rlox-opt"):
        msgspec.convert(ours, Settings)
    if meant := table.get("acknowledged"):
        msgspec.convert(meant, list[Acknowledgement])


def check_yaml(text: str) -> None:
    """Raises where the text is no YAML, gives our action what it does not take, or names a hook
    that there is not."""
    inputs = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))["inputs"]
    table = yaml.safe_load(text)
    if "repos" in table:
        there = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text("utf-8"))
        arguments = {hook["id"]: hook.get("args") for hook in there}
        for hook in table["repos"][0]["hooks"]:
            assert hook.get("args") == arguments[hook["id"]]
        return
    steps = table if isinstance(table, list) else table["jobs"]["gate"]["steps"]
    for step in steps:
        if step["uses"].startswith("OWNER/rlox@"):
            assert {*step.get("with", {})} <= {*inputs}


def check_rust(text: str) -> None:
    """Raises AssertionError where the text is no Rust, or not as rustfmt writes it."""
    command = ["rustfmt", "--edition", "2024", "--check"]
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def is_python(block: Block) -> bool:
    return block.kind == "python" and "title=" not in block.title


@pytest.mark.parametrize("block", [of for of in RUN if not is_python(of)], ids=str)
def test_what_is_shown_can_be_run(block: Block) -> None:
    text = block.text
    if block.kind == "python":
        compile(text, str(block), "exec")  # a file of the tutorial, which is run as a whole
    elif block.kind == "toml" or (not block.kind and text.startswith("[")):
        check_toml(text)
    elif block.kind == "yaml" or (not block.kind and text.startswith("- ")):
        check_yaml(text)
    elif block.kind == "console":
        lines = [line for line in text.splitlines() if line.startswith("$ ")]
        assert lines, f"{block}: no command"
        for words in commands("\n".join(lines)):
            check_command(words)
    elif block.kind == "rust":
        check_rust(text)
    else:
        assert block.kind in ("", "sh"), f"{block}: {block.kind!r} is not known here"
        for words in commands(text):
            check_command(words)


PAGES = sorted({block.source for block in RUN if is_python(block)})


@pytest.mark.parametrize("source", PAGES)
def test_python_runs_page_by_page(
    source: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_thread: None
) -> None:
    """Each block goes on from the one before; trainings are cut short."""
    from rlox.learner.algorithm import Algorithm

    monkeypatch.chdir(tmp_path)
    whole = Algorithm.learn

    def learn(self: Algorithm, total_timesteps: int, *more: Any, **named: Any) -> Algorithm:
        return whole(self, min(total_timesteps, STEPS), *more, **named)

    monkeypatch.setattr(Algorithm, "learn", learn)
    names: dict[str, object] = {"__name__": "page"}
    for block in RUN:
        if block.source == source and is_python(block):
            for text in (*block.given, block.text):
                exec(compile(text, str(block), "exec"), names)


def test_a_block_that_is_not_run_says_why() -> None:
    left_out = [block for block in EVERY if block.not_run]
    assert 0 < len(left_out) < len(EVERY) / 5
    for block in left_out:
        assert len(block.not_run.split()) >= 4, f"{block}: {block.not_run!r} is no reason"


@pytest.mark.parametrize(
    "line",
    ["rlox-opt dif main", "rlox-opt diff --no-such main", "make nothing", "python nowhere.py",
     "unheard-of"],
)  # fmt: skip
def test_a_command_that_nobody_could_run_is_found(line: str) -> None:
    (words,) = commands(line)
    with pytest.raises(AssertionError):
        check_command(words)


@pytest.mark.parametrize(
    "text", ["[tool.rlox-opt]\nsuit = 'x'", "[tool", "[[acknowledged]]\nx = 1"]
)
def test_settings_that_nobody_could_have_are_found(text: str) -> None:
    with pytest.raises((msgspec.ValidationError, tomllib.TOMLDecodeError)):
        check_toml(text)
