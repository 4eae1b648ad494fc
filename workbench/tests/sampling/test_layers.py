"""Beliefs about which layer a stack belongs to: a table of stacks as the samplers print them."""

import pytest
from toy_projects import CLASSIFIER

from rlox_opt.sampling.layers import LAYERS, TITLES
from rlox_opt.sampling.samples import Frame

SITE = "/venv/lib/python3.11/site-packages"
LIBRARIES = {
    "core": "/src/toy/_core.cpython-311-x86_64-linux-gnu.so",
    "torch": f"{SITE}/torch/lib/libtorch_cpu.so",
    "torch_python": f"{SITE}/torch/lib/libtorch_python.so",
    "numpy": f"{SITE}/numpy/_core/_multiarray_umath.cpython-311-x86_64-linux-gnu.so",
    "openblas": f"{SITE}/numpy.libs/libscipy_openblas64_-56d6093b.so",
    "python": "/python/lib/libpython3.11.so.1.0",
    "dynload": "/python/lib/python3.11/lib-dynload/_json.cpython-311-x86_64-linux-gnu.so",
    "libc": "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "libm": "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "gomp": "/usr/lib/x86_64-linux-gnu/libgomp.so.1",
    "vdso": "[vdso]",
    "libcrypto": "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "pandas": f"{SITE}/pandas/_libs/algos.cpython-311-x86_64-linux-gnu.so",
    "libffi": "/usr/lib/x86_64-linux-gnu/libffi.so.8",
    "ctypes": "/python/lib/python3.11/lib-dynload/_ctypes.cpython-311-x86_64-linux-gnu.so",
    "own": "/home/somebody/_fast.so",
    "cuda": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
    "mkl": "/conda/lib/libmkl_avx512.so.2",
    "anonymous": "//anon",
    "perf_map": "/tmp/perf-4711.map",
    "kernel": "[kernel.kallsyms]",
    "rs_core": "/src/crates/toy-core/src/training/gae/baseline.rs",
    "rs_python": "/src/crates/toy-python/src/training.rs",
    "rs_pyo3": "/cargo/registry/src/index/pyo3-0.30.1/src/impl_/trampoline.rs",
    "rs_numpy": "/cargo/registry/src/index/numpy-0.30.0/src/array.rs",
    "rs_std": "/rustc/59807616e1fa2540724bfbac14d7976d7e4a3860/library/core/src/ptr/mod.rs",
    "rs_rayon": "/cargo/registry/src/index/rayon-core-1.13.0/src/latch.rs",
    "py": "/src/toy/learner/ppo.py",
}
EVAL = "_PyEval_EvalFrameDefault@python"


def stack(*frames: str) -> tuple[Frame, ...]:
    """Frames from "name@library", outermost first."""
    named = (frame.rpartition("@") for frame in frames)
    return tuple(Frame(name, LIBRARIES[library]) for name, _, library in named)


