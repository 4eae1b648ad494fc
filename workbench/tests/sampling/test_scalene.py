"""Scalene's profile becomes samples with phases and layers; a useless one is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
from toy_projects import CLASSIFIER

from rlox_opt.sampling import scalene

MAIN, OTHER = 11, 22
PY = {"kind": "py", "ip": None, "offset": None}
NATIVE = {"kind": "native", "line": None, "offset": 0}


def write(folder: Path, timeline: list[dict[str, Any]], stacks: list[Any], files: Any) -> None:
    profile = {
        "main_thread_id": MAIN,
        "combined_stacks": stacks,
        "combined_stacks_timeline": timeline,
        "files": files,
    }
    (folder / scalene.PROFILE).write_text(json.dumps(profile))


def py(function: str, file: str, line: int) -> dict[str, Any]:
    return PY | {"display_name": function, "filename_or_module": file, "line": line}


def native(name: str, module: str, ip: int = 0) -> dict[str, Any]:
    return NATIVE | {"display_name": name, "filename_or_module": module, "ip": ip}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    source = tmp_path / "program.py"
    source.write_text(
        "def train(timing, net):\n"
        '    with timing.add_time("gradient_update"):\n'
        '        with timing.add_time("backward"):\n'
        "            net()\n"
        "    later()\n"
    )
    (tmp_path / "maps.txt").write_text(
        "1000-2000 r-xp 00000000 08:01 5    /site-packages/torch/lib/libtorch_cpu.so\n"
        "2000-3000 rw-p 00000000 00:00 0 \n"
    )
    loop = native("_PyEval_EvalFrameDefault", "/usr/lib/libpython3.11.so")
    stacks = [
        [[py("train", str(source), 4), native("main", "python"), loop, native("", "", 0x1500)], 3],
        [[py("train", str(source), 5), loop], 1],
        [[py("wait", str(source), 5)], 1],
    ]
    timeline = [
        {"stack_index": 0, "thread_id": MAIN, "count": 2},
        {"stack_index": 1, "thread_id": MAIN, "count": 1},
        {"stack_index": 0, "thread_id": MAIN, "count": 1},
        {"stack_index": 2, "thread_id": OTHER, "count": 50},
    ]
    lines = [
        {"lineno": 4, "line": "", **percent(30, 25, 5)},
        {"lineno": 5, "line": "", **percent(10, 5, 5)},
        {"lineno": 1, "line": "", **percent(0, 0, 0)},
    ]
    waits = [{"lineno": 982, "line": "", **percent(10, 10, 0)}]
    files = {str(source): {"lines": lines}, "/usr/lib/python3.11/threading.py": {"lines": waits}}
    write(tmp_path, timeline, stacks, files)
    return tmp_path


def percent(python: float, c: float, system: float) -> dict[str, float]:
    return {"n_cpu_percent_python": python, "n_cpu_percent_c": c, "n_sys_percent": system}


def test_stacks_of_the_training_thread_become_samples(folder: Path) -> None:
    found = scalene.load(folder, CLASSIFIER, seconds=8.0)
    assert len(found.samples) == 4
    assert sum(sample.weight for sample in found.samples) == pytest.approx(8)
    backward = [s for s in found.samples if s.phase == "gradient_update/backward"]
    assert len(backward) == 3
    assert {s.layer for s in backward} == {"torch_backward"}
    (outside,) = (s for s in found.samples if s.phase == "")
    assert outside.layer == "python"


def test_native_frames_are_named_by_their_library_and_the_interpreter_is_left_out(
    folder: Path,
) -> None:
    found = scalene.load(folder, CLASSIFIER, seconds=1.0)
    frames = next(s.frames for s in found.samples if s.layer == "torch_backward")
    assert [frame.name for frame in frames] == ["train", "[unknown]"]
    assert frames[-1].module == "torch/lib/libtorch_cpu.so"


def test_lines_are_whole_and_without_other_threads_waits(folder: Path) -> None:
    first, second = scalene.lines(folder, CLASSIFIER)
    assert (first["line"], first["source"]) == (4, "net()")
    assert first["share"] == pytest.approx(0.75)
    assert second["share"] == pytest.approx(0.25)


def test_a_run_without_profile_or_with_an_empty_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no readable profile"):
        scalene.load(tmp_path, CLASSIFIER, 1.0)
    write(tmp_path, [], [], {})
    with pytest.raises(ValueError, match="empty"):
        scalene.load(tmp_path, CLASSIFIER, 1.0)
    write(tmp_path, [{"stack_index": 0, "thread_id": OTHER, "count": 1}], [[[]]], {"a": {}})
    with pytest.raises(ValueError, match="training thread"):
        scalene.load(tmp_path, CLASSIFIER, 1.0)
