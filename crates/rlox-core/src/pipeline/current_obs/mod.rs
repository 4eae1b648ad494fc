//! P13's seam: the observations `[n_envs * obs_dim]` that the policy is about to act on, made from
//! those of the step before.

pub mod baseline;
pub mod optimized;

use super::PipelineWiring;
use crate::env::obs_store::ObsStore;

/// Makes `current` the observations in `obs`, by the twin that `W` names.
pub(super) fn refresh<W: PipelineWiring, O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    if W::P13 {
        optimized::refresh(current, obs);
    } else {
        baseline::refresh(current, obs);
    }
}
