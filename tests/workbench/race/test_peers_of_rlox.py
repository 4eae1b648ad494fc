"""The peers that this repository races."""

import subprocess
import sys

import projects
import pytest
from rlox_opt.race import environments as racing

# Of one gradient; "aot_eager" traces it, and needs no compiler.
COMPILES = """
import run, torch
before = run.torch_compile_s()
square = torch.compile(torch.square, backend="aot_eager")
squared = square(torch.ones(2, requires_grad=True))
between = run.torch_compile_s()
squared.sum().backward()
assert 0 == before < between < run.torch_compile_s()
"""
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


def test_compiling_a_gradient_is_time_of_the_compiler() -> None:
    subprocess.run(
        [sys.executable, "-c", COMPILES, '{"threads": 1}'],
        cwd=projects.HERE.peers,
        check=True,
        timeout=120,
    )
