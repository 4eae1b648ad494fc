"""What is asked of a package that has no pairs, or no extension."""

import pytest

from rlox_opt.project.installed import Installed


@pytest.mark.parametrize("library", ["", "decoder"])
def test_a_package_without_pairs_has_none(library: str) -> None:
    package = Installed("json", library, ())
    assert not package.has_pairs()
    assert package.paired() == set()
