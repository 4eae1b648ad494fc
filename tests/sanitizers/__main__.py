"""`make sanitize`: the data plane and its binding under AddressSanitizer and similar tools."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ASAN, TSAN, MIRI = (ROOT / "target" / name for name in ("asan", "tsan", "miri"))
PACKAGE, REPORTS = ASAN / "package", ASAN / "reports"
GOOD, FAILED, CANNOT_TELL = 0, 1, 2  # as workbench/rlox_opt/system/exits.py has them
TESTS = (
    "tests/boundary", "tests/buffer", "tests/env", "tests/advantage", "tests/pairs",
    "tests/test_recycled.py", "tests/learner/native",
)  # fmt: skip
# Where the calls of the binding are; the rest asks what they compute.
SHORT_TESTS = (
    "tests/boundary", "tests/buffer/test_replay.py", "tests/env/test_vec_env.py",
    "tests/env/test_async_collector.py", "tests/env/test_async_collector_ends.py",
    "tests/advantage/test_out.py", "tests/advantage/test_bad_arguments.py",
    "tests/test_recycled.py", "tests/learner/native/test_update_arguments.py",
)  # fmt: skip
# Of the core, where threads meet: the pool's, the collector's, and the two that an update has.
THREADED = ("pipeline::", "nn::ppo", "nn::sac", "env::", "training::", "llm::")
# Of the core, where `unsafe` is. The other tests of two threads take an hour under Miri.
UNSAFE = ("past_caches", "nn::packed", "nn::ppo", "nn::sac", "--skip", "two_threads")
# One test asks how the extension was built. The others fork while threads allocate. The allocator
# of GCC's AddressSanitizer (seen in version 12) does not wait for those threads, so a child gets
# the allocator's locks as they are, and may wait for ever in its next `malloc`: 11 of 800 children
# of a program in C that does nothing else, and none without the sanitizer. `make test` runs all.
NOT_UNDER_IT = (
    "tests/pairs/test_pairs.py::test_the_build_says_which_optimisations_are_on",
    "tests/boundary/test_forked_while_busy.py",
    "tests/boundary/test_hostile.py::test_hostile_calls_end_in_exceptions[both]",
)
_OVERFLOW = "import ctypes; ctypes.memset(ctypes.create_string_buffer(64), 0, 72)"
ADDRESS_OPTIONS = "allocator_may_return_null=1"
_EXAMPLES = """\
examples:
  make sanitize                           all parts; says of those left out why
  make sanitize ARGS=--short              the extension alone, with fewer tests and calls
  make sanitize ARGS="--only thread"      one part, which must be possible then

parts:
  core       the core's tests under AddressSanitizer
  extension  the binding's tests and hostile calls under AddressSanitizer
  thread     the core's tests that share work under ThreadSanitizer; needs rust-src, for the
             standard library that comes compiled hides from it what orders threads
  miri       the core's `unsafe` code in Miri; needs the nightly compiler's miri and rust-src

exit codes (make turns each but 0 into 2):
  0  nothing was found
  1  something was
  2  asked wrongly, or for a part that cannot be run here
"""


class CannotRunError(Exception):
    """Why a part cannot be run on this machine, and the remedy."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the parts; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="make sanitize", description=__doc__, epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parts: dict[str, Callable[[bool], bool]] = {
        "core": core, "extension": extension, "thread": thread, "miri": miri,
    }  # fmt: skip
    parser.add_argument("--only", nargs="+", choices=parts, metavar="PART", default=[])
    parser.add_argument("--skip", nargs="+", choices=parts, metavar="PART", default=[])
    parser.add_argument("--short", action="store_true", help="fewer tests and calls")
    arguments = parser.parse_args(argv)
    chosen = arguments.only or (["extension"] if arguments.short else [*parts])
    code = GOOD
    for name in (name for name in chosen if name not in arguments.skip):
        start = time.monotonic()
        try:
            result = "nothing found" if parts[name](arguments.short) else "FAILED"
        except CannotRunError as why:
            result = f"left out: {why}"
            code = max(code, CANNOT_TELL if name in arguments.only else GOOD)
        if result == "FAILED":
            code = FAILED
        print(f"==> {name}: {result} ({time.monotonic() - start:.0f} s)", flush=True)
        if code == FAILED:
            break
    return code


def core(_short: bool) -> bool:
    """The core's tests, at every level of vector instructions."""
    return ran(
        ["cargo", "test", "-p", "rlox-core", "--locked", "--features", "opt-all", *target(ASAN)],
        with_sanitizer("address") | {"ASAN_OPTIONS": ADDRESS_OPTIONS},
    )


