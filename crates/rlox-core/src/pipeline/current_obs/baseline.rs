//! Collected anew at every step.

use crate::env::obs_store::ObsStore;

/// Makes `current` the observations in `obs`.
pub fn refresh(current: &mut Vec<f32>, obs: &impl ObsStore) {
    *current = obs.rows().flatten().copied().collect();
}
