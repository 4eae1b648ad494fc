"""Both sides of a project without a Cargo.lock are built with the same crates."""

from pathlib import Path

import pytest
import small_projects
from small_projects import builds, of, own, repository, said

from rlox_opt.project.builders import cargo_locks, wheels

# Takes the newest crates there are, as cargo does where there is no Cargo.lock.
RESOLVES = """
from uuid import uuid4
lock = pathlib.Path("crate", "Cargo.lock")
if not lock.exists():
    lock.write_text(f"# {uuid4()}")
files["told.py"] = f"TOLD = {lock.read_text()!r}".encode()
"""


@pytest.fixture(autouse=True)
def nothing_from_outside(
    tmp_path: Path, machine: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small_projects.index(tmp_path / "index", monkeypatch)
    cache, compilers = machine
    monkeypatch.setenv("UV_CACHE_DIR", str(cache))
    monkeypatch.setattr(wheels, "compilers", lambda _: compilers)


def test_the_later_side_has_the_crates_of_the_earlier_one(tmp_path: Path) -> None:
    files = own(more=RESOLVES, **{"crate/Cargo.toml": ""})
    first, second = repository(tmp_path / "thing", files, {"thing.py": "ONE = 2\n"})
    project = builds(tmp_path / "thing")
    base = project.build(of(first))
    head, alone = project.build(of(second), base), project.build(of(second))
    told = [said(one, "import told; print(told.TOLD)") for one in (base, head, alone)]
    assert told[0] == told[1] != told[2]
    assert project.build(of(second), base).folder == head.folder, "it is kept"


def test_what_a_commit_locks_itself_is_the_same_build_beside_any_other(tmp_path: Path) -> None:
    files = own(more=RESOLVES, **{"crate/Cargo.toml": "", "crate/Cargo.lock": "own"})
    first, second = repository(tmp_path / "thing", files, {"thing.py": "ONE = 2\n"})
    project = builds(tmp_path / "thing")
    head = project.build(of(second), project.build(of(first)))
    assert said(head, "import told; print(told.TOLD)") == "own"
    assert project.build(of(second)).folder == head.folder


def test_a_build_that_was_interrupted_before_its_crates_were_noted_is_made_anew(
    tmp_path: Path,
) -> None:
    files = own(more=RESOLVES, **{"crate/Cargo.toml": ""})
    (first,) = repository(tmp_path / "thing", files)
    project = builds(tmp_path / "thing")
    told = []
    for _ in range(2):
        built = project.build(of(first))
        told.append(said(built, "import told; print(told.TOLD)"))
        (built.folder.parent / "locks.json").unlink()
    assert told[0] != told[1]


def test_what_a_checkout_has_stays_and_no_link_is_followed(tmp_path: Path) -> None:
    checkout, outside = tmp_path / "checkout", tmp_path / "outside"
    for folder in (checkout / "there", checkout / "lacking", outside):
        folder.mkdir(parents=True)
    (checkout / "there/Cargo.lock").write_text("own")
    (checkout / "Cargo.lock").symlink_to(outside / "new")
    (checkout / "link").symlink_to(outside)
    names = ("there", "lacking", "link", "nowhere", ".")
    cargo_locks.lay({str(Path(name, "Cargo.lock")): "theirs" for name in names}, checkout)
    assert (checkout / "there/Cargo.lock").read_text() == "own"
    assert (checkout / "lacking/Cargo.lock").read_text() == "theirs"
    assert not [*outside.iterdir()]