def extension(short: bool) -> bool:
    """Hostile calls of the extension, and the tests of the binding."""
    start = time.monotonic()
    built = ran(
        ["cargo", "build", "-p", "rlox-python", "-p", "rlox-laboratory", "--locked",
         "--features", "accepted",
         "--profile", "release-baseline", *target(ASAN)],
        with_sanitizer("address")
        | {"PYO3_PYTHON": sys.executable, "PYO3_BUILD_EXTENSION_MODULE": "1"},
    )  # fmt: skip
    print(f"==> extension: built ({time.monotonic() - start:.0f} s)", flush=True)
    if not built:
        return False
    package()
    # GCC's library, for Python brings none. Reports go into files: tests want a silent stderr.
    # The path is quoted, since a space would end it.
    options = {"detect_leaks": "0", "max_allocation_size_mb": "600", "log_path": f"'{REPORTS}/of'"}
    library = subprocess.check_output(["gcc", "-print-file-name=libasan.so"], text=True).strip()
    env = {
        "LD_PRELOAD": library,
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": f"{PACKAGE}{os.pathsep}{HERE}",
        "RLOX_SANITIZED": str(PACKAGE),
        "ASAN_OPTIONS": ":".join([ADDRESS_OPTIONS, *(f"{k}={v}" for k, v in options.items())]),
    }
    python = [sys.executable, "-B"]
    ran([*python, "-c", _OVERFLOW], env, PACKAGE)
    if not told(show=False):
        print("AddressSanitizer does not report what is written past an array", flush=True)
        return False
    empty(REPORTS)
    calls = [
        "--count",
        "100000",
        "--threads",
        "3",
        "--megabytes",
        "0",
    ]  # some are in tests/boundary
    hostile = [*python, "tests/boundary/hostile.py", *calls]
    good = short or ran(hostile, env, PACKAGE, quiet=True)
    pytest = ["-m", "pytest", "-p", "sanitized", "-p", "no:cacheprovider", "-q", "-rs"]
    pytest += [word for test in NOT_UNDER_IT for word in ("--deselect", test)]
    several = ["--numprocesses", "auto", "--maxprocesses", "4", "--dist", "loadfile"]
    tests = SHORT_TESTS if short else TESTS
    good = ran([*python, *pytest, *several, *tests], env, PACKAGE) and good
    return not told() and good


def package() -> None:
    """The package with the sanitizer's extensions in place of the usual ones, in a folder in which
    Python starts, so that tests cannot find the usual ones."""
    for folder in (PACKAGE, REPORTS):
        empty(folder)
    for path in ROOT.iterdir():
        if path.name not in {"rlox", "target", ".git"}:
            (PACKAGE / path.name).symlink_to(path)
    shutil.copytree(ROOT / "rlox", PACKAGE / "rlox", ignore=shutil.ignore_patterns("*.so"))
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for module in ("_core", "_laboratory"):
        made = ASAN / host() / "release-baseline" / f"lib{module}.so"
        shutil.copy(made, PACKAGE / "rlox" / f"{module}{suffix}")
        assert b"__asan_report_load8" in made.read_bytes(), f"{made} is not for the sanitizer"


def empty(folder: Path) -> None:
    """An empty folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


def told(show: bool = True) -> bool:
    """Whether the sanitizer found anything, which is printed. Refused allocations do not count."""
    found = [
        text
        for path in REPORTS.iterdir()
        if "ERROR: " in (text := path.read_text(errors="replace"))
    ]
    print("\n".join(found) if show else "", end="", flush=True)
    return bool(found)


def thread(_short: bool) -> bool:
    """The core's tests with several threads. The standard library is compiled with the sanitizer
    too. In the precompiled one the sanitizer does not see how threads are ordered, and would report
    every Arc that two threads drop, and all that goes through a channel or a scope."""
    toolchain = with_source()
    build_std = ["-Zbuild-std", *target(TSAN)]
    command = ["cargo", *toolchain, "test", "-p", "rlox-core", "--lib", "--locked"]
    return ran(
        [*command, "--features", "opt-all", *build_std, "--", *THREADED],
        with_sanitizer("thread") | {"TSAN_OPTIONS": "halt_on_error=1", "PROPTEST_CASES": "16"},
    )


def miri(_short: bool) -> bool:
    """The core's unsafe code, checked by the language's own rules."""
    asked = subprocess.run(["cargo", "+nightly", "miri", "--version"], capture_output=True)
    if asked.returncode or not has_source("+nightly"):
        raise CannotRunError(
            "the nightly compiler here has no Miri: rustup component add --toolchain nightly miri "
            "rust-src"
        )
    return ran(
        ["cargo", "+nightly", "miri", "test", "-p", "rlox-core", "--locked", "--lib",
         "--target-dir", str(MIRI), "--", *UNSAFE],
        {"PROPTEST_CASES": "2", "MIRIFLAGS": "-Zmiri-disable-isolation"},
    )  # fmt: skip


def with_source() -> list[str]:
    """The option that selects a compiler with the standard library's source: none, or nightly."""
    for toolchain in ([], ["+nightly"]):
        if has_source(*toolchain):
            return toolchain
    raise CannotRunError(
        "no compiler here has the source of the standard library, which ThreadSanitizer must see "
        "compiled: rustup component add rust-src"
    )


def has_source(*toolchain: str) -> bool:
    """Whether rust-src is installed."""
    asked = subprocess.run(
        ["rustc", *toolchain, "--print", "sysroot"], capture_output=True, text=True
    )
    library = Path(asked.stdout.strip()) / "lib/rustlib/src/rust/library"
    return asked.returncode == 0 and (library / "std" / "Cargo.toml").exists()


def host() -> str:
    """The machine as the compiler names it."""
    (found,) = re.findall(
        r"^host: (.+)$", subprocess.check_output(["rustc", "-vV"], text=True), re.M
    )
    return str(found)


def target(folder: Path) -> list[str]:
    """cargo's options for the target folder and for this machine by name, with which build scripts
    are built without the sanitizer."""
    return ["--target-dir", str(folder), "--target", host()]


def with_sanitizer(name: str) -> dict[str, str]:
    """The variables for the stable compiler with a sanitizer."""
    return {"RUSTC_BOOTSTRAP": "1", "RUSTFLAGS": f"-Zsanitizer={name}"}


def ran(
    command: Iterable[str], env: Mapping[str, str], folder: Path = ROOT, quiet: bool = False
) -> bool:
    """Whether a command ended well; with `quiet` its output is printed only if it did not."""
    done = subprocess.run(
        [*command], cwd=folder, env={**os.environ, **env}, text=True,
        stdout=subprocess.PIPE if quiet else None,
    )  # fmt: skip
    if quiet and done.returncode:
        print(done.stdout, flush=True)
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
