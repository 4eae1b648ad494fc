"""What compiled programs tell of their allocator, which a crate may have linked in."""

import shutil
import sys
from pathlib import Path

import pytest

from rlox_opt.system import elf

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="programs here are of another kind")


@pytest.mark.parametrize(
    ("name", "allocator"),
    [
        (b"", "off"),
        (b"mi_malloc_aligned", "mimalloc"),
        (b"_rjem_mallocx", "jemalloc"),
        (b"<jemalloc>: ", "jemalloc"),
        (b"sn_rust_alloc", "snmalloc"),
    ],
)
def test_an_allocator_is_known_by_its_names(tmp_path: Path, name: bytes, allocator: str) -> None:
    program = shutil.which("true")
    assert program
    path = tmp_path / "program"
    path.write_bytes(Path(program).read_bytes() + b"\0" + name + b"\0")
    assert elf.told([path])["allocator"] == allocator
