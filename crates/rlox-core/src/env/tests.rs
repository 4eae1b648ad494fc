//! Beliefs about the built-in environments and about stepping many of them.
#![allow(clippy::unwrap_used)]

use std::f64::consts::PI;

use proptest::prelude::*;

use super::info::{MapInfo, StepInfo};
use super::obs_store::{ObsStore, PerEnvObs};
use super::physics::Physics as _;
use super::scalar::{CartPole, Pendulum, RLEnv, Stepped};
use super::spaces::{Action, Actions, Space};
use super::vec_env::{PARALLEL_ENVS, Reset};
use super::{builtins, builtins::IDS, seeding};
use crate::error::RloxError;
use crate::switchboard::VecEnv;

const LEFT: Actions<'_> = Actions::Discrete(&[0]);

fn cartpoles(n_envs: usize, seed: u128) -> VecEnv {
    let mut env = VecEnv::new(builtins::CartPole::ID, n_envs, seed).unwrap();
    env.reset(Reset::default()).unwrap();
    env
}

fn rows(store: &impl ObsStore) -> Vec<Vec<f32>> {
    store.rows().map(<[f32]>::to_vec).collect()
}

fn step_from<E: RLEnv<MapInfo> + Default>(
    state: &[f64],
    action: Action<'_>,
) -> (Vec<f64>, Stepped<MapInfo>) {
    let mut env = E::default();
    env.state_mut().copy_from_slice(state);
    let transition = env.step(action, 0);
    (env.state().to_vec(), transition)
}

proptest! {
    #[test]
    fn cartpole_mirrored_moves_mirrored(state in prop::array::uniform4(-2.0..2.0_f64), action in 0..2_usize) {
        let mirrored: Vec<f64> = state.iter().map(|component| -component).collect();
        let (next, here) = step_from::<CartPole>(&state, Action::Discrete(action));
        let (next_there, there) = step_from::<CartPole>(&mirrored, Action::Discrete(1 - action));
        let back: Vec<f64> = next_there.iter().map(|component| -component).collect();
        prop_assert_eq!(next, back);
        prop_assert_eq!(here, there);
    }

    #[test]
    fn pendulum_cost_and_speed_are_bounded(theta in -10.0..10.0_f64, speed in -8.0..8.0_f64, torque in -5.0..5.0_f32) {
        let (next, step) = step_from::<Pendulum>(&[theta, speed], Action::Continuous(&[torque]));
        prop_assert!(step.reward <= 0.0);
        prop_assert!(step.reward >= -(PI * PI + 0.1 * 64.0 + 0.001 * 4.0 + 1e-9));
        prop_assert!(next[1].abs() <= 8.0);
        prop_assert!(!step.terminated);
    }

    #[test]
    fn pendulum_clips_the_torque(theta in -3.0..3.0_f64, torque in 2.0..1e6_f32) {
        let (clipped, limit) = (Action::Continuous(&[2.0]), [torque]);
        prop_assert_eq!(
            step_from::<Pendulum>(&[theta, 0.0], Action::Continuous(&limit)),
            step_from::<Pendulum>(&[theta, 0.0], clipped)
        );
    }

    #[test]
    fn together_is_as_alone(seed in 0..1_u128 << 100, n_envs in 1..6_usize, pushes in prop::collection::vec(0..2_i64, 80)) {
        let mut together = cartpoles(n_envs, seed);
        let mut alone: Vec<_> = (0..n_envs).map(|i| cartpoles(1, seed + i as u128)).collect();
        for push in pushes {
            let batch = together.step(Actions::Discrete(&vec![push; n_envs])).unwrap();
            for (i, env) in alone.iter_mut().enumerate() {
                let single = env.step(Actions::Discrete(&[push])).unwrap();
                prop_assert_eq!(batch.obs.rows().nth(i), single.obs.rows().next());
                prop_assert_eq!(batch.terminated[i], single.terminated[0]);
                prop_assert_eq!(batch.final_obs.get(i), single.final_obs.get(0));
            }
        }
    }
}

