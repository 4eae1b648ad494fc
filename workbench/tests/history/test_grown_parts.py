"""Parts of a change from made-up samples, whose composition is known."""

from pathlib import Path

import pytest

from rlox_opt.history.grown_parts import Parts
from rlox_opt.history.watched import PYTHON, called
from rlox_opt.project.changed import Changed
from rlox_opt.project.explained import Told, Why
from rlox_opt.project.layers import Layers
from rlox_opt.sampling.samples import MAIN_THREAD, Frame, Sample, Samples
from rlox_opt.sampling.whose import Whose

BASE = "def helper():\n    pass\n\ndef work():\n    helper()\n"
HEAD = "def helper():\n    pass\n\ndef work():\n    helper()\n    helper()\n"
EVAL = Frame("_PyEval_EvalFrameDefault", "/python/lib/libpython3.12.so.1.0")
SORT = Frame("npy::sort", "/env/lib/python3.12/site-packages/numpy/_core/_multiarray_umath.so")
TOTAL = "thing_c.so"


@pytest.fixture
def parts(tmp_path: Path) -> Parts:
    for side, text in (("base", BASE), ("head", HEAD)):
        (tmp_path / side).mkdir()
        (tmp_path / side / "thing.py").write_text(text)
    folders = tmp_path / "base", tmp_path / "head"
    differs = Changed(*folders, frozenset({"total"}))
    return Parts(Whose(Layers(), folders), differs, 2.0, dict.fromkeys(("base", "head"), _nothing))


def _nothing(_: str) -> None:
    return None


def seen(*stacks: tuple[int, str, tuple[Frame, ...]]) -> Samples:
    """So many samples of each stack, in a layer."""
    every = [
        Sample(frames, "", layer, 0.01, MAIN_THREAD)
        for count, layer, frames in stacks
        for _ in range(count)
    ]
    return Samples("made up", every)


def python(tmp_path: Path, side: str, *lines: int) -> tuple[Frame, ...]:
    names = {2: "helper", 5: "work", 6: "work"}
    return tuple(Frame(names[n], f"{tmp_path}/{side}/thing.py", n) for n in lines)


def told(parts: Parts) -> Why:
    found = Why("toys.time_work", 2.0)
    parts.tell(found)
    return found


def names(of: list[Told]) -> list[str]:
    return [each.where for each in of]


def test_what_a_touched_function_calls_more_often_is_its_own_part_too(
    tmp_path: Path, parts: Parts
) -> None:
    before, new = python(tmp_path, "base", 5, 2), python(tmp_path, "head", 6, 2)
    same = python(tmp_path, "head", 5, 2)
    parts.add(PYTHON, "base", seen((200, "python", before)))
    parts.add(PYTHON, "head", seen((200, "python", same), (200, "python", new)))
    found = told(parts)
    assert [(of.where, of.in_diff) for of in found.functions] == [("thing.py:helper", False)]
    assert [(of.where, of.within) for of in found.touched] == [("thing.py:work", 1.0)]
    assert [(of.whose, round(of.part, 3)) for of in found.layers] == [("own Python", 1.0)]
    assert [(of.line, of.in_diff) for of in found.lines] == [(2, False)]
    assert found.samples == {PYTHON: (200, 400)}


def test_native_functions_are_told_with_their_library_and_touched_by_name(
    tmp_path: Path, parts: Parts
) -> None:
    own = Frame("total", f"{tmp_path}/head/{TOTAL}")
    parts.add("perf", "base", seen((200, "numpy", (EVAL, SORT))))
    parts.add("perf", "head", seen((200, "numpy", (EVAL, SORT)), (200, "native", (EVAL, own))))
    found = told(parts)
    assert [(of.whose, round(of.part, 3)) for of in found.layers] == [("own native code", 1.0)]
    assert [(of.where, of.in_diff) for of in found.native] == [(f"{TOTAL}:total", True)]
    assert names([*found.touched]) == [f"{TOTAL}:total"]
    assert parts.cause().layer == "native"


def test_where_all_is_python_s_the_python_stacks_say_whose(tmp_path: Path, parts: Parts) -> None:
    json = Frame("loads", "/python/lib/python3.12/json/__init__.py", 299)
    stack = (*python(tmp_path, "head", 5), json)
    parts.add("perf", "base", seen((100, "python", (EVAL,))))
    parts.add("perf", "head", seen((100, "python", (EVAL,))))
    parts.add(PYTHON, "base", seen((100, "python", stack)))
    parts.add(PYTHON, "head", seen((100, "python", stack)))
    assert [of.whose for of in told(parts).layers] == ["Python's standard library"]
    assert parts.cause().layer == "python"


def test_what_the_samples_do_not_bear_is_told_as_the_likeliest_alone(
    tmp_path: Path, parts: Parts
) -> None:
    one, other = python(tmp_path, "head", 5), python(tmp_path, "head", 2)
    parts.add(PYTHON, "base", seen((2, "python", one), (2, "python", other)))
    parts.add(PYTHON, "head", seen((2, "python", one), (2, "python", other)))
    found = told(parts)
    assert len(found.functions) == 1
    assert not found.functions[0].surely
    assert not found.touched
    assert not parts.settled([PYTHON])


def test_what_is_done_between_calls_is_left_out_with_the_frames_around_them() -> None:
    harness = Frame("timed", "/cache/inside/rlox_opt_prepared.py", 190)
    main, work = Frame("main", "/cache/inside/rlox_opt_side.py", 3), Frame("work", "/a/thing.py", 5)
    found = called(seen((1, "python", (main, harness, work)), (1, "python", (main, work))))
    assert [sample.frames for sample in found.samples] == [(work,)]


@pytest.mark.parametrize("name", ["helper", "__enter__", "__exit__"])
def test_what_the_harness_does_in_turn_with_calls_is_no_call_of_the_benchmark(name: str) -> None:
    harness = Frame("timed", "/cache/inside/rlox_opt_prepared.py", 182)
    without_gc = Frame(name, "/python/lib/python3.12/contextlib.py", 137)
    of_the_benchmark = Frame("work", "/a/thing.py", 5)
    found = called(
        seen(
            (1, "python", (harness, without_gc)),
            (1, "python", (harness, of_the_benchmark, without_gc)),
        )
    )
    assert [sample.frames for sample in found.samples] == [(of_the_benchmark, without_gc)]
