//! P13's optimised form: a vector that is kept between steps, and overwritten.

use crate::env::obs_store::ObsStore;

/// Copies the observations of `obs` to `current`.
pub fn refresh<O: ObsStore>(current: &mut Vec<f32>, obs: &O) {
    current.clear();
    for row in obs.rows() {
        current.extend_from_slice(row);
    }
}
