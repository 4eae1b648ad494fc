"""What every text that a pattern finds begins with."""

import re

import pytest

from rlox_opt.system.patterns import beginning


@pytest.mark.parametrize(
    ("pattern", "begins"),
    [
        (r"^bench_classes\.Graph\b", "bench_classes.Graph"),
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
