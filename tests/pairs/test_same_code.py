"""No pair's twins are one and the same code: by what runs.

Unoptimised, so that no function is inlined here and called there; then the same source gives the
same lines. Counts alone would not do: P9's twins differ, and take as many instructions.
"""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from rlox._laboratory import pairs
from rlox_opt.plan import counts

ROOT = Path(__file__).parents[2]
WORKLOADS = {
    (id_, workload): sizes[0]
    for id_, workload, sizes in pairs.catalogue()
    if not workload.endswith("_numpy")  # these need an interpreter
}
_FILE = re.compile(r"f[lie]=\((\d+)\)(?: (.*))?")
_NAMED = re.compile(r"cf[li]=\((\d+)\) (.*)")
_COST = re.compile(r"(\*|[+-]?\d+) (\d+)")


def lines_run(listing: str, of: str) -> set[tuple[str, int]]:
    """The source lines, of files whose path holds `of`, that callgrind saw run. Numbers may stand
    for names told before, and a line's number may be told by its distance from the one before."""
    names: dict[str, str] = {}
    found = set()
    file, number, called = "", 0, False
    for line in listing.splitlines():
        if named := _NAMED.match(line):
            names[named[1]] = named[2]
        elif at := _FILE.match(line):
            file = names.setdefault(at[1], at[2] or "")
        elif line.startswith("calls="):
            called = True
        elif cost := _COST.match(line):
            told = cost[1]
            moved = told[0] in "+-"
            number = number if told == "*" else number + int(told) if moved else int(told)
            if not called and of in file:  # what a call costs is its function's
                found.add((file, number))
            called = False
    return found


def program() -> Path:
    folder = ROOT / "target" / "same-code"
    subprocess.run(
        ["cargo", "build", "--quiet", "--locked", "-p", "rlox-bench", "--bin", "count",
         "--target-dir", folder],
        cwd=ROOT, check=True,
    )  # fmt: skip
    return folder / "debug" / "count"


def ran(count: Path, id_: str, workload: str, twin: str, folder: Path) -> set[tuple[str, int]]:
    size = [f"{name}={n}" for name, n in WORKLOADS[id_, workload].items()]
    out = folder / f"{id_}-{workload}-{twin}"
    subprocess.run(
        ["valgrind", "--quiet", "--vgdb=no", "--tool=callgrind", "--toggle-collect=*measured*",
         f"--callgrind-out-file={out}", count, id_, workload, twin, "2", *size],
        check=True, capture_output=True,
    )  # fmt: skip
    found = lines_run(out.read_text(), "crates/rlox-core/src/")
    assert found, f"callgrind saw nothing of {id_} {workload}"
    return found


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_pair_has_one_and_the_same_code_for_both_twins(tmp_path: Path) -> None:
    """In one build, since no feature changes a pair of the core."""
    if not shutil.which("valgrind") or not shutil.which("cargo"):
        pytest.skip("valgrind or cargo is not installed")
    count = program()
    same = {
        (id_, workload)
        for id_, workload in WORKLOADS
        if len({frozenset(ran(count, id_, workload, t, tmp_path)) for t in counts.TWINS}) == 1
    }
    assert not same


def test_lines_are_read_as_callgrind_writes_them() -> None:
    listing = """fl=(1) /src/core/a.rs
fn=(1) one
10 5
+2 7
cfi=(2) /src/core/b.rs
cfn=(2) two
calls=1 30
* 900
fi=(3) /elsewhere/c.rs
40 2
fe=(1)
-1 3
fl=(2)
31 4
"""
    a, b = "/src/core/a.rs", "/src/core/b.rs"
    assert lines_run(listing, "core/") == {(a, 10), (a, 12), (a, 39), (b, 31)}
