"""Addresses in libraries and programs, by an addr2line that is a stand-in."""

import os
from pathlib import Path

import pytest
from python_scripts import script

from rlox_opt.sampling.addresses import resolver
from rlox_opt.sampling.samples import Frame
from rlox_opt.system import elf

ADDR2LINE = """
import sys
for line in sys.stdin:
    address = int(line, 16)
    print(f"{address:#x}\\ninner_{address:x}\\n/src/inner.rs:3 (discriminator 1)")
    print(f"outer\\n{'/src/outer.rs' if address != 0x99 else 'thing.1f-cgu.0'}:?")
"""


@pytest.fixture(autouse=True)
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "addr2line", ADDR2LINE)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(elf, "segments", lambda path: [(0, 0x40, 0), (0x40, 0x100, 0x1040)])


def test_what_is_inlined_follows_what_it_is_inlined_into() -> None:
    frame = Frame("symbol", "/lib/thing.so", 0x51)
    outer, inner = resolver([frame])(frame)
    assert outer == Frame("outer", "/src/outer.rs", None)
    assert inner == Frame("inner_51", "/src/inner.rs", 3)


def test_a_place_in_a_file_is_looked_up_by_the_address_that_it_is_loaded_at() -> None:
    frames = [Frame("symbol", "/lib/thing.so", place) for place in (0x3F, 0x51, 0x200)]
    resolved = resolver(frames, places=True)
    assert [resolved(of)[-1].name for of in frames] == ["inner_3f", "inner_1051", "inner_200"]


def test_a_unit_of_the_compiler_is_no_source() -> None:
    frame = Frame("symbol", "/lib/thing.so", 0x99)
    assert [of.module for of in resolver([frame])(frame)] == ["/src/inner.rs"]


def test_of_another_frame_nothing_is_known() -> None:
    known, other = (Frame("symbol", f"/lib/{name}.so", 1) for name in ("known", "other"))
    assert resolver([known])(other) == (other,)
