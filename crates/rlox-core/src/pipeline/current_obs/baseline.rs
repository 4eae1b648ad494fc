//! P13's baseline: a new vector at every step.

use crate::env::obs_store::ObsStore;

/// Copies the observations of `obs` to `current`.
pub fn refresh<O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    *current = obs.rows().flatten().copied().collect();
}
