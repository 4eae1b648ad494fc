"""What a compiled library shows of how it was made. It must be ELF, as on Linux."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from elftools.common.exceptions import ELFError
from elftools.elf.constants import SH_FLAGS

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

_MAGIC = b"\x7fELF"
# Sections that are loaded and have no influence on the code: identifiers of the build.
_NO_CODE = (".note.gnu.build-id", ".gnu_debuglink", ".note.package")
_UNITS = 64  # of debug information that are searched for their compiler's options
# Functions that Cython's generated code calls if it reports every call to a tracer: from Python
# 3.11, and from 3.13. Before, it uses the interpreter's fields, and only a function's name shows
# that.
_TRACING = ("PyThreadState_EnterTracing", "PyMonitoring_EnterScope")
_TRACES = b"__Pyx_TraceSetupAndCall"
_LINES = "_PyMonitoring_FireLineEvent"
_ASSERTS = ("__assert_fail", "__assert_rtn", "_assert")
_ALLOCATORS = {
    "jemalloc": (b"<jemalloc>", b"_rjem_malloc", b"libjemalloc"),
    "mimalloc": (b"mimalloc: ", b"mi_malloc", b"libmimalloc"),
    "tcmalloc": (b"tcmalloc",),
    "snmalloc": (b"snmalloc", b"sn_rust_alloc"),
    "rpmalloc": (b"rpmalloc",),
}
_LEVEL = re.compile(r"(?<!\S)-O(\w*)")


def is_elf(content: bytes) -> bool:
    """Whether a file's content is an ELF library or program."""
    return content.startswith(_MAGIC)


def loaded(content: bytes) -> bytes:
    """The parts that are in memory when it runs: no symbols, no debug information, no identifiers
    of the build. If the file cannot be parsed, all of it."""
    parts = []
    try:
        for section in _parsed(io.BytesIO(content)).iter_sections():
            if section["sh_flags"] & SH_FLAGS.SHF_ALLOC and section.name not in _NO_CODE:
                data = b"" if section["sh_type"] == "SHT_NOBITS" else section.data()
                parts += [f"{section.name} {section['sh_size']}\0".encode(), data]
    except (ELFError, ValueError, KeyError, UnicodeDecodeError):
        return content
    return b"".join(parts)


def segments(path: Path) -> list[tuple[int, int, int]]:
    """The loaded segments of a program or library: offset in the file, length there, and address.
    Empty if the file cannot be read."""
    with contextlib.suppress(OSError, ELFError), path.open("rb") as file:
        return [
            (of["p_offset"], of["p_filesz"], of["p_vaddr"])
            for of in _parsed(file).iter_segments("PT_LOAD")
        ]
    return []


def told(paths: Iterable[Path]) -> dict[str, str]:
    """What the libraries among some files show together: "compiler", "optimisation" (if debug
    information has it), "debug information", "assertions", "Cython's tracing", "allocator". Empty
    if none is such a library."""
    found: dict[str, set[str]] = {}
    for path in paths:
        with contextlib.suppress(OSError, ELFError, ValueError, KeyError):
            if path.is_file() and is_elf(content := path.read_bytes()):
                for what, values in _told(content).items():
                    found.setdefault(what, set()).update(values)
    # "on" in one library makes the whole "on".
    return {
        what: ", ".join(sorted(values - {"off"} or {"off"}))
        for what, values in found.items()
        if values
    }


def _parsed(file: BinaryIO) -> ELFFile:
    from elftools.elf.elffile import ELFFile  # slow to import, and few verbs need it

    return ELFFile(file)


def _told(content: bytes) -> Mapping[str, set[str]]:
    elf = _parsed(io.BytesIO(content))
    names = {section.name for section in elf.iter_sections()}
    asked = _asked_of_others(elf)
    tracing = {"on"} if asked & {*_TRACING} or _TRACES in content else {"off"}
    if _LINES in asked:
        tracing = {"on, of every line"}
    comment = elf.get_section_by_name(".comment")
    compilers = comment.data().split(b"\0") if comment else []
    levels = {of for text in islice(_options(elf), _UNITS) for of in _LEVEL.findall(text)[-1:]}
    return {
        "compiler": {of.decode(errors="replace").strip() for of in compilers if of.strip()},
        "optimisation": {f"-O{of}" for of in levels},
        "debug information": {"on" if {".debug_info", ".zdebug_info"} & names else "off"},
        "assertions": {"on" if asked & {*_ASSERTS} else "off"},
        "Cython's tracing": tracing,
        "allocator": {
            name for name, marks in _ALLOCATORS.items() if any(of in content for of in marks)
        }
        or {"off"},
    }


def _asked_of_others(elf: ELFFile) -> set[str]:
    """The functions of other libraries that it calls."""
    from elftools.elf.sections import SymbolTableSection

    symbols = elf.get_section_by_name(".dynsym")
    if not isinstance(symbols, SymbolTableSection):
        return set()
    return {of.name for of in symbols.iter_symbols() if of["st_shndx"] == "SHN_UNDEF"}


def _options(elf: ELFFile) -> Iterator[str]:
    """The options of the compiler for each file that it compiled, from debug information."""
    if not elf.has_dwarf_info():
        return
    with contextlib.suppress(ELFError, KeyError, AssertionError):
        for unit in elf.get_dwarf_info(relocate_dwarf_sections=False).iter_CUs():
            producer = unit.get_top_DIE().attributes.get("DW_AT_producer")
            if producer is not None and isinstance(producer.value, bytes):
                yield producer.value.decode(errors="replace")
