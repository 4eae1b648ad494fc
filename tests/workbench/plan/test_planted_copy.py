"""The copy of the checkout into which bugs are planted."""

import subprocess
from pathlib import Path

from rlox_opt.plan.testing import planted


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
