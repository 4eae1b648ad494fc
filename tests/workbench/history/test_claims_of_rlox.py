"""The claims of this repository's texts."""

import pytest
from projects import ROOT
from rlox_opt.history import claims, code_changes
from rlox_opt.history.claims import Book
from rlox_opt.system import schema


def test_every_figure_of_this_projects_texts_is_its_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Which records are older than the code is for `rlox-opt claims` to tell: it reads all files of
    # many commits.
    monkeypatch.setattr(code_changes, "changed", lambda *_: [])
    found, loose = claims.check(ROOT / "claims.toml")
    assert found
    assert [(one.claim.says, one.wrong) for one in found if one.wrong] == []
    assert loose == []


def test_each_text_is_covered() -> None:
    book = schema.read(ROOT / "claims.toml", Book)
    # Those of docs/site/python hold docstrings, which the build puts in.
    pages = {
        str(path.relative_to(ROOT))
        for folder in ("docs", "docs/guides")
        for path in (ROOT / folder).glob("*.md")
    }
    assert set(book.texts) == {"README.md", "METHODOLOGY.md", "CHANGELOG.md", *pages}
