"""Beliefs about stacks that were cut in native code, and waits whose stack was not seen."""

import pytest
from toy_projects import CLASSIFIER

from rlox_opt.sampling.owners import Stack, layers_of
from rlox_opt.sampling.samples import Frame

LOOP = Frame("_PyEval_EvalFrameDefault", "/python/lib/libpython3.11.so.1.0")
TORCH = Frame("at::conv2d", "/venv/lib/python3.11/site-packages/torch/lib/libtorch_cpu.so")
MADE = Frame("0x7f01", "//anon")
COPY = Frame("memcpy", "/usr/lib/x86_64-linux-gnu/libc.so.6")
LOCK = Frame("take_gil", "/python/lib/libpython3.11.so.1.0")
SLEEP = Frame("sem_clockwait", "/usr/lib/x86_64-linux-gnu/libc.so.6")


def at(line: int, function: str = "step", file: str = "/home/train.py") -> tuple[Frame, ...]:
    return (Frame("main", "/home/train.py", 1), Frame(function, file, line))


def seen(
    *native: Frame,
    python: tuple[Frame, ...] = (),
    part: str = "",
    waits_s: float = 0.0,
) -> Stack:
    return Stack(native, python, "", part, waits_s > 0, waits_s or 0.005, 7)


def test_a_stack_cut_in_native_code_belongs_to_what_its_python_line_called() -> None:
    whole = [seen(LOOP, TORCH, python=at(20))] * 3
    own = [seen(LOOP, python=at(30))]
    cut = [seen(MADE, python=at(20)), seen(COPY, python=at(20)), seen(MADE, python=at(21))]
    layers = layers_of([*whole, *own, *cut], CLASSIFIER)
    assert layers == ["torch_inference"] * 3 + ["python"] + ["torch_inference"] * 3


def test_what_a_line_called_has_the_role_of_the_moment() -> None:
    stacks = [seen(LOOP, TORCH, python=at(20)), seen(MADE, python=at(20), part="backward")]
    assert layers_of(stacks, CLASSIFIER)[1] == "torch_backward"


def test_a_line_that_was_left_just_before_does_not_make_a_forward_pass_a_backward_one() -> None:
    left = (*at(20), Frame("_engine_run_backward", "/torch/autograd/graph.py", 1113))
    (layer,) = layers_of([seen(LOOP, TORCH, python=left, part="grad")], CLASSIFIER)
    assert layer == "torch_forward"


def test_the_line_itself_tells_more_than_its_function() -> None:
    library = Frame("work", "/home/_fast.so")
    stacks = [
        *[seen(LOOP, TORCH, python=at(20))] * 5,
        seen(LOOP, library, python=at(21)),
        seen(MADE, python=at(21)),
    ]
    assert layers_of(stacks, CLASSIFIER)[-1] == "native"


@pytest.mark.parametrize(
    ("file", "layer"),
    [
        ("/venv/lib/python3.11/site-packages/torch/nn/modules/conv.py", "torch_inference"),
        ("/venv/lib/python3.11/site-packages/numpy/lib/_function_base_impl.py", "numpy"),
        ("/venv/lib/python3.11/site-packages/numba/core/dispatcher.py", "native"),
        ("/home/train.py", "unknown"),
    ],
)
def test_where_no_other_stack_tells_the_lines_package_does(file: str, layer: str) -> None:
    assert layers_of([seen(MADE, python=at(20, "f", file))], CLASSIFIER) == [layer]


def test_a_cut_stack_of_a_thread_without_python_is_unknown() -> None:
    assert layers_of([seen(LOOP, TORCH, python=at(20)), seen(MADE)], CLASSIFIER)[1] == "unknown"


def test_a_line_that_ran_in_the_interpreter_alone_tells_nothing_of_a_cut_stack() -> None:
    stacks = [*[seen(LOOP, python=at(20))] * 9, seen(MADE, python=at(20))]
    assert layers_of(stacks, CLASSIFIER)[-1] == "unknown"


def test_a_few_stacks_that_are_whole_tell_nothing_of_many_that_were_cut() -> None:
    stacks = [seen(LOOP, TORCH, python=at(20)), *[seen(MADE, python=at(20))] * 20]
    assert layers_of(stacks, CLASSIFIER)[1:] == ["unknown"] * 20


def test_code_that_no_library_calls_is_that_of_a_compiler_that_is_loaded() -> None:
    stacks = [seen(LOOP, MADE, python=at(20)), seen(MADE)]
    assert layers_of(stacks, CLASSIFIER, "native") == ["native", "unknown"]
    convolution = at(560, "forward", "/venv/lib/python3.11/site-packages/torch/nn/modules/conv.py")
    assert layers_of([seen(MADE, python=convolution)], CLASSIFIER, "native") == ["torch_inference"]


def test_a_wait_that_is_like_no_other_is_idle() -> None:
    waits = [seen(LOOP, LOCK, python=at(20), waits_s=0.004), seen(python=at(20), waits_s=2.0)]
    assert layers_of(waits, CLASSIFIER) == ["gil", "idle"]


def test_the_shown_stack_is_pythons_functions_and_what_the_innermost_called() -> None:
    assert seen(LOOP, LOOP, TORCH, python=at(20)).frames == (*at(20), TORCH)
    assert seen(MADE, python=at(20)).frames == (*at(20), MADE)
    assert seen(LOOP, TORCH).frames == (LOOP, TORCH)


def test_a_wait_without_a_stack_is_like_the_one_of_its_line_that_took_as_long() -> None:
    waits = [
        seen(LOOP, SLEEP, python=at(20), waits_s=0.040),
        seen(LOOP, LOCK, python=at(20), waits_s=0.004),
        seen(python=at(20), waits_s=0.035),
        seen(python=at(20), waits_s=0.003),
        seen(python=at(33), waits_s=0.003),
    ]
    assert layers_of(waits, CLASSIFIER) == ["idle", "gil", "idle", "gil", "gil"]


def test_an_import_that_waits_for_the_disk_is_of_the_start_up() -> None:
    importing = (*at(1), Frame("_find_and_load", "<frozen importlib._bootstrap>", 1176))
    assert layers_of([seen(SLEEP, python=importing, waits_s=0.2)], CLASSIFIER) == ["startup"]


def test_a_thread_of_python_whose_wait_was_cut_off_in_a_pool_is_none_of_the_pool() -> None:
    pool = (Frame("gomp_barrier", "/usr/lib/libgomp.so.1"), Frame("futex_wait", "[kernel]"))
    waits = [seen(*pool, waits_s=0.02), seen(*pool, python=at(20), waits_s=0.01)]
    assert layers_of(waits, CLASSIFIER) == ["idle", "torch_inference"]


def test_each_of_many_waits_is_like_the_one_that_took_nearly_as_long() -> None:
    lengths = [0.001 * 1.1**n for n in range(60)]
    known = [
        seen(LOOP, LOCK if n % 3 else SLEEP, python=at(20), waits_s=length)
        for n, length in enumerate(lengths)
    ]
    asked = [seen(python=at(20), waits_s=1.02 * length) for length in reversed(lengths)]
    found = layers_of([*known, *asked], CLASSIFIER)
    assert {*found} == {"gil", "idle"}
    assert found[60:] == found[:60][::-1]
