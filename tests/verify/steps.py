"""The steps of checks that guard the main claims and are too long for CI, each a command of its
own. `make verify` runs them. This file needs Python's standard library alone, so that a workflow
can list the steps without an environment.

test_verify.py checks that the list is complete: every test marked as slow, and every target of the
Makefile that guards something, is in it or in .ci/run.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Step:
    """`guards` says what is wrong if the step fails. It runs the slow tests in `tests`, or
    `command`. It fails if it takes longer than `limit_s`."""

    name: str
    guards: str
    tests: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    limit_s: float = 3600.0
    needs: dict[str, str] = field(default_factory=dict)  # a program, and what brings it

    def runs(self, report: Path) -> list[str]:
        """Its command; pytest writes the result of each test into `report`."""
        if self.command:
            return [*self.command]
        own = (
            "-m",
            "pytest",
            "-m",
            "slow",
            "-ra",
            f"--junitxml={report}",
            "-p",
            "no:cacheprovider",
        )
        return [sys.executable, *own, *self.tests]


def make(target: str, arguments: str = "") -> tuple[str, ...]:
    """The command of a target of the Makefile."""
    return ("make", target, *([f"ARGS={arguments}"] if arguments else []))


HOUR = 3600.0
STEPS = (
    Step("compiled", "the twins of R2, R3 and R16 agree through the real compiler",
         tests=("tests/pairs", "tests/learner/test_compiled.py"),
         needs={"g++": "apt-get install g++"}),
    Step("torchrun", "two processes train and resume",
         tests=("tests/learner/test_distributed.py",)),
    Step("wheel", "what pip installs imports, trains and starts", tests=("tests/test_wheel.py",)),
    Step("compare", "diff, gate and cmp on real builds; checkouts of every kind",
         tests=("tests/workbench/cli/test_diff_of_rlox.py", "tests/workbench/plan/test_cmp.py",
                "workbench/tests/project/test_checkouts.py")),
    Step("strangers", "projects that are not ours, by every back-end and through every verb",
         tests=("workbench/tests/project/test_real_back_ends.py", "workbench/tests/cli",
                "tests/test_action.py")),
    Step("profile", "profiles of whole trainings; killed at any moment, nothing is left",
         tests=("tests/workbench/cli/test_profile.py",
                "tests/workbench/cli/test_profile_script.py",
                "tests/workbench/cli/test_killed_of_rlox.py")),
    Step("accuracy", "the ranking of layers against programs of known composition",
         tests=("tests/workbench/sampling",), limit_s=2 * HOUR),
    Step("tutorial", "the tutorial's commands print what its page shows",
         tests=("tests/documentation",)),
    Step("why", "what a change slows is named: its layer, its function and its line",
         tests=("tests/workbench/history", "workbench/tests/history")),
    Step("injected", "a slowdown of 10 % is found; the trainers' benchmarks hold",
         tests=("tests/asv_bench",)),
    Step("new", "the skeleton of an optimisation compiles; a planted bug is caught; of every "
         "card it is told whether it was predicted before the work",
         tests=("tests/workbench/cli/test_new.py", "tests/workbench/plan/test_test_verb.py",
                "tests/workbench/plan/test_planted_bugs.py",
                "tests/workbench/cli/test_predict.py")),
    Step("engines", "torch, gymnasium and Stable-Baselines3 compute what plain NumPy does",
         tests=("tests/workbench/race/test_engines_are_right.py",)),
    Step("backends", "Burn, Candle and faer compile and compute what plain NumPy does",
         tests=("tests/peers",)),
    Step("rivals", "the rivals install from their locks and compute what plain NumPy does",
         tests=("tests/workbench/race/test_rivals.py",), limit_s=2 * HOUR),
    Step("claims", "each figure of the texts has a record, and the record is of today's code",
         command=(sys.executable, "-m", "rlox_opt", "claims", "--flagged")),
    Step("pages", "a history of two thousand commits is drawn",
         tests=("workbench/tests/views/site",)),
    Step("audit", "licences, and advisories of what we stand on", command=make("audit")),
    Step("builds", "the Rust tests in every build", command=make("test-builds"), limit_s=2 * HOUR),
    Step("mutants", "each planted bug is caught", command=make("mutants"), limit_s=2 * HOUR),
    Step("mistakes", "what would make the binding unsound does not compile",
         tests=("tests/boundary",)),
    Step("sanitize", "AddressSanitizer finds nothing in the core or its binding",
         command=make("sanitize", "--skip miri")),
    Step("interleavings", "threads of the core end well in whatever order",
         command=make("interleavings", "--long")),
    Step("hostile", "ten million calls of the extension come back, or are refused",
         command=make("hostile"), limit_s=2 * HOUR),
    Step("miri", "Miri finds nothing in what is unsafe", command=make("miri"), limit_s=2 * HOUR),
    Step("faults", "kills, full disks and hostile input by the thousand", command=make("faults"),
         limit_s=2 * HOUR),
    Step("anywhere", "the tests pass with lesser instructions, for another user, in other places",
         command=make("anywhere"), limit_s=5 * HOUR),
    Step("learning", "PPO and SAC learn not worse than Stable-Baselines3",
         tests=("tests/learning",), limit_s=5 * HOUR),
)  # fmt: skip
