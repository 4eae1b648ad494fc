"""The claims of this repository's texts."""

from projects import ROOT
from rlox_opt.history import claims
from rlox_opt.history.claims import Book
from rlox_opt.system import schema


def test_every_figure_of_this_projects_texts_is_its_records() -> None:
    found, loose = claims.check(ROOT / "claims.toml")
    assert found
    assert [(one.claim.says, one.wrong) for one in found if one.wrong] == []
    assert loose == []


def test_each_text_is_covered() -> None:
    book = schema.read(ROOT / "claims.toml", Book)
    assert set(book.texts) == {"README.md", "METHODOLOGY.md", "CHANGELOG.md"}
