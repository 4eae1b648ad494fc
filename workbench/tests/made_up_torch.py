"""A made-up torch, for programs whose operators are recorded."""

from pathlib import Path

from recorded import run_program

from rlox_opt.sampling.processes.run import RecordedProcess, read_process, segments

TORCH_S = 0.1
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
        time.sleep(0.2)
        self.begin = time.time_ns()

    def stop(self):
        self.end = time.time_ns()

    def event(self, name, kind, resource, device=0, launch=0, annotation=False, end=None):
        values = {
            "name": name, "device_type": SimpleNamespace(name=kind), "device_index": device,
            "device_resource_id": resource, "correlation_id": launch, "is_hidden_event": False,
            "is_user_annotation": annotation, "start_ns": self.begin,
            "end_ns": end or self.begin + 1000,
        }
        return SimpleNamespace(**{key: lambda value=value: value for key, value in values.items()})

    def events(self):
        yield self.event("looked on", "CPU", 71, end=self.end)
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
    run = run_program(folder, f"import torch, time\n{program}", torch_s=TORCH_S)
    (process,) = run.processes
    if not segments(folder, process.key, "torch"):
        return None
    return read_process(folder, process.key, "torch")
