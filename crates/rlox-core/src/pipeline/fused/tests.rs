//! A fused rollout is the same as one that the collector makes step by step with the same policy and
//! noise.

#![allow(clippy::unwrap_used, clippy::panic)]

use crate::sync::atomic::AtomicBool;

use proptest::prelude::*;

use super::W;
use crate::RloxError;
use crate::env::builtins::IDS;
use crate::env::obs_store::ObsStore;
use crate::env::vec_env::Reset;
use crate::nn::{Activation, Activations, Mlp, PackedMlp};
use crate::pipeline::EnvOf;
use crate::pipeline::fused::*;
use crate::pipeline::rollout::{self, ActionBatch, Collect, Decision, Policy};

type VecEnv = EnvOf<W>;

/// A network with its parameters.
type Net = (Mlp, Vec<f32>);

fn net(widths: &[usize], salt: u64) -> Net {
    let mlp = Mlp::new(widths, Activation::Tanh).unwrap();
    let stream = Stream {
        seed: salt,
        rollout: 0,
    };
    let params = stream
        .normals(mlp.n_params())
        .unwrap()
        .iter()
        .map(|x| 0.5 * x)
        .collect();
    (mlp, params)
}

fn packed((mlp, params): &Net) -> PackedMlp {
    PackedMlp::new(mlp.clone(), params).unwrap()
}

/// Sampling by the formulas in float64, from the outputs of the plain forward pass.
struct Plain {
    actor: Net,
    critic: Net,
    log_std: Vec<f32>,
    noise: Vec<f32>,
    /// Whether a uniform number lay so near to the border of two categories that rounding decides.
    undecided: bool,
}

impl Plain {
    fn act_one(&mut self, outputs: &[f32]) -> (Vec<f64>, f64) {
        let noise: Vec<f64> = self
            .noise
            .drain(..self.log_std.len().max(1))
            .map(f64::from)
            .collect();
        let outputs: Vec<f64> = outputs.iter().map(|&x| f64::from(x)).collect();
        if self.log_std.is_empty() {
            let total: f64 = outputs.iter().map(|x| x.exp()).sum();
            let mut cumulative = 0.0;
            for (i, x) in outputs.iter().enumerate() {
                let p = x.exp() / total;
                cumulative += p;
                self.undecided |= (cumulative - noise[0]).abs() < 1e-5;
                if noise[0] < cumulative {
                    return (vec![i as f64], p.ln());
                }
            }
            panic!("probabilities sum to {cumulative}");
        }
        let (mut action, mut log_prob) = (Vec::new(), 0.0);
        for ((mean, noise), &log_std) in outputs.iter().zip(noise).zip(&self.log_std) {
            let std = f64::from(log_std).exp();
            action.push(mean + std * noise);
            let density = (-0.5 * noise * noise).exp() / (std * std::f64::consts::TAU.sqrt());
            log_prob += density.ln();
        }
        (action, log_prob)
    }
}

impl Policy for Plain {
    type Error = RloxError;

    fn act(&mut self, obs: &[f32], n: usize) -> Result<Decision, RloxError> {
        let mut acts = Activations::default();
        let outputs = self
            .actor
            .0
            .forward(&self.actor.1, obs, n, &mut acts)
            .to_vec();
        let (mut discrete, mut continuous, mut log_probs) = (Vec::new(), Vec::new(), Vec::new());
        for outputs in outputs.chunks(outputs.len() / n) {
            let (action, log_prob) = self.act_one(outputs);
            discrete.push(action[0] as i64);
            continuous.extend(action.iter().map(|&x| x as f32));
            log_probs.push(log_prob as f32);
        }
        let values = self.values(obs, n)?;
        let actions = if self.log_std.is_empty() {
            ActionBatch::Discrete(discrete)
        } else {
            ActionBatch::Continuous(continuous)
        };
        Ok(Decision {
            actions,
            log_probs,
            values,
        })
    }

    fn values(&mut self, obs: &[f32], n: usize) -> Result<Vec<f32>, RloxError> {
        let mut acts = Activations::default();
        Ok(self
            .critic
            .0
            .forward(&self.critic.1, obs, n, &mut acts)
            .to_vec())
    }
}

