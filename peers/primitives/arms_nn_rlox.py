"""Steps of small networks by this tree's own path, called from Python."""

import inputs
import numpy as np
from arm import THREADS, Arm

from rlox import _core


def ppo_step():
    batch = inputs.minibatch()
    columns = tuple(
        batch[name] for name in ("obs", "actions", "log_probs", "advantages", "returns")
    )
    order = np.arange(len(batch["actions"]))

    def begin():
        nets, moments = [], []
        for widths, start in ((inputs.Q_NET, 0), (inputs.VALUE_NET, inputs.SECOND)):
            params = inputs.params(widths, start)
            moments.append((params, np.zeros_like(params), np.zeros_like(params)))
            nets.append((widths, "tanh", moments[-1]))
        t = 0

        def step():
            nonlocal t
            t += 1
            return _core.ppo_update(
                *nets,
                None,
                columns,
                order,
                t - 1,
                batch_size=len(order),
                clip_range=inputs.CLIP_RANGE,
                normalize_advantage=True,
                ent_coef=inputs.ENT_COEF,
                vf_coef=inputs.VF_COEF,
                max_grad_norm=1e30,
                lr=inputs.LR,
                betas=(0.9, 0.999),
                eps=inputs.EPS,
                threads=THREADS,
            )

        return moments, step

    def answer():
        moments, step = begin()
        step()
        return {"params": np.concatenate([params for params, *_ in moments])}

    return Arm(begin()[1], answer)


def sac_sample():
    shape = (inputs.ACTOR, "relu"), ((inputs.CRITIC, "relu"), (inputs.CRITIC, "relu"))
    update = _core.SacUpdate(*shape)
    params = inputs.params(inputs.ACTOR, 0)
    obs, noise = inputs.draw()

    def call():
        return update.act(params, obs, noise)

    # It draws actions without log-probabilities, which acting does not need.
    return Arm(call, lambda: {"action": np.array(call())})
