"""SAC's targets and losses against their formulas, its transitions, its two buffers."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from toys import Clock

import rlox
from rlox.learner.callbacks import BaseCallback
from rlox.learner.native.sac_update import NativeUpdate
from rlox.learner.policies import SquashedGaussianActor, TwinCritic
from rlox.learner.sac import Batch

BOX = spaces.Box(-2, 2, (1,), np.float32)


def small(env="Pendulum-v1", obs_dim=3, form=rlox.SAC, **arguments):
    defaults = {"seed": 0, "buffer_size": 1000, "learning_starts": 20, "batch_size": 16}
    modules = {
        "policy": SquashedGaussianActor(obs_dim, 1, (16, 16)),
        "critic": TwinCritic(obs_dim, 1, (16, 16)),
    }
    return form(env, **{**defaults, **modules, **arguments})


def a_batch(n=16, **columns):
    rng = torch.Generator().manual_seed(0)
    return Batch(
        obs=torch.randn(n, 3, generator=rng),
        actions=torch.rand(n, 1, generator=rng) * 2 - 1,
        rewards=torch.randn(n, generator=rng),
        next_obs=torch.randn(n, 3, generator=rng),
        terminated=(torch.arange(n) % 4 == 0).float(),
    )._replace(**columns)


def test_target_is_the_soft_value_of_the_lesser_critic():
    model, batch = small(gamma=0.9, ent_coef=0.3), a_batch()
    state = model._act_generator.get_state()
    target = model.target_q(batch)
    model._act_generator.set_state(state)
    actions, log_probs = model.policy.get_action_and_logprob(
        batch.next_obs, generator=model._act_generator
    )
    q1, q2 = model.critic_target(batch.next_obs, actions)
    soft = torch.minimum(q1, q2) - 0.3 * log_probs
    torch.testing.assert_close(target, batch.rewards + 0.9 * (1 - batch.terminated) * soft)
    assert torch.equal(target[::4], batch.rewards[::4])  # nothing follows a termination
    assert not target.requires_grad


def test_critic_loss_is_half_the_squares_of_both_critics():
    model, batch = small(), a_batch()
    target = torch.randn(16)
    loss, td_errors = model.critic_loss(batch, target)
    q1, q2 = model.critic(batch.obs, batch.actions)
    mse = torch.nn.functional.mse_loss
    torch.testing.assert_close(loss, 0.5 * (mse(q1, target) + mse(q2, target)))
    torch.testing.assert_close(td_errors, ((q1 - target).abs() + (q2 - target).abs()) / 2)


def test_importance_weights_scale_each_transition():
    model, weights = small(), torch.rand(16)
    q1, q2 = model.critic(a_batch().obs, a_batch().actions)
    loss, _ = model.critic_loss(a_batch(weights=weights), torch.zeros(16))
    torch.testing.assert_close(loss, 0.5 * (weights * (q1**2 + q2**2)).mean())


def test_actor_climbs_the_lesser_critic_and_its_entropy():
    model, batch = small(ent_coef=0.3), a_batch()
    state = model._act_generator.get_state()
    loss, _ = model.actor_loss(batch)
    model._act_generator.set_state(state)
    actions, log_probs = model.policy.get_action_and_logprob(
        batch.obs, generator=model._act_generator
    )
    q = torch.minimum(*model.critic(batch.obs, actions))
    torch.testing.assert_close(loss, (0.3 * log_probs - q).mean())


@pytest.mark.parametrize(("entropy", "rises"), [(-3.0, True), (3.0, False)])
def test_alpha_rises_while_entropy_is_below_its_target(entropy, rises):
    model = small(target_entropy=0.0)
    before = model.temperature().item()
    loss = model.alpha_loss(torch.full((16,), -entropy))
    loss.backward()
    model.alpha_optimizer.step()
    assert (model.temperature().item() > before) is rises


def test_fixed_temperature_stays():
    model = small(ent_coef=0.2).learn(60)
    assert model.temperature().item() == pytest.approx(0.2)
    assert model.alpha_optimizer is None


def test_targets_follow_the_critic_by_tau():
    model = small(tau=0.25).learn(20)  # random actions only: the critics still agree
    old = [p.clone() for p in model.critic_target.parameters()]
    model.train_once()
    pairs = zip(model.critic.parameters(), model.critic_target.parameters(), old, strict=True)
    for online, target, before in pairs:
        torch.testing.assert_close(target, 0.75 * before + 0.25 * online)


@pytest.mark.parametrize("truncates", [True, False])
def test_last_transition_of_an_episode_keeps_the_final_observation(truncates):
    env = Clock(length=3, truncates=truncates, action_space=BOX)
    model = small(env, obs_dim=1, learning_starts=100).learn(30)
    batch = model.replay_buffer.sample(200)
    last = batch["obs"][:, 0] == 2
    assert last.any()
    np.testing.assert_array_equal(batch["next_obs"][:, 0], batch["obs"][:, 0] + 1)
    np.testing.assert_array_equal(batch["terminated"], last & (not truncates))
    np.testing.assert_array_equal(batch["truncated"], last & truncates)


def test_actions_span_the_box_and_are_stored_in_minus_one_to_one():
    env = Clock(length=10, action_space=spaces.Box(-1, 5, (1,), np.float32))
    model = small(env, obs_dim=1, learning_starts=200).learn(200)
    taken = np.array(env.actions)
    assert taken.min() < -0.8
    assert taken.max() > 4.8
    stored = model.replay_buffer.sample(500)["action"]
    assert stored.min() < -0.9
    assert stored.max() > 0.9
    assert np.abs(stored).max() <= 1


@pytest.mark.parametrize(("n_envs", "updates"), [(1, 40), (4, 40)])
def test_one_update_per_environment_step_after_the_start(n_envs, updates):
    model = small(n_envs=n_envs, learning_starts=20)
    count, train_once = [], model.train_once
    model.train_once = lambda: (count.append(model.num_timesteps), train_once())
    model.learn(60)
    assert len(count) == updates
    assert count[0] == 20 + n_envs
    assert len(model.replay_buffer) == 60


@pytest.mark.parametrize(("capacity", "first"), [(1000, 61), (15, 55)])
def test_a_loaded_trainer_fills_its_buffer_before_it_learns_on(capacity, first, tmp_path):
    model = small(buffer_size=capacity).learn(40)
    model.save(tmp_path / "model.pt")
    modules = {"policy": model.policy, "critic": model.critic}
    loaded = rlox.SAC.load(tmp_path / "model.pt", **modules)
    count, train_once = [], loaded.train_once
    loaded.train_once = lambda: (count.append(loaded.num_timesteps), train_once())
    loaded._explore_rng = None  # it acts by its policy all the while
    loaded.learn(30, reset_num_timesteps=False)
    assert count[0] == first  # as many as `learning_starts`, or a full buffer
    assert count == list(range(first, 71))


def test_each_update_draws_a_fresh_batch():
    model = small(n_envs=4)
    drawn, sample = [], model._sample

    def noted():
        batch = sample()
        drawn.append(batch.obs.numpy().tobytes())  # the next is drawn into the same arrays
        return batch

    model._sample = noted
    model.learn(40)
    assert len({*drawn}) == len(drawn) == 20


def test_priorities_become_the_errors_of_the_critics():
    """Weights tell priorities: w_i / w_j = (p_j / p_i)^(alpha beta), Schaul et al. 2016."""
    model = small(prioritized=True).learn(20)
    batches, errors = [], []
    sample, critic_loss = model._sample, model.critic_loss
    model._sample = lambda: batches.append(sample()) or batches[-1]
    model.critic_loss = lambda *args: errors.append(critic_loss(*args)) or errors[-1]
    model.train_once()
    expected = dict(zip(batches[0].indices.tolist(), errors[0][1].tolist(), strict=True))
    assert len(expected) > 3

    drawn = model.replay_buffer.sample(2000)
    weights = dict(zip(drawn["indices"].tolist(), drawn["weights"].tolist(), strict=True))
    known = sorted(expected.keys() & weights.keys())
    powers = np.array([(expected[i] + 1e-6) ** -(0.6 * model.replay_buffer.beta) for i in known])
    found = np.array([weights[i] for i in known])
    np.testing.assert_allclose(found / found[0], powers / powers[0], rtol=1e-4)


def test_importance_weights_become_exact_by_the_end():
    model = small(prioritized=True)
    assert model.replay_buffer.beta == pytest.approx(0.4)
    model.learn(60)
    assert model.replay_buffer.beta == pytest.approx(1.0)


def test_learns_a_one_step_task():
    """The reward is minus the squared distance of the action from 1: the best policy is known."""

    class Aim(Clock):
        def step(self, action):
            obs, _, terminated, truncated, info = super().step(action)
            return obs, -float((action[0] - 1) ** 2), terminated, truncated, info

    env = Aim(length=1, truncates=False, action_space=BOX)
    model = small(env, obs_dim=1, learning_rate=3e-3, batch_size=64, learning_starts=100)
    model.learn(700)
    assert abs(model.predict(np.zeros(1), deterministic=True)[0][0] - 1) < 0.3
    assert np.mean(model.episode_returns[-50:]) > np.mean(model.episode_returns[:100]) / 3


def hook(model):
    """At step 30: a hook of the critic, which Rust would not call."""
    if model.num_timesteps == 30:
        model.called_at = []
        model.critic.register_forward_hook(lambda *_: model.called_at.append(model.num_timesteps))


class HookingSAC(rlox.SAC):
    def train_once(self):
        hook(self)
        super().train_once()


class Hooking(BaseCallback):
    def on_step(self):
        hook(self.model)
        return True


@pytest.mark.parametrize(("form", "callback"), [(HookingSAC, None), (rlox.SAC, Hooking())])
def test_what_the_users_code_changes_in_training_is_heeded(form, callback):
    model = small(form=form, optimizations=["R9"]).learn(40, callback)
    assert model.update_path == "torch: the critic has a hook"
    assert set(model.called_at) == set(range(30, 41))


def test_without_code_of_the_users_no_update_looks_for_changes(monkeypatch):
    model = small(optimizations=["R9"])
    monkeypatch.setattr(NativeUpdate, "fits", None)
    model.learn(40)
    assert model.update_path == "native"
    with pytest.raises(TypeError):
        model.train_once()


def test_logs_that_are_asked_for_tell_of_the_latest_update():
    model = small().learn(20)
    model.dump_logs()
    assert "train/n_updates" not in model.logger.values
    model.learn(20, reset_num_timesteps=False)
    model.dump_logs()
    assert model.logger.values["train/n_updates"] == 20
    assert model.logger.values["train/critic_loss"] == float(model._figures["train/critic_loss"])
    model.train(5, batch_size=16)
    assert model.logger.values["train/n_updates"] == 25
