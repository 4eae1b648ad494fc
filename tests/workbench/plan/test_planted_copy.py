"""The copy of the checkout into which bugs are planted, and the tests that run there."""

import subprocess
import time
from pathlib import Path

import pytest
from rlox_opt.plan.testing import agreement, planted
from rlox_opt.system.commands import CannotTell


def test_the_copy_for_planted_bugs_loses_what_the_checkout_has_lost(tmp_path: Path) -> None:
    root, tree = tmp_path / "checkout", tmp_path / "copy" / "tree"
    tree.mkdir(parents=True)
    for name in ("crates/gone/src/lib.rs", "crates/kept/Cargo.toml"):
        (root / name).parent.mkdir(parents=True)
        (root / name).touch()
    for command in (["init", "-q"], ["add", "."]):
        subprocess.run(["git", "-C", str(root), *command], check=True)
    planted.copy_tracked(root, tree)
    (tree / "crates" / "kept" / "built").touch()
    subprocess.run(["git", "-C", str(root), "rm", "-rqf", "crates/gone"], check=True)
    planted.copy_tracked(root, tree)
    assert [path.name for path in (tree / "crates").iterdir()] == ["kept"]
    assert {path.name for path in (tree / "crates" / "kept").iterdir()} == {"Cargo.toml", "built"}


def test_a_pair_that_a_bug_makes_endless_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # the toys' pytest starts sooner
    suite = tmp_path / "test_toys.py"
    suite.write_text(
        "import time, pytest\n"
        "@pytest.mark.parametrize('id_', ['R1'])\n"
        "def test_the_twins_agree(id_):\n"
        "    time.sleep(600)\n"
    )
    began = time.monotonic()
    with pytest.raises(CannotTell, match="could not run"):
        agreement.pytest_outcomes(["R1"], tmp_path, {"R": suite.name}, lambda line: None, 1.0)
    assert time.monotonic() - began >= 1, "ended by its limit, and not by a mistake of its own"
