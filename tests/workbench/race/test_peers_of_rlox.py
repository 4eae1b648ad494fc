"""The peers that this repository races."""

import projects
import pytest
from rlox_opt.race import environments as racing


@pytest.mark.parametrize("algo", ["ppo", "sac"])
def test_every_peer_has_its_driver_and_its_lock_with_hashes_and_no_address(algo: str) -> None:
    _, every = racing.load(projects.HERE, algo)
    assert every[0].name == "sb3"
    assert len({p.name for p in every}) == len(every) >= 8
    for one in every:
        assert one.driver.exists()
        if one.lock:
            text = one.lock.read_text()
            assert "--hash=sha256:" in text
            assert "://" not in text
