//! The arrays that steps of environments return.

use numpy::{Ix1, Ix2, PyArray1};
use pyo3::prelude::*;
use rlox_core::env::stepping::Finals;

use crate::arrays::{Own, Recycled, made};

/// The arrays of earlier steps' results, to be given out again when nobody holds them.
pub(crate) struct RecycledSteps {
    obs: Recycled,
    rewards: Recycled,
    flags: Recycled,
    pub(crate) masks: Recycled,
    final_obs: Recycled,
}

impl RecycledSteps {
    /// No arrays yet. At most `room` of each kind will be kept, of last observations `room` for each
    /// environment.
    pub(crate) fn new(n_envs: usize, room: usize) -> Self {
        let [obs, rewards, flags, masks] = [(); 4].map(|()| Recycled::new(room));
        let final_obs = Recycled::new(n_envs * room);
        Self {
            obs,
            rewards,
            flags,
            masks,
            final_obs,
        }
    }

    /// The arrays of a step: observations, rewards, terminations, truncations.
    pub(crate) fn take(
        &mut self,
        py: Python<'_>,
        n_envs: usize,
        obs_dim: usize,
    ) -> PyResult<[Own; 4]> {
        let obs = self.obs.take::<f32, Ix2, 2>(py, [n_envs, obs_dim])?;
        let rewards = self.rewards.take::<f64, Ix1, 1>(py, [n_envs])?;
        let mut flags = || self.flags.take::<bool, Ix1, 1>(py, [n_envs]);
        Ok([obs, rewards, flags()?, flags()?])
    }

    /// An array of objects with, at each environment whose episode ended, its last observation, else
    /// None.
    pub(crate) fn final_obs<'py>(
        &mut self,
        py: Python<'py>,
        n_envs: usize,
        obs_dim: usize,
        finals: &Finals,
    ) -> PyResult<Bound<'py, PyArray1<Py<PyAny>>>> {
        if self.final_obs.has_room() {
            let copies = finals
                .iter()
                .map(|(i, row)| Ok((i, self.final_obs.take_copy(py, row)?)));
            return made::objects(py, n_envs, copies);
        }
        let envs = finals.envs();
        let rows = envs
            .iter()
            .copied()
            .zip(made::rows(py, finals.obs(), obs_dim)?);
        made::objects(py, n_envs, rows.map(|(i, row)| Ok((i, row?))))
    }
}
