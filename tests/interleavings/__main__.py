"""`make interleavings`: tries all interleavings of the core's threads by loom."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from subprocess import PIPE
from typing import Any

from rlox_opt.system.process import end_now

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
TARGET = ROOT / "target" / "loom"
LONG = 5  # preemptions, of the long form; the tests have a smaller number for the short one
GOOD, FAILED, OWN_ERROR = 0, 1, 3
_COMPILED = "Running unittests"  # cargo says so before the tests run
_LIMIT_S = 600.0
_EXAMPLES = """\
examples:
  make interleavings                  the short form, as CI has it
  make interleavings ARGS=--long      with more preemptions of the collector: some minutes
  make interleavings ARGS=--planted   plants bugs, one at a time, and sees that each is found

What one thread offers another in `nn::ppo` is tried in all interleavings, and with all values that
the memory model lets a load see; the hand-over of the collector in all that preempt a thread a few
times at most, on channels that do what the standard library documents of its own.

exit codes (make turns each but 0 into 2):
  0  all hold; each planted bug was found
  1  some do not; some were not
  2  asked wrongly
  3  a planted bug does not compile, or does not end
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tests; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make interleavings", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--long", action="store_true", help="with more preemptions")
    forms.add_argument("--planted", action="store_true", help="plant bugs, and see each found")
    arguments = parser.parse_args(argv)
    if arguments.planted:
        return planted()
    more = {"LOOM_MAX_PREEMPTIONS": str(LONG)} if arguments.long else {}
    return (
        GOOD
        if subprocess.run(command(), cwd=ROOT, env=environment(**more)).returncode == 0
        else FAILED
    )


def command() -> list[str]:
    """The command. The core is compiled with little optimisation, which saves more time than the
    tests lose by it. Without any, a step of environments needs more stack than loom's threads
    have."""
    quick = ("opt-level=1", "debug=0")
    return [
        "cargo", "test", "-p", "rlox-core", "--lib", "--locked", "--features", "accepted",
        "--target-dir", str(TARGET),
        *(f"--config=profile.test.package.rlox-core.{what}" for what in quick),
        "--", "interleavings::",
    ]  # fmt: skip


def environment(**more: str) -> dict[str, str]:
    """What cargo needs to build for loom. Compiling takes longer than the tests, so that little is
    optimised."""
    flags = " ".join(filter(None, (os.environ.get("RUSTFLAGS"), "--cfg loom")))
    return {**os.environ, "RUSTFLAGS": flags, "CARGO_PROFILE_TEST_OPT_LEVEL": "1", **more}


def bugs() -> list[dict[str, Any]]:
    """The bugs of planted.toml."""
    return list(tomllib.loads((HERE / "planted.toml").read_text(encoding="utf-8"))["bug"])


def planted() -> int:
    """Plant each bug in a copy of the tree; returns the exit code."""
    tree, worst = TARGET / "planted", GOOD
    all_bugs = bugs()
    for number, bug in enumerate(all_bugs, 1):
        shutil.rmtree(tree, ignore_errors=True)
        shutil.copytree(ROOT / "crates", tree / "crates")
        for name in ("Cargo.toml", "Cargo.lock"):
            shutil.copy(ROOT / name, tree)
        path = tree / bug["file"]
        path.write_text(
            path.read_text(encoding="utf-8").replace(bug["find"], bug["replace"]), encoding="utf-8"
        )
        start = time.monotonic()
        with subprocess.Popen(
            command(), cwd=tree, env=environment(), stdout=PIPE, stderr=PIPE, text=True,
            start_new_session=True,
        ) as running:  # fmt: skip
            try:
                stdout, stderr = running.communicate(timeout=_LIMIT_S)
            except subprocess.TimeoutExpired:
                stdout = None
            finally:
                if running.poll() is None:
                    end_now(running)
        if stdout is None:
            result, code = "DOES NOT END", OWN_ERROR
        else:
            found = [line for line in stdout.splitlines() if line.endswith("... FAILED")]
            names = ", ".join(line.split()[1].rpartition("::")[2] for line in found)
            if running.returncode == 0:
                result, code = "NOT FOUND", FAILED
            elif _COMPILED not in stderr:
                result, code = f"DOES NOT COMPILE\n{stderr[-2000:]}", OWN_ERROR
            else:  # loom panics where all wait, and what drops then may end the process
                result, code = f"found by {names or 'the end of the process'}", GOOD
        seconds = time.monotonic() - start
        print(
            f"{number}/{len(all_bugs)} {path.stem}: {bug['breaks']}: {result} ({seconds:.0f} s)",
            flush=True,
        )
        worst = max(worst, code)
    shutil.rmtree(tree, ignore_errors=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
