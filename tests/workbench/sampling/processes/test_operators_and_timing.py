"""torch's operators in a program with a Timing of this library."""

from pathlib import Path

import pytest
from made_up_torch import recorded


@pytest.mark.parametrize("blocks", [0, 1])
def test_of_a_program_with_a_timing_its_first_block_is_waited_for(
    blocks: int, tmp_path: Path
) -> None:
    program = (
        "from rlox.timing import Timing\n"
        "timing = Timing()\n"
        f"for _ in range({blocks}):\n"
        "    with timing.add_time('work'): pass\n"
        # One sleep would be over with whatever time a busy machine took from all threads at once.
        "for _ in range(24): time.sleep(0.05)\n"
    )
    assert (recorded(tmp_path, program) is not None) == bool(blocks)
