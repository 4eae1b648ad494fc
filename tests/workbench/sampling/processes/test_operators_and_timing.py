"""torch's operators in a program with a Timing of this library."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from made_up_torch import recorded

BLOCKS = (0, 1)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bool]:
    """Whether operators were recorded, by how many blocks a program had. The programs wait most of
    the time, so they do it side by side."""

    def of(blocks: int) -> bool:
        program = (
            "from rlox.timing import Timing\n"
            "timing = Timing()\n"
            f"for _ in range({blocks}):\n"
            "    with timing.add_time('work'): pass\n"
            # One sleep would be over with whatever time a busy machine took from all threads at
            # once.
            "for _ in range(24): time.sleep(0.05)\n"
        )
        return recorded(folders[blocks], program) is not None

    folders = {blocks: tmp_path_factory.mktemp("blocks") for blocks in BLOCKS}
    with ThreadPoolExecutor() as pool:
        return dict(zip(BLOCKS, pool.map(of, BLOCKS), strict=True))


@pytest.mark.parametrize("blocks", BLOCKS)
def test_of_a_program_with_a_timing_its_first_block_is_waited_for(
    blocks: int, found: dict[int, bool]
) -> None:
    assert found[blocks] == bool(blocks)
