//! Copied into a buffer that is kept over the steps.

use crate::env::obs_store::ObsStore;

/// Makes `current` the observations in `obs`.
pub fn refresh<O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    current.clear();
    for row in obs.rows() {
        current.extend_from_slice(row);
    }
}
