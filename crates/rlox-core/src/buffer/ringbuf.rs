//! The uniform replay buffer.

use super::batch::Batches;
use super::random::SampleStream;
use super::storage::{ObsElement, Storage};
use super::{BufferWiring, Columns, ExperienceBatch, Replay, SampledBatch, push_batch};
use crate::RloxError;
use crate::memory::reserve;

/// A ring of transitions, sampled uniformly with replacement.
#[derive(Debug)]
pub struct RingBuffer<O: ObsElement, W: BufferWiring> {
    storage: Storage<O, W>,
    stream: SampleStream,
    batches: W::Batches<O>,
    /// The rows of the latest sample; kept between samples for its memory.
    rows: Vec<usize>,
}

impl<O: ObsElement, W: BufferWiring> RingBuffer<O, W> {
    /// An empty buffer whose samples follow from `seed`.
    ///
    /// # Errors
    /// If a dimension is zero or there is no memory.
    pub fn new(
        capacity: usize,
        obs_dim: usize,
        act_dim: usize,
        seed: u64,
    ) -> Result<Self, RloxError> {
        Ok(Self {
            storage: Storage::new(capacity, obs_dim, act_dim)?,
            stream: SampleStream::new(seed),
            batches: W::Batches::default(),
            rows: Vec::new(),
        })
    }
}

impl<O: ObsElement, W: BufferWiring> Replay<O> for RingBuffer<O, W> {
    type Wiring = W;

    #[inline]
    fn append(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<(), RloxError> {
        push_batch::append(&mut self.storage, batch).map(drop)
    }

    fn storage(&self) -> &Storage<O, W> {
        &self.storage
    }

    fn sample(
        &mut self,
        batch_size: usize,
        seed: Option<u64>,
    ) -> Result<SampledBatch<O>, RloxError> {
        let storage = &self.storage;
        storage.check_batch_of(batch_size)?;
        let mut batch = self
            .batches
            .take(batch_size, storage.obs_dim(), storage.act_dim());
        self.stream.with(seed, |stream| {
            for _ in 0..batch_size {
                storage.read_into(stream.below(storage.len()), &mut batch);
            }
        });
        Ok(batch)
    }

    fn sample_into(
        &mut self,
        seed: Option<u64>,
        out: &mut Columns<'_, O>,
    ) -> Result<(), RloxError> {
        let (storage, rows) = (&self.storage, &mut self.rows);
        storage.check_columns(out, 0)?;
        rows.clear();
        reserve(rows, out.reward.len())?;
        self.stream.with(seed, |stream| {
            rows.extend((0..out.reward.len()).map(|_| stream.below(storage.len())));
        });
        storage.gather(rows, out);
        Ok(())
    }

    fn export<T: Clone>(column: &mut Vec<T>) -> Vec<T> {
        W::Batches::<O>::export(column)
    }

    fn give_back(&mut self, batch: SampledBatch<O>) {
        self.batches.give_back(batch);
    }
}
