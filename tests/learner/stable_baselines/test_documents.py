"""The script that runs Stable-Baselines3's documentation: what it changes, what it counts."""

import sys

import documents
import pytest
from documents import blocks, forms, table


@pytest.mark.parametrize(
    ("program", "changed"),
    [
        ("from stable_baselines3 import PPO", "from rlox import PPO"),
        ("from stable_baselines3 import A2C", "from rlox import PPO as A2C"),
        ("from stable_baselines3 import SAC as S", "from rlox import SAC as S"),
        ("import stable_baselines3 as sb3", "import rlox as sb3"),
        (
            "from stable_baselines3 import HerReplayBuffer, SAC",
            "from stable_baselines3 import HerReplayBuffer\nfrom rlox import SAC",
        ),
        (
            "from stable_baselines3.common.callbacks import EvalCallback",
            "from rlox.learner.callbacks import EvalCallback",
        ),
    ],
)
def test_imports_of_trainers_and_callbacks_are_changed(program, changed):
    assert forms(program)["rlox"] == changed


@pytest.mark.parametrize(
    "program",
    [
        "import numpy",
        "def f(a, ...): pass",
        "from stable_baselines3.common.vec_env import DummyVecEnv",
    ],
)
def test_what_has_nothing_of_ours_is_not_counted(program):
    assert forms(program) is None


def test_callbacks_of_theirs_are_an_arm_of_their_own():
    program = (
        "from stable_baselines3 import PPO\n"
        "from stable_baselines3.common.callbacks import EvalCallback"
    )
    assert forms(program)["mixed"] == program.replace(
        "stable_baselines3 import PPO", "rlox import PPO"
    )


def test_what_does_not_run_with_them_counts_for_nobody():
    _, counted, passed = table(
        {
            "a:1": {"sb3": "No module"},
            "a:2": {"sb3": "", "rlox": "", "mixed": "TypeError: x"},
            "b:1": {"sb3": "", "rlox": "took more than 3 s"},
        }
    )
    assert (counted, passed) == (3, 1)


def test_a_program_of_a_page_is_run(tmp_path, monkeypatch, capsys):
    page = "```python\n{}\n{}\n```\n"
    good = 'PPO("MlpPolicy", "CartPole-v1", n_steps=8, batch_size=8).learn(10**9)'
    texts = (
        page.format("from stable_baselines3 import PPO", good),
        page.format("import stable_baselines3", "stable_baselines3.learnt"),
    )
    (tmp_path / "page.md").write_text("".join(texts))
    assert [where for where, _ in blocks(tmp_path)] == ["page.md:1", "page.md:5"]
    results = tmp_path / "results.json"
    results.write_text('{"page.md:1": {"sb3": ""}, "page.md:5": {"sb3": ""}}')
    run = documents.run

    def without_torch(program, library, *limits):
        """Trainers are looked up, and torch imported for seconds, only where `learn` is to be
        limited."""
        return run(program, library if ".learn(" in program else "sys", *limits)

    monkeypatch.setattr(documents, "run", without_torch)
    monkeypatch.setattr(
        sys, "argv", ["documents.py", str(tmp_path), "--steps", "16", "--results", str(results)]
    )
    code, told = documents.main(), capsys.readouterr()
    assert code == 1, told.err
    assert "passes page.md:1 (rlox)" in told.out
    assert "fails  page.md:5 (rlox): AttributeError" in told.out
    assert "1 of 2 pass (50%)" in told.out
