"""Every test of the trainers runs on one thread of torch."""

import pytest


@pytest.fixture(autouse=True)
def _one_thread(one_thread):
    pass
