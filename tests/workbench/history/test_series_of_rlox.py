"""The series of this repository's history."""

from datetime import UTC, datetime

import projects
import pytest
from rlox_opt.history import store
from rlox_opt.history.series import of_store

# The first recorded commits as they follow each other; their dates do not.
FIRST = ("da3d09ca", "9d2d08cc", "eed83a9d", "1f30f01b", "547d094b", "a2b1d7b2", "e1446392")


def test_the_step_that_was_missed_is_found() -> None:
    """A sample of prioritised replay took 0.45 of its control's time, and 0.51 from 490ab58 on. The
    step stayed hidden: of itself it may as well be memory, and two readings of the time before a
    build profile made the noise look larger."""
    there = [
        e
        for _, e in store.entries(projects.HERE.history)
        if e.date < datetime(2026, 11, 23, tzinfo=UTC)
    ]
    rank = {name: number for number, name in enumerate(FIRST, -len(FIRST))}
    ordered = sorted(there, key=lambda e: (rank.get(e.commit[:8], 0), e.committed))
    (of,) = [
        one
        for one in of_store(there, list(dict.fromkeys(e.commit for e in ordered)))
        if (one.benchmark, one.kind) == ("data_plane.Prioritized.time_sample_256", "time")
    ]
    faster, slower = of.changes
    assert of.points[faster.index].commit.startswith("fa707e44bc")
    assert of.points[slower.index].commit.startswith("490ab58d57")
    assert of.open(slower)
    assert slower.ratio == pytest.approx(1.14, abs=0.03)
    assert 1.02 < slower.ci99[0] < slower.ci99[1] < 1.25
