//! Beliefs about environments stepped eight at a time. They are the same at every instruction set. They
//! are those of environments stepped one by one, except for the last place of sine and cosine.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;

use super::*;
use crate::env::builtins::{CartPole, IDS, Pendulum};
use crate::env::members::Member;
use crate::env::obs_store::ObsStore;
use crate::env::spaces::Space;
use crate::env::stepping::Finals;
use crate::env::vec_env::{Reset, VecEnv};
use crate::simd::{FORCED, LEVELS, Level, at_every_level};

/// The results of each of `n_steps` steps. The environments start at several stages of their episodes.
fn history<S: Stepping>(env_id: &str, n_envs: usize, seed: u128, n_steps: usize) -> Vec<Vec<f64>> {
    let mut env = VecEnv::<S>::new(env_id, n_envs, seed).unwrap();
    // Bounds nine times as wide as the usual ones of an initial state.
    let wide = |&(low, high): &Bounds| (5.0 * low - 4.0 * high, 5.0 * high - 4.0 * low);
    let bounds: Vec<Bounds> = env.initial_bounds().iter().map(wide).collect();
    let how = Reset {
        bounds: Some(&bounds),
        ..Reset::default()
    };
    env.reset(how).unwrap();
    let limit = env.max_episode_steps();
    for i in 0..n_envs {
        let (state, _) = env.state(i).unwrap();
        env.set_state(i, &state, limit - 1 - (7 * i as u32) % 60)
            .unwrap();
    }
    let space = env.action_space().clone();
    let n_turns = match space {
        Space::Discrete(n) => n,
        Space::Box { .. } => 3,
    };
    let mut rows = Vec::new();
    for t in 0..n_steps {
        let turns: Vec<usize> = (0..n_envs).map(|i| (i + t) % 3 % n_turns).collect();
        let indices: Vec<i64> = turns.iter().map(|&turn| turn as i64).collect();
        // Actions within the bounds of all spaces, on the bounds, and beyond them.
        let reals: Vec<f32> = turns
            .iter()
            .map(|&turn| turn as f32 - 0.375 * (t % 8) as f32)
            .collect();
        let actions = match space {
            Space::Discrete(_) => Actions::Discrete(&indices),
            Space::Box { .. } => Actions::Continuous(&reals),
        };
        let batch = env.step(actions).unwrap();
        let flags = batch.terminated.iter().chain(&batch.truncated);
        let mut row: Vec<f64> = flags.map(|&flag| f64::from(u8::from(flag))).collect();
        row.extend(&batch.rewards);
        row.extend(batch.obs.rows().flatten().map(|&x| f64::from(x)));
        for (i, last) in batch.final_obs.iter() {
            row.push(i as f64);
            row.extend(last.iter().map(|&x| f64::from(x)));
        }
        rows.push(row);
    }
    rows
}

fn at<T>(level: Level, run: impl FnOnce() -> T) -> T {
    FORCED.set(Some(level));
    let result = run();
    FORCED.set(None);
    result
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_instruction_set_gives_the_same_bits(
        env_id in prop::sample::select(IDS), n_envs in 1..20_usize, seed in 0..1_u128 << 64,
    ) {
        let histories: Vec<_> = LEVELS
            .iter()
            .map(|&level| at(level, || history::<Lanes>(env_id, n_envs, seed, 80)))
            .collect();
        for other in &histories[1..] {
            prop_assert_eq!(&histories[0], other);
        }
    }

    #[test]
    fn held_together_they_do_what_they_do_alone(
        env_id in prop::sample::select(IDS), n_envs in 1..20_usize, seed in 0..1_u128 << 64,
    ) {
        let alone = history::<Member<FlatObs, OptionalInfo>>(env_id, n_envs, seed, 80);
        // The environments with equations of their own in `scalar` use the library's sine and cosine.
        let tolerance = if [CartPole::ID, Pendulum::ID].contains(&env_id) { 1e-6 } else { 0.0 };
        at_every_level(|| {
            let together = history::<Lanes>(env_id, n_envs, seed, 80);
            for (a, b) in together.iter().zip(&alone) {
                prop_assert_eq!(a.len(), b.len());
                let near = |(a, b): (&f64, &f64)| (a - b).abs() <= tolerance * b.abs().max(1.0);
                prop_assert!(a.iter().zip(b).all(near), "{a:?} {b:?}");
            }
            Ok(())
        })?;
    }
}

/// The reward and the state after a step of the second of three pendulums.
fn next<S: Stepping>(state: &[f64]) -> Vec<f64> {
    let mut env = VecEnv::<S>::new(Pendulum::ID, 3, 0).unwrap();
    env.reset(Reset::default()).unwrap();
    env.set_state(1, state, 0).unwrap();
    let reward = env.step(Actions::Continuous(&[1.0; 3])).unwrap().rewards[1];
    [vec![reward], env.state(1).unwrap().0].concat()
}

/// For very large angles the library computes sine and cosine.
#[test]
fn a_wound_up_pendulum_is_that_of_one_alone() {
    for theta in [7.0, -30.0, 1e4, -2e6, 3e300] {
        let found = next::<Lanes>(&[theta, 0.5]);
        let expected = next::<Member<FlatObs, OptionalInfo>>(&[theta, 0.5]);
        for (a, b) in found.iter().zip(&expected) {
            assert!(
                (a - b).abs() <= 1e-14 * b.abs().max(1.0),
                "{theta}: {a} {b}"
            );
        }
    }
}

/// Lanes without an environment are stepped with the others. They must not reach angles that sine and
/// cosine take long for.
#[test]
fn lanes_without_an_environment_stay_small() {
    let seeds = [0, 1, 2];
    let mut all = [Eight::<CartPole> {
        state: Default::default(),
        elapsed: [0; LANES],
        rngs: seeds.map(seeding::rng_from_seed).into(),
    }];
    let (mut obs, mut finals) = ([0.0; 12], Finals::new(3, 4).unwrap());
    for _ in 0..1_000 {
        let outcome = Outcome {
            rewards: &mut [0.0; 3],
            terminated: &mut [false; 3],
            truncated: &mut [false; 3],
            final_obs: &mut finals,
        };
        step_all(&mut all, &[0, 1, 0], &mut obs, outcome);
        assert!(all[0].state.iter().flatten().all(|x| x.abs() < 10.0));
    }
}