/// Environments near their time limit, so that some episodes are truncated and some terminated.
fn envs(env_id: &str, n_envs: usize) -> VecEnv {
    let mut env = VecEnv::new(env_id, n_envs, 3).unwrap();
    env.reset(Reset::default()).unwrap();
    let limit = env.max_episode_steps();
    for i in 0..n_envs {
        let (state, _) = env.state(i).unwrap();
        env.set_state(i, &state, limit - 1 - (5 * i as u32) % 20)
            .unwrap();
    }
    env
}

fn policy_for(env: &VecEnv, hidden: &[usize], salt: u64) -> (MlpPolicy, Plain) {
    let (obs_dim, space) = (env.observation_space().dim(), env.action_space().clone());
    let (n_outputs, log_std) = match &space {
        crate::env::spaces::Space::Discrete(n) => (*n, vec![]),
        crate::env::spaces::Space::Box { low, .. } => (low.len(), vec![-0.5; low.len()]),
    };
    let widths = |n: usize| [&[obs_dim], hidden, &[n]].concat();
    let (actor, critic) = (net(&widths(n_outputs), salt), net(&widths(1), salt ^ 1));
    let policy =
        MlpPolicy::new(packed(&actor), packed(&critic), &log_std, obs_dim, &space).unwrap();
    let plain = Plain {
        actor,
        critic,
        log_std,
        noise: Vec::new(),
        undecided: false,
    };
    (policy, plain)
}

fn how(n_steps: usize) -> Collect {
    Collect {
        n_steps,
        gamma: 0.9,
        gae_lambda: 0.8,
    }
}

/// A rollout, and the rewards and lengths of the episodes under way at its end.
fn collected(
    env: &mut VecEnv,
    policy: &MlpPolicy,
    n_steps: usize,
    stream: Stream,
    threads: Option<usize>,
) -> (FusedRollout, Vec<f64>, Vec<i64>) {
    let (mut rewards, mut lengths) = (vec![0.5; env.n_envs()], vec![2; env.n_envs()]);
    let running = Running {
        rewards: &mut rewards,
        lengths: &mut lengths,
    };
    let rollout = collect::<W>(env, policy, how(n_steps), stream, running, threads).unwrap();
    (rollout, rewards, lengths)
}

