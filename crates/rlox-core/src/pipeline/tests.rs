//! Beliefs about rollouts and about the thread that collects them.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use proptest::prelude::*;

use super::W;
use crate::RloxError;
use crate::env::obs_store::ObsStore;
use crate::env::spaces::Actions;
use crate::env::vec_env::Reset;
use crate::pipeline::collector::AsyncCollector;
use crate::pipeline::rollout::{
    ActionBatch, Collect, CollectError, Decision, Policy, Rollout, collect,
};
use crate::pipeline::rollout_gae::{self, Steps};
use crate::pipeline::{EnvOf, current_obs};
use crate::sync::atomic::AtomicBool;
use crate::training::gae::{Layout, compute_gae_batched};

type VecEnv = EnvOf<W>;
type Collector<E> = AsyncCollector<W, E>;

const N_ENVS: usize = 3;
const OBS_DIM: usize = 4;
const HOW: Collect = Collect {
    n_steps: 80,
    gamma: 0.9,
    gae_lambda: 0.8,
};
const SOON: Duration = Duration::from_secs(20);

/// Pushes under the pole; the value of an observation is the sum of its components.
#[derive(Default)]
struct Reflex {
    acts: usize,
    fails_at: Option<usize>,
    nap: Duration,
}

fn worth(obs: &[f32]) -> f32 {
    obs.iter().sum()
}

impl Policy for Reflex {
    type Error = &'static str;

    fn act(&mut self, obs: &[f32], n: usize) -> Result<Decision, Self::Error> {
        assert_eq!(obs.len(), n * OBS_DIM);
        std::thread::sleep(self.nap);
        self.acts += 1;
        if self.fails_at == Some(self.acts) {
            return Err("no idea");
        }
        Ok(Decision {
            actions: ActionBatch::Discrete(
                obs.chunks(OBS_DIM).map(|o| (o[2] > 0.0).into()).collect(),
            ),
            log_probs: vec![-0.5; n],
            values: self.values(obs, n)?,
        })
    }

    fn values(&mut self, obs: &[f32], _n: usize) -> Result<Vec<f32>, Self::Error> {
        Ok(obs.chunks(OBS_DIM).map(worth).collect())
    }
}

fn cartpoles(n_envs: usize) -> VecEnv {
    VecEnv::new("CartPole-v1", n_envs, 11).unwrap()
}

fn rollout(env: &mut VecEnv, how: Collect) -> Rollout {
    collect::<W, _>(env, &mut Reflex::default(), how, &AtomicBool::new(false))
        .unwrap()
        .unwrap()
}

fn made<E>(collector: Result<Collector<E>, Box<(VecEnv, RloxError)>>) -> Collector<E> {
    collector.map_err(|refused| refused.1).unwrap()
}

fn collector(policy: Reflex) -> Collector<&'static str> {
    collector_of(policy, HOW.n_steps)
}

fn collector_of(policy: Reflex, n_steps: usize) -> Collector<&'static str> {
    let how = Collect { n_steps, ..HOW };
    made(Collector::new(
        cartpoles(N_ENVS),
        Box::new(policy),
        how,
        |work| work(),
    ))
}