#[test]
fn threads_do_not_change_the_result() {
    let n_envs = PARALLEL_ENVS + 88;
    let mut parallel = cartpoles(n_envs, 7);
    let mut serial: Vec<_> = (0..n_envs).map(|i| cartpoles(1, 7 + i as u128)).collect();
    for t in 0..40 {
        let actions: Vec<i64> = (0..n_envs).map(|i| ((i + t) % 3 == 0).into()).collect();
        let batch = parallel.step(Actions::Discrete(&actions)).unwrap();
        for (i, env) in serial.iter_mut().enumerate() {
            let single = env.step(Actions::Discrete(&actions[i..=i])).unwrap();
            assert_eq!(batch.obs.rows().nth(i), single.obs.rows().next());
            assert_eq!(batch.rewards[i], single.rewards[0]);
            assert_eq!(batch.terminated[i], single.terminated[0]);
            assert_eq!(batch.final_obs.get(i), single.final_obs.get(0));
        }
    }
}

#[test]
fn the_upright_pendulum_at_rest_costs_nothing_and_stays() {
    let (next, step) = step_from::<Pendulum>(&[0.0, 0.0], Action::Continuous(&[0.0]));
    assert_eq!(next, [0.0, 0.0]);
    assert_eq!(step.reward, 0.0);
}

/// The state and the reward after a step of one environment, and whether it ended.
fn after(env_id: &str, state: &[f64], action: Actions<'_>) -> (Vec<f64>, f64, bool) {
    let mut env = VecEnv::new(env_id, 1, 0).unwrap();
    env.reset(Reset::default()).unwrap();
    env.set_state(0, state, 5).unwrap();
    let batch = env.step(action).unwrap();
    let (reward, ended) = (batch.rewards[0], batch.terminated[0]);
    (env.state(0).unwrap().0, reward, ended)
}

#[test]
fn an_acrobot_hangs_still_until_it_is_pushed() {
    let id = builtins::Acrobot::ID;
    let (state, reward, ended) = after(id, &[0.0; 4], Actions::Discrete(&[1]));
    assert!(state.iter().all(|component| component.abs() < 1e-15));
    assert_eq!((reward, ended), (-1.0, false));
    let (state, ..) = after(id, &[0.0; 4], Actions::Discrete(&[2]));
    assert!(state[1] > 0.01 && state[3] > 0.1);
}

#[test]
fn an_acrobot_is_done_a_link_above_the_pivot_and_its_angles_stay_within_half_a_turn() {
    let id = builtins::Acrobot::ID;
    let (_, reward, ended) = after(id, &[PI, 0.0, 0.0, 0.0], Actions::Discrete(&[1]));
    assert_eq!((reward, ended), (0.0, true));
    for turns in [0.0, 3.0, 300.0, 1e6] {
        let far = turns * 2.0 * PI;
        let state = [far - 1.0, 1.0 - far, 0.0, 0.0];
        let (near, ..) = after(id, &[-1.0, 1.0, 0.0, 0.0], Actions::Discrete(&[1]));
        let (found, ..) = after(id, &state, Actions::Discrete(&[1]));
        for (a, b) in found.iter().zip(near) {
            assert!((a - b).abs() < 1e-7, "{turns}: {a} {b}");
        }
    }
}

#[test]
fn a_throttle_beyond_the_bounds_drives_no_faster_and_is_paid_in_full() {
    let id = builtins::MountainCarContinuous::ID;
    let full = after(id, &[-0.5, 0.0], Actions::Continuous(&[1.0]));
    let beyond = after(id, &[-0.5, 0.0], Actions::Continuous(&[4.0]));
    assert!((full.0[1] - beyond.0[1]).abs() < 1e-9);
    assert_eq!((full.1, beyond.1), (-0.1, -1.6));
    let (_, reward, ended) = after(id, &[0.449, 0.05], Actions::Continuous(&[1.0]));
    assert_eq!((reward, ended), (99.9, true));
}

