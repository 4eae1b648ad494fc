//! P2's seam: how the latest observations of many environments are stored.

use rayon::prelude::*;

use super::info::StepInfo;
use super::scalar::RLEnv;
use crate::RloxError;
use crate::memory::{reserved, zeros};

/// Stores one observation of each of `n_envs` environments.
pub trait ObsStore: Sized + Send + Sync + 'static {
    /// The place of one environment's observation.
    type Slot: ?Sized + Send;

    /// A store whose observations are zeros.
    ///
    /// # Errors
    /// If there is no memory for it.
    fn new(n_envs: usize, obs_dim: usize) -> Result<Self, RloxError>;

    /// The slots, in the order of the environments.
    fn slots(&mut self) -> impl Iterator<Item = &mut Self::Slot>;

    /// The slots as an iterator that several threads can share.
    fn par_slots(&mut self) -> impl IndexedParallelIterator<Item = &mut Self::Slot>;

    /// Writes the observation of `env` to `slot`.
    fn observe<I: StepInfo>(env: &dyn RLEnv<I>, slot: &mut Self::Slot);

    /// The observations, in the order of the environments.
    fn rows(&self) -> impl Iterator<Item = &[f32]>;

    /// Copies the observations to `out`, `[n_envs * obs_dim]`.
    fn copy_to(&self, out: &mut [f32]) {
        let mut rest = out;
        for row in self.rows() {
            let (slot, more) = rest.split_at_mut(row.len());
            slot.copy_from_slice(row);
            rest = more;
        }
    }
}

/// P2's baseline: each observation is a vector of its own, which every step allocates anew.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PerEnvObs(Vec<Vec<f32>>);

impl ObsStore for PerEnvObs {
    type Slot = Vec<f32>;

    fn new(n_envs: usize, obs_dim: usize) -> Result<Self, RloxError> {
        let mut rows = reserved(n_envs)?;
        for _ in 0..n_envs {
            rows.push(zeros(obs_dim)?);
        }
        Ok(Self(rows))
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut Vec<f32>> {
        self.0.iter_mut()
    }

    fn par_slots(&mut self) -> impl IndexedParallelIterator<Item = &mut Vec<f32>> {
        self.0.par_iter_mut()
    }

    #[inline]
    fn observe<I: StepInfo>(env: &dyn RLEnv<I>, slot: &mut Vec<f32>) {
        *slot = env.obs();
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.0.iter().map(Vec::as_slice)
    }
}

/// P2's optimised form: all observations lie in one vector, which every step overwrites in place.
#[derive(Debug, Clone, PartialEq)]
pub struct FlatObs {
    obs_dim: usize,
    /// `[n_envs * obs_dim]`
    values: Vec<f32>,
}

impl FlatObs {
    /// All observations, `[n_envs * obs_dim]`, to be overwritten.
    pub(crate) fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }
}

impl ObsStore for FlatObs {
    type Slot = [f32];

    fn new(n_envs: usize, obs_dim: usize) -> Result<Self, RloxError> {
        Ok(Self {
            obs_dim,
            values: zeros(n_envs.saturating_mul(obs_dim))?,
        })
    }

    fn slots(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.values.chunks_exact_mut(self.obs_dim)
    }

    fn par_slots(&mut self) -> impl IndexedParallelIterator<Item = &mut [f32]> {
        self.values.par_chunks_exact_mut(self.obs_dim)
    }

    #[inline]
    fn observe<I: StepInfo>(env: &dyn RLEnv<I>, slot: &mut [f32]) {
        env.write_obs(slot);
    }

    fn rows(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.obs_dim)
    }

    fn copy_to(&self, out: &mut [f32]) {
        out.copy_from_slice(&self.values);
    }
}
