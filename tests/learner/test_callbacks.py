"""Callbacks written for Stable-Baselines3: their methods are called when it would call them."""

import numpy as np
import pytest
from stable_baselines3 import PPO as TheirPPO
from stable_baselines3.common.callbacks import BaseCallback as TheirCallback
from toys import Clock
from trainers import STEPS, each_trainer, ppo, sac, same, weights

import rlox
from rlox.learner.callbacks import BaseCallback, CallbackList, Checkpoints


def telling(base):
    """A callback as their users write one, on either library's base."""

    class Tells(base):
        def __init__(self, verbose=0):
            super().__init__(verbose)
            self.told = []

        def tell(self, name):
            self.told.append((name, self.n_calls, self.num_timesteps))

        def _init_callback(self):
            assert self.model is not None
            self.tell("init")

        def _on_training_start(self):
            self.tell("start")

        def _on_rollout_start(self):
            self.tell("rollout start")

        def _on_step(self):
            self.tell("step")
            return True

        def _on_rollout_end(self):
            self.tell("rollout end")

        def _on_training_end(self):
            self.tell("end")

    return Tells(verbose=1)


def test_the_methods_are_called_when_stable_baselines_calls_them():
    ours, theirs = telling(BaseCallback), telling(TheirCallback)
    rlox.PPO(Clock(5), n_steps=4, batch_size=4, n_epochs=1).learn(12, ours)
    TheirPPO("MlpPolicy", Clock(5), n_steps=4, batch_size=4, n_epochs=1).learn(12, theirs)
    assert ours.told == theirs.told
    assert ("step", 12, 12) in ours.told
    assert ours.verbose == 1


@each_trainer
def test_every_method_is_called_by_every_trainer(make):
    tells = telling(BaseCallback)
    model = make()
    if getattr(model, "collector", "sync") == "async":
        with pytest.raises(ValueError, match=r'Tells: .*_on_step.* collector="sync"'):
            model.learn(256, tells)
        return
    steps = STEPS[type(model).__name__]
    model.learn(steps, tells)
    names = [name for name, *_ in tells.told]
    assert names[:4] == ["init", "start", "rollout start", "step"]
    assert names[-1] == "end"
    assert names.count("step") == tells.n_calls == steps // model.n_envs
    assert names.count("rollout start") == names.count("rollout end") > 0


@pytest.mark.parametrize("make", [ppo, lambda: ppo(optimizations=()), sac])
def test_false_stops_training(make):
    class Stop(BaseCallback):
        def _on_step(self):
            return self.n_calls < 7

    model = make()
    assert model.learn(10_000, Stop()).num_timesteps == 7 * model.n_envs


@pytest.mark.parametrize(
    "make",
    # The second episode of the last one ends while it learns.
    [ppo, lambda: ppo(optimizations=("R1", "R8", "R14")), lambda: sac(learning_starts=390)],
    ids=["ppo", "ppo-torch", "sac"],
)
def test_every_step_can_be_seen_in_locals(make):
    """Environments stand where their observations say: nothing was collected in advance."""

    class Sees(BaseCallback):
        def _on_training_start(self):
            self.rewards, self.kept = [], []
            self.ends = []

        def _on_step(self):
            n = self.model.n_envs
            assert self.locals["self"] is self.model
            assert self.locals["env"] is self.training_env
            assert self.locals["rewards"].shape == self.locals["dones"].shape == (n,)
            assert len(self.locals["actions"]) == len(self.locals["infos"]) == n
            self.rewards.append(self.locals["rewards"])
            if self.kept:  # what was acted on is what the step before has led to
                acted_on = self.kept[-1][0].reshape(n, -1)
                np.testing.assert_array_equal(self.model._last_obs, acted_on)
            self.kept.append((self.locals["new_obs"], self.locals["new_obs"].copy()))
            for info, done in zip(self.locals["infos"], self.locals["dones"], strict=True):
                assert ("episode" in info) == ("terminal_observation" in info) == done
                if done:
                    self.ends.append(info)
            return True

    sees, model = Sees(), make()
    model.learn(500, sees)
    assert len(sees.rewards) == sees.n_calls == model.num_timesteps // model.n_envs
    total = sum(model.episode_returns) + model._running_return.sum()
    assert np.sum(sees.rewards) == pytest.approx(total)
    for kept, then in sees.kept:
        np.testing.assert_array_equal(kept, then)
    assert [info["episode"]["r"] for info in sees.ends] == model.episode_returns
    assert [info["episode"]["l"] for info in sees.ends] == model.episode_lengths
    assert sees.ends
    late = [length in (200, 500) for length in model.episode_lengths]
    assert [info["TimeLimit.truncated"] for info in sees.ends] == late


