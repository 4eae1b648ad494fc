"""Fixtures of every test."""

import os
import signal
from collections.abc import Iterator

import pytest
from fixtures import browser, mark, start

__all__ = ["browser", "mark", "start"]

# A runner in the background may have been started with Ctrl-C ignored, which its children inherit:
# the tests that interrupt one would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)

# pytest-xdist sets it for its workers, and readline for the processes that pytest starts, where
# os.environ does not show it. It would fold the lines that commands print into a pipe.
os.environ["COLUMNS"] = ""

# Read when torch is first imported. Without it, MKL takes another kernel on some processors for a
# weight that lies elsewhere, and equal trainings differ in the last place.
os.environ.setdefault("MKL_CBWR", "AVX2,STRICT")


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch uses one thread: two OpenMP threads that wait actively on a busy machine can take more
    time than all the tests."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