fn take(collector: &mut Collector<&'static str>) -> Result<Rollout, CollectError<&'static str>> {
    collector.take_timeout(SOON).map(Option::unwrap)
}

proptest! {
    #[test]
    fn rollout_gae_is_the_batched_one(
        n_envs in 1..5_usize, n_steps in 1..12_usize, gamma in 0.0..=1.0, gae_lambda in 0.0..=1.0, seed in 0..1000_u64,
    ) {
        let noise = |i: usize, salt: u64| ((i as u64 * 7919 + seed * 31 + salt) % 97) as f64 / 48.0 - 1.0;
        let column = |salt| (0..n_envs * n_steps).map(|i| noise(i, salt)).collect::<Vec<_>>();
        let (rewards, values) = (column(1), column(2));
        let dones: Vec<f64> = column(3).iter().map(|x| f64::from(*x > 0.6)).collect();
        let last_values: Vec<f64> = (0..n_envs).map(|i| noise(i, 4)).collect();
        let steps = Steps { rewards: &rewards, values: &values, dones: &dones, last_values: &last_values };
        let found = rollout_gae::advantages_and_returns::<W>(steps, gamma, gae_lambda).unwrap();
        let expected = compute_gae_batched::<W, _>(
            &rewards, &values, &dones, &last_values, gamma, gae_lambda, Layout::StepMajor,
        ).unwrap();
        for (found, expected) in [(found.0, expected.0), (found.1, expected.1)] {
            for (found, expected) in found.iter().zip(&expected) {
                prop_assert!((found - expected).abs() < 1e-12);
            }
        }
    }
}

#[test]
fn a_rollout_is_what_a_loop_by_hand_gives() {
    let found = rollout(&mut cartpoles(N_ENVS), HOW);
    let mut env = cartpoles(N_ENVS);
    env.reset(Reset::default()).unwrap();
    let mut current = Vec::new();
    for t in 0..HOW.n_steps {
        current_obs::refresh::<W, _>(&mut current, env.obs());
        let decision = Reflex::default().act(&current, N_ENVS).unwrap();
        let ActionBatch::Discrete(actions) = &decision.actions else {
            unreachable!("CartPole is discrete")
        };
        let step = t * N_ENVS..(t + 1) * N_ENVS;
        assert_eq!(found.obs[step.start * OBS_DIM..step.end * OBS_DIM], current);
        let ActionBatch::Discrete(taken) = &found.actions else {
            unreachable!("CartPole is discrete")
        };
        assert_eq!(&taken[step.clone()], actions);
        let batch = env.step(Actions::Discrete(actions)).unwrap();
        assert_eq!(found.rewards[step.clone()], batch.rewards);
        assert_eq!(found.terminated[step.clone()], batch.terminated);
        assert_eq!(found.truncated[step.clone()], batch.truncated);
        let values: Vec<f64> = decision.values.iter().map(|&value| value.into()).collect();
        assert_eq!(found.values[step], values);
    }
    assert!(
        found.terminated.contains(&true),
        "the test wants an episode to end"
    );
    assert_eq!(found.log_probs.len(), HOW.n_steps * N_ENVS);
}

/// One step from `state`, `elapsed` steps into the episode; the advantage is then delta alone.
fn one_step(state: [f64; 4], elapsed: u32) -> (Rollout, Vec<f32>, Vec<f32>) {
    let (mut env, mut twin) = (cartpoles(1), cartpoles(1));
    for env in [&mut env, &mut twin] {
        env.reset(Reset::default()).unwrap();
        env.set_state(0, &state, elapsed).unwrap();
    }
    let found = rollout(&mut env, Collect { n_steps: 1, ..HOW });
    let ActionBatch::Discrete(actions) = &found.actions else {
        unreachable!("CartPole is discrete")
    };
    let batch = twin.step(Actions::Discrete(actions)).unwrap();
    let next = batch.obs.rows().next().unwrap().to_vec();
    let last = batch.final_obs.get(0).unwrap_or_default().to_vec();
    (found, next, last)
}

fn check_advantage(found: &Rollout, bootstrap: f32) {
    let expected = 1.0 + HOW.gamma * f64::from(bootstrap) - found.values[0];
    assert!((found.advantages[0] - expected).abs() < 1e-12);
    assert_eq!(found.returns[0], found.advantages[0] + found.values[0]);
    assert_eq!(found.rewards, [1.0], "rewards are the environments' own");
}

#[test]
fn a_step_within_an_episode_bootstraps_from_the_next_observation() {
    let (found, next, _) = one_step([0.1, 0.2, 0.05, 0.3], 3);
    check_advantage(&found, worth(&next));
}

#[test]
fn truncation_bootstraps_from_the_final_observation() {
    let (found, next, last) = one_step([0.1, 0.2, 0.05, 0.3], 499);
    assert!(found.truncated[0] && !found.terminated[0]);
    assert_ne!(worth(&last), worth(&next));
    check_advantage(&found, worth(&last));
}

#[test]
fn termination_bootstraps_from_nothing() {
    for elapsed in [3, 499] {
        let (found, _, _) = one_step([2.4, 5.0, 0.0, 0.0], elapsed);
        assert!(found.terminated[0]);
        check_advantage(&found, 0.0);
    }
}

#[test]
fn the_thread_gives_the_rollouts_of_a_plain_loop() {
    let mut env = cartpoles(N_ENVS);
    let mut collector = collector(Reflex::default());
    for _ in 0..5 {
        collector.start().unwrap();
        assert_eq!(take(&mut collector).unwrap(), rollout(&mut env, HOW));
    }
}

#[test]
fn continuous_actions_go_the_same_way() {
    struct Still(f32);
    impl Policy for Still {
        type Error = ();
        fn act(&mut self, obs: &[f32], n: usize) -> Result<Decision, ()> {
            let values = self.values(obs, n)?;
            let actions = ActionBatch::Continuous(vec![self.0; n]);
            Ok(Decision {
                actions,
                log_probs: vec![0.0; n],
                values,
            })
        }
        fn values(&mut self, _obs: &[f32], n: usize) -> Result<Vec<f32>, ()> {
            Ok(vec![1.0; n])
        }
    }
    let mut env = VecEnv::new("Pendulum-v1", 2, 0).unwrap();
    let how = Collect {
        n_steps: 201,
        ..HOW
    };
    let never = AtomicBool::new(false);
    let rollout = collect::<W, _>(&mut env, &mut Still(0.5), how, &never).unwrap();
    let rollout = rollout.unwrap();
    assert_eq!(rollout.actions, ActionBatch::Continuous(vec![0.5; 402]));
    assert_eq!(rollout.truncated.iter().filter(|cut| **cut).count(), 2);

    // The environments get clipped actions, and subtract a tenth of their square from the reward.
    let mut env = VecEnv::new("MountainCarContinuous-v0", 2, 0).unwrap();
    let rollout = collect::<W, _>(&mut env, &mut Still(4.0), HOW, &never).unwrap();
    let rollout = rollout.unwrap();
    assert_eq!(rollout.actions, ActionBatch::Continuous(vec![4.0; 160]));
    assert_eq!(rollout.rewards, [-0.1; 160]);
    for bad in [f32::NAN, f32::INFINITY] {
        let refused = collect::<W, _>(&mut env, &mut Still(bad), HOW, &never);
        assert!(matches!(refused, Err(CollectError::Core(_))));
    }
}

#[test]
fn a_failing_policy_comes_out_and_the_next_rollout_starts() {
    let mut collector = collector(Reflex {
        fails_at: Some(3),
        ..Reflex::default()
    });
    collector.start().unwrap();
    assert_eq!(
        take(&mut collector).unwrap_err(),
        CollectError::Policy("no idea")
    );
    collector.start().unwrap();
    assert_eq!(
        take(&mut collector).unwrap().rewards.len(),
        HOW.n_steps * N_ENVS
    );
}

#[test]
fn a_policy_of_the_wrong_size_is_an_error() {
    struct Short;
    impl Policy for Short {
        type Error = ();
        fn act(&mut self, _obs: &[f32], n: usize) -> Result<Decision, ()> {
            let actions = ActionBatch::Discrete(vec![0; n]);
            Ok(Decision {
                actions,
                log_probs: vec![0.0; n],
                values: vec![0.0; n - 1],
            })
        }
        fn values(&mut self, _obs: &[f32], n: usize) -> Result<Vec<f32>, ()> {
            Ok(vec![0.0; n])
        }
    }
    let error =
        collect::<W, _>(&mut cartpoles(2), &mut Short, HOW, &AtomicBool::new(false)).unwrap_err();
    let CollectError::Core(error) = error else {
        unreachable!("the policy did not fail")
    };
    assert_eq!(error.to_string(), "values: has length 1, expected 2");
}

#[test]
fn calls_out_of_turn_are_errors() {
    let mut collector = collector(Reflex {
        nap: Duration::from_millis(1),
        ..Reflex::default()
    });
    let state = |message: &str| RloxError::InvalidState(message.into());
    let too_early = "take without a rollout under way; start() one";
    assert_eq!(
        take(&mut collector).unwrap_err(),
        CollectError::Core(state(too_early))
    );
    collector.start().unwrap();
    let twice = "start while a rollout is under way; take() it first";
    assert_eq!(collector.start().unwrap_err(), state(twice));
    collector.stop();
    assert_eq!(
        collector.start().unwrap_err(),
        state("the collector is closed")
    );
    let closed = CollectError::Core(state("the collector is closed"));
    assert_eq!(take(&mut collector).unwrap_err(), closed);
}

#[test]
fn numbers_that_make_no_rollout_are_refused() {
    for how in [
        Collect { n_steps: 0, ..HOW },
        Collect {
            n_steps: usize::MAX,
            ..HOW
        },
        Collect { gamma: 1.1, ..HOW },
        Collect {
            gae_lambda: f64::NAN,
            ..HOW
        },
    ] {
        let policy = Box::new(Reflex::default());
        let made = Collector::new(cartpoles(1), policy, how, |work| work());
        assert_eq!(
            made.err().unwrap().0.n_envs(),
            1,
            "the environments are given back"
        );
    }
}

#[test]
fn stopping_in_the_middle_gives_the_environments_back() {
    let slow = Reflex {
        nap: Duration::from_millis(5),
        ..Reflex::default()
    };
    // Fifty seconds of steps are not over, however late a busy machine looks.
    let mut collector = collector_of(slow, 10_000);
    collector.start().unwrap();
    assert_eq!(collector.take_timeout(Duration::from_millis(1)), Ok(None));
    collector.stop();
    while !collector.wait_timeout(SOON) {}
    assert_eq!(collector.join().unwrap().unwrap().n_envs(), N_ENVS);
    assert!(collector.join().is_none());
}

#[test]
fn dropping_a_working_collector_does_not_wait() {
    let mut collector = collector(Reflex {
        nap: Duration::from_secs(3600),
        ..Reflex::default()
    });
    collector.start().unwrap();
    drop(collector);
}

#[test]
fn a_policy_that_panics_closes_the_collector() {
    struct Wild;
    impl Policy for Wild {
        type Error = &'static str;
        fn act(&mut self, _obs: &[f32], _n: usize) -> Result<Decision, Self::Error> {
            std::panic::resume_unwind(Box::new("wild"))
        }
        fn values(&mut self, _obs: &[f32], _n: usize) -> Result<Vec<f32>, Self::Error> {
            Ok(Vec::new())
        }
    }
    let mut collector = made(Collector::new(cartpoles(1), Box::new(Wild), HOW, |work| {
        work()
    }));
    collector.start().unwrap();
    let closed = RloxError::InvalidState("the collector is closed".into());
    assert_eq!(
        take(&mut collector).unwrap_err(),
        CollectError::Core(closed.clone())
    );
    assert_eq!(collector.start().unwrap_err(), closed);
    assert!(
        matches!(collector.join(), Some(None)),
        "the environments are lost"
    );
}
