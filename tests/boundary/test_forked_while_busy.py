"""A process that is forked off while threads are in the extension goes on, or is told why not."""

import os

import pytest
from alone import run_alone

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")

RAISES = """
def raises(call, words):
    try:
        call()
    except RuntimeError as error:
        return words in str(error) or print(error)
"""

# A fork counts where the work was under way: before and after it, others were refused the array
# that the work writes to. On a busy machine the work may have ended by then.
DURING = """
def fork_during(work, array, check):
    def under_way():
        try:
            rlox.compute_gae(array, array, array, 0.0, 0.9, 0.9)
        except ValueError as error:
            return "is being written to elsewhere" in str(error)
    for _ in range(20):
        thread = threading.Thread(target=work)
        thread.start()
        while thread.is_alive() and not under_way():
            time.sleep(0.001)
        counted = in_child(check, under_way)
        thread.join()
        if counted:
            return
    raise SystemExit("no fork came while the work was under way")
"""

SAC = """
width = 256
critic = ([4, width, width, 1], "relu")
sac = _core.SacUpdate(([3, width, width, 2], "relu"), (critic, critic))
n_actor = 3 * width + width + width * width + width + 2 * width + 2
n_critics = 2 * (4 * width + width + width * width + width + width + 1)
def learner(n): return tuple(np.zeros(n, np.float32) for _ in range(3))
def update(n, actor=None):
    batch = {"obs": np.zeros((n, 3), np.float32), "next_obs": np.zeros((n, 3), np.float32),
             "action": np.zeros((n, 1), np.float32), "reward": np.zeros(n, np.float32),
             "terminated": np.zeros(n, bool)}
    adam = (1e-3, 0.9, 0.999, 1e-8, 1)
    return sac.update(actor or learner(n_actor), learner(n_critics),
                      np.zeros(n_critics, np.float32), learner(1), batch,
                      np.zeros((2, n, 1), np.float32), gamma=0.9, tau=0.1,
                      target_entropy=-1.0, adams=(adam, adam, adam), threads=1)
"""


@pytest.mark.parametrize("kind", ["ReplayBuffer", "PrioritizedReplayBuffer"])
def test_the_child_goes_on_with_a_buffer_that_was_being_sampled(kind: str) -> None:
    run_alone(
        f"""
buffer = rlox.{kind}(10, 4, 1)
buffer.push_batch(*transitions(10))
done = False
def sample():
    while not done:
        buffer.sample(300_000)
threads = [threading.Thread(target=sample) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(20):
    in_child(lambda: len(buffer) == 10 and len(buffer.sample(3)["obs"]) == 3)
done = True
for thread in threads:
    thread.join()
"""
    )


def test_the_child_is_told_of_an_update_that_stayed_with_its_parent() -> None:
    run_alone(
        RAISES
        + DURING
        + SAC
        + """
def check():
    act = lambda: sac.act(np.zeros(n_actor, np.float32), np.zeros((1, 3), np.float32),
                          np.zeros((1, 1), np.float32))
    return all(raises(call, "was forked") for call in (lambda: update(8), act))
actor = learner(n_actor)
fork_during(lambda: update(6_000, actor), actor[0], check)
update(8)
"""
    )


def test_the_child_is_told_of_a_rollout_that_stayed_with_its_parent() -> None:
    run_alone(
        RAISES
        + DURING
        + """
env = _core.VecEnv("CartPole-v1", 64, 0)
env.reset()
rewards = np.zeros(64)
def rollout(n_steps):
    actor, critic = np.zeros(4 * 64 + 64 + 64 * 2 + 2, np.float32), np.zeros(5, np.float32)
    _core.collect_rollout(env, ([4, 64, 2], "tanh", actor), ([4, 1], "tanh", critic),
                          np.zeros(0, np.float32), n_steps, 0.9, 0.9, (0, 0),
                          (rewards, np.zeros(64, np.int64)), threads=1)
def check():
    return raises(lambda: rollout(3), "was forked") and raises(env.reset, "was forked")
fork_during(lambda: rollout(20_000), rewards, check)
rollout(3)
"""
    )


def test_the_child_is_told_of_a_collector_that_stayed_with_its_parent() -> None:
    run_alone(
        RAISES
        + """
env = _core.VecEnv("CartPole-v1", 4, 0)
def act(obs):
    time.sleep(0.01)
    n = len(obs)
    return np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32)
collector = _core.AsyncCollector(env, act, lambda obs: np.zeros(len(obs), np.float32), 30)
collector.start()
taken = []
thread = threading.Thread(target=lambda: taken.append(collector.take()))
thread.start()
def check():
    told = all(raises(call, "was forked") for call in (collector.start, collector.take))
    collector.close()
    return told and raises(env.reset, "was forked")
for _ in range(5):
    in_child(check)
    time.sleep(0.02)
thread.join()
collector.close()
env.reset()
"""
    )


def test_a_collector_that_ended_before_the_fork_takes_no_thread_of_the_childs() -> None:
    """A thread of the child may lie where one of the parent's lay, and have its number. To let go
    of the parent's would detach the child's, which nobody could then wait for."""
    run_alone(
        """
def act(obs):
    n = len(obs)
    return np.zeros(n, np.int64), np.zeros(n, np.float32), np.zeros(n, np.float32)
def collector(env):
    return _core.AsyncCollector(env, act, lambda obs: np.zeros(len(obs), np.float32), 3)
def threads():
    return len(os.listdir("/proc/self/task"))
before = threads()
envs = [_core.VecEnv("CartPole-v1", 4, 0) for _ in range(4)]
for env in envs:
    collector(env)  # dropped at once: its thread ends by itself
while threads() > before:
    time.sleep(0.01)
collector(_core.VecEnv("CartPole-v1", 4, 0)).close()  # those that ended are no longer looked after
def check():
    others = [collector(_core.VecEnv("CartPole-v1", 4, 0)) for _ in envs]
    envs.clear()
    for one in others:
        one.close()
    return True
in_child(check)
"""
    )
