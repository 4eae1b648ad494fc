//! Sampled batches, and where their memory comes from.

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
    /// `[batch_size]`, importance weights; empty when drawn uniformly.
    pub weights: Vec<f32>,
    /// `[batch_size]`, rows of the ring; empty when drawn uniformly.
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

    /// Its columns, to be written over.
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

    /// Empties the batch; its memory stays.
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

/// Where the columns of a sample go, if not into a batch; shapes as in [`SampledBatch`].
#[derive(Debug)]
pub struct Columns<'a, O> {
    /// `[batch_size, obs_dim]`
    pub obs: &'a mut [O],
    /// `[batch_size, obs_dim]`
    pub next_obs: &'a mut [O],
    /// `[batch_size, act_dim]`
    pub action: &'a mut [f32],
    /// `[batch_size]`, whose length is the size of the sample.
    pub reward: &'a mut [f32],
    /// `[batch_size]`
    pub terminated: &'a mut [bool],
    /// `[batch_size]`
    pub truncated: &'a mut [bool],
    /// `[batch_size]`, or empty where rows are drawn uniformly.
    pub weights: &'a mut [f32],
    /// `[batch_size]`, or empty where rows are drawn uniformly.
    pub indices: &'a mut [i64],
}

impl<O: Copy> Columns<'_, O> {
    /// Copies a batch of the same shapes.
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

/// Where the memory of sampled batches comes from and goes to: P4's seam.
pub trait Batches<O: ObsElement>: Debug + Default + Send + Sync {
    /// An empty batch to fill.
    fn take(&mut self, batch_size: usize, obs_dim: usize, act_dim: usize) -> SampledBatch<O>;
    /// A column to keep, taken out of a batch that will be given back.
    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T>;
    /// Takes back a batch that was read.
    fn give_back(&mut self, batch: SampledBatch<O>);
}

/// Allocates every batch anew; its columns are moved out, not copied.
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

/// Keeps the batch that was given back last, and fills it again; its columns are copied out.
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
