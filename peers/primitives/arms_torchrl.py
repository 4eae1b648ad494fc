"""TorchRL. In `form` "loop" GAE is a loop over time, in "vectorized" it uses convolutions, both in
torch. The replay buffers and SerialEnv are in "loop" alone."""

from functools import partial

import inputs
import numpy as np
import torch
from arm import (
    FORM,
    KNOWN,
    SHOWN_STEPS,
    THREADS,
    Arm,
    Unsupported,
    drawing,
    function,
    rollout_answer,
    stepping,
    storing,
)
from tensordict import TensorDict
from tensordict.nn import TensorDictModule
from torchrl.data import (
    LazyTensorStorage,
    TensorDictPrioritizedReplayBuffer,
    TensorDictReplayBuffer,
)
from torchrl.envs import GymEnv, SerialEnv
from torchrl.objectives.value.functional import (
    generalized_advantage_estimate,
    vec_generalized_advantage_estimate,
    vtrace_advantage_estimate,
)

torch.set_num_threads(THREADS)
NAMES = ("obs", "next_obs", "action", "reward", "terminated", "truncated")
GAE = generalized_advantage_estimate if FORM == "loop" else vec_generalized_advantage_estimate


def _once():
    if FORM != "loop":
        raise Unsupported("is GAE alone")


def _discounts(dtype):
    """gamma and lambda as tensors; with Python floats TorchRL computes discounts in float32."""
    if dtype == "float32":
        return inputs.GAMMA, inputs.GAE_LAMBDA
    return tuple(torch.tensor(x, dtype=torch.float64) for x in (inputs.GAMMA, inputs.GAE_LAMBDA))


def _columns(rewards, values, dones, last):
    """Value, next value, reward and done `[*batch, steps, 1]` of arrays `[steps]` or
    `[steps, n_envs]`."""

    def of(array):
        return torch.from_numpy(np.ascontiguousarray(array.T)).unsqueeze(-1)

    next_values = np.concatenate([values[1:], np.asarray(last, values.dtype)[None]])
    return of(values), of(next_values), of(rewards), of(dones > 0.5)


def _gae(shape, dtype):
    call = partial(GAE, *_discounts(dtype), *_columns(*inputs.rollout(*shape, dtype=dtype)))

    def time_first():
        return tuple(found.squeeze(-1).movedim(-1, 0) for found in call())

    return function(time_first, "advantages", "returns")._replace(call=call)


def gae(n):
    return _gae([n], "float64")


def gae_batched(n_envs, n_steps, dtype):
    return _gae([n_steps, n_envs], dtype)


def vtrace(n, dtype):
    _once()
    log_rhos = torch.from_numpy(inputs.log_rhos(n, dtype)).unsqueeze(-1)
    columns = _columns(*inputs.rollout(n, dtype=dtype))
    given = (_discounts(dtype)[0], log_rhos, torch.zeros_like(log_rhos))
    call = partial(vtrace_advantage_estimate, *given, *columns)

    def answer():
        advantages, vs = call()
        return {"vs": vs.squeeze(-1).numpy(), "pg_advantages": advantages.squeeze(-1).numpy()}

    return Arm(call, answer)


def _dict(columns):
    """Transitions as a TensorDict."""
    tensors = {name: torch.from_numpy(x) for name, x in zip(NAMES, columns, strict=True)}
    return TensorDict(tensors, batch_size=[len(columns[0])])


def _filled(n, obs_dim, kind=TensorDictReplayBuffer, **settings):
    buffer = kind(storage=LazyTensorStorage(n), **settings)
    for columns in inputs.chunks(n, obs_dim):
        buffer.extend(_dict(columns))
    return buffer


def push(obs_dim, steps):
    _once()
    one = _dict(inputs.repeated(obs_dim, steps))[0]
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)

    def known():
        small = TensorDictReplayBuffer(storage=LazyTensorStorage(KNOWN))
        for columns in inputs.chunks(KNOWN, obs_dim, 1):
            small.add(_dict(columns)[0])
        return _named(small.sample(KNOWN))

    return storing(partial(buffer.add, one), known)


def push_batch(rows, obs_dim):
    _once()
    batch = _dict(inputs.transitions(0, rows, obs_dim))
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)

    def known():
        small = TensorDictReplayBuffer(storage=LazyTensorStorage(KNOWN))
        for columns in inputs.chunks(KNOWN, obs_dim, rows):
            small.extend(_dict(columns))
        return _named(small.sample(KNOWN))

    return storing(partial(buffer.extend, batch), known)


def _named(drawn):
    return {name: drawn[name] for name in NAMES}


def sample(batch, obs_dim):
    _once()
    buffer = _filled(inputs.capacity(obs_dim), obs_dim)
    arm = drawing(lambda: _named(buffer.sample(batch)))
    return arm._replace(call=partial(buffer.sample, batch))


def per_sample(batch, capacity):
    _once()
    kind = TensorDictPrioritizedReplayBuffer
    buffer = _filled(capacity, 4, kind, alpha=0.6, beta=0.4, batch_size=batch)
    indices = torch.arange(capacity)
    buffer.update_priority(indices, torch.from_numpy(inputs.priorities(capacity)).float())

    def drawn():
        found = buffer.sample()
        weights = found["priority_weight" if "priority_weight" in found.keys() else "_weight"]  # noqa: SIM118
        return {**_named(found), "weights": weights}

    arm = drawing(drawn)
    return arm._replace(call=buffer.sample)


def _env(n_envs):
    def one():
        return GymEnv("CartPole-v1", device="cpu", categorical_action_encoding=True)

    return SerialEnv(n_envs, one) if n_envs > 1 else one()


def _tensor(actions):
    """Actions as the environment takes them: without that axis if there is one environment."""
    tensor = torch.from_numpy(np.array(actions))
    return tensor if len(actions) > 1 else tensor[0]


def env_step(n_envs):
    _once()
    env = _env(n_envs)
    current = env.reset()
    first = current["observation"]

    def step(actions):
        nonlocal current
        current["action"] = actions
        stepped, current = env.step_and_maybe_reset(current)
        return stepped, current

    def read(found):
        stepped, after = found
        return after["observation"], stepped["next", "reward"], stepped["next", "done"]

    return stepping(step, first, n_envs, _tensor, read)


def rollout(n_envs, n_steps):
    _once()
    env = _env(n_envs)
    pushes = inputs.pushes(n_envs)
    converted = [_tensor(actions) for actions in pushes]
    values = inputs.values(n_steps + 1, n_envs)
    now, after = (torch.from_numpy(x.T.copy()).unsqueeze(-1) for x in (values[:-1], values[1:]))
    turn = 0

    def act(_):
        nonlocal turn
        turn += 1
        return converted[(turn - 1) % 2]

    policy = TensorDictModule(act, in_keys=["observation"], out_keys=["action"])

    def call():
        nonlocal turn
        turn = 0
        data = env.rollout(n_steps, policy, break_when_any_done=False)
        found = vec_generalized_advantage_estimate(
            inputs.GAMMA,
            inputs.GAE_LAMBDA,
            now,
            after,
            data["next", "reward"],
            data["next", "done"],
        )
        return data, found

    def answer():
        data, found = call()

        def time_first(tensor):
            return tensor.squeeze(-1).transpose(0, 1).numpy()

        return rollout_answer(
            time_first(data["observation"]),
            np.resize(pushes, (SHOWN_STEPS, n_envs)),
            time_first(data["next", "reward"]),
            time_first(data["next", "done"]),
            values,
            *map(time_first, found),
        )

    return Arm(call, answer)
