"""Who asks for more memory than there is gets an ordinary exception, and the process goes on."""

from pathlib import Path

import pytest
from alone import run_alone

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="no limits here")

REFUSED = """
def refused(call, *errors):
    try:
        eval(call)
    except errors or (MemoryError, ValueError) as error:
        print(call, type(error).__name__, error)
    else:
        raise SystemExit(call + " was not refused")
"""

ARRAYS = """
buffer = rlox.ReplayBuffer(20_000, 400, 1, "uint8")
by_priority = rlox.PrioritizedReplayBuffer(20_000, 400, 1, obs_dtype="uint8")
for one in (buffer, by_priority):
    one.push_batch(*transitions(20_000, 400, np.uint8))
env = _core.VecEnv("CartPole-v1", 400_000, 0)
env.reset(out=np.zeros((400_000, 4), np.float32))
env.step(np.ones(400_000, np.int64), (np.zeros((400_000, 4), np.float32), np.zeros(400_000),
                                      *np.zeros((2, 400_000), bool)))
right, numbers = np.ones(400_000, np.int64), np.zeros(1 << 21)
sac = _core.SacUpdate(([3, 4], "relu"), (([5, 1], "relu"),) * 2)
obs, noise, params = *(np.zeros((1 << 21, n), np.float32) for n in (3, 2)), np.zeros(28, np.float32)
few, indices = np.zeros(1), np.zeros(1 << 21, np.int64)
room(2)
for call in [
    "buffer.sample(20_000)",
    "buffer.sample(20_000, copy=False)",
    "by_priority.sample(20_000)",
    "by_priority.update_priorities(indices, numbers)",
    "env.step(right)",
    "env.reset()",
    "_core.roundtrip(numbers)",
    "rlox.compute_gae(numbers, numbers, numbers, 0.0, 0.9, 0.9)",
    "rlox.compute_vtrace(*[numbers] * 4, 0.0, 0.9)",
    "rlox.compute_gae_batched(*[numbers.reshape(1, -1)] * 3, few, 0.9, 0.9, 'env_major')",
    "rlox.compute_group_advantages(numbers, 1)",
    "rlox.compute_token_kl(*[numbers.reshape(-1, 1)] * 2)",
    "sac.act(params, obs, noise)",
]:
    refused(call, MemoryError)
"""


@pytest.mark.parametrize("backtrace", ["0", "1"])
def test_arrays_that_there_is_no_memory_for_are_a_memory_error(backtrace: str) -> None:
    run_alone(REFUSED + ARRAYS, RUST_BACKTRACE=backtrace)


def test_sizes_that_no_machine_has_are_refused() -> None:
    run_alone(
        REFUSED
        + """
room(3000)
shapes = [1 << 20, 1 << 31, 1 << 40, 1 << 62, (1 << 63) - 1]
for n in shapes:
    relu = lambda *widths: (list(widths), "relu")
    refused("_core.SacUpdate(relu(3, n, 2), (relu(4, n, n, 1),) * 2)")
    refused("_core.SacUpdate(relu(3, 2), (relu(4, 1 << 43, 1),) * 2)")
    refused("rlox.PrioritizedReplayBuffer(n, 1 << 14, 1)")
    refused("rlox.ReplayBuffer(1 << 14, n, 1)")
    refused("rlox.ReplayBuffer(1 << 14, 1, n)")
    refused("rlox.ReplayBuffer(n, n, n, 'uint8')")
    refused("_core.VecEnv('CartPole-v1', n << 4, 0)", ValueError, MemoryError, OverflowError)
    refused("_core.VecEnv('Pendulum-v1', 1, 0).reset(seeds=[0] * 9)")
"""
    )


