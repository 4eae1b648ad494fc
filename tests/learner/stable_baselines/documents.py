"""Do the programs of Stable-Baselines3's documentation run on this library?

    python tests/learner/stable_baselines/documents.py FOLDER [--only REGEX] [--record PAGE]

FOLDER is a checkout of Stable-Baselines3 (or its folder `docs`); nothing of it is kept. Every block
of Python that imports a trainer, callbacks or vector environments is run up to three times,
each time in a process and an empty folder of its own:

- `sb3`: unchanged. A block that does not run so (a package is missing, a fragment, a model to
  download) is left out for both sides.
- `rlox`: PPO, SAC and callbacks are imported from rlox. A2C and DQN become PPO, TD3 and DDPG become
  SAC: the block shows how a trainer is used, not what that algorithm learns.
- `mixed`: trainers from rlox, callbacks from Stable-Baselines3.

Vector environments, `Monitor`, `evaluate_policy` and so on stay Stable-Baselines3's. `learn` is
limited to `--steps` steps from outside, an endless program ends (as passed) after 60 calls of
`predict`, and nothing waits for a screen. Exit code 0 if at least `--least` of the blocks that
count pass, else 1.
"""

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import documents_page

HERE = Path(__file__).parent
BLOCK = re.compile(r"^([ \t]*)```python\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
IN_PLACE_OF = {"PPO": "PPO", "SAC": "SAC", "A2C": "PPO", "DQN": "PPO", "TD3": "SAC", "DDPG": "SAC"}
CALLBACKS = "stable_baselines3.common.callbacks"
OURS = {CALLBACKS: "rlox.learner.callbacks"}
ARMS = ("sb3", "rlox", "mixed")


class Imports(ast.NodeTransformer):
    """Trainers, and the `modules` of `OURS`, are imported from rlox instead."""

    def __init__(self, modules):
        self.modules = modules
        self.trainers, self.others = set(), set()

    def visit_Import(self, node):
        for alias in node.names:
            if alias.name == "stable_baselines3":
                alias.name, alias.asname = "rlox", alias.asname or alias.name
        return node

    def visit_ImportFrom(self, node):
        if node.module in OURS:
            self.others.add(node.module)
        if node.module in self.modules:
            node.module = OURS[node.module]
        if node.module != "stable_baselines3":
            if (node.module or "").endswith("vec_env"):
                self.others.add(node.module)
            return node
        ours = [name for name in node.names if name.name in IN_PLACE_OF]
        theirs = [name for name in node.names if name.name not in IN_PLACE_OF]
        self.trainers.update(name.name for name in ours)
        made = [ast.ImportFrom(node.module, theirs, 0)] if theirs else []
        if ours:
            names = [_alias(IN_PLACE_OF[n.name], n.asname or n.name) for n in ours]
            made.append(ast.ImportFrom("rlox", names, 0))
        return made


def _alias(name, asname):
    return ast.alias(name, None if asname == name else asname)


def blocks(folder):
    """The place of each block of the documentation, and its text."""
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text()
        for found in BLOCK.finditer(text):
            indent = len(found[1])
            line = text[: found.start()].count("\n") + 1
            program = "\n".join(row[indent:] for row in found[2].split("\n"))
            yield f"{path.relative_to(folder)}:{line}", program


def forms(program):
    """The program in each of the ways that differ; None if the block does not count."""
    try:
        tree = ast.parse(program)
    except SyntaxError:
        return None
    named = Imports(OURS)
    changed = ast.unparse(ast.fix_missing_locations(named.visit(tree)))
    if not (named.trainers or named.others) and "import stable_baselines3" not in program:
        return None
    if changed == ast.unparse(ast.parse(program)):  # nothing of ours would run
        return None
    mixed = ast.unparse(ast.fix_missing_locations(Imports({}).visit(ast.parse(program))))
    arms = {"sb3": program, "rlox": changed}
    if CALLBACKS in named.others and named.trainers:
        arms["mixed"] = mixed
    return arms


def run(program, library, steps, seconds):
    """ "" if the program ends well, otherwise the last line that it printed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text("import documents_inside\n" + program)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "DOCUMENTS_LIBRARY": library,
            "DOCUMENTS_STEPS": str(steps),
            "DOCUMENTS_PREDICTIONS": "60" if "while True" in program else "",
            "SDL_VIDEODRIVER": "dummy",
            "MPLBACKEND": "Agg",
        }
        command = [sys.executable, "-W", "ignore", str(path)]
        try:
            done = subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True,
                timeout=seconds, start_new_session=True,
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"took more than {seconds} s"
    said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    errors = [line for line in said if re.match(r"[\w.]*(Error|Exception|Exit)\b", line)]
    return "" if done.returncode == 0 else (errors or said)[-1]


def table(results):
    """Rows with the results of each block, and how many of those that count passed."""
    lines, counted, passed = [], 0, 0
    for where, told in sorted(results.items()):
        if told.get("sb3"):
            lines.append(f"-      {where}: not with sb3: {told['sb3'][:90]}")
            continue
        for arm in ARMS[1:]:
            if arm not in told:
                continue
            counted += 1
            passed += not told[arm]
            mark, reason = ("fails", f": {told[arm][:150]}") if told[arm] else ("passes", "")
            lines.append(f"{mark:<7}{where} ({arm}){reason}")
    return lines, counted, passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of Stable-Baselines3, or its docs")
    parser.add_argument("--only", default="", help="blocks whose FILE:LINE matches this")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS, help="which to run")
    parser.add_argument("--steps", type=int, default=1100, help="most of a learn")
    parser.add_argument("--seconds", type=int, default=120, help="most of a program")
    parser.add_argument("--least", type=float, default=0.95, help="share that is to pass")
    parser.add_argument("--results", type=Path, help="JSON to keep: sb3's are not run again")
    parser.add_argument("--record", type=Path, help="a page that gets the table")
    asked = parser.parse_args()
    if not any(asked.folder.rglob("*.md")):
        parser.error(f"folder: {asked.folder} holds no *.md; name a checkout of Stable-Baselines3")
    results = {}
    if asked.results and asked.results.exists():
        results = json.loads(asked.results.read_text())
    for where, program in blocks(asked.folder):
        arms = forms(program)
        if arms is None or not re.search(asked.only, where):
            continue
        told = results.setdefault(where, {})
        for arm, text in arms.items():
            if arm not in asked.arms or told.get("sb3") or (arm == "sb3" and arm in told):
                continue
            library = "stable_baselines3" if arm == "sb3" else "rlox"
            told[arm] = run(text, library, asked.steps, asked.seconds)
            print(f"{where} {arm}: {told[arm] or 'passes'}"[:200], file=sys.stderr, flush=True)
            if asked.results:
                asked.results.write_text(json.dumps(results, indent=1))
    lines, counted, passed = table(results)
    said = f"{passed} of {counted} pass ({passed / max(counted, 1):.0%})"
    print("\n".join([*lines, said]))
    if asked.record:
        documents_page.write(
            asked.record, "Programs of Stable-Baselines3's documentation", said, lines
        )
    return int(passed < asked.least * counted)


if __name__ == "__main__":
    sys.exit(main())
