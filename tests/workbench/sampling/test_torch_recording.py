"""What torch.profiler says of a device, as the training's plug-in records it."""

from types import SimpleNamespace

from workloads import torch_recording


def event(name: str, device: str, number: int = 0, annotation: bool = False) -> SimpleNamespace:
    """What torch.profiler says of a call or kernel: on stream 7 of a device."""
    found = {
        "name": name, "device_type": SimpleNamespace(name=device), "device_index": number,
        "device_resource_id": 7, "correlation_id": 3, "start_ns": 10, "end_ns": 20,
        "start_thread_id": 1, "is_user_annotation": annotation,
    }  # fmt: skip
    return SimpleNamespace(**{key: lambda value=value: value for key, value in found.items()})


def test_a_block_that_torch_mirrors_on_the_device_is_no_kernel() -> None:
    events = [event("sgemm", "CUDA"), event("Optimizer.step#Adam.step", "CUDA", annotation=True)]
    results = SimpleNamespace(events=lambda: [*events, event("cudaLaunchKernel", "CPU")])
    calls, kernels = torch_recording._of_device(results, 100)
    assert kernels == [("sgemm", 7, 110, 120, 3)]
    assert calls == [("cudaLaunchKernel", 1, 110, 120, 3)]


def test_a_recording_says_why_it_ended() -> None:
    recording = torch_recording.Recording(warmup_steps=0, seconds=60)
    recording.updates = torch_recording.UPDATES
    assert recording._ended() == "150 updates are enough"
    recording.updates -= 1
    assert recording._ended() == "its 60 s were over"


def test_streams_of_two_devices_are_two() -> None:
    results = SimpleNamespace(events=lambda: [event("sgemm", "CUDA", number) for number in (0, 1)])
    _, kernels = torch_recording._of_device(results, 0)
    assert len({stream for _, stream, *_ in kernels}) == 2
