"""The built pages, made once for all tests of a run, whatever number of processes run tests."""

from pathlib import Path

import assemble
import pytest
from filelock import FileLock


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder of the built pages."""
    base = tmp_path_factory.getbasetemp()
    shared = base if worker_id == "master" else base.parent
    folder = shared / "site"
    with FileLock(shared / "site.lock"):
        if not (folder / "index.html").exists():
            assemble.build(folder)
    return folder
