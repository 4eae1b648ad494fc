//! Environments stepped over a script, for the seams within a step.

use std::fmt::Write;

use rlox_core::env::info::StepInfo;
use rlox_core::env::obs_store::ObsStore;
use rlox_core::env::spaces::Actions;
use rlox_core::env::stepping::Stepping;
use rlox_core::env::vec_env::{PARALLEL_ENVS, Reset, VecEnv};

use crate::draw::Draw;
use crate::pair::{Arm, Size, arm};

/// Everything that environments do over a drawn script, written out.
pub(super) fn trace<S: Stepping>(case: &mut Draw<'_>) -> String {
    let discrete = !case.once_in(3);
    let n_envs = match case.below(16) {
        15 => PARALLEL_ENVS - 1 + case.below(3),
        14 => 6 + case.below(12),
        _ => 1 + case.below(5),
    };
    let env_id = if discrete {
        "CartPole-v1"
    } else {
        "Pendulum-v1"
    };
    let mut written = String::new();
    let Ok(mut env) = VecEnv::<S>::new(env_id, n_envs, case.seed().into()) else {
        return written;
    };
    if let Ok(obs) = env.reset(Reset::default()) {
        write_rows(&mut written, obs);
    }
    for _ in 0..1 + case.below(12) {
        if case.once_in(4) {
            // Close to the time limit, so that episodes are cut off as well.
            let at = case.below(n_envs);
            let elapsed = if discrete { 498 } else { 198 };
            let _ = env
                .state(at)
                .and_then(|(state, _)| env.set_state(at, &state, elapsed));
            write_rows(&mut written, env.obs());
        }
        if case.once_in(8) {
            let mask = case.flags(n_envs, 2);
            let reset = Reset {
                mask: Some(&mask),
                ..Reset::default()
            };
            if let Ok(obs) = env.reset(reset) {
                write_rows(&mut written, obs);
            }
        }
        let pushes = case.flags(n_envs, 2);
        let discrete_actions: Vec<i64> = pushes.iter().map(|&push| push.into()).collect();
        let torques: Vec<f32> = pushes
            .iter()
            .map(|&push| if push { 2.0 } else { -0.5 })
            .collect();
        let actions = match discrete {
            true => Actions::Discrete(&discrete_actions),
            false => Actions::Continuous(&torques),
        };
        let Ok(step) = env.step(actions) else {
            continue;
        };
        write_rows(&mut written, &step.obs);
        let facts: Vec<_> = step.infos.iter().map(|info| info.get("reward")).collect();
        let _ = writeln!(
            written,
            "{:?} {:?} {:?} {:?} {facts:?}",
            step.rewards, step.terminated, step.truncated, step.final_obs
        );
    }
    written
}

fn write_rows(written: &mut String, obs: &impl ObsStore) {
    let rows: Vec<_> = obs.rows().collect();
    let _ = writeln!(written, "{rows:?}");
}

/// What a step is timed at.
pub(super) const STEP_SIZES: &[Size<'static>] =
    &[&[("n_envs", 8)], &[("n_envs", 64)], &[("n_envs", 1024)]];

/// One step of `n_envs` CartPoles a call; every episode is as long as its luck.
pub(super) fn stepping<S: Stepping>(n_envs: usize) -> Box<dyn Arm> {
    let mut env = VecEnv::<S>::new("CartPole-v1", n_envs, 0).ok();
    let started = env.as_mut().map(|env| env.reset(Reset::default()).is_ok());
    let actions: Vec<i64> = (0..n_envs as i64).map(|i| i % 2).collect();
    debug_assert_eq!(started, Some(true));
    arm(move || {
        let step = env
            .as_mut()
            .and_then(|env| env.step(Actions::Discrete(&actions)).ok());
        step.map(|step| step.rewards[0])
    })
}
