"""Every test of the trainers runs on one thread of torch."""

import pytest
import torch


@pytest.fixture(autouse=True)
def _one_thread():
    """Two spinning OpenMP threads on a busy machine can cost more than all the tests."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