#[test]
fn the_left_wall_stops_a_car() {
    let id = builtins::MountainCarContinuous::ID;
    let (state, ..) = after(id, &[-1.19, -0.07], Actions::Continuous(&[-1.0]));
    assert_eq!(state, [f64::from(-1.2_f32), 0.0]);
    let (state, ..) = after(builtins::MountainCar::ID, &[-1.19, -0.07], LEFT);
    assert_eq!(state, [-1.2, 0.0]);
}

/// The next reset goes on with the random numbers where the last one stopped.
#[test]
fn what_is_not_drawn_starts_at_zero_and_takes_no_random_number() {
    let mut env = VecEnv::new(builtins::MountainCarContinuous::ID, 1, 9).unwrap();
    let mut rng = seeding::rng_from_seed(9);
    for _ in 0..3 {
        env.reset(Reset::default()).unwrap();
        let position = seeding::uniform(&mut rng, -0.6, -0.4);
        assert_eq!(env.state(0).unwrap().0, [position, 0.0]);
    }
}

#[test]
fn a_fallen_pole_is_terminated_paid_and_remembered() {
    let mut env = cartpoles(1, 0);
    env.set_state(0, &[0.0, 0.0, 0.2, 2.0], 10).unwrap();
    let batch = env.step(LEFT).unwrap();
    assert_eq!((batch.terminated[0], batch.truncated[0]), (true, false));
    assert_eq!(batch.rewards[0], 1.0);
    assert!(batch.final_obs.get(0).unwrap()[2] > 0.2095);
    let fresh = batch.obs.rows().next().unwrap();
    assert!(fresh.iter().all(|component| component.abs() <= 0.05));
    assert_eq!(env.state(0).unwrap().1, 0);
}

#[test]
fn the_time_limit_truncates_without_terminating() {
    for env_id in IDS {
        let mut env = VecEnv::new(env_id, 1, 0).unwrap();
        env.reset(Reset::default()).unwrap();
        let limit = env.max_episode_steps();
        let state = env.state(0).unwrap().0;
        let action = match env.action_space() {
            Space::Discrete(_) => LEFT,
            Space::Box { .. } => Actions::Continuous(&[0.0]),
        };
        env.set_state(0, &state, limit - 2).unwrap();
        assert!(!env.step(action).unwrap().truncated[0]);
        let batch = env.step(action).unwrap();
        assert_eq!((batch.terminated[0], batch.truncated[0]), (false, true));
        assert!(batch.final_obs.get(0).is_some());
        assert!(env.step(action).unwrap().final_obs.get(0).is_none());
    }
}

#[test]
fn falling_at_the_time_limit_is_both() {
    let mut env = cartpoles(1, 0);
    env.set_state(0, &[2.4, 5.0, 0.0, 0.0], 499).unwrap();
    let batch = env.step(LEFT).unwrap();
    assert_eq!((batch.terminated[0], batch.truncated[0]), (true, true));
}

#[test]
fn a_seed_starts_over_and_no_seed_goes_on() {
    let mut env = cartpoles(2, 3);
    let first = rows(env.obs());
    let second = rows(env.reset(Reset::default()).unwrap());
    assert_ne!(first, second);
    let seeds = [Some(3), Some(4)];
    let again = Reset {
        seeds: Some(&seeds),
        ..Reset::default()
    };
    assert_eq!(rows(env.reset(again).unwrap()), first);
    assert_eq!(rows(env.reset(Reset::default()).unwrap()), second);
}

#[test]
fn a_mask_resets_those_and_no_other() {
    let mut env = cartpoles(3, 0);
    env.step(Actions::Discrete(&[1, 1, 1])).unwrap();
    let before = rows(env.obs());
    let mask = [false, true, false];
    let after = rows(
        env.reset(Reset {
            mask: Some(&mask),
            ..Reset::default()
        })
        .unwrap(),
    );
    assert_eq!((&after[0], &after[2]), (&before[0], &before[2]));
    assert_ne!(after[1], before[1]);
    assert_eq!((env.state(0).unwrap().1, env.state(1).unwrap().1), (1, 0));
}

