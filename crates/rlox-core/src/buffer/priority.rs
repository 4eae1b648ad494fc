//! The prioritised replay buffer: proportional, stratified (Schaul et al. 2016, section 3.3).
//!
//! ```text
//! P(i) = p_i^alpha / sum_k p_k^alpha
//! w_i  = (N * P(i))^-beta / max_k (N * P(k))^-beta = (min_k p_k^alpha / p_i^alpha)^beta
//! ```
//!
//! The maximum is over the whole buffer, not over the batch, so that a transition's weight does not depend
//! on which others are drawn with it. With alpha > 0, a transition with a priority of zero is never
//! drawn, and does not count for the minimum. New transitions get the largest priority seen so far.

use super::batch::Batches;
use super::min_priority::MinPriority;
use super::random::SampleStream;
use super::storage::{ObsElement, Storage};
use super::sum_tree::SumTree;
use super::{BufferWiring, Columns, ExperienceBatch, Replay, SampledBatch, descent, push_batch};
use crate::error::{RloxError, check_len};
use crate::memory::reserve;

/// A ring of transitions, sampled in proportion to their priorities.
#[derive(Debug)]
pub struct PriorityBuffer<O: ObsElement, W: BufferWiring> {
    storage: Storage<O, W>,
    /// p_i^alpha of each row.
    tree: SumTree,
    /// The smallest positive p_i^alpha.
    min: W::MinPriority,
    alpha: f64,
    beta: f64,
    max_priority: f64,
    stream: SampleStream,
    batches: W::Batches<O>,
    /// The prefix sums that the latest sample was drawn by; kept between samples for its memory.
    prefixes: Vec<f64>,
    /// The rows of the latest sample; likewise.
    rows: Vec<usize>,
}

impl<O: ObsElement, W: BufferWiring> PriorityBuffer<O, W> {
    /// An empty buffer whose samples follow from `seed`.
    ///
    /// # Errors
    /// If a dimension is zero, an exponent is negative or not finite, or there is no memory.
    pub fn new(
        capacity: usize,
        obs_dim: usize,
        act_dim: usize,
        alpha: f64,
        beta: f64,
        seed: u64,
    ) -> Result<Self, RloxError> {
        check_exponent("alpha", alpha)?;
        check_exponent("beta", beta)?;
        Ok(Self {
            storage: Storage::new(capacity, obs_dim, act_dim)?,
            tree: SumTree::new::<W>(capacity)?,
            min: W::MinPriority::new::<W>(capacity)?,
            alpha,
            beta,
            max_priority: 1.0,
            stream: SampleStream::new(seed),
            batches: W::Batches::default(),
            prefixes: Vec::new(),
            rows: Vec::new(),
        })
    }

    /// How strongly priorities count. With 0, transitions are drawn uniformly.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// How far the importance weights correct for the priorities. With 1 they do so fully.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Sets `beta`, which is usually annealed to 1.
    ///
    /// # Errors
    /// If it is negative or not finite.
    pub fn set_beta(&mut self, beta: f64) -> Result<(), RloxError> {
        check_exponent("beta", beta)?;
        self.beta = beta;
        Ok(())
    }

    /// Sets the priorities of the rows `indices`, usually those of a sample. If a row occurs twice, its
    /// last priority counts. On an error no priority is set.
    ///
    /// # Errors
    /// If the lengths differ, an index is not that of a stored row, or a priority is negative, NaN or so
    /// large that the sum of priorities could overflow.
    pub fn update_priorities(
        &mut self,
        indices: &[i64],
        priorities: &[f64],
    ) -> Result<(), RloxError> {
        check_len("priorities", priorities.len(), indices.len())?;
        let len = self.storage.len();
        if let Some(at) = indices
            .iter()
            .position(|&index| usize::try_from(index).map_or(true, |index| index >= len))
        {
            return Err(RloxError::argument(
                "indices",
                format!(
                    "is {} at index {at}, expected 0 <= index < {len}, the transitions stored",
                    indices[at]
                ),
            ));
        }
        if let Some(at) = priorities.iter().position(|&priority| {
            // Not only the leaf must be finite, but also a sum of `capacity` such leaves.
            let leaf = priority.powf(self.alpha) * self.storage.capacity() as f64;
            priority.is_nan() || priority < 0.0 || !leaf.is_finite()
        }) {
            return Err(RloxError::argument(
                "priorities",
                format!(
                    "is {} at index {at}, expected numbers of at least 0 whose sum is finite",
                    priorities[at]
                ),
            ));
        }
        for (&index, &priority) in indices.iter().zip(priorities) {
            self.max_priority = self.max_priority.max(priority);
            self.set_priority(index as usize, priority);
        }
        Ok(())
    }

