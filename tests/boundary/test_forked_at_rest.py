"""A process that is forked off has none of the threads that share work: it goes on without them."""

import os
from pathlib import Path

import pytest
from alone import run_alone

WORK = """
rng = np.random.default_rng(0)
columns = rng.normal(size=(3, 256, 256))
log_probs = rng.normal(size=(2, 64, 4096))
widths, n_params = [4, 8, 2], 4 * 8 + 8 + 8 * 2 + 2
actor = rng.normal(size=n_params).astype(np.float32)
critic = rng.normal(size=4 * 8 + 8 + 8 + 1).astype(np.float32)

def gae():
    dones = np.zeros((256, 256))
    return rlox.compute_gae_batched(*columns[:2], dones, columns[2, 0], 0.9, 0.9, "env_major")

def token_kl():
    return rlox.compute_token_kl(*log_probs)

def rollout():
    env = _core.VecEnv("CartPole-v1", 32, 7)
    env.reset()
    running = np.zeros(32), np.zeros(32, np.int64)
    found = _core.collect_rollout(
        env, (widths, "tanh", actor), ([4, 8, 1], "tanh", critic), np.zeros(0, np.float32),
        128, 0.99, 0.95, (1, 2), running, threads=2,
    )
    return list(found.values())

def sac():
    rng = np.random.default_rng(1)
    def random(*shape): return rng.normal(size=shape).astype(np.float32)
    def learner(n): return random(n), np.zeros(n, np.float32), np.zeros(n, np.float32)
    def size(widths): return sum((i + 1) * o for i, o in zip(widths, widths[1:]))
    actor, critic = [4, 32, 32, 2], [5, 32, 32, 1]
    # In bfloat16, by AMX where it is: Linux gives a process its registers.
    update = _core.SacUpdate((actor, "relu"), ((critic, "relu"),) * 2, bfloat16=True, amx=True)
    n_critics, adam = 2 * size(critic), (1e-3, 0.9, 0.999, 1e-8, 1)
    batch = {"obs": random(64, 4), "next_obs": random(64, 4), "action": random(64, 1),
             "reward": random(64), "terminated": np.zeros(64, bool)}
    learners = learner(size(actor)), learner(n_critics), random(n_critics), learner(1)
    found = update.update(
        *learners, batch, random(2, 64, 1), gamma=0.99, tau=0.01, target_entropy=-1.0,
        adams=(adam, adam, adam), threads=2,
    )
    return [*found, *learners[0], *learners[1], learners[2], *learners[3]]
"""

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")


def run(program: str) -> None:
    run_alone(WORK + program, RAYON_NUM_THREADS="2")


@pytest.mark.parametrize("work", ["gae", "token_kl", "rollout", "sac"])
def test_a_forked_process_does_alone_what_its_parent_did_with_threads(work: str) -> None:
    run(f"expected = {work}()\nin_child(lambda: all(map(np.array_equal, {work}(), expected)))\n")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="threads are counted there")
def test_who_is_forked_before_there_are_threads_gets_its_own() -> None:
    run("in_child(lambda: gae() and len(os.listdir('/proc/self/task')) > 1)\n")
