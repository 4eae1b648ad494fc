//! Sampled batches, and P4's seam: where their memory comes from.

use std::fmt::Debug;
use std::marker::PhantomData;

use super::storage::ObsElement;

/// Transitions drawn from a buffer, column by column, each column in row-major order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SampledBatch<O> {
    /// `[batch_size, obs_dim]`
    pub obs: Vec<O>,
    /// `[batch_size, obs_dim]`
    pub next_obs: Vec<O>,
    /// `[batch_size, act_dim]`
    pub action: Vec<f32>,
    /// `[batch_size]`
    pub reward: Vec<f32>,
    /// `[batch_size]`
    pub terminated: Vec<bool>,
    /// `[batch_size]`
    pub truncated: Vec<bool>,
    /// The importance weights, `[batch_size]`; empty if the batch was drawn uniformly.
    pub weights: Vec<f32>,
    /// The rows of the ring that were drawn, `[batch_size]`; empty if the batch was drawn uniformly.
    pub indices: Vec<i64>,
}

impl<O> SampledBatch<O> {
    /// An empty batch with room for `batch_size` transitions.
    pub fn with_capacity(batch_size: usize, obs_dim: usize, act_dim: usize) -> Self {
        Self {
            obs: Vec::with_capacity(batch_size * obs_dim),
            next_obs: Vec::with_capacity(batch_size * obs_dim),
            action: Vec::with_capacity(batch_size * act_dim),
            reward: Vec::with_capacity(batch_size),
            terminated: Vec::with_capacity(batch_size),
            truncated: Vec::with_capacity(batch_size),
            weights: Vec::new(),
            indices: Vec::new(),
        }
    }

    /// The columns, to be overwritten.
    pub fn columns(&mut self) -> Columns<'_, O> {
        Columns {
            obs: &mut self.obs,
            next_obs: &mut self.next_obs,
            action: &mut self.action,
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            weights: &mut self.weights,
            indices: &mut self.indices,
        }
    }

    /// Empties the batch, but keeps its memory.
    pub fn clear(&mut self) {
        self.obs.clear();
        self.next_obs.clear();
        self.action.clear();
        self.reward.clear();
        self.terminated.clear();
        self.truncated.clear();
        self.weights.clear();
        self.indices.clear();
    }
}

/// Slices of the caller's memory that a sample is written to, one for each column.
#[derive(Debug)]
pub struct Columns<'a, O> {
    /// `[batch_size, obs_dim]`
    pub obs: &'a mut [O],
    /// `[batch_size, obs_dim]`
    pub next_obs: &'a mut [O],
    /// `[batch_size, act_dim]`
    pub action: &'a mut [f32],
    /// `[batch_size]`. Its length says how many transitions are drawn.
    pub reward: &'a mut [f32],
    /// `[batch_size]`
    pub terminated: &'a mut [bool],
    /// `[batch_size]`
    pub truncated: &'a mut [bool],
    /// `[batch_size]`, or empty for a buffer that draws uniformly.
    pub weights: &'a mut [f32],
    /// `[batch_size]`, or empty for a buffer that draws uniformly.
    pub indices: &'a mut [i64],
}

impl<O: Copy> Columns<'_, O> {
    /// Copies a batch of the same shapes to these columns.
    pub fn copy_from(&mut self, batch: &SampledBatch<O>) {
        self.obs.copy_from_slice(&batch.obs);
        self.next_obs.copy_from_slice(&batch.next_obs);
        self.action.copy_from_slice(&batch.action);
        self.reward.copy_from_slice(&batch.reward);
        self.terminated.copy_from_slice(&batch.terminated);
        self.truncated.copy_from_slice(&batch.truncated);
        self.weights.copy_from_slice(&batch.weights);
        self.indices.copy_from_slice(&batch.indices);
    }
}

/// Provides the memory of sampled batches: P4's seam.
pub trait Batches<O: ObsElement>: Debug + Default + Send + Sync {
    /// An empty batch with room for `batch_size` transitions.
    fn take(&mut self, batch_size: usize, obs_dim: usize, act_dim: usize) -> SampledBatch<O>;
    /// See [`super::Replay::export`].
    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T>;
    /// See [`super::Replay::give_back`].
    fn give_back(&mut self, batch: SampledBatch<O>);
}

/// P4's baseline: allocates every batch anew. So its columns can be moved out, without a copy.
#[derive(Debug, Default)]
pub struct Fresh<O>(PhantomData<O>);

impl<O: ObsElement> Batches<O> for Fresh<O> {
    fn take(&mut self, batch_size: usize, obs_dim: usize, act_dim: usize) -> SampledBatch<O> {
        SampledBatch::with_capacity(batch_size, obs_dim, act_dim)
    }

    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T> {
        std::mem::take(column)
    }

    fn give_back(&mut self, _batch: SampledBatch<O>) {}
}

/// P4's optimised form: keeps the batch that was given back last, and fills it again. Since the batch
/// keeps its memory, its columns are copied out.
#[derive(Debug, Default)]
pub struct Reused<O>(SampledBatch<O>);

impl<O: ObsElement> Batches<O> for Reused<O> {
    fn take(&mut self, batch_size: usize, obs_dim: usize, act_dim: usize) -> SampledBatch<O> {
        let mut batch = std::mem::take(&mut self.0);
        batch.clear();
        batch.obs.reserve(batch_size * obs_dim);
        batch.next_obs.reserve(batch_size * obs_dim);
        batch.action.reserve(batch_size * act_dim);
        batch.reward.reserve(batch_size);
        batch.terminated.reserve(batch_size);
        batch.truncated.reserve(batch_size);
        batch
    }

    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T> {
        column.clone()
    }

    fn give_back(&mut self, batch: SampledBatch<O>) {
        self.0 = batch;
    }
}
