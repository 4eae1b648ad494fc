"""The peers that this repository races."""

import projects
import pytest
from rlox_opt.race import environments as racing

RACES = racing.races(projects.HERE)


@pytest.mark.parametrize("race", RACES)
def test_every_peer_has_its_driver_and_its_lock_with_hashes_and_no_address(race: str) -> None:
    job, every = racing.load(projects.HERE, race)
    assert every[0].name == "sb3"
    assert every[-1].name == "rlox"
    assert len({p.name for p in every}) == len(every) >= 6
    assert job["limit"] in {one.name for one in every if not one.trains}
    for one in every:
        assert one.driver.exists()
        if one.lock:
            text = one.lock.read_text()
            assert "--hash=sha256:" in text
            assert "://" not in text
