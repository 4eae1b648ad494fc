//! Sampled batches, and where their memory comes from.

use std::marker::PhantomData;

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

/// Where the memory of sampled batches comes from and goes to. The one thing that varies between
/// variants of sampling.
pub trait Batches<O>: Default {
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

impl<O: Default> Batches<O> for Fresh<O> {
    fn take(&mut self, batch_size: usize, obs_dim: usize, act_dim: usize) -> SampledBatch<O> {
        SampledBatch::with_capacity(batch_size, obs_dim, act_dim)
    }

    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T> {
        std::mem::take(column)
    }

    fn give_back(&mut self, _batch: SampledBatch<O>) {}
}

/// Keeps the batch that was given back last and refills it; its columns are copied out.
#[derive(Debug, Default)]
pub struct Kept<O>(SampledBatch<O>);

impl<O: Copy + Default> Batches<O> for Kept<O> {
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
