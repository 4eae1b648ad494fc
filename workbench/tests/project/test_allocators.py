"""Which allocator a commit's sources ask for, and which one a compiled program tells of."""

from pathlib import Path

import pytest
from small_projects import repository

from rlox_opt.project import allocators
from rlox_opt.project.commits import Commits

MIMALLOC = """
#[cfg(feature = "mimalloc")]
#[global_allocator]
#[allow(missing_docs)]
pub static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;
"""


def declared(folder: Path, **files: str) -> str:
    (commit,) = repository(folder / "repo", files)
    return allocators.declared(Commits(folder / "repo", folder / "beside"), commit)


@pytest.mark.parametrize("path", ["src/lib.rs", "crates/a b/src/deep/mod.rs"])
def test_it_is_named_with_its_file(tmp_path: Path, path: str) -> None:
    said = declared(tmp_path, **{path: MIMALLOC, "src/other.rs": "fn main() {}"})
    assert said == f"mimalloc::MiMalloc in {path}"


def test_those_of_tests_and_of_comments_do_not_count(tmp_path: Path) -> None:
    said = declared(
        tmp_path,
        **{
            "tests/memory.rs": MIMALLOC,
            "benches/x.rs": MIMALLOC,
            "src/lib.rs": "// a #[global_allocator] slows this\n",
            "README.md": MIMALLOC,
        },
    )
    assert said == "none"