@pytest.mark.parametrize(
    ("layer", "phase", "frames"),
    [
        # Python and what works for it.
        ("python", "", [EVAL]),
        ("python", "", ["train@py"]),
        ("python", "", [EVAL, "_PyObject_Malloc@python"]),
        ("python", "", [EVAL, "py_scan@dynload"]),
        ("python", "", [EVAL, "clock_gettime@vdso"]),
        # NumPy, the libraries below it, and what it asks of Python's runtime.
        ("numpy", "", [EVAL, "array_exp@numpy", "exp@libm"]),
        ("numpy", "", ["train@py", "ufunc@numpy", "dgemm_kernel@openblas"]),
        ("numpy", "", [EVAL, "array_new@numpy", "_PyObject_Malloc@python"]),
        # Other native code; the interpreter's functions that it calls work for it, NumPy's do not.
        ("native", "", [EVAL, "EVP_hash@dynload", "SHA256_Update@libcrypto"]),
        ("native", "", [EVAL, "take@pandas", "PyDict_New@python"]),
        ("numpy", "", [EVAL, "take@pandas", "array_take@numpy"]),
        ("native", "", [EVAL, "call@ctypes", "ffi_call@libffi", "work@own", "memcpy@libc"]),
        ("native", "", ["work@own"]),
        # Code made at run time, and what several stand on, work for the native code that calls it.
        ("torch_inference", "", [EVAL, "dnnl_execute@torch", "0x7f@anonymous"]),
        ("torch_inference", "", ["jit_avx512_core_brgemm@perf_map"]),
        ("torch_inference", "", [EVAL, "at::copy_@torch", "cuMemcpy@cuda"]),
        ("numpy", "", [EVAL, "dot@numpy", "sgemm@mkl"]),
        ("unknown", "", ["sgemm@mkl"]),
        ("unknown", "", [EVAL, "made@perf_map"]),
        # Torch, by the phase.
        ("torch_inference", "policy_forward/action", [EVAL, "at::mm@torch"]),
        ("torch_forward", "gradient_update/forward", [EVAL, "at::mm@torch"]),
        ("torch_forward", "gradient_update/target_q", [EVAL, "at::mm@torch"]),
        ("torch_backward", "gradient_update/backward", ["mkl_blas_avx512_sgemm@torch"]),
        ("torch_optimizer", "gradient_update/critic/optimizer", [EVAL, "at::add_@torch"]),
        ("torch_optimizer", "gradient_update/clip", [EVAL, "at::norm@torch"]),
        ("torch_optimizer", "gradient_update/polyak", [EVAL, "at::lerp@torch"]),
        ("torch_inference", "gae_compute/value", [EVAL, "at::mm@torch"]),
        # Torch, by what the stack shows, against the phase.
        (
            "torch_backward",
            "gradient_update",
            [EVAL, "torch::autograd::Engine::execute@torch", "at::mm@torch"],
        ),
        ("torch_backward", "", ["_engine_run_backward@py", "mkl_blas_sgemm@torch"]),
        # Extensions that call C functions of Python or NumPy for their own ends.
        ("torch_inference", "", [EVAL, "THPVariable@torch_python", "PyTuple_New@python"]),
        ("boundary", "", [EVAL, "_core::gae::compute@core", "PyArray_New@numpy", "memcpy@libc"]),
        ("boundary", "", ["f@py", "from_vec@rs_numpy", "PyArray_New@numpy"]),
        # A policy called from Rust: the Python function below is Python again.
        ("python", "", ["_core::collect@core", EVAL, "PyDict_New@python"]),
        # Rust, by source file or by symbol; the standard library works for its caller.
        ("rust", "", ["f@py", "call@rs_pyo3", "compute_gae@rs_core"]),
        ("rust", "", ["f@py", "call@rs_pyo3", "compute_gae@rs_core", "drop@rs_std"]),
        ("boundary", "", ["f@py", "call@rs_pyo3", "compute_gae@rs_python", "drop@rs_std"]),
        ("rust", "", [EVAL, "_core::f@core", "<toy_core::Env as toy_core::RLEnv>::step@core"]),
        ("rust", "", [EVAL, "_core::f@core", "toy_core::step@core", "memcpy@libc"]),
        ("boundary", "", [EVAL, "pyo3::impl_::trampoline::trampoline@core"]),
        ("rust", "", ["std::thread::start@core", "rayon_core::join::call@core"]),
        # The environment is Python code and NumPy in its phase, and nothing else there is.
        ("env_python", "env_step/python_env", ["step@py"]),
        ("env_python", "env_step/python_env", [EVAL, "array_add@numpy"]),
        ("rust", "env_step/python_env", [EVAL, "toy_core::step@core"]),
        ("python", "env_step", ["step@py"]),
        # The kernel: seen by perf, guessed from libc's wrappers by py-spy.
        ("kernel", "", [EVAL, "at::empty@torch", "asm_exc_page_fault@kernel"]),
        ("kernel", "", ["f@py", "os_read@python", "read@libc"]),
        ("kernel", "", ["f@py", "os_read@python", "__GI___readv@libc", "do_readv@kernel"]),
        # Waiting, and waiting for a parallel section.
        ("idle", "", ["f@py", "time_sleep@python", "clock_nanosleep@libc"]),
        ("idle", "", ["f@py", "PyThread_acquire_lock_timed@python", "0x7f0@libc", "0x7f1@libc"]),
        ("gil", "", ["f@py", "take_gil@python", "pthread_cond_timedwait@libc"]),
        ("gil", "", ["f@py", "ufunc@numpy", "pthread_cond_timedwait@libc"]),  # as py-spy tells it
        ("idle", "", ["grpc_poll@libcrypto", "pthread_cond_timedwait@libc"]),  # no thread of Python
        ("idle", "wait_rollout", ["f@py", "recv@rs_python", "futex_wait@rs_std", "syscall@libc"]),
        ("rust", "", ["f@py", "step@rs_core", "wait@rs_rayon", "futex_wait@rs_std"]),
        ("torch_inference", "", ["f@py", "at::mm@torch", "GOMP_parallel@gomp"]),
    ],
)
def test_a_stack_belongs_to_the_innermost_known_owner(
    layer: str, phase: str, frames: list[str]
) -> None:
    assert CLASSIFIER.classify(stack(*frames), phase) == layer


