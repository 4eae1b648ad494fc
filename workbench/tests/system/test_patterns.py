"""What every text that a pattern finds begins with, and which of its alternatives find none."""

import re

import pytest

from rlox_opt.system.patterns import beginning, without_use


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        (r"^bench_classes\.Graph\b", "bench_classes.Graph"),
        ("^tests/test_speed.py::test_sum", "tests/test_speed"),
        ("^tests/test-it/a:b", "tests/test-it/a:b"),
        (r"^mod\.Of\.time_it\('Graph'\)$", "mod.Of.time_it('Graph')"),
        (r"^mod\.time_.*copy", "mod.time_"),
        (r"^mod\.?time", "mod"),
        (r"^mods*", "mod"),
        (r"^mod\.{0,2}", "mod"),
        (r"^mods+", "mods"),
        (r"^mod\d", "mod"),
        (r"^[ab]c", ""),
        (r"^", ""),
        ("", ""),
        (r"mod\.time", ""),
        (r"^mod\.time|other", ""),
        (r"^mod\.(time|other)", "mod."),
        (r"^mod\.[)|]x", "mod."),
        (r"^mod\.\(x|other\)", ""),
        (r"^mod\.(a|b)|other", ""),
        (r"^(?:mod)\.time", ""),
        (r"(?i)^mod\.time", ""),
    ],
)
def test_the_beginning_is_what_all_that_is_found_has(pattern: str, begins: str) -> None:
    assert beginning(re.compile(pattern)) == begins


def test_a_pattern_that_knows_no_case_or_more_lines_says_nothing() -> None:
    for flag in (re.IGNORECASE, re.MULTILINE, re.VERBOSE):
        assert beginning(re.compile("^mod", flag)) == ""


@pytest.mark.parametrize(
    ("pattern", "idle"),
    [
        ("Gae|Push", []),
        ("Gae|Pull|Pop", ["Pull", "Pop"]),
        (r"Pu(sh|ll)|[P|p]op|a\|b", ["[P|p]op", r"a\|b"]),
        ("(?i)gae|pull", ["pull"]),
        (r"(Gae)|\1x", []),
        ("Gae|", []),
    ],
)
def test_alternatives_that_no_name_holds_are_told(pattern: str, idle: list[str]) -> None:
    assert without_use(re.compile(pattern), ["Gae(1)", "Push(4)"]) == idle