#[test]
fn bounds_widen_the_first_state_of_this_reset_alone() {
    let mut env = cartpoles(1, 0);
    let bounds = [(1.0, 1.5); 4];
    let drawn = rows(
        env.reset(Reset {
            bounds: Some(&bounds),
            ..Reset::default()
        })
        .unwrap(),
    );
    assert!(
        drawn[0]
            .iter()
            .all(|component| (1.0..=1.5).contains(component))
    );
    let drawn = rows(env.reset(Reset::default()).unwrap());
    assert!(drawn[0].iter().all(|component| component.abs() <= 0.05));
}

#[test]
fn a_bad_action_moves_no_environment() {
    let mut env = cartpoles(2, 0);
    let before = rows(env.obs());
    assert!(env.step(Actions::Discrete(&[1, 7])).is_err());
    assert_eq!(rows(env.obs()), before);
    assert_eq!(env.state(0).unwrap().1, 0);
}

#[test]
fn mistakes_are_named() {
    let error = |result: Result<(), RloxError>| result.unwrap_err().to_string();
    let make = |id: &str, n, seed| error(VecEnv::new(id, n, seed).map(drop));
    assert!(make("CartPole-v7", 1, 0).contains(&format!("these are: {}", IDS.join(", "))));
    assert!(make(builtins::CartPole::ID, 0, 0).contains("n_envs: is 0"));
    assert!(make(builtins::CartPole::ID, 2, u128::MAX - 1).contains("seed: is"));

    let mut unready = VecEnv::new(builtins::CartPole::ID, 2, 0).unwrap();
    let pushes = Actions::Discrete(&[0, 0]);
    assert!(error(unready.step(pushes).map(drop)).contains("call reset() first"));
    let mut reset = |how| error(unready.reset(how).map(drop));
    let all = Reset::default();
    assert!(
        reset(Reset {
            mask: Some(&[true, false]),
            ..all
        })
        .contains("reset_mask leaves")
    );
    assert!(
        reset(Reset {
            mask: Some(&[true]),
            ..all
        })
        .contains("reset_mask: has length 1")
    );
    assert!(
        reset(Reset {
            seeds: Some(&[None]),
            ..all
        })
        .contains("seed: has length 1")
    );
    assert!(
        reset(Reset {
            bounds: Some(&[(0.0, 1.0)]),
            ..all
        })
        .contains("bounds: has length 1")
    );
    assert!(
        reset(Reset {
            bounds: Some(&[(1.0, 0.0); 4]),
            ..all
        })
        .contains("ascending")
    );
    assert!(
        reset(Reset {
            bounds: Some(&[(f64::NAN, 0.0); 4]),
            ..all
        })
        .contains("NaN")
    );
    assert!(
        reset(Reset {
            bounds: Some(&[(-1e308, 1e308); 4]),
            ..all
        })
        .contains("finite difference")
    );

    let mut env = cartpoles(1, 0);
    let torque = Actions::Continuous(&[0.0]);
    assert!(error(env.step(torque).map(drop)).contains("actions: are floats"));
    assert!(error(env.set_state(0, &[0.0], 0)).contains("state: has length 1, expected 4"));
    assert!(error(env.set_state(1, &[0.0; 4], 0)).contains("i: is 1, expected 0 to 0"));
    assert!(env.state(1).is_err());
}

#[test]
fn an_uneventful_step_has_no_facts_to_tell() {
    let (_, step) = step_from::<CartPole>(&[0.0; 4], Action::Discrete(0));
    assert_eq!(step.info, MapInfo::nothing());
    assert_eq!(step.info.get("anything"), None);
}

#[test]
fn observations_are_stored_in_the_order_of_the_environments() {
    let mut store = PerEnvObs::new(3, 4).unwrap();
    for (i, slot) in store.slots().enumerate() {
        let mut env = CartPole::default();
        RLEnv::<MapInfo>::state_mut(&mut env)[0] = i as f64;
        PerEnvObs::observe::<MapInfo>(&env, slot);
    }
    let first: Vec<f32> = store.rows().map(|row| row[0]).collect();
    assert_eq!(first, [0.0, 1.0, 2.0]);
}