    /// Draws a sample's rows, and stores them in `self.rows`: the sum of priorities is cut into
    /// `batch_size` equal strata, and one row is drawn from each. Returns the smallest positive leaf.
    fn draw(&mut self, batch_size: usize, seed: Option<u64>) -> Result<f64, RloxError> {
        let (tree, prefixes) = (&self.tree, &mut self.prefixes);
        if tree.total() <= 0.0 {
            return Err(RloxError::InvalidState(
                "every priority is zero; give one a positive priority before sampling".into(),
            ));
        }
        let stratum = tree.total() / batch_size as f64;
        prefixes.clear();
        self.rows.clear();
        reserve(prefixes, batch_size)?;
        reserve(&mut self.rows, batch_size)?;
        self.stream.with(seed, |stream| {
            prefixes.extend((0..batch_size).map(|i| (i as f64 + stream.unit()) * stratum));
        });
        descent::find_all::<W>(tree, prefixes, &mut self.rows);
        Ok(self.min.min(tree, self.storage.len()))
    }

    fn set_priority(&mut self, row: usize, priority: f64) {
        let leaf = priority.powf(self.alpha);
        self.tree.set(row, leaf);
        self.min.set(row, leaf);
    }
}

impl<O: ObsElement, W: BufferWiring> Replay<O> for PriorityBuffer<O, W> {
    type Wiring = W;

    #[inline]
    fn append(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<(), RloxError> {
        let rows = push_batch::append(&mut self.storage, batch)?;
        let leaf = self.max_priority.powf(self.alpha);
        let (capacity, tree, min) = (self.storage.capacity(), &mut self.tree, &mut self.min);
        for row in rows {
            let row = if row < capacity { row } else { row % capacity };
            tree.set(row, leaf);
            min.set(row, leaf);
        }
        Ok(())
    }

    fn storage(&self) -> &Storage<O, W> {
        &self.storage
    }

    fn sample(
        &mut self,
        batch_size: usize,
        seed: Option<u64>,
    ) -> Result<SampledBatch<O>, RloxError> {
        self.storage.check_batch_of(batch_size)?;
        let min = self.draw(batch_size, seed)?;
        let (storage, tree, beta) = (&self.storage, &self.tree, self.beta);
        let mut batch = self
            .batches
            .take(batch_size, storage.obs_dim(), storage.act_dim());
        batch.weights.reserve(batch_size);
        batch.indices.reserve(batch_size);
        for &row in &self.rows {
            storage.read_into(row, &mut batch);
            batch.weights.push(weight(min, tree.get(row), beta));
            batch.indices.push(row as i64);
        }
        Ok(batch)
    }

    fn sample_into(
        &mut self,
        seed: Option<u64>,
        out: &mut Columns<'_, O>,
    ) -> Result<(), RloxError> {
        self.storage.check_columns(out, 1)?;
        let min = self.draw(out.reward.len(), seed)?;
        for ((index, weighs), &row) in out
            .indices
            .iter_mut()
            .zip(&mut *out.weights)
            .zip(&self.rows)
        {
            *index = row as i64;
            *weighs = weight(min, self.tree.get(row), self.beta);
        }
        self.storage.gather(&self.rows, out);
        Ok(())
    }

    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T> {
        W::Batches::<O>::export(column)
    }

    fn give_back(&mut self, batch: SampledBatch<O>) {
        self.batches.give_back(batch);
    }
}

/// The importance weight w_i of a row with the leaf p_i^alpha; `min` is the smallest positive leaf.
fn weight(min: f64, leaf: f64, beta: f64) -> f32 {
    (min / leaf).powf(beta) as f32
}

fn check_exponent(argument: &'static str, value: f64) -> Result<(), RloxError> {
    if value.is_finite() && value >= 0.0 {
        Ok(())
    } else {
        Err(RloxError::argument(
            argument,
            format!("is {value}, expected a finite number of at least 0"),
        ))
    }
}
