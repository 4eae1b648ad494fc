"""Stable-Baselines3's own tests, run on this library's PPO and SAC.

    python tests/learner/stable_baselines/their_tests.py FOLDER [FILE.py …] [--record PAGE]

FOLDER is a checkout of Stable-Baselines3; nothing of it is kept. `PPO` and `SAC` of the package are
replaced before the test files are imported. Only cases with one of the two as a parameter are run.
Exit code 0 if at least `--least` of them pass, else 1; each other case is listed with its reason.
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
            print(f"cannot be read: {report.nodeid}: {reason_of(report)}")

    def pytest_runtest_logreport(self, report):
        if report.skipped or (report.when != "call" and report.passed):
            return
        self.went[report.nodeid.rpartition("/")[2]] = reason_of(report) if report.failed else ""


def reason_of(report):
    """What went wrong, as one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is None:  # no test's: a traceback as a text
        return str(report.longrepr).strip().splitlines()[-1]
    return crash.message.strip().splitlines()[0]


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
    rows = [
        f"{'fails ' if reason else 'passes'} {case}{': ' if reason else ''}{reason[:150]}"
        for case, reason in sorted(cases.went.items())
    ]
    passed = sum(not reason for reason in cases.went.values())
    said = f"{passed} of {len(cases.went)} pass ({passed / max(len(cases.went), 1):.0%})"
    print("\n".join([*rows, said]))
    if record:
        documents_page.write(record, "Cases of Stable-Baselines3's tests", said, rows)
    return int(not cases.went or passed < asked.least * len(cases.went))


if __name__ == "__main__":
    sys.exit(main())
