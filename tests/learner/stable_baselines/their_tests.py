"""Stable-Baselines3's own tests, run on this library's PPO and SAC.

    python tests/learner/stable_baselines/their_tests.py FOLDER [FILE.py …] [--record PAGE]

FOLDER is a checkout of Stable-Baselines3; nothing of it is kept. `PPO` and `SAC` of the package are
replaced before the test files are imported. Only cases with one of the two as a parameter are run.
Exit code 0 if at least `--least` of them pass, else 1. Each other case is listed with what it said
and, of the installed release, with its reason.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import documents_page
import pytest
import stable_baselines3

import rlox

TRAINERS = (rlox.PPO, rlox.SAC)
REASONS = {  # the beginning of a case, and why it does not pass
    "test_dict_env.py::test_consistency[PPO]": "one seed gives the weights of MultiInputPolicy and "
    "of MlpPolicy in another order, so the two models differ as two seeds do",
    "test_gae.py::test_infinite_horizon[True-SAC]": "its one seed decides: of seeds 0 to 39, both "
    "libraries have some that pass and some that do not",
    "test_her.py": "HER is left out",
    "test_identity.py::test_discrete[env2-PPO]": "its one seed decides: of seeds 0 to 7, both "
    "libraries have some that pass and some that do not",
    "test_n_step_replay.py": "returns of several steps are left out",
    "test_save_load.py::test_save_load_backward_compatible": "model.clip_range is a number here, "
    "not a function",
    "test_save_load.py::test_save_load_clip_range_portable": "model.clip_range is a number here, "
    "not an object of a class of theirs",
    "test_save_load.py::test_warn_buffer[True-SAC]": "wants a warning that an episode is cut short "
    "in the replay buffer; it is not cut here",
    "test_train_eval_mode.py::test_a2c_ppo_collect_rollouts": "calls a private method of theirs",
}


class Cases:
    """Selects the cases of the two trainers, and keeps their results."""

    def __init__(self):
        self.went = {}

    def pytest_collection_modifyitems(self, items):
        items[:] = [
            item
            for item in items
            if hasattr(item, "callspec")
            and any(value in TRAINERS for value in item.callspec.params.values() if callable(value))
        ]

    def pytest_collectreport(self, report):
        if report.failed:
            print(f"cannot be read: {report.nodeid}: {crash_of(report)}")

    def pytest_runtest_logreport(self, report):
        if report.skipped or (report.when != "call" and report.passed):
            return
        self.went[report.nodeid.rpartition("/")[2]] = crash_of(report) if report.failed else ""


def crash_of(report):
    """What went wrong, as one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:  # no test's: a traceback as a text
        return str(report.longrepr).strip().splitlines()[-1]
    return crash.message.strip().splitlines()[0]


def row_of(case, crash):
    """A line of the table; one more for a reason that is known."""
    if not crash:
        return f"passes {case}"
    known = [why for beginning, why in REASONS.items() if case.startswith(beginning)]
    return "\n".join([f"fails  {case}: {crash[:150]}", *(f"       because {why}" for why in known)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a checkout of Stable-Baselines3")
    parser.add_argument("files", nargs="*", help="test files; all without")
    parser.add_argument("--least", type=float, default=0.85, help="share that is to pass")
    parser.add_argument("-k", default="", help="cases, as pytest's -k")
    parser.add_argument("--record", type=Path, help="a page that gets the table")
    asked = parser.parse_args()
    record = asked.record and asked.record.resolve()
    tests = asked.folder.resolve() / "tests"
    if not tests.is_dir():
        parser.error(f"folder: {asked.folder} has no tests; name a checkout of Stable-Baselines3")
    stable_baselines3.PPO, stable_baselines3.SAC = TRAINERS
    cases = Cases()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # what tests write stays there
        paths = [str(tests / name) for name in asked.files] or [str(tests)]
        options = ["-q", "--no-header", "--no-summary", "-p", "no:cacheprovider", "-W", "ignore"]
        options.append("--continue-on-collection-errors")
        pytest.main(
            [*paths, *options, "-c", os.devnull, "--rootdir", str(tests), "-k", asked.k],
            plugins=[cases],
        )
    rows = [row_of(case, crash) for case, crash in sorted(cases.went.items())]
    passed = sum(not crash for crash in cases.went.values())
    said = f"{passed} of {len(cases.went)} pass ({passed / max(len(cases.went), 1):.0%})"
    print("\n".join([*rows, said]))
    if record:
        documents_page.write(record, "Cases of Stable-Baselines3's tests", said, rows)
    return int(not cases.went or passed < asked.least * len(cases.went))


if __name__ == "__main__":
    sys.exit(main())
