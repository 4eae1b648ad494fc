"""What verbs print of this repository's own records, in a terminal of 80 columns and into a pipe:
nothing is cut, nothing is wider than the terminal, and a pipe gets no escape codes."""

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import toy_history
from command_line import rlox_opt
from rlox_opt.system.output import cells
from terminals import in_terminal

ROOT = Path(__file__).parents[3]
BAR = re.compile(r"(?P<title>\S.*?) (?P<bar>[━╸╺]+ *)\d:\d\d:\d\d( |$)")
PEERS = "peers/record/amd-epyc-2c"
ZEN_4 = "peers/record/amd-epyc-family-25-model-17-2c"
# Of a record that is kept, what its verb prints at its end.
VIEWS = {
    "peers primitives": "c.show_table(primitives.summary(r), primitives.explained(r), 'x.json')",
    "peers growth": "c.show_table(growth.summary(r), growth.explained(r), 'x.json')",
    "peers ppo": "c.show_table(race.summary(r), race.explained(r), 'x.json')",
    "cmp": "c.show([r])",
    "ladder": "c.show_ladder(r, pathlib.Path('x.json'))",
}
RECORDS = {
    "peers primitives": f"{ZEN_4}/2026-11-28T091454Z_primitives.json",
    "peers growth": f"{PEERS}/2026-11-23T140735Z_growth.json",
    "peers ppo": f"{PEERS}/2026-11-23T072208Z_ppo.json",
    "cmp": "optimizations/record/amd-epyc-2c/2026-11-23T004604Z_r3.json",
    "ladder": "optimizations/record/intel-xeon-2.80ghz-2c/2026-11-21T203721Z_ladder_sac.json",
}
LISTING = (
    "list", "show p5", "show r4", "predict p5", "regressions --all", "record HEAD --list",
    "peers primitives --list", "init",
)  # fmt: skip
HELP = (
    "", "init", "profile", "profile train", "profile script", "profile bench", "profile diff",
    "list", "show", "test", "cmp", "ladder", "peers", "peers ppo", "peers primitives",
    "peers growth", "peers backends", "new", "predict", "diff", "gate", "bisect", "lint-suite",
    "calibrate", "record", "regressions", "publish", "claims",
)  # fmt: skip


def views() -> str:
    """The program that shows all of the records."""
    lines = [
        "import json, pathlib",
        "from rlox_opt.views import comparison as c, growth, primitives, race",
    ]
    for verb, path in RECORDS.items():
        lines += [f"r = json.loads(pathlib.Path({path!r}).read_text())", VIEWS[verb]]
    return "\n".join(lines)


NAMES = (*LISTING, "records")
# Runs one after the other, each in a process of its own that need not import everything anew. A
# line with its exit code ends what it prints.
ONE_BY_ONE = f"""
import os, sys
import rlox_opt, rlox_opt.cli.main

def run(name):
    if name == "records":
        exec({views()!r}, {{}})
        return 0
    sys.argv[1:] = name.split()
    return rlox_opt.main()

for name in {NAMES!r}:
    child = os.fork()
    if not child:
        sys.exit(run(name))
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(f"{{name}}: ended with {{code}}", flush=True)
"""
# From Python 3.12 on it is told of forks beside threads, such as NumPy may have.
COMMAND = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", ONE_BY_ONE]
Printed = dict[str, tuple[int, list[str]]]


def by_name(lines: Iterable[str]) -> Printed:
    """The exit code and the lines of each."""
    found: Printed = {}
    own: list[str] = []
    for line in lines:
        if ended := re.fullmatch(r"(.+): ended with (-?\d+)", line):
            found[ended[1]] = int(ended[2]), own
            own = []
        else:
            own.append(line)
    return found


@pytest.fixture(scope="module")
def shown() -> Printed:
    """What they print in a terminal."""
    return by_name(in_terminal(COMMAND, ROOT, both=True)[1])


@pytest.fixture(scope="module")
def piped() -> tuple[Printed, str]:
    """What they print into a pipe, and all that they say on stderr."""
    done = subprocess.run(COMMAND, cwd=ROOT, text=True, capture_output=True, timeout=240)
    return by_name(done.stdout.splitlines()), done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_nothing_is_cut_or_wider_than_the_terminal_and_a_pipe_gets_no_codes(
    name: str, shown: Printed, piped: tuple[Printed, str]
) -> None:
    code, lines = shown[name]
    assert code in ((0,) if name == "records" else (0, 1)), lines
    assert len(lines) > 1
    assert [line for line in lines if cells(line) > 80 or "…" in line] == []
    printed, said = piped
    assert printed[name][0] == code
    out = "\n".join(printed[name][1])
    assert out
    assert "…" not in out
    assert "\x1b" not in out + said


def test_what_tells_that_a_verb_is_at_work_stays_in_its_line(tmp_path: Path) -> None:
    """Bar and time are whole in every state of it, and stand where they stood before."""
    toy_history.commits(tmp_path, [{"passes": 1}, {"passes": 40}])
    asked = ("diff", "HEAD~1", "HEAD", "--bench", "time_work", "--restarts", "5", "--no-counts")
    program = [sys.executable, toy_history.__file__, str(tmp_path), *asked]
    code, lines = in_terminal(program, tmp_path, both=True, passing=True)
    assert code == 0, lines
    assert [line for line in lines if cells(line) > 80] == []
    bars = [BAR.match(line) for line in lines if "━" in line]
    assert all(bars), lines
    titles = {bar["title"] for bar in bars if bar}
    assert len(titles) >= 3
    for title in titles:
        of_title = [bar for bar in bars if bar and bar["title"] == title]
        assert len({len(bar["bar"]) for bar in of_title}) == 1


@pytest.mark.parametrize("verb", HELP)
def test_help_fits_into_eighty_columns(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rlox_opt(*verb.split(), "--help").stdout.splitlines()
    assert lines
    assert [line for line in lines if cells(line) > 80 or "…" in line] == []
