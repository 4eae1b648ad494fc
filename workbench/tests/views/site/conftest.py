"""A made-up history and its pages, and small parts of it."""

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import made_up_history
import pytest
from made_up_history import publish

from rlox_opt.views.site import Published, writer
from rlox_opt.views.site.model import History, read


@pytest.fixture(scope="module", autouse=True)
def sources_read_once() -> Iterator[None]:
    """A publication reads all sources of the program, which takes longer than most of these. As
    they do not change meanwhile, they are read once."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(writer, "_digest_of_sources", cache(writer._digest_of_sources))
        yield


@pytest.fixture(scope="session")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    made_up_history.write(folder)
    return folder


@pytest.fixture(scope="session")
def history(store: Path) -> History:
    return History.of(read(store))


@pytest.fixture(scope="session")
def pages(history: History, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published pages, with cards that were measured."""
    out = tmp_path_factory.mktemp("pages")
    done = publish(out, history, made_up_history.ledger())
    assert done == Published(30, 64, done.written, 0, 0)
    return out
