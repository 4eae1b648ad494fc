"""A new optimisation's skeleton: complete, clean, and failing until it is filled."""

import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import projects
import pytest
import users_repository
from rlox_opt.cli.main import main
from rlox_opt.project import cards
from rlox_opt.project.project import Project
from rlox_opt.system.files import NotWrittenError

from optimizations import skeleton
from optimizations.skeleton import New, SkeletonError

ROOT = projects.HERE.cards.parent
TAKEN = [int(card.id[1:]) for card in cards.load(projects.HERE) if card.id.startswith("P")]
FREE, NEXT = (f"p{max(TAKEN) + n}" for n in (1, 2))
TITLE = 'Rewards "scaled" while they are stored'
SCALE = New(FREE, TITLE, "rewards_scaled_stored", "function", "rust", "training")
POOL = New(FREE, "Batches from a pool", "batch_pool", "type", "boundary", "buffer")
Plans = dict[New, dict[str, str]]


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the parts that `new` reads and writes. Whoever changes it has a `tree`, or puts
    back what it was."""
    root = tmp_path_factory.mktemp("new") / "copied"
    for part in ("crates", "optimizations"):
        shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / file, root)
    return projects.described(root)


@pytest.fixture
def tree(copied: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    ignored = shutil.ignore_patterns("__pycache__")
    return shutil.copytree(copied, tmp_path / "tree", ignore=ignored)


@pytest.fixture(scope="module")
def planned(copied: Path) -> Plans:
    """What is to be written there of each."""
    return {new: skeleton.plan(new, copied) for new in (SCALE, POOL)}


@pytest.fixture
def checkout(tree: Path) -> Path:
    """The same with the workbench itself, which finds its tree from where it lies."""
    ignored = shutil.ignore_patterns("__pycache__", "_*.so")
    shutil.copytree(ROOT / "rlox", tree / "rlox", ignore=ignored)
    for extension in (ROOT / "rlox").glob("_*.so"):
        (tree / "rlox" / extension.name).symlink_to(extension)
    return tree


def run(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlox_opt.cli.main", "new", *arguments],
        capture_output=True,
        text=True,
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout), "PYTHONDONTWRITEBYTECODE": "1"},
    )


Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """The verb in a folder, in this process: exit code, stdout, stderr."""

    def call(folder: Path, *arguments: str) -> tuple[int, str, str]:
        monkeypatch.chdir(folder)
        try:
            code = main(["new", *arguments])
        except SystemExit as left:
            code = int(left.code or 0)
        return (code, *capsys.readouterr())

    return call


def texts(tree: Path) -> dict[str, bytes]:
    """What lies in the tree, but for what Python compiles there by itself."""
    files = (path for path in tree.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {str(path): path.read_bytes() for path in files}


def test_every_part_is_written_and_every_file_named(tree: Path, call: Call) -> None:
    before = texts(tree)
    code, out, err = call(tree, FREE, TITLE)
    assert code == 0, err
    after = texts(tree)
    changed = {str(Path(p).relative_to(tree)) for p in after if before.get(p) != after[p]}
    assert changed == {
        "crates/rlox-core/src/training/rewards_scaled_stored/mod.rs",
        "crates/rlox-core/src/training/rewards_scaled_stored/baseline.rs",
        "crates/rlox-core/src/training/rewards_scaled_stored/optimized.rs",
        "crates/rlox-core/src/training/mod.rs",
        "crates/rlox-core/src/switchboard.rs",
        "crates/rlox-core/src/wiring.rs",
        "crates/rlox-core/Cargo.toml",
        "crates/rlox-bench/Cargo.toml",
        "crates/rlox-python/Cargo.toml",
        "crates/rlox-laboratory/Cargo.toml",
        f"crates/rlox-bench/src/pairs/{FREE}_rewards_scaled_stored.rs",
        "crates/rlox-bench/src/pairs/mod.rs",
        "crates/rlox-bench/src/pairs/tests.rs",
        f"optimizations/{FREE}_rewards_scaled_stored.toml",
    }
    assert all(f"  {path}\n" in out for path in changed)
    assert [line[:4] for line in out.splitlines() if re.match(r"  \d\.", line)] == [
        f"  {n}." for n in range(1, 6)
    ]


@pytest.mark.parametrize("new", [SCALE, POOL], ids=["function", "type"])
def test_the_card_is_a_card(tree: Path, planned: Plans, new: New) -> None:
    skeleton.write(planned[new], tree)
    found = {card.id: card for card in cards.load(Project.find(tree))}[FREE.upper()]
    assert (found.title, found.status, found.feature) == (new.title, "candidate", f"opt-{FREE}")
    assert (found.layer, found.seam.kind) == (new.layer, new.kind)
    assert found.prediction is None
    assert (tree / found.seam.address).exists()


def test_a_candidate_is_built_with_all_and_does_not_ship(planned: Plans) -> None:
    features = tomllib.loads(planned[SCALE]["crates/rlox-core/Cargo.toml"])["features"]
    assert f"opt-{FREE}" in features["opt-all"]
    assert f"opt-{FREE}" not in features["accepted"]


@pytest.mark.parametrize("new", [SCALE, POOL], ids=["function", "type"])
def test_only_lines_are_added(copied: Path, planned: Plans, new: New) -> None:
    for path, text in planned[new].items():
        if (copied / path).exists():
            old = (copied / path).read_text().splitlines()
            lines = iter(text.splitlines())
            assert all(line in lines for line in old), path  # in order


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["p5", "Again"], "ID p5: has a card already"),
        (["P5", "Again"], "ID p5: has a card already"),
        ([NEXT, "Too far"], f"ID {NEXT}: leaves a gap; use {FREE}"),
        (["r12", "In Python"], "ID r12: is of a Python seam"),
        (["q1", "What"], "ID q1: use p and a number"),
        (["p014", "What"], "ID p014: use p and a number"),
        ([FREE, "  "], "title: is empty"),
        ([FREE, "two\nlines"], "use one line of printable characters"),
        ([FREE, "8 lanes"], "--name 8_lanes: use small letters"),
        ([FREE, "long " * 20], "title: has 99 characters"),
        ([FREE, "ключ"], "--name: cannot be made from this title"),
        ([FREE, "Good", "--name", "Bad-Name"], "--name Bad-Name: use small letters"),
        ([FREE, "Good", "--name", "match"], "--name match: means something else"),
        ([FREE, "Good", "--name", "gae"], "is there already"),
        ([FREE, "Good", "--name", "schedule"], "--name schedule: is taken"),
        ([FREE, "Good", "--name", "min_priority"], "--name min_priority: is taken"),
        ([FREE, "Good", "--name", "sum_tree", "--in", "buffer"], "is there already"),
        ([FREE, "Good", "--in", "elsewhere"], "--in elsewhere: use one of buffer, env"),
        ([FREE, "Good", "--kind", "build"], "--kind"),
    ],
)
def test_what_cannot_be_made_exits_2_with_one_line_and_writes_nothing(
    copied: Path, call: Call, arguments: list[str], says: str
) -> None:
    before = texts(copied)
    code, out, err = call(copied, *arguments)
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert says in err
    assert texts(copied) == before


@pytest.mark.parametrize(
    ("path", "pattern", "what"),
    [
        ("crates/rlox-core/src/switchboard.rs", r'    P\d+ "opt-p.*\n', "entry `PN"),
        ("crates/rlox-core/src/switchboard.rs", r"let named = named", "list `named`"),
        ("crates/rlox-core/src/wiring.rs", r"impl \$crate::training::", "wiring of training"),
        ("crates/rlox-core/src/wiring.rs", r"pub mod shipped", "module `shipped`"),
        ("crates/rlox-core/src/training/mod.rs", r"pub mod", "line `pub mod"),
        ("crates/rlox-core/Cargo.toml", r'    "opt-p\d+",\n', "opt-pN in opt-all"),
        ("crates/rlox-bench/Cargo.toml", r"opt-p\d+ = ", "feature opt-pN"),
        ("crates/rlox-python/Cargo.toml", r"opt-p\d+ = ", "feature opt-pN"),
        ("crates/rlox-laboratory/Cargo.toml", r"opt-p\d+ = ", "feature opt-pN"),
        ("crates/rlox-bench/src/pairs/mod.rs", r"    &p\d+_", "pair in PAIRS"),
        ("crates/rlox-bench/src/pairs/tests.rs", r"_twins_agree", "line `pN_twins_agree`"),
    ],
)
def test_without_an_anchor_nothing_is_written(
    copied: Path, call: Call, path: str, pattern: str, what: str
) -> None:
    file = copied / path
    whole = file.read_text()
    try:
        file.write_text(re.sub(pattern, "", whole))
        before = texts(copied)
        code, _, err = call(copied, FREE, TITLE)
        after = texts(copied)
    finally:
        file.write_text(whole)
    assert code == 2
    assert f"{path}: has no {what}" in err
    assert err.count("\n") == 1
    assert after == before


def test_a_file_that_is_no_longer_rust_is_refused(tree: Path) -> None:
    if shutil.which("rustfmt") is None:
        pytest.skip("rustfmt is not installed")
    file = tree / "crates/rlox-core/src/training/mod.rs"
    file.write_text(file.read_text() + "}\n")
    with pytest.raises(SkeletonError, match=r"training/mod\.rs: would no longer be Rust"):
        skeleton.plan(SCALE, tree)


def test_files_with_changes_are_refused_until_they_are_committed(tree: Path, call: Call) -> None:
    def git(*arguments: str) -> None:
        who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", *who, *arguments], cwd=tree, check=True, capture_output=True)

    git("init", "-q")
    git("add", "crates", "Cargo.toml")
    git("commit", "-qm", "x")
    file = tree / "crates/rlox-core/src/switchboard.rs"
    file.write_text(file.read_text() + "\n")
    os.utime(
        tree / "crates/rlox-core/src/training/mod.rs", (1, 1)
    )  # git would like to note that it is as it was
    before, index = texts(tree), (tree / ".git" / "index").read_bytes()
    code, _, err = call(tree, FREE, TITLE)
    assert code == 2
    assert "switchboard.rs: has changes; commit them first" in err
    assert (texts(tree), (tree / ".git" / "index").read_bytes()) == (before, index)
    git("commit", "-qam", "y")
    assert call(tree, FREE, TITLE)[0] == 0


def test_a_write_that_fails_leaves_the_tree_as_it_was(tree: Path, planned: Plans) -> None:
    (tree / "crates/rlox-bench/src/pairs/tests.rs").unlink()
    (tree / "crates/rlox-bench/src/pairs/tests.rs").mkdir()  # the last to be written
    before = texts(tree)
    with pytest.raises(NotWrittenError, match=r"cannot write .*tests.rs: "):
        skeleton.write(planned[SCALE], tree)
    assert texts(tree) == before
    assert not (tree / SCALE.address).exists()


def test_files_that_there_is_no_room_for_leave_every_other_as_it_was(
    tree: Path, planned: Plans
) -> None:
    """The short ones would have room: nothing takes its place before all are written."""
    before = texts(tree)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    kept = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(NotWrittenError, match="File too large"):
            skeleton.write(planned[SCALE], tree)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, kept)
    assert texts(tree) == before


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("The smallest priority from a tree instead of a scan", "smallest_priority_tree"),
        ("PPO's inner loop of gradient steps in Rust", "ppo_inner_loop"),
        ("One exp", "exp"),
        ("Größe und Maß", "groe_und_ma"),
    ],
)
def test_a_name_is_the_telling_words_of_the_title(title: str, name: str) -> None:
    assert skeleton.name_from(title) == name


def test_help_has_examples(copied: Path, call: Call) -> None:
    code, out, _ = call(copied, "--help")
    assert code == 0
    assert "examples:" in out


@pytest.fixture
def both(checkout: Path) -> Path:
    """The tree with a new function seam and a new type seam."""
    for arguments in (
        [FREE, TITLE],
        [NEXT, "Batches from a pool", "--kind", "type", "--in", "buffer", "--name", "batch_pool"],
    ):
        done = run(checkout, *arguments)
        assert done.returncode == 0, done.stderr
    return checkout


def cargo(tree: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Cargo in the copy; what it depends on is built once, in this tree's own target folder."""
    return subprocess.run(
        ["cargo", arguments[0], "--offline", "--locked", *arguments[1:]],
        capture_output=True,
        text=True,
        cwd=tree,
        env=os.environ | {"CARGO_TARGET_DIR": str(ROOT / "target")},
    )


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_the_empty_pairs_compile_cleanly_and_fail_until_they_are_filled(both: Path) -> None:
    formatted = subprocess.run(["cargo", "fmt", "--all", "--check"], cwd=both, capture_output=True)
    assert formatted.returncode == 0, formatted.stdout
    lints = cargo(both, "clippy", "--workspace", "--all-targets", "--", "-D", "warnings")
    assert lints.returncode == 0, lints.stderr

    empty = cargo(both, "test", "-p", "rlox-bench", "--lib")
    assert empty.returncode == 101
    assert set(re.findall(r"^test pairs::tests::(\w+) \.\.\. FAILED$", empty.stdout, re.M)) == {
        f"{FREE}_twins_agree",
        f"{NEXT}_twins_agree",
        "outcomes_depend_on_the_case",
        "both_arms_of_every_contest_do_the_same_work",
    }
    assert f"{FREE.upper()}: baseline.rs is not written yet" in empty.stdout
    assert f"{NEXT.upper()}: BatchPoolOptimized is not written yet" in empty.stdout

    core = both / "crates/rlox-core/src"
    scaled = core / "training/rewards_scaled_stored"
    for file in (scaled / "baseline.rs", scaled / "optimized.rs", core / "buffer/batch_pool.rs"):
        text = file.read_text().replace("_input: &[f64]", "input: &[f64]")
        file.write_text(re.sub(r'Err\(".*"\)', "Ok(input.to_vec())", text))
    filled = cargo(both, "test", "-p", "rlox-bench", "--lib")
    assert filled.returncode == 0, filled.stdout

    for features in ("", f"opt-{FREE},opt-{NEXT}"):
        chosen = cargo(
            both, "test", "-p", "rlox-core", "--features", features, "--lib", "switchboard"
        )
        assert chosen.returncode == 0, chosen.stdout


@pytest.mark.parametrize(
    "text", ["docs/optimisations.md", "CONTRIBUTING.md", "optimizations/new.py"]
)
def test_the_optimisation_that_is_named_as_new_is_not_taken(text: str) -> None:
    told = (ROOT / text).read_text(encoding="utf-8")
    _, after, steps = told.partition("## Add an optimisation")
    near = steps.partition("## ")[0] if after else told
    said = re.findall(r"(?:new |such as |example |/|test |cmp )[pP](\d+)", near)
    if not after and text.endswith(".md"):
        said = re.findall(r"rlox-opt new [pP](\d+)", told)
    assert said
    assert {int(number) for number in said}.isdisjoint(TAKEN)


def test_what_is_uncommitted_is_asked_of_git_without_writing(tmp_path: Path) -> None:
    root = users_repository.make(tmp_path / 'a:user\'s "own"')
    before = users_repository.fingerprint(root)
    assert skeleton.uncommitted(["edited", "README.md"], root) == ["edited"]
    assert users_repository.fingerprint(root) == before
