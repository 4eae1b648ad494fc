"""What verbs print of this repository's own records, in a terminal of 80 columns and into a pipe:
nothing is cut, nothing is wider than the terminal, and a pipe gets no escape codes."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import toy_history
from command_line import rlox_opt
from rlox_opt.system.output import cells
from terminals import RLOX_OPT, in_terminal

ROOT = Path(__file__).parents[3]
BAR = re.compile(r"(?P<title>\S.*?) (?P<bar>[━╸╺]+ *)\d:\d\d:\d\d( |$)")
PEERS = "peers/record/amd-epyc-2c"
ZEN_4 = "peers/record/amd-epyc-family-25-model-17-2c"
# Of a record that is kept, what its verb prints at its end.
VIEWS = {
    "peers primitives": "c.show_table(primitives.summary(r), primitives.explained(r), 'x.json')",
    "peers growth": "c.show_table(growth.summary(r), growth.explained(r), 'x.json')",
    "peers ppo": "c.show_table(race.standings(r), race.explained(r), 'x.json')",
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


def views() -> list[str]:
    """The command that shows all of the records."""
    lines = [
        "import json, pathlib",
        "from rlox_opt.views import comparison as c, growth, primitives, race",
    ]
    for verb, path in RECORDS.items():
        lines += [f"r = json.loads(pathlib.Path({path!r}).read_text())", VIEWS[verb]]
    return [sys.executable, "-c", "\n".join(lines)]


COMMANDS = {words: [*RLOX_OPT, *words.split()] for words in LISTING} | {"records": views()}


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_is_cut_or_wider_than_the_terminal_and_a_pipe_gets_no_codes(name: str) -> None:
    code, lines = in_terminal(COMMANDS[name], ROOT, both=True)
    assert code in (0, 1), lines
    assert len(lines) > 2
    assert [line for line in lines if cells(line) > 80 or "…" in line] == []
    piped = subprocess.run(COMMANDS[name], cwd=ROOT, text=True, capture_output=True, timeout=120)
    assert piped.returncode == code
    assert piped.stdout
    assert "…" not in piped.stdout
    assert "\x1b" not in piped.stdout + piped.stderr


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
