//! P13's seam: how the latest observations of all environments are gathered, `[n_envs * obs_dim]`, for the
//! policy to act on.

pub mod baseline;
pub mod optimized;

use super::PipelineWiring;
use crate::env::obs_store::ObsStore;

/// Copies the observations of `obs` to `current`, by the twin that `W` names.
pub(super) fn refresh<W: PipelineWiring, O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    if W::P13 {
        optimized::refresh(current, obs);
    } else {
        baseline::refresh(current, obs);
    }
}
