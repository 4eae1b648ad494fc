"""The ways of running the suite: capped instructions, and other users, folders, locales."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STRANGER = 61234  # a user and a group that nobody is


class Impossible(Exception):
    """This machine cannot do it; the message says why."""


@dataclass(frozen=True)
class Place:
    """A checkout with its `.venv`; the words that commands there begin with; Python's own options;
    and the environment variables."""

    root: Path = ROOT
    before: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=lambda: {**os.environ})


@dataclass(frozen=True)
class Kind:
    """A way of running, described in a line. `place` makes one in an empty folder, or raises
    `Impossible`."""

    what: str
    place: Callable[[Path], AbstractContextManager[Place]]


@contextlib.contextmanager
def _settings(settings: dict[str, str], folder: Path) -> Iterator[Place]:
    yield Place(environment={**os.environ, **settings})


def _set(**settings: str) -> Kind:
    told = " ".join(f"{name}={value}" for name, value in settings.items())
    return Kind(told, partial(_settings, settings))


@contextlib.contextmanager
def _without_utf_8(folder: Path) -> Iterator[Place]:
    """Everything that tests start has ASCII only; the tests themselves read its output."""
    settings = {"LC_ALL": "C", "PYTHONUTF8": "0"}
    yield Place(python=("-X", "utf8"), environment={**os.environ, **settings})


@contextlib.contextmanager
def _other_temporary_folder(folder: Path) -> Iterator[Place]:
    (odd := folder / "temporary files, ü").mkdir()
    yield Place(environment={**os.environ, "TMPDIR": str(odd)})


@contextlib.contextmanager
def _as_intel(cbwr: str, folder: Path) -> Iterator[Place]:
    """MKL calls a function of its own to see whether the processor is Intel's, and uses its better
    kernels only then. A library that is loaded before MKL replaces that function."""
    if "GenuineIntel" in Path("/proc/cpuinfo").read_text():
        raise Impossible("this processor is Intel's: the suite as it is does it")
    source, library = folder / "intel.c", folder / "intel.so"
    names = ("mkl_serv_intel_cpu_true", "mkl_serv_intel_cpu")
    source.write_text("".join(f"int {name}(void) {{ return 1; }}\n" for name in names))
    compiler = shutil.which("cc")
    if compiler is None:
        raise Impossible("no C compiler (cc) here")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    yield Place(environment={**os.environ, "LD_PRELOAD": str(library), "MKL_CBWR": cbwr})


# The interpreter and Rust may lie in a home closed to others. An open one takes its place, with
# only those folders that are named before "--", in a namespace that ends with the command.
_OPEN_HOME = """
mount --bind "$HOME" "$0" && mount -t tmpfs -o mode=755 home "$HOME" || exit 3
while [ "$1" != -- ]; do
    [ -d "$0/$1" ] && mkdir -p "$HOME/$1" && mount --bind "$0/$1" "$HOME/$1"; shift
done
shift; umount "$0"; exec "$@"
"""


@contextlib.contextmanager
def _for_a_stranger(folder: Path) -> Iterator[Place]:
    """A clone of the commit, set up in a folder whose name has a space. It belongs to a user who is
    not root, and whose home and temporary files lie in such folders too."""
    if os.geteuid() != 0:
        raise Impossible("only root can become another user")
    for tool in ("setpriv", "unshare"):
        if shutil.which(tool) is None:
            raise Impossible(f"no {tool} here")
    root, home, temporary = (folder / name for name in ("the clone", "its home", "temporary files"))
    for made in (home, temporary, behind := folder / "behind"):
        made.mkdir()
    subprocess.run(["git", "clone", "--quiet", ROOT, root], check=True)
    subprocess.run(["make", "--silent", "setup"], cwd=root, check=True)
    for of in (root, home, temporary):
        subprocess.run(["chown", "--recursive", f"{STRANGER}:{STRANGER}", of], check=True)
    folder.parent.chmod(0o711)
    folder.chmod(0o777)  # pytest's report is written here
    become = f"--reuid={STRANGER} --regid={STRANGER} --clear-groups".split()
    mine = Path.home()
    environment = {
        "CARGO_HOME": str(mine / ".cargo"), "RUSTUP_HOME": str(mine / ".rustup"), **os.environ,
        "TMPDIR": str(temporary),
    }  # fmt: skip
    needed = [
        Path(sys.base_prefix),
        *(Path(environment[of]) for of in ("CARGO_HOME", "RUSTUP_HOME")),
    ]
    inside = [str(of.relative_to(mine)) for of in needed if of.is_relative_to(mine)]
    before = (
        "unshare", "--mount", "sh", "-c", _OPEN_HOME, str(behind), *inside, "--",
        "setpriv", *become, "env", f"HOME={home}",
    )  # fmt: skip
    yield Place(root, before, environment=environment)


_NUMPY_SSE = {"NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR"}
_SSE = {
    "ATEN_CPU_CAPABILITY": "default", "MKL_CBWR": "COMPATIBLE", "ONEDNN_MAX_CPU_ISA": "SSE41",
    "OPENBLAS_CORETYPE": "Nehalem", "RLOX_INSTRUCTIONS": "portable",
}  # fmt: skip
_AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2", "MKL_CBWR": "AVX2,STRICT", "ONEDNN_MAX_CPU_ISA": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell", "RLOX_INSTRUCTIONS": "avx2",
}  # fmt: skip

KINDS: dict[str, Kind] = {
    # All at once: what most processors of ten years ago had, and what every x86-64 has.
    "avx2": _set(**_AVX2),
    "sse": _set(**_SSE, **_NUMPY_SSE),
    "intel": Kind("MKL as on Intel's, held to AVX2", partial(_as_intel, "AVX2,STRICT")),
    "intel-avx512": Kind("MKL as on Intel's, with AVX-512", partial(_as_intel, "AVX512,STRICT")),
    # One library at a time.
    **{f"torch-{of}": _set(ATEN_CPU_CAPABILITY=of) for of in ("default", "avx2")},
    **{f"mkl-{of.lower()}": _set(MKL_CBWR=of) for of in ("COMPATIBLE", "AUTO")},
    **{f"onednn-{of.lower()}": _set(ONEDNN_MAX_CPU_ISA=of) for of in ("SSE41", "AVX2")},
    **{f"rlox-{of}": _set(RLOX_INSTRUCTIONS=of) for of in ("portable", "avx2")},
    "numpy-sse": _set(OPENBLAS_CORETYPE="Nehalem", **_NUMPY_SSE),
    "libm-sse": _set(GLIBC_TUNABLES="glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F"),
    # Other surroundings.
    "locale": Kind("LC_ALL=C PYTHONUTF8=0 for all that tests start", _without_utf_8),
    "tmpdir": Kind("TMPDIR with a space and a letter that ASCII lacks", _other_temporary_folder),
    "user": Kind("another user, in a clone in a folder with a space", _for_a_stranger),
}
