//! Replay buffers: rings of transitions, sampled uniformly or by priority.
//!
//! A transition is `obs, next_obs, action, reward, terminated, truncated`; observations are `f32`, or
//! `u8` for pixels. Samples are drawn with replacement from ChaCha8, by arithmetic of our own over
//! its 64-bit words, so that a seed means the same on every platform.

pub mod batch;
pub mod descent;
pub mod intake;
pub mod min_priority;
pub mod observations;
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

/// What may vary in the buffers. A constant is true where the form after stands at its seam.
pub trait BufferWiring: Debug + Send + Sync + 'static {
    /// P4: where the memory of sampled batches comes from.
    type Batches<O: ObsElement>: batch::Batches<O>;
    /// P5: how the smallest priority is known.
    type MinPriority: min_priority::MinPriority;
    /// P24: how the two observations of a transition are kept.
    type Observations<O: ObsElement>: observations::Observations<O>;
    /// P3: how a transition in somebody else's memory enters a buffer.
    const P3: bool;
    /// P12: whether a transition that is stored by itself is owned or borrowed.
    const P12: bool;
    /// P21: how many transitions are stored at once.
    const P21: bool;
    /// P22: how the leaves of a sum tree are found.
    const P22: bool;
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

/// A transition whose arrays lie elsewhere.
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

/// Many transitions, column by column, each column in row-major order.
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
    /// The same as a batch of one.
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
    /// The same as a batch of one, borrowed.
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

/// What both buffers have in common.
pub trait Replay<O: ObsElement> {
    /// What stands at its seams.
    type Wiring: BufferWiring;

    /// Stores transitions in their order, over the oldest ones when full; all of them or, on an error,
    /// none.
    ///
    /// # Errors
    /// If the length of a column is not that of as many transitions as there are rewards, or a reward
    /// is not finite.
    fn append(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<(), RloxError>;

    /// The transitions and the dimensions of the buffer.
    fn storage(&self) -> &storage::Storage<O, Self::Wiring>;

    /// Draws `batch_size` transitions with replacement: from the buffer's own stream of random
    /// numbers, or from a new one with `seed`.
    ///
    /// # Errors
    /// If `batch_size` is zero or there is nothing to draw from.
    fn sample(
        &mut self,
        batch_size: usize,
        seed: Option<u64>,
    ) -> Result<SampledBatch<O>, RloxError>;

    /// The same draw into memory of the caller's, column by column.
    ///
    /// # Errors
    /// As [`Replay::sample`], or if the lengths of the columns do not go together.
    fn sample_into(&mut self, seed: Option<u64>, out: &mut Columns<'_, O>)
    -> Result<(), RloxError>;

    /// A column of a sampled batch to keep, for somebody who gives the batch back afterwards.
    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T>
    where
        Self: Sized;

    /// Takes a batch back that is no longer needed.
    fn give_back(&mut self, batch: SampledBatch<O>);
}

#[cfg(test)]
crate::wiring::tests_of_every_wiring!("tests.rs");
#[cfg(false)] // for rustfmt, which does not find the file in a macro
mod tests;
