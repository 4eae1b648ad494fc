"""The trainers are loaded on first use; without torch they say what to install."""

import subprocess
import sys


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)


def test_importing_rlox_imports_neither_torch_nor_rich():
    done = run("import sys, rlox; assert not {'torch', 'rich'} & sys.modules.keys()")
    assert done.returncode == 0, done.stderr


def test_trainers_are_listed_and_loaded_on_first_use():
    program = """
import sys, rlox
assert {"PPO", "SAC"} <= set(dir(rlox))
assert "torch" not in sys.modules
from rlox import PPO
assert rlox.PPO is PPO and PPO.__module__ == "rlox.learner.ppo"
assert "torch" in sys.modules
"""
    done = run(program)
    assert done.returncode == 0, done.stderr


def test_without_torch_the_remedy_is_named():
    program = "import sys; sys.modules['torch'] = None\nimport rlox\nrlox.PPO"
    done = run(program)
    assert "rlox.PPO needs torch: pip install 'rlox-rl[train]'" in done.stderr


def test_other_names_are_attribute_errors():
    assert "has no attribute 'DQN'" in run("import rlox; rlox.DQN").stderr