def test_who_is_responsible_for_kernel_time_is_its_caller() -> None:
    fault = stack(EVAL, "at::empty@torch", "asm_exc_page_fault@kernel")
    assert CLASSIFIER.classify(fault, "policy_forward", see_kernel=False) == "torch_inference"
    read = stack("f@py", "os_read@python", "read@libc")
    assert CLASSIFIER.classify(read, "", see_kernel=False) == "python"


@pytest.mark.parametrize("name", ["python3.13t", "libpython3.13t.so.1.0", "libpython3.11d.so.1.0"])
def test_an_interpreter_of_another_kind_is_one_too(name: str) -> None:
    frames = Frame("f", "/home/train.py", 1), Frame("PyDict_New", f"/python/{name}")
    assert CLASSIFIER.classify(frames, "") == "python"


def test_a_stack_that_does_not_wait_is_no_wait() -> None:
    assert CLASSIFIER.wait_layer(stack(EVAL, "at::mm@torch"), "") is None


@pytest.mark.parametrize(
    ("layer", "frames"),
    [
        # A pool's own thread waits for work, until code that is somebody's runs in it.
        ("idle", ["start_thread@libc", "gomp_thread_start@gomp", "gomp_team_barrier_wait@gomp"]),
        ("idle", ["std::sys::thread_start@own", "rayon_core::registry::main_loop@own"]),
        ("torch_inference", ["gomp_thread_start@gomp", "at::sum@torch", "GOMP_barrier@gomp"]),
        # Who entered the section works, also where the stack was cut off outside of it.
        ("torch_inference", ["at::mm@torch", "GOMP_parallel@gomp"]),
        ("rust", [EVAL, "rayon_core::registry::in_worker_cold@core"]),
        ("native", [EVAL, "fit@own", "GOMP_parallel@gomp"]),
        ("numpy", [EVAL, "dot@numpy", "sgemm@mkl", "GOMP_parallel@gomp"]),
    ],
)
def test_a_wait_in_a_parallel_section_is_work_of_who_entered_it(
    layer: str, frames: list[str]
) -> None:
    assert CLASSIFIER.wait_layer(stack(*frames, "futex_wait@kernel"), "") == layer


