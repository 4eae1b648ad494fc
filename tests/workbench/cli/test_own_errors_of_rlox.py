"""What ends the command line while it imports this repository's library, or before it trains."""

import re

import pytest
from command_line import started
from projects import ROOT

# Moments of the start: when this module is about to be imported, Ctrl-C comes.
MOMENTS = ("rlox", "rlox._core", "numpy", "gymnasium")
AT = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
class Ctrl_C:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Ctrl_C())
"""


@pytest.mark.parametrize("name", MOMENTS)
def test_ctrl_c_at_the_start_ends_it_without_a_word(name: str) -> None:
    done = started("list", first=AT.format(name=name), cwd=ROOT)
    assert (done.returncode, done.stderr) == (130, "")


def test_a_broken_installation_is_told_in_a_line() -> None:
    done = started("list", first="sys.modules['rlox._core'] = None", cwd=ROOT)
    assert done.returncode == 2
    assert "rlox._core, which is measured, cannot be imported" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["cmp", "p13", "--no-record"], ["profile", "ppo"], ["peers", "ppo"]], ids=" ".join
)
def test_without_rich_each_verb_names_the_remedy_before_any_work(words: list[str]) -> None:
    done = started(*words, first="sys.modules['rich'] = None", cwd=ROOT)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(
        r"rlox-opt [a-z -]+: rich is not installed: pip install rlox-opt.*\n", done.stderr
    )
