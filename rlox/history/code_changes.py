"""What changed in code since a commit, but for what changes nothing that it does: comments,
docstrings, imports, layout, and the file that something stands in."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from rlox.profiling.git import Repository

# Of Rust. What a string or a character holds is no comment.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)


def changed(repository: Repository, since: str, paths: Sequence[str]) -> list[str] | None:
    """Definitions under these paths that either the commit `since` or HEAD lacks, as "path:name",
    or "path" for a file that is taken as a whole; None where there is no such commit.

    Raises:
        GitError: there is no git.
    """
    listed = repository.maybe(
        "diff-tree", "-r", "--name-only", "--no-renames", "-z", since, "HEAD", "--", *paths
    )
    if listed is None:
        return None
    files = [path for path in listed.split("\0") if path]
    before, after = (
        [
            part
            for path in files
            if (text := repository.maybe("show", f"{commit}:{path}")) is not None
            for part in _parts(path, text)
        ]
        for commit in (since, "HEAD")
    )
    counts = [Counter(said for said, _ in of) for of in (before, after)]
    differ = (counts[0] - counts[1]) | (counts[1] - counts[0])
    name = dict(before + after)
    return sorted({name[said] for said in differ})


def _parts(path: str, text: str) -> Iterator[tuple[str, str]]:
    """What a file says, in parts that may stand anywhere, each with its name."""
    suffix = PurePosixPath(path).suffix
    if suffix == ".rs":
        code = _TOKEN.sub(lambda of: " " if of[0].startswith("/") else of[0], text)
        yield " ".join(code.split()), path
        return
    try:
        tree = ast.parse(text) if suffix == ".py" else None
    except SyntaxError:
        tree = None
    if tree is None:
        yield text, path
        return
    for node in tree.body:
        if not _is_import(node) and not _is_text(node):
            name = getattr(node, "name", "") or ast.unparse(node).partition("=")[0].strip()
            yield ast.dump(_WithoutTexts().visit(node)), f"{path}:{name[:60]}"


class _WithoutTexts(ast.NodeTransformer):
    """Without docstrings, and the imports within functions."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            left = [of for of in node.body if not _is_text(of) and not _is_import(of)]
            node.body = left or [ast.Pass()]
        return super().generic_visit(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
