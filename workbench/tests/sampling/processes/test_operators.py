"""Recording torch's operators, of a torch that is made up: when it begins, and what is written."""

from pathlib import Path

import pytest
from made_up_torch import TORCH_S, recorded

from rlox_opt.sampling.processes.run import RecordedProcess

# Imports nothing, and ends once its operators are written, which takes longer on a busy machine.
QUIET = """\
import os
until = time.monotonic() + 60
while time.monotonic() < until:
    time.sleep(0.05)
    if any(".torch." in name for name in os.listdir(os.environ["RLOX_OPT_RECORD"])):
        break
"""


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> RecordedProcess | None:
    """A program that names no blocks."""
    return recorded(tmp_path_factory.mktemp("quiet"), QUIET)


def test_a_program_that_names_no_blocks_is_recorded_once_it_has_imported_all(
    quiet: RecordedProcess | None,
) -> None:
    assert quiet is not None
    kinds = {name.path: name.kind for name in quiet.names.values()}
    assert kinds["aten::mm"] == "torch"
    assert (kinds["triton_kernel"], kinds["gemm"]) == ("device", "device")


def test_the_seconds_asked_for_begin_when_torchs_profiler_has_begun(
    quiet: RecordedProcess | None,
) -> None:
    assert quiet is not None
    (seconds,) = [
        (end - begin) * 1e-9
        for block in quiet.spans()
        for index, begin, end in block.data.tolist()
        if quiet.names[block.source, index].path == "looked on"
    ]
    assert seconds >= TORCH_S


def test_blocks_of_sample_factory_say_as_well_that_a_program_works(tmp_path: Path) -> None:
    package = tmp_path / "sample_factory" / "utils"
    package.mkdir(parents=True)
    (package / "timing.py").write_text(
        "class TimingContext:\n"
        "    def __init__(self, key): self._key = key\n"
        "    def __enter__(self): pass\n"
        "    def __exit__(self, *error): pass\n"
    )
    program = (
        "from sample_factory.utils.timing import TimingContext\n"
        "with TimingContext('work'): pass\n"
        "for n in range(80):\n"
        "    __import__('sys').modules[f'another {n}'] = torch  # it imports all the time\n"
        "    time.sleep(0.01)\n"
    )
    assert recorded(tmp_path, program) is not None


def test_launches_and_kernels_have_a_number_in_common_and_blocks_none(
    quiet: RecordedProcess | None,
) -> None:
    assert quiet is not None
    flows = [
        (quiet.names[block.source, index].path, number)
        for block in quiet.flows()
        for index, _, number in block.data.tolist()
    ]
    assert sorted(flows) == [
        ("cuLaunchKernel", 5), ("cudaLaunchKernel", 6), ("gemm", 6), ("triton_kernel", 5),
    ]  # fmt: skip


def test_a_stream_of_another_device_is_another_thread_and_a_block_is_no_kernel(
    quiet: RecordedProcess | None,
) -> None:
    assert quiet is not None
    ran = {
        quiet.names[block.source, index].path: quiet.threads[block.thread].name
        for block in quiet.spans()
        for index, _, _ in block.data.tolist()
        if quiet.names[block.source, index].kind == "device"
    }
    assert ran == {"triton_kernel": "stream 7", "gemm": "device 1, stream 7"}
