"""What changed in code since a commit, without changes that do not affect what it does: comments,
docstrings, imports, layout, Rust's tests in a file of theirs, and the file that contains a
definition."""

from __future__ import annotations

import ast
import functools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from rlox_opt.system.git import Repository

# In Rust. Strings and characters may contain what looks like a comment.
_TOKEN = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'|//[^\n]*|/\*.*?\*/', re.DOTALL)

_Part = tuple[str, str]  # a definition's text, in whatever file, and its name


def changed(repository: Repository, since: str, paths: Sequence[str]) -> list[str] | None:
    """The definitions that only one of the commit `since` and HEAD contains, in whatever file: of
    the files under these paths, but not under those that begin with "!". They are given as
    "path:name", or "path" for a file that is compared as a whole.
    None if there is no such commit.

    Raises:
        GitError: there is no git.
    """
    listed = repository.maybe("diff-tree", "-r", "--name-only", "--no-renames", "-z", since, "HEAD")
    if listed is None:
        return None
    files = [path for path in listed.split("\0") if path and not _is_rust_test(path)]
    left_out = [path[1:] for path in paths if path.startswith("!")]
    inside = [of for of in files if _is_within(of, paths) and not _is_within(of, left_out)]
    commits = since, repository.run("rev-parse", "HEAD").strip()
    before, after = (_all_parts(repository, commit, inside) for commit in commits)
    differ = [_lacking(before, after), _lacking(after, before)]
    if any(differ):
        kinds = {PurePosixPath(path).suffix for path in inside}
        outside = [of for of in files if of not in inside and PurePosixPath(of).suffix in kinds]
        elsewhere = [_all_parts(repository, commit, outside) for commit in commits]
        differ = [_lacking(differ[0], elsewhere[1]), _lacking(differ[1], elsewhere[0])]
    return sorted({name for of in differ for _, name in of})


def _is_within(file: str, paths: Iterable[str]) -> bool:
    return any(file == path or file.startswith(f"{path}/") for path in paths)


def _is_rust_test(path: str) -> bool:
    """A module of tests by Rust's convention, which no release build contains."""
    file = PurePosixPath(path)
    return file.suffix == ".rs" and (file.name == "tests.rs" or "tests" in file.parent.parts)


def _lacking(these: Sequence[_Part], others: Sequence[_Part]) -> list[_Part]:
    """`these` without those that are in `others`, counting repetitions."""
    said_elsewhere = Counter(said for said, _ in others)
    left = []
    for part in these:
        if said_elsewhere[part[0]]:
            said_elsewhere[part[0]] -= 1
        else:
            left.append(part)
    return left


def _all_parts(repository: Repository, commit: str, paths: Iterable[str]) -> list[_Part]:
    """The parts of those files that the commit has."""
    blobs = _blobs(repository, commit)
    there = [path for path in paths if path in blobs]
    return [part for path in there for part in _parts_of(repository, blobs[path], path)]


@functools.cache
def _blobs(repository: Repository, commit: str) -> dict[str, str]:
    """Git's object id of each file of a commit."""
    listed = repository.maybe("ls-tree", "-r", "-z", commit) or ""
    fields = (line.partition("\t") for line in listed.split("\0") if line)
    return {path: said.split()[2] for said, _, path in fields}


@functools.cache
def _parts_of(repository: Repository, blob: str, path: str) -> tuple[_Part, ...]:
    """The parts of a file. A file that several commits share is read once."""
    text = repository.maybe("cat-file", "blob", blob)
    return () if text is None else tuple(_parts(path, text))


def _parts(path: str, text: str) -> Iterator[_Part]:
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
    """Removes docstrings, and imports within functions."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            left = [of for of in node.body if not _is_text(of) and not _is_import(of)]
            node.body = left or [ast.Pass()]
        return super().generic_visit(node)


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_import(node: ast.stmt) -> bool:
    return isinstance(node, ast.Import | ast.ImportFrom)
