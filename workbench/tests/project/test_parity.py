"""What two builds differ in: asked for, made by the commit, or refused."""

import re
from pathlib import Path
from typing import Any

import pytest

from rlox_opt.project import parity
from rlox_opt.project.artefacts import Artefact
from rlox_opt.project.commits import Revision
from rlox_opt.system.usage import UsageError

MADE = {
    "builder": "PEP 517, flit",
    "interpreter": "cpython 3.11.7 (/a)",
    "build requirements": "Cython",
    "build environment": "cython==3.0.1",
    "compilers": "cc: 12",
    "variables": "",
    "requirements": "numpy",
    "environment": "numpy==2.0\nscipy==1.1",
}
FOUND = {"compiler": "GCC 12", "optimisation": "-O3", "assertions": "off", "allocator": "off"}


def side(revision: Revision | None = None, found: Any = (), **made: str) -> Artefact:
    told = {**MADE, **{name.replace("_", " "): value for name, value in made.items()}}
    revision = revision or Revision("main", "1" * 40)
    return Artefact(revision, Path(), (), {}, 0.0, made=told, found=FOUND | dict(found))


def test_two_builds_that_are_made_the_same_way_differ_in_nothing() -> None:
    assert parity.findings(side(), side()) == []
    kept = side(not_checked_out="")  # the other one was kept before this was noted
    assert parity.findings(side(), kept) == []


@pytest.mark.parametrize(
    ("made", "told"),
    [
        (
            {"interpreter": "cpython 3.12.1 (/b)"},
            "the interpreter: .*; choose one that both can have: --python VERSION$",
        ),
        ({"compilers": "cc: 13"}, "compilers: cc: 12 in base, cc: 13 in head; run it again"),
        ({"variables": "CFLAGS=-O0"}, "variables: none in base, CFLAGS=-O0 in head; run it again"),
        (
            {"build_environment": "cython==3.1"},
            r"cython: 3\.0\.1 in base, 3\.1 in head, and neither",
        ),
        ({"environment": "numpy==2.1\nscipy==1.1"}, r"sides: --with numpy==VERSION$"),
        ({"environment": "numpy==2.0"}, r"scipy: 1\.1 in base, none in head, and neither commit"),
    ],
)
def test_what_nobody_asked_for_is_refused_with_the_remedy(made: Any, told: str) -> None:
    with pytest.raises(UsageError, match=told) as error:
        parity.findings(side(), side(**made))
    assert "\n" not in str(error.value)


def test_what_was_asked_for_is_told() -> None:
    other = Revision("main", "1" * 40, python="3.12")
    (told,) = parity.findings(side(), side(other, interpreter="cpython 3.12.1 (/b)"))
    assert told.startswith("the interpreter, as was asked for: cpython 3.11.7")
    extra = Revision("main", "1" * 40, extra=("numpy==1.26",))
    assert parity.findings(side(), side(extra, environment="numpy==1.26\nscipy==1.1")) == [
        "dependency numpy: 2.0 in base, 1.26 in head, as was asked for by --with."
    ]


def test_what_the_commits_metadata_asks_for_is_told() -> None:
    head = side(
        requirements="numpy>2",
        environment="numpy==2.1\nscipy==1.1",
        build_requirements="Cython>3",
        build_environment="cython==3.1",
        builder="PEP 517, mesonpy",
    )
    assert parity.findings(side(), head) == [
        "the commit changed how it is built: PEP 517, flit in base, PEP 517, mesonpy in head.",
        "build requirement cython: 3.0.1 in base, 3.1 in head, as the commit's own metadata asks "
        "for.",
        "dependency numpy: 2.0 in base, 2.1 in head, as the commit's own metadata asks for.",
    ]


def test_what_binaries_tell_is_the_commits_doing() -> None:
    head = side(found={"assertions": "on", "optimisation": "-O0"})
    assert parity.findings(side(), head) == [
        "the commit changed how it is built: optimisation is -O3 in base, -O0 in head.",
        "the commit changed how it is built: assertions is on in head alone.",
    ]


def test_a_release_is_built_elsewhere_which_is_told_and_not_refused() -> None:
    release = Revision("pypi:thing==1", "pypi:thing==1")
    base = side(release, builder="a release, from its wheel", compilers="", found={"compiler": "X"})
    assert parity.findings(base, side()) == [
        "how it is built: a release, from its wheel in base, PEP 517, flit in head.",
        "the release changed how it is built: compiler is X in base, GCC 12 in head.",
    ]


GLOBAL = "#[global_allocator]"


@pytest.mark.parametrize(
    ("base", "head", "told"),
    [
        ("mimalloc", "off", "dropped an allocator: .* from mimalloc in base, from the system's in"),
        ("off", "jemalloc", "took an allocator: .* from the system's in base, from jemalloc in"),
        ("mimalloc", "jemalloc", "changed an allocator: .* from mimalloc in base, from jemalloc"),
    ],
)
def test_an_allocator_that_came_or_went_is_named(base: str, head: str, told: str) -> None:
    sides = [side(found={"allocator": of, GLOBAL: f"{of} in lib.rs"}) for of in (base, head)]
    (finding,) = parity.findings(*sides)
    assert re.search(told, finding)


def test_an_allocator_that_neither_build_has_is_told_by_the_sources() -> None:
    base = side(found={GLOBAL: "mimalloc::MiMalloc in src/lib.rs"})
    (finding,) = parity.findings(base, side(found={GLOBAL: "none"}))
    assert "mimalloc::MiMalloc in src/lib.rs in base, none in head" in finding
    assert "both builds have memory from the system's all the same" in finding
    assert "--features" in finding


def test_an_allocator_that_stays_is_no_finding() -> None:
    assert parity.findings(side(found={GLOBAL: "none"}), side(found={GLOBAL: "none"})) == []


def test_a_toolchain_that_the_commit_chooses_is_told_and_another_compiler_then_borne() -> None:
    base = side(toolchain="", compilers="rustc 1.90")
    head = side(toolchain="rust-toolchain: 1.91", compilers="rustc 1.91")
    (finding,) = parity.findings(base, head)
    assert finding == (
        "the commit changed the toolchain: none in base, rust-toolchain: 1.91 in head."
    )