@pytest.mark.parametrize(
    ("layer", "module"),
    [
        # A folder may have the name of a library.
        ("native", "/home/me/torch/_fast.so"),
        ("native", "/conda/envs/numpy/lib/python3.11/site-packages/pandas/_libs/algos.so"),
        ("native", "/home/me/nvidia/work.so"),
        ("native", "/home/me/triton/.venv/lib/python3.11/site-packages/zstd.so"),
        # The library itself, by whatever path.
        ("torch_inference", "torch/lib/libshm.so"),
        ("torch_inference", f"{SITE}/torch/lib/libgomp-a34b3233.so.1"),
        ("torch_inference", "/opt/libtorch/lib/libc10.so"),
        ("torch_inference", "/build/torch/csrc/autograd/engine.cpp"),
        ("numpy", "/usr/lib/python3/dist-packages/numpy/core/_multiarray_umath.so"),
        ("numpy", "/var/task/numpy/_core/_multiarray_umath.so"),
        ("numpy", "numpy.libs/libquadmath-96973f99.so.0.0.0"),
        ("unknown", f"{SITE}/nvidia/cusparse/lib/libcusparse.so.12"),
        ("unknown", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ptxjitcompiler.so.1"),
        ("unknown", "/tmp/torchinductor_me/triton/0/AB/cubin.so"),
    ],
)
def test_a_library_is_known_by_where_packages_lie_and_not_by_any_folder(
    layer: str, module: str
) -> None:
    assert CLASSIFIER.classify((Frame("work", module),), "") == layer


def test_what_stays_unknown_is_unknown_and_never_python() -> None:
    assert CLASSIFIER.classify((), "") == "unknown"
    assert CLASSIFIER.classify((Frame("[unknown]", "[unknown]"),), "") == "unknown"
    assert CLASSIFIER.classify(stack("memcpy@libc"), "") == "unknown"
    assert CLASSIFIER.classify(stack(EVAL, "0x7f@anonymous"), "") == "unknown"


def test_the_part_of_torchs_work_tells_its_role_where_no_phase_does() -> None:
    kernel = stack(EVAL, "at::mm@torch")
    told = {
        part: CLASSIFIER.classify(kernel, "", part=part)
        for part in ("", "grad", "no_grad", "backward", "optimizer")
    }
    assert told == {
        "": "torch_inference",
        "grad": "torch_forward",
        "no_grad": "torch_inference",
        "backward": "torch_backward",
        "optimizer": "torch_optimizer",
    }


@pytest.mark.parametrize(
    "module",
    [
        "<frozen importlib._bootstrap>",
        f"{SITE}/torch/_dynamo/convert_frame.py",
        f"{SITE}/torch/_inductor/compile_fx.py",
        f"{SITE}/numba/core/compiler.py",
        f"{SITE}/jax/_src/compiler.py",
    ],
)
def test_what_imports_or_compiles_is_of_the_start_up(module: str) -> None:
    inside = (Frame("f", module), *stack("train@py", "dlopen@libc"))
    assert CLASSIFIER.classify(inside, "") == "startup"
    assert CLASSIFIER.classify(inside[1:], "") != "startup"


def test_compiled_code_that_runs_is_no_start_up() -> None:
    ran = (Frame("compile_wrapper", f"{SITE}/torch/_dynamo/eval_frame.py"), *stack("at::mm@torch"))
    assert CLASSIFIER.classify(ran, "") == "torch_inference"


def test_every_layer_has_a_title() -> None:
    assert len(set(TITLES.values())) == len(LAYERS) == 15


@pytest.mark.parametrize(
    ("module", "short"),
    [
        (LIBRARIES["torch"], "torch/lib/libtorch_cpu.so"),
        (LIBRARIES["libc"], "libc.so.6"),
        (LIBRARIES["rs_core"], "crates/toy-core/src/training/gae/baseline.rs"),
        (LIBRARIES["rs_pyo3"], "pyo3-0.30.1/src/impl_/trampoline.rs"),
        (LIBRARIES["rs_std"], "library/core/src/ptr/mod.rs"),
        (LIBRARIES["py"], "toy/learner/ppo.py"),
        ("/python/lib/python3.11/threading.py", "threading.py"),
        ("/python/lib/python3.14t/threading.py", "threading.py"),
        ("/home/somebody/train.py", "train.py"),
        ("<string>", "<string>"),
    ],
)
def test_shown_modules_say_nothing_of_the_machine(module: str, short: str) -> None:
    assert CLASSIFIER.short_module(module) == short
