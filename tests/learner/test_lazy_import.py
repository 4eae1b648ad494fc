"""The trainers are loaded on first use; without torch they say what to install."""

import json
import subprocess
import sys

import pytest

import rlox

FIRST_USE = """
import json, sys
import rlox
found = {"listed": {"PPO", "SAC"} <= set(dir(rlox)), "torch before": "torch" in sys.modules}
from rlox import PPO
found |= {"the same": rlox.PPO is PPO, "from": PPO.__module__, "torch": "torch" in sys.modules}
from rlox.learner.policies import StochasticPolicy
found["policy"] = type(StochasticPolicy.load(sys.argv[1])).__name__
found["theirs"] = "stable_baselines3" in sys.modules
print(json.dumps(found))
"""


def run(program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What a new process finds that uses a trainer for the first time, and then loads a policy. One
    process for both, since it takes seconds to import torch."""
    path = tmp_path_factory.mktemp("saved") / "policy"
    rlox.PPO("MlpPolicy", "CartPole-v1", n_steps=16, batch_size=16).policy.save(path)
    done = run(FIRST_USE, str(path))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_rlox_imports_neither_torch_nor_rich():
    done = run("import sys, rlox; assert not {'torch', 'rich'} & sys.modules.keys()")
    assert done.returncode == 0, done.stderr


def test_trainers_are_listed_and_loaded_on_first_use(found):
    assert found["listed"]
    assert not found["torch before"]
    assert found["the same"]
    assert found["from"] == "rlox.learner.ppo"
    assert found["torch"]


def test_policies_load_without_their_library(found):
    """That is, without Stable-Baselines3."""
    assert found["policy"] == "CategoricalActorCritic"
    assert not found["theirs"]


def test_without_torch_the_remedy_is_named():
    program = "import sys; sys.modules['torch'] = None\nimport rlox\nrlox.PPO"
    done = run(program)
    assert "rlox.PPO needs torch: pip install 'rlox-rl[train]'" in done.stderr


def test_other_names_are_attribute_errors():
    assert "has no attribute 'DQN'" in run("import rlox; rlox.DQN").stderr
