"""Beliefs about what changes code, and what does not."""

from pathlib import Path

import pytest
from users_repository import git

from rlox_opt.history import code_changes
from rlox_opt.system.git import of


def committed(folder: Path) -> str:
    """All that lies in a repository, which is made where there is none, as a commit."""
    git(folder, "init", "--quiet")
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "-m", "all of it")
    return git(folder, "rev-parse", "HEAD")


@pytest.mark.parametrize(
    ("path", "before", "after", "changed"),
    [
        ("a.py", "x = 1\n", "x = 1  # one\n", []),
        ("a.py", "def f():\n    return 1\n", 'def f():\n    """One."""\n    return 1\n', []),
        ("a.py", "import a\nx = 1\n", "from b import a\n\nx = (1)\n", []),
        ("a.py", "def f():\n    import a\n    a.g()\n", "def f():\n    a.g()\n", []),
        ("a.py", "x = 1\ny = 2\n", "y = 2\nx = 1\n", []),
        ("a.py", "x = 1\n", "x = 2\n", ["a.py:x"]),
        ("a.py", "x = 1\n", "x = 1\nx = 1\n", ["a.py:x"]),
        ("a.py", "class C:\n    y = 1\n", "class C:\n    y = 2\n", ["a.py:C"]),
        ("a.py", "x = 1\n", None, ["a.py:x"]),
        ("a.py", "x = \n", "x = # no Python\n", ["a.py"]),
        ("a.rs", "fn f() { 1 }\n", "/// One.\nfn f() {\n    1 // so\n}\n", []),
        ("a.rs", 'fn f() { "//" }\n', 'fn f() { "// " }\n', ["a.rs"]),
        ("a.rs", "fn f() { '\"'; 1 } // \"\n", "fn f() { '\"'; 2 } // \"\n", ["a.rs"]),
        ("a/tests.rs", "fn f() { 1 }\n", "fn f() { 2 }\n", []),
        ("a/tests/b.rs", "fn f() { 1 }\n", "fn f() { 2 }\n", []),
        ("tests.py", "x = 1\n", "x = 2\n", ["tests.py:x"]),
        ("a.toml", "# one\n", "# two\n", ["a.toml"]),
    ],
)
def test_what_changes_nothing_makes_no_record_old(
    tmp_path: Path, path: str, before: str, after: str | None, changed: list[str]
) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before)
    since = committed(tmp_path)
    file.unlink() if after is None else file.write_text(after)
    committed(tmp_path)
    assert code_changes.changed(of(tmp_path), since, [path]) == changed


def test_what_is_left_out_makes_no_record_old(tmp_path: Path) -> None:
    for name in ("inner/b.py", "inner.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    since = committed(tmp_path)
    (tmp_path / "inner" / "b.py").write_text("x = 2\n")
    (tmp_path / "inner.py").write_text("x = 3\n")
    committed(tmp_path)
    within = ("inner", "inner.py")
    assert code_changes.changed(of(tmp_path), since, within) == ["inner.py:x", "inner/b.py:x"]
    assert code_changes.changed(of(tmp_path), since, (*within, "!inner")) == ["inner.py:x"]
    assert code_changes.changed(of(tmp_path), since, (*within, "!inner/b.py")) == ["inner.py:x"]


def test_what_moves_beside_its_like_has_not_changed(tmp_path: Path) -> None:
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text("x = 1\n")
    since = committed(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "b.py").rename(tmp_path / "folder" / "b.py")
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n")
    committed(tmp_path)
    assert code_changes.changed(of(tmp_path), since, ["a.py", "folder"]) == ["folder/b.py:x"]
    (tmp_path / "a.py").write_text("x = 1\n")
    committed(tmp_path)
    assert code_changes.changed(of(tmp_path), since, ["a.py", "folder"]) == []


def test_what_moves_to_another_file_has_not_changed(tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("x = 1\n")
    since = committed(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "code.py").rename(tmp_path / "folder" / "moved.py")
    committed(tmp_path)
    for paths in (["code.py", "folder"], ["code.py"], ["folder"]):
        assert code_changes.changed(of(tmp_path), since, paths) == []
