//! Replay buffers: rings of transitions, sampled uniformly or by priority.
//!
//! A transition is `obs, next_obs, action, reward, terminated, truncated`. Observations are `f32`, or
//! `u8` for pixels. Samples are drawn with replacement. Their random numbers come from ChaCha8 by
//! arithmetic in `random.rs`, so that a seed gives the same samples on every platform.

pub mod batch;
pub mod descent;
pub mod intake;
pub mod min_priority;
pub mod observations;
pub mod pages;
mod past_caches;
pub mod priority;
pub mod push;
pub mod push_batch;
mod random;
pub mod ringbuf;
pub mod storage;
pub mod sum_tree;

pub use batch::{Columns, SampledBatch};
pub use storage::ObsElement;

use std::fmt::Debug;
use std::slice::from_ref;

use crate::RloxError;

/// The seams of the buffers. A constant is true where the optimised form stands at its seam.
pub trait BufferWiring: Debug + Send + Sync + 'static {
    /// P4: where the memory of sampled batches comes from.
    type Batches<O: ObsElement>: batch::Batches<O>;
    /// P5: how the smallest priority is found.
    type MinPriority: min_priority::MinPriority;
    /// P24: how the two observations of a transition are stored.
    type Observations<O: ObsElement>: observations::Observations<O>;
    /// P3: how often a transition from the caller's memory is copied on its way into a buffer.
    const P3: bool;
    /// P12: how often a single transition of a batch is copied, if P21's baseline stores the batch.
    const P12: bool;
    /// P21: how a batch of transitions is stored: one by one, or column by column.
    const P21: bool;
    /// P22: how the leaves of a sum tree are found.
    const P22: bool;
    /// P26: in pages of which size the memory of a large column lies.
    const P26: bool;
    /// P27: where a next observation is stored that nothing is expected to follow, in P24's optimised form.
    const P27: bool;
}

/// A transition that owns its arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperienceRecord<O> {
    /// `[obs_dim]`
    pub obs: Vec<O>,
    /// `[obs_dim]`
    pub next_obs: Vec<O>,
    /// `[act_dim]`
    pub action: Vec<f32>,
    /// Reward of the step.
    pub reward: f32,
    /// Whether the step ended the episode.
    pub terminated: bool,
    /// Whether the episode was cut off after the step.
    pub truncated: bool,
}

/// A transition whose arrays are borrowed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experience<'a, O> {
    /// `[obs_dim]`
    pub obs: &'a [O],
    /// `[obs_dim]`
    pub next_obs: &'a [O],
    /// `[act_dim]`
    pub action: &'a [f32],
    /// Reward of the step.
    pub reward: f32,
    /// Whether the step ended the episode.
    pub terminated: bool,
    /// Whether the episode was cut off after the step.
    pub truncated: bool,
}

/// Many transitions, borrowed: a slice for each column, in row-major order.
#[derive(Debug, Clone, Copy)]
pub struct ExperienceBatch<'a, O> {
    /// `[n, obs_dim]`
    pub obs: &'a [O],
    /// `[n, obs_dim]`
    pub next_obs: &'a [O],
    /// `[n, act_dim]`
    pub action: &'a [f32],
    /// `[n]`
    pub reward: &'a [f32],
    /// `[n]`
    pub terminated: &'a [bool],
    /// `[n]`
    pub truncated: &'a [bool],
}

impl<O: ObsElement> Experience<'_, O> {
    /// A batch of this one transition, without a copy.
    #[inline]
    pub fn as_batch(&self) -> ExperienceBatch<'_, O> {
        ExperienceBatch {
            obs: self.obs,
            next_obs: self.next_obs,
            action: self.action,
            reward: from_ref(&self.reward),
            terminated: from_ref(&self.terminated),
            truncated: from_ref(&self.truncated),
        }
    }

    /// A copy that owns its arrays.
    pub fn to_record(&self) -> ExperienceRecord<O> {
        ExperienceRecord {
            obs: self.obs.to_vec(),
            next_obs: self.next_obs.to_vec(),
            action: self.action.to_vec(),
            reward: self.reward,
            terminated: self.terminated,
            truncated: self.truncated,
        }
    }
}

impl<O> ExperienceRecord<O> {
    /// A batch of this one transition, without a copy.
    #[inline]
    pub fn as_batch(&self) -> ExperienceBatch<'_, O> {
        ExperienceBatch {
            obs: &self.obs,
            next_obs: &self.next_obs,
            action: &self.action,
            reward: from_ref(&self.reward),
            terminated: from_ref(&self.terminated),
            truncated: from_ref(&self.truncated),
        }
    }
}

/// A replay buffer: what the uniform and the prioritised one have in common.
pub trait Replay<O: ObsElement> {
    /// The forms at the buffer's seams.
    type Wiring: BufferWiring;

    /// Stores a batch of transitions in order. In a full buffer they overwrite the oldest ones. On an
    /// error nothing is stored.
    ///
    /// # Errors
    /// If a column does not have as many rows as there are rewards, or a reward is not finite.
    fn append(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<(), RloxError>;

    /// The stored transitions, with the dimensions of the buffer.
    fn storage(&self) -> &storage::Storage<O, Self::Wiring>;

    /// Draws `batch_size` transitions with replacement. The random numbers are the next ones of the
    /// buffer's own stream, or with a `seed` the first ones of a new stream.
    ///
    /// # Errors
    /// If `batch_size` is zero or does not fit into memory, or there is nothing to draw from.
    fn sample(
        &mut self,
        batch_size: usize,
        seed: Option<u64>,
    ) -> Result<SampledBatch<O>, RloxError>;

    /// [`Self::sample`], written to the caller's memory. The length of `out.reward` is the batch size.
    ///
    /// # Errors
    /// As [`Self::sample`], and if another column does not have as many rows.
    fn sample_into(&mut self, seed: Option<u64>, out: &mut Columns<'_, O>)
    -> Result<(), RloxError>;

    /// Makes a vector for the caller to keep from a column of a sampled batch, before the batch is given
    /// back by [`Self::give_back`]. The column is moved or copied, as P4's form requires.
    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T>
    where
        Self: Sized;

    /// Takes back a sampled batch that the caller no longer needs, so that its memory can be used again.
    fn give_back(&mut self, batch: SampledBatch<O>);
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