NETWORKS = """
def params(*widths): return sum((a + 1) * b for a, b in zip(widths, widths[1:]))
def moments(n): return tuple(np.zeros(n, np.float32) for _ in range(3))
def ppo(width, n):
    actor, critic = [4, width, 2], [4, width, 1]
    rollout = (np.zeros((n, 4), np.float32), np.zeros(n, np.int64), *np.zeros((3, n), np.float32))
    networks = [(widths, "tanh", moments(params(*widths))) for widths in (actor, critic)]
    _core.ppo_update(*networks, None, rollout, np.arange(n), 0, batch_size=n, clip_range=0.2,
        normalize_advantage=True, ent_coef=0.0, vf_coef=0.5, max_grad_norm=0.5, lr=1e-3,
        betas=(0.9, 0.999), eps=1e-8)
def sac(width, n):
    actor, critic = [3, width, 2], [4, width, 1]
    update = _core.SacUpdate((actor, "relu"), ((critic, "relu"),) * 2)
    adam = (1e-3, 0.9, 0.999, 1e-8, 1)
    batch = {"obs": np.zeros((n, 3), np.float32), "next_obs": np.zeros((n, 3), np.float32),
             "action": np.zeros((n, 1), np.float32), "reward": np.zeros(n, np.float32),
             "terminated": np.zeros(n, bool)}
    targets, noise = np.zeros(2 * params(*critic), np.float32), np.zeros((2, n, 1), np.float32)
    update.update(moments(params(*actor)), moments(len(targets)), targets, moments(1), batch, noise,
        gamma=0.9, tau=0.1, target_entropy=-1.0, adams=(adam, adam, adam), threads=1)
def rollout(width, n_steps):
    env = _core.VecEnv("CartPole-v1", 64, 0)
    env.reset()
    actor, critic = [4, width, 2], [4, width, 1]
    zeros = lambda widths: np.zeros(params(*widths), np.float32)
    networks = [(widths, "tanh", zeros(widths)) for widths in (actor, critic)]
    return _core.collect_rollout(env, *networks,
        np.zeros(0, np.float32), n_steps, 0.9, 0.9, (0, 0), (np.zeros(64), np.zeros(64, np.int64)))
def collector(n_steps):
    env = _core.VecEnv("CartPole-v1", 64, 0)
    act = lambda obs: (np.zeros(64, np.int64), np.zeros(64, np.float32), np.zeros(64, np.float32))
    with _core.AsyncCollector(env, act, lambda obs: np.zeros(64, np.float32), n_steps) as one:
        one.start()
        one.take()
"""


def test_updates_and_rollouts_without_enough_memory_are_refused() -> None:
    run_alone(
        REFUSED
        + NETWORKS
        + """
room(2000)
refused("ppo(1 << 16, 1 << 16)", MemoryError)
refused("sac(1 << 16, 1 << 16)", MemoryError)
refused("rollout(8, 1 << 20)")
refused("rollout(8, (1 << 63) - 1)")
refused("collector(1 << 20)")
"""
    )


@pytest.mark.parametrize("call", ["ppo({}, 4096)", "sac({}, 4096)", "rollout(64, {})"])
def test_near_the_limit_of_memory_a_call_succeeds_or_is_refused(call: str) -> None:
    """Whatever it is that no longer fits: limits close to what a call takes, one by one."""
    size = {"p": 300, "s": 300, "r": 3000}[call[0]]
    run_alone(
        REFUSED
        + NETWORKS
        + f"""
import itertools
refusals = 0
for megabytes in itertools.count(1, 1):
    child = os.fork()
    if child == 0:
        room(megabytes)
        try:
            {call.format(size)}
        except MemoryError:
            os._exit(3)
        except ValueError as error:
            os._exit(3 if "memory" in str(error) else 4)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, 3), code
    refusals += code == 3
    if code == 0:
        break
assert refusals > 3, refusals
"""
    )


def test_who_can_start_no_threads_works_alone() -> None:
    run_alone(
        """
columns = np.random.default_rng(0).normal(size=(3, 256, 256))
columns[2], out = 0, (np.zeros((256, 256)), np.zeros((256, 256)))
last = columns[0, 0].copy()
room(1)
found = rlox.compute_gae_batched(*columns, last, 0.9, 0.9, "env_major", out=out)
assert np.isfinite(found[0]).all()
assert len(os.listdir("/proc/self/task")) == 1
"""
    )