fn all_close<A: Copy + Into<f64>>(found: &[f32], expected: &[A]) -> bool {
    let close =
        |found: f64, expected: f64| (found - expected).abs() <= 1e-3 * (1.0 + expected.abs());
    let pairs = found.iter().zip(expected);
    found.len() == expected.len() && pairs.clone().all(|(&f, &e)| close(f.into(), e.into()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn it_is_the_rollout_of_the_step_by_step_collector(
        env_id in proptest::sample::select(IDS),
        n_envs in 1usize..20,
        n_steps in 1usize..40,
        hidden in proptest::collection::vec(1usize..20, 0..3),
        salt: u64,
    ) {
        let (mut env, mut same) = (envs(env_id, n_envs), envs(env_id, n_envs));
        let (policy, mut plain) = policy_for(&env, &hidden, salt);
        let stream = Stream { seed: salt, rollout: 7 };
        let (found, rewards, lengths) = collected(&mut env, &policy, n_steps, stream, None);

        let n = n_steps * n_envs;
        plain.noise = if policy.takes_normals() { stream.normals(n) } else { stream.uniforms(n) }.unwrap();
        let never = AtomicBool::new(false);
        let expected = rollout::collect::<W, _>(&mut same, &mut plain, how(n_steps), &never);
        let expected = expected.unwrap().unwrap();
        prop_assume!(!plain.undecided);

        prop_assert!(all_close(&found.obs[..expected.obs.len()], &expected.obs));
        match (&found.actions, &expected.actions) {
            (ActionBatch::Discrete(a), ActionBatch::Discrete(b)) => prop_assert_eq!(a, b),
            (ActionBatch::Continuous(a), ActionBatch::Continuous(b)) => {
                prop_assert!(all_close(a, b));
            }
            _ => prop_assert!(false, "actions of another kind"),
        }
        prop_assert!(all_close(&found.log_probs, &expected.log_probs));
        prop_assert!(all_close(&found.values, &expected.values));
        prop_assert!(all_close(&found.advantages, &expected.advantages));
        prop_assert!(all_close(&found.returns, &expected.returns));

        let (mut sums, mut steps) = (vec![0.5; n_envs], vec![2; n_envs]);
        let mut episodes = Vec::new();
        for i in 0..n {
            let e = i % n_envs;
            sums[e] += expected.rewards[i];
            steps[e] += 1;
            if expected.terminated[i] || expected.truncated[i] {
                episodes.push((i / n_envs, sums[e], steps[e]));
                (sums[e], steps[e]) = (0.0, 0);
            }
        }
        prop_assert_eq!(&lengths, &steps);
        let ended: Vec<_> = found.episodes.iter().map(|e| (e.step, e.length)).collect();
        prop_assert_eq!(ended, episodes.iter().map(|e| (e.0, e.2)).collect::<Vec<_>>());
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-3 * (1.0 + b.abs());
        prop_assert!(found.episodes.iter().zip(&episodes).all(|(a, b)| near(a.reward, b.1)));
        prop_assert!(rewards.iter().zip(&sums).all(|(&a, &b)| near(a, b)));
        prop_assert!(all_close(
            &found.obs[expected.obs.len()..],
            &env.obs().rows().flatten().copied().collect::<Vec<_>>(),
        ));
    }

    #[test]
    fn threads_do_not_change_it(
        env_id in proptest::sample::select(IDS), n_envs in 1usize..40, n_steps in 1usize..30, threads in 2usize..5,
    ) {
        let stream = Stream { seed: 1, rollout: 2 };
        let run = |threads| {
            let mut env = envs(env_id, n_envs);
            let (policy, _) = policy_for(&env, &[16], 5);
            let result = collected(&mut env, &policy, n_steps, stream, threads);
            (result, (0..n_envs).map(|i| env.state(i).unwrap().0.to_vec()).collect::<Vec<_>>())
        };
        prop_assert_eq!(run(Some(threads)), run(Some(1)));
    }

    #[test]
    fn environments_of_another_kind_are_collected_from_in_the_same_way(
        env_id in proptest::sample::select(IDS), n_envs in 1usize..20, n_steps in 1usize..30,
    ) {
        let stream = Stream { seed: 1, rollout: 2 };
        let (mut env, mut other) = (envs(env_id, n_envs), envs(env_id, n_envs));
        let (policy, _) = policy_for(&env, &[16], 5);
        let expected = collected(&mut env, &policy, n_steps, stream, None).0;
        let obs: Vec<f32> = other.obs().rows().flatten().copied().collect();
        let all = other.shares(n_envs.next_multiple_of(TILE)).unwrap().pop().unwrap();
        let found = collect_from::<W>(all, &obs, &policy, how(n_steps), stream).unwrap();
        prop_assert_eq!(found, FusedRollout { episodes: vec![], ..expected });
    }
}

#[test]
fn it_is_made_of_its_stream() {
    let run = |stream| {
        let mut env = envs("Pendulum-v1", 3);
        let (policy, _) = policy_for(&env, &[8], 5);
        collected(&mut env, &policy, 10, stream, None).0
    };
    let stream = Stream {
        seed: 1,
        rollout: 2,
    };
    assert_eq!(run(stream), run(stream));
    assert_ne!(run(stream), run(Stream { seed: 2, ..stream }));
    assert_ne!(
        run(stream),
        run(Stream {
            rollout: 3,
            ..stream
        })
    );
}

/// The return of one step from `state`, the episode's step number `elapsed` + 1, with a critic whose
/// every value is 10.
fn one_step_return(state: [f64; 4], elapsed: u32) -> f32 {
    let mut env = VecEnv::new("CartPole-v1", 1, 0).unwrap();
    env.reset(Reset::default()).unwrap();
    env.set_state(0, &state, elapsed).unwrap();
    let (_, plain) = policy_for(&env, &[], 0);
    let ten = PackedMlp::new(net(&[4, 1], 0).0, &[0.0, 0.0, 0.0, 0.0, 10.0]).unwrap();
    let policy = MlpPolicy::new(packed(&plain.actor), ten, &[], 4, env.action_space()).unwrap();
    let (rollout, ..) = collected(
        &mut env,
        &policy,
        1,
        Stream {
            seed: 0,
            rollout: 0,
        },
        None,
    );
    rollout.returns[0]
}

#[test]
fn a_time_limit_is_no_end_of_the_task() {
    let (upright, fallen) = ([0.0; 4], [0.0, 0.0, 0.5, 0.0]);
    assert_eq!(one_step_return(upright, 10), 1.0 + 0.9 * 10.0); // goes on
    assert_eq!(one_step_return(upright, 499), 1.0 + 0.9 * 10.0); // truncated
    assert_eq!(one_step_return(fallen, 10), 1.0); // terminated
    assert_eq!(one_step_return(fallen, 499), 1.0); // both
}

#[test]
fn outputs_that_are_no_numbers_are_refused_and_the_environments_go_on() {
    for env_id in ["CartPole-v1", "Pendulum-v1"] {
        let mut env = envs(env_id, 2);
        let (good, plain) = policy_for(&env, &[], 0);
        let (obs_dim, space) = (env.observation_space().dim(), env.action_space().clone());
        let nan = vec![f32::NAN; plain.actor.1.len()];
        let actor = PackedMlp::new(plain.actor.0.clone(), &nan).unwrap();
        let critic = packed(&plain.critic);
        let bad = MlpPolicy::new(actor, critic, &plain.log_std, obs_dim, &space).unwrap();
        let stream = Stream {
            seed: 0,
            rollout: 0,
        };
        let (mut rewards, mut lengths) = (vec![0.0; 2], vec![0; 2]);
        let running = Running {
            rewards: &mut rewards,
            lengths: &mut lengths,
        };
        let error = collect::<W>(&mut env, &bad, how(4), stream, running, None).unwrap_err();
        assert!(
            error.to_string().starts_with("actor: gives [NaN"),
            "{error}"
        );
        collected(&mut env, &good, 4, stream, None);
    }
}

#[test]
fn noise_that_no_stream_gives_is_refused() {
    let mut env = envs("CartPole-v1", 1);
    let (policy, _) = policy_for(&env, &[], 0);
    for noise in [f32::NAN, 1.0, -0.1] {
        let (rewards, lengths) = (&mut [0.0], &mut [0]);
        let running = Running { rewards, lengths };
        let found = collect_with_noise::<W>(&mut env, &policy, how(1), &[noise], running, None);
        assert!(found.unwrap_err().to_string().contains("in [0, 1)"));
    }
}

#[test]
fn what_does_not_fit_is_named() {
    let mut env = VecEnv::new("CartPole-v1", 2, 0).unwrap();
    let (policy, plain) = policy_for(&env, &[], 0);
    let (seed, rollout) = (0, 0);
    let stream = Stream { seed, rollout };
    let problem = |n: usize, env: &mut VecEnv| {
        let running = Running {
            rewards: &mut vec![0.0; n],
            lengths: &mut vec![0; n],
        };
        let result = collect::<W>(env, &policy, how(1), stream, running, None);
        result.map_or_else(|error| error.to_string(), |_| "fine".into())
    };
    assert!(problem(2, &mut env).contains("call reset() first"));
    env.reset(Reset::default()).unwrap();
    assert!(problem(3, &mut env).contains("length 3, expected 2"));
    assert_eq!(problem(2, &mut env), "fine");

    let space = env.action_space();
    let (actor, critic) = (packed(&plain.actor), packed(&plain.critic));
    let error = MlpPolicy::new(critic.clone(), actor, &[], 4, space).unwrap_err();
    assert_eq!(
        error.to_string(),
        "actor: maps 4 to 1 numbers, expected 4 to 2"
    );
    let error = MlpPolicy::new(critic.clone(), critic, &[0.0], 4, space).unwrap_err();
    assert_eq!(error.to_string(), "log_std: has length 1, expected 0");
}
