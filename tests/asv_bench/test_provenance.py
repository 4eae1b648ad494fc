"""A build that is not the one asv asked for is not timed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import rlox

ASV_BENCH = Path(__file__).parents[2] / "asv_bench"
OTHER = "0" * 40


def imported(**environment: str) -> subprocess.CompletedProcess[str]:
    """The benchmarks' package, imported as under asv."""
    env = {k: v for k, v in os.environ.items() if k not in ("ASV_COMMIT", "MATURIN_PEP517_ARGS")}
    return subprocess.run(
        [sys.executable, "-c", "import benchmarks"],
        cwd=ASV_BENCH,
        env={**env, "PYTHONPATH": str(ASV_BENCH.parent), **environment},
        capture_output=True,
        text=True,
    )


def own_features() -> str:
    return "--features=" + ",".join(rlox.build_info()["features"])


def test_outside_asv_any_build_will_do() -> None:
    assert imported().returncode == 0


def test_the_build_that_was_asked_for_is_timed() -> None:
    commit = rlox.build_info()["commit"]
    if commit == "unknown":
        pytest.skip("built outside a checkout")
    done = imported(ASV_COMMIT=commit, MATURIN_PEP517_ARGS=own_features())
    assert done.returncode == 0, done.stderr


def test_a_build_of_another_commit_is_refused() -> None:
    done = imported(ASV_COMMIT=OTHER, MATURIN_PEP517_ARGS=own_features(), ASV_ENV_DIR="some/env")
    assert done.returncode != 0
    message = done.stderr.splitlines()[-1]
    assert OTHER in message
    assert rlox.build_info()["commit"] in message
    assert "Remove some/env" in message


def test_a_build_with_other_features_is_refused() -> None:
    info = rlox.build_info()
    if info["commit"] == "unknown":
        pytest.skip("built outside a checkout")
    asked = "--features=" + ("opt-p1" if info["features"] != ["opt-p1"] else "opt-p5")
    done = imported(ASV_COMMIT=info["commit"], MATURIN_PEP517_ARGS=asked)
    assert done.returncode != 0
    message = done.stderr.splitlines()[-1]
    assert asked in message
    assert (", ".join(info["features"]) or "no optimisation") in message


def test_a_build_from_before_its_commit_was_stamped_is_named_as_that(tmp_path: Path) -> None:
    (tmp_path / "rlox.py").write_text("def build_info():\n    return {'features': []}\n")
    done = imported(ASV_COMMIT=OTHER, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "from before rlox.build_info() named the commit" in done.stderr


CORE = {"features": {"opt-p3": ["opt-p12"], "opt-p5": [], "accepted": ["opt-p3", "opt-p5"]}}
SHIPPED = {"tool": {"maturin": {"features": ["accepted"]}}}


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", {"opt-p3", "opt-p5", "opt-p12"}),
        ("--profile release", {"opt-p3", "opt-p5", "opt-p12"}),
        ("--features=", set()),
        ("--features=opt-p5", {"opt-p5"}),
        ("-F opt-p3 --features 'opt-p5 opt-p12'", {"opt-p3", "opt-p5", "opt-p12"}),
    ],
)
def test_features_are_those_of_the_arguments_or_else_what_ships(
    arguments: str, expected: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ASV_BENCH))
    from benchmarks.provenance import features

    assert features(arguments, SHIPPED, CORE) == expected
