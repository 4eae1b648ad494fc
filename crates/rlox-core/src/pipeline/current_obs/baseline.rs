//! Collected anew at every step.

use crate::env::obs_store::ObsStore;

/// Makes `current` the observations in `obs`.
pub fn refresh<O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    *current = obs.rows().flatten().copied().collect();
}
