"""PufferLib's vector environment over Gymnasium's environments, in this process."""

import gymnasium
from arm import stepping
from pufferlib import emulation, vector


def env_step(n_envs):
    def creator():
        return emulation.GymnasiumPufferEnv(env_creator=gymnasium.make, env_args=["CartPole-v1"])

    env = vector.make(creator, num_envs=n_envs, backend=vector.Serial)
    obs, _ = env.reset(seed=0)
    return stepping(env.step, obs, n_envs)
