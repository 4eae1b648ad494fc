"""What would make the boundary with NumPy unsound is refused by the compiler.

Each mistake is planted in a copy of the sources, which compile without it.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "target" / "mistakes" / "sources"  # always there, so that little is built anew
SCOPE = "copied(&look.read::<f64, Ix1>(array, None)?)"
SHARED = "cannot be shared between threads safely"  # a reference to it cannot be sent, either
NAMED = 'let array = Argument::new("array", array);'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cargo") is None, reason="no compiler here"),
]

MISTAKES = {
    "a slice leaves its scope": (
        "crossing.rs",
        {f"{SCOPE}\n    }})?;": "look.read::<f64, Ix1>(array, None)\n    })?.to_vec();"},
        "lifetime may not live long enough",
    ),
    "a slice is put away": (
        "crossing.rs",
        {
            NAMED: "let mut away: &[f64] = &[];" + NAMED,
            SCOPE: "{ let read = look.read::<f64, Ix1>(array, None)?; away = &read; copied(away) }",
        },
        "error[E0521]: borrowed data escapes outside of closure",
    ),
    "Python runs between a look and a reading": (
        "crossing.rs",
        {SCOPE: f"{{ py.check_signals()?; {SCOPE} }}"},
        SHARED,
    ),
    "an object of Python's is used there": (
        "crossing.rs",
        {NAMED: "let object = array;" + NAMED, SCOPE: f"{{ object.len()?; {SCOPE} }}"},
        SHARED,
    ),
    "a lock is waited for there": (
        "buffer/mod.rs",
        {
            'let action = Argument::new("action", transition.action);': (
                'let action = Argument::new("action", transition.action); let lock = buffer;'
            ),
            "let obs = look.read::<O, Ix1>": "lock.lock(py)?; let obs = look.read::<O, Ix1>",
        },
        SHARED,
    ),
    "another thread looks": (
        "crossing.rs",
        {SCOPE: f"{{ std::thread::scope(|of| drop(of.spawn(|| {SCOPE}))); {SCOPE} }}"},
        SHARED,
    ),
    "an array is looked at outside of a scope": (
        "crossing.rs",
        {NAMED: f"{NAMED} array.object.len()?;"},
        "error[E0616]: field `object` of struct `Argument` is private",
    ),
    "bytes are taken for bools": (
        "crossing.rs",
        {SCOPE: f"{{ let _: &[bool] = &look.read::<bool, Ix1>(array, None)?; {SCOPE} }}"},
        "error[E0308]: mismatched types",
    ),
    "what may be written to is still read": (
        "env.rs",
        {"            drop(actions);\n": ""},
        "error[E0502]: cannot borrow `*look` as mutable",
    ),
    "one new array is written to twice": (
        "llm.rs",
        {
            "let to = look.write::<T, Ix1>(&mut advantages, rewards.shape())?;": (
                "let to = look.write::<T, Ix1>(&mut advantages, rewards.shape())?;"
                "look.write::<T, Ix1>(&mut advantages, rewards.shape())?[0] = to[0];"
            )
        },
        "error[E0499]: cannot borrow `advantages` as mutable more than once",
    ),
}


def check() -> tuple[int, str]:
    """What the compiler makes of the copy."""
    done = subprocess.run(
        ["cargo", "check", "--package", "rlox-binding", "--locked", "--color", "never"],
        cwd=SOURCES,
        env={
            **os.environ,
            "CARGO_TARGET_DIR": str(SOURCES.parent / "build"),
            "PYO3_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stderr


@pytest.fixture(scope="module")
def sources() -> Path:
    shutil.rmtree(SOURCES, ignore_errors=True)
    shutil.copytree(ROOT / "crates", SOURCES / "crates")
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copy(ROOT / name, SOURCES)
    code, said = check()
    assert code == 0, said
    return SOURCES / "crates" / "rlox-python" / "src"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_does_not_compile(sources: Path, mistake: str) -> None:
    name, edits, expected = MISTAKES[mistake]
    right = wrong = (sources / name).read_text()
    for find, replace in edits.items():
        assert wrong.count(find) == 1, find
        wrong = wrong.replace(find, replace)
    (sources / name).write_text(wrong)
    try:
        code, said = check()
    finally:
        (sources / name).write_text(right)
    assert code != 0 and expected in said, said
