"""What verbs print of this repository's own records, in a terminal of 80 columns and into a pipe:
nothing is cut, nothing is wider than the terminal, and a pipe gets no escape codes."""

import subprocess
import sys
from pathlib import Path

import pytest
from command_line import rlox_opt
from rlox_opt.system.output import cells
from terminals import RLOX_OPT, in_terminal

ROOT = Path(__file__).parents[3]
PEERS = "peers/record/amd-epyc-2c"
# Of a record that is kept, what its verb prints at its end.
VIEWS = {
    "peers primitives": "c.show_table(primitives.summary(r), primitives.explained(r), 'x.json')",
    "peers growth": "c.show_table(growth.summary(r), growth.explained(r), 'x.json')",
    "peers ppo": "c.show_race(r)",
    "cmp": "c.show([r])",
    "ladder": "c.show_ladder(r, pathlib.Path('x.json'))",
}
RECORDS = {
    "peers primitives": f"{PEERS}/2026-11-23T225441Z_primitives.json",
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
        "from rlox_opt.views import comparison as c, growth, primitives",
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


@pytest.mark.parametrize("verb", HELP)
def test_help_fits_into_eighty_columns(verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rlox_opt(*verb.split(), "--help").stdout.splitlines()
    assert lines
    assert [line for line in lines if cells(line) > 80 or "…" in line] == []