def test_infos_are_those_of_each_environment():
    class Says(Clock):
        def step(self, action):
            *step, _ = super().step(action)
            return *step, {"t": self.t} | ({"even": True} if self.t % 2 == 0 else {})

    seen = []

    class Sees(BaseCallback):
        def _on_step(self):
            seen.append(self.locals["infos"])

    env = rlox.VecEnv([lambda: Says(2), lambda: Says(3)], 2)
    rlox.PPO(env, n_steps=3, batch_size=6).learn(6, Sees())
    assert seen[0] == [{"t": 1, "TimeLimit.truncated": False}] * 2
    first, second = seen[1]
    assert second == {"t": 2, "even": True, "TimeLimit.truncated": False}
    assert first.pop("terminal_observation").tolist() == [2.0]
    ended = {"episode": {"r": 2.0, "l": 2}, "TimeLimit.truncated": True}
    assert first == {"t": 2, "even": True} | ended


def test_what_locals_do_not_hold_is_said():
    class Wants(BaseCallback):
        def _on_step(self):
            self.locals["values"]

    with pytest.raises(KeyError, match=r"values: locals holds .*rewards.*policy\.get_value"):
        ppo().learn(256, Wants())


def test_rollouts_stay_in_rust_where_nobody_asks_for_each_step():
    class After(BaseCallback):
        def on_step(self):
            self.model.rollout_paths = [*getattr(self.model, "rollout_paths", []), self.path()]

        def path(self):
            return self.model.rollout_path

    class Each(After):
        def on_step(self):
            return super(After, self).on_step()

        def _on_step(self):
            After.on_step(self)

    model = ppo()
    model.learn(128, After())
    assert set(model.rollout_paths) == {"native"}
    del model.rollout_paths
    model.learn(128, Each())
    why = "Each has an _on_step, which is called at each step"
    assert {*model.rollout_paths} == {f"native, with steps in Python: {why}"}
    assert model.learn(128).rollout_path == "native"


def test_callbacks_that_only_look_on_do_not_change_training():
    class Looks(BaseCallback):
        def _on_rollout_end(self):
            self.model.predict(np.zeros(4))

    looks = Looks()
    assert same(weights(ppo().learn(256)), weights(ppo().learn(256, looks)))
    assert looks.n_calls == 256 // 4


def test_lists_may_be_given_as_one_callback():
    tells = telling(BaseCallback), telling(BaseCallback)
    ppo(optimizations=()).learn(256, CallbackList([tells[0], CallbackList([tells[1]])]))
    assert tells[0].told == tells[1].told
    assert ("step", 64, 256) in tells[0].told


def test_callbacks_may_be_nested_as_stable_baselines_nests_them():
    class Every(BaseCallback):
        def __init__(self, child):
            super().__init__()
            self.child = child

        def _init_callback(self):
            self.child.init_callback(self.model)

        def _on_training_start(self):
            self.child.on_training_start(self.locals, self.globals)

        def update_child_locals(self, locals_):
            self.child.update_locals(locals_)

        def _on_step(self):
            return self.child.on_step() if self.n_calls % 8 == 0 else True

    tells = telling(BaseCallback)
    tells._on_step = lambda: tells.told.append(float(tells.locals["rewards"][0]))
    ppo().learn(256, Every(tells))
    assert tells.n_calls == 8
    assert tells.told[-8:] == [1.0] * 8


def test_figures_may_be_recorded_one_by_one():
    class Records(BaseCallback):
        def _on_rollout_end(self):
            self.logger.record("mine/one", 7)

    assert ppo().learn(128, Records()).logger.values["mine/one"] == 7.0


@pytest.mark.parametrize("callback", [3, "each", [BaseCallback], [ppo, None]])
def test_what_is_no_callback_is_refused(callback):
    with pytest.raises(TypeError, match=r"callback must be a rlox\.learner\.callbacks\.Base"):
        ppo().learn(128, callback)


@pytest.mark.parametrize("make", [lambda: ppo(collector="async"), sac], ids=["async", "sac"])
def test_checkpoints_are_saved_by_every_trainer(make, tmp_path):
    model = make().learn(512 if make is not sac else 90, Checkpoints(tmp_path / "model.pt", 80))
    assert type(model).load(tmp_path / "model.pt").num_timesteps >= 80


def test_checkpoints_that_would_never_be_saved_are_refused():
    for every in (0, float("nan"), 2.5):
        with pytest.raises((TypeError, ValueError), match="every"):
            Checkpoints("model.pt", every)
