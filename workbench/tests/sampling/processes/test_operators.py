"""Recording torch's operators, of a torch that is made up: when it begins, and what is written."""

from pathlib import Path

import pytest
from recorded import run_program

from rlox_opt.sampling.processes.run import RecordedProcess, read_process, segments

MADE_UP = {
    "__init__.py": """
from types import SimpleNamespace
cuda = SimpleNamespace(is_initialized=lambda: False)
""",
    "_C/__init__.py": "",
    "_C/_profiler.py": """
class _ExperimentalConfig:
    def __init__(self, **settings):
        pass
""",
    "profiler.py": """
import time
from types import SimpleNamespace

class ProfilerActivity:
    CPU, CUDA = "cpu", "cuda"

class profile:
    def __init__(self, **settings):
        self.profiler = SimpleNamespace(kineto_results=self)

    def start(self):
        self.begin = time.time_ns()

    def stop(self):
        pass

    def event(self, name, kind, resource, device=0, launch=0, annotation=False):
        values = {
            "name": name, "device_type": SimpleNamespace(name=kind), "device_index": device,
            "device_resource_id": resource, "correlation_id": launch, "is_hidden_event": False,
            "is_user_annotation": annotation, "start_ns": self.begin, "end_ns": self.begin + 1000,
        }
        return SimpleNamespace(**{key: lambda value=value: value for key, value in values.items()})

    def events(self):
        yield self.event("aten::mm", "CPU", 70, launch=1)
        yield self.event("cuLaunchKernel", "CPU", 70, launch=5)
        yield self.event("cudaLaunchKernel", "CPU", 70, launch=6)
        yield self.event("custom step", "CPU", 70, launch=9, annotation=True)
        yield self.event("custom step", "CUDA", 7, launch=9, annotation=True)
        yield self.event("triton_kernel", "CUDA", 7, launch=5)
        yield self.event("gemm", "CUDA", 7, device=1, launch=6)
""",
}


def recorded(folder: Path, program: str) -> RecordedProcess | None:
    """What was recorded of this torch in a program."""
    for name, text in MADE_UP.items():
        (folder / "torch" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "torch" / name).write_text(text)
    run = run_program(folder, f"import torch, time\n{program}", torch_s=0.1)
    (process,) = run.processes
    if not segments(folder, process.key, "torch"):
        return None
    return read_process(folder, process.key, "torch")


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> RecordedProcess | None:
    """A program that names no blocks."""
    return recorded(tmp_path_factory.mktemp("quiet"), "time.sleep(1.2)\n")


def test_a_program_that_names_no_blocks_is_recorded_once_it_has_imported_all(
    quiet: RecordedProcess | None,
) -> None:
    assert quiet is not None
    kinds = {name.path: name.kind for name in quiet.names.values()}
    assert kinds["aten::mm"] == "torch"
    assert (kinds["triton_kernel"], kinds["gemm"]) == ("device", "device")


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
