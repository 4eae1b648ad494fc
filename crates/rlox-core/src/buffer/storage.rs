//! The memory of a replay buffer: a ring of transitions, stored column by column.

use std::ops::Range;

use super::observations::Observations;
use super::pages::zeroed;
use super::past_caches::{self, Plain};
use super::{BufferWiring, Columns, Experience, ExperienceBatch, SampledBatch};
use crate::error::{RloxError, check_len};
use crate::memory::{Zero, fits, reserved};

/// The element type of an observation.
pub trait ObsElement:
    Plain + Zero + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static
{
    /// Whether two observations are equal to the bit.
    fn same(a: &[Self], b: &[Self]) -> bool;
}

impl ObsElement for f32 {
    fn same(a: &[Self], b: &[Self]) -> bool {
        // The loop may end only after every 64 elements. One that may end at each is not vectorised.
        a.chunks(64).zip(b.chunks(64)).all(|(a, b)| {
            let bits = a.iter().zip(b).map(|(a, b)| a.to_bits() ^ b.to_bits());
            bits.fold(0, |all, bits| all | bits) == 0
        })
    }
}

impl ObsElement for u8 {
    fn same(a: &[Self], b: &[Self]) -> bool {
        a == b
    }
}

/// A ring of `capacity` rows, one transition each. When it is full, the oldest row is overwritten.
#[derive(Debug)]
pub struct Storage<O: ObsElement, W: BufferWiring> {
    capacity: usize,
    obs_dim: usize,
    act_dim: usize,
    observations: W::Observations<O>,
    action: Vec<f32>,
    reward: Vec<f32>,
    terminated: Vec<bool>,
    truncated: Vec<bool>,
    next_row: usize,
    len: usize,
}

impl<O: ObsElement, W: BufferWiring> Storage<O, W> {
    /// An empty ring. All its memory is reserved now, but the system hands out pages as the ring fills.
    ///
    /// # Errors
    /// If a dimension is zero or the rows do not fit into memory.
    pub fn new(capacity: usize, obs_dim: usize, act_dim: usize) -> Result<Self, RloxError> {
        for (argument, value) in [
            ("capacity", capacity),
            ("obs_dim", obs_dim),
            ("act_dim", act_dim),
        ] {
            if value == 0 {
                return Err(RloxError::argument(argument, "is 0, expected at least 1"));
            }
        }
        Ok(Self {
            capacity,
            obs_dim,
            act_dim,
            observations: Observations::new::<W>(capacity, obs_dim)?,
            action: zeroed::<W, _>(capacity, act_dim)?,
            reward: zeroed::<W, _>(capacity, 1)?,
            terminated: zeroed::<W, _>(capacity, 1)?,
            truncated: zeroed::<W, _>(capacity, 1)?,
            next_row: 0,
            len: 0,
        })
    }

    /// How many transitions the ring can hold.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Elements of an observation.
    pub fn obs_dim(&self) -> usize {
        self.obs_dim
    }

    /// Elements of an action.
    pub fn act_dim(&self) -> usize {
        self.act_dim
    }

    /// How many transitions the ring holds now.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the ring holds no transition.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Copies a batch of transitions to the next rows. On an error nothing is copied. If the batch is
    /// larger than the ring, only its last transitions are kept. Returns the rows that were written, as a
    /// range that may go on beyond the end of the ring: `i` stands for row `i % capacity`.
    ///
    /// # Errors
    /// As [`super::Replay::append`].
    #[inline]
    pub fn append(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<Range<usize>, RloxError> {
        match (batch.reward, batch.terminated, batch.truncated) {
            (&[reward], &[terminated], &[truncated]) => {
                let (obs, next_obs, action) = (batch.obs, batch.next_obs, batch.action);
                let row = self.append_one(Experience {
                    obs,
                    next_obs,
                    action,
                    reward,
                    terminated,
                    truncated,
                })?;
                Ok(row..row + 1)
            }
            _ => self.append_many(batch),
        }
    }

    /// [`Self::append`] of one transition. It is faster than [`Self::append_many`], since the transition
    /// cannot wrap around the end of the ring, and its single values are not copied as slices.
    #[inline]
    fn append_one(&mut self, one: Experience<'_, O>) -> Result<usize, RloxError> {
        check_len("obs", one.obs.len(), self.obs_dim)?;
        check_len("next_obs", one.next_obs.len(), self.obs_dim)?;
        check_len("action", one.action.len(), self.act_dim)?;
        if !one.reward.is_finite() {
            let problem = format!("is {}, expected a finite number", one.reward);
            return Err(RloxError::argument("reward", problem));
        }
        let row = self.next_row;
        let action = row * self.act_dim..(row + 1) * self.act_dim;
        self.observations.push(row, one.obs, one.next_obs);
        self.action[action].copy_from_slice(one.action);
        self.reward[row] = one.reward;
        self.terminated[row] = one.terminated;
        self.truncated[row] = one.truncated;
        self.next_row = (row + 1) % self.capacity;
        self.len = (self.len + 1).min(self.capacity);
        Ok(row)
    }

    /// [`Self::append`] of any number of transitions.
    fn append_many(&mut self, batch: &ExperienceBatch<'_, O>) -> Result<Range<usize>, RloxError> {
        self.check(batch)?;
        let (n, capacity, row) = (batch.reward.len(), self.capacity, self.next_row);
        self.observations.push_batch(row, batch.obs, batch.next_obs);
        put(&mut self.action, batch.action, self.act_dim, row);
        put(&mut self.reward, batch.reward, 1, row);
        put(&mut self.terminated, batch.terminated, 1, row);
        put(&mut self.truncated, batch.truncated, 1, row);
        self.next_row = (row + n) % capacity;
        self.len = (self.len + n).min(capacity);
        Ok(row + n.saturating_sub(capacity)..row + n)
    }

    /// Checks a whole batch before any of it is stored.
    ///
    /// # Errors
    /// As [`super::Replay::append`].
    pub(super) fn check(&self, batch: &ExperienceBatch<'_, O>) -> Result<(), RloxError> {
        let n = batch.reward.len();
        check_len("obs", batch.obs.len(), n * self.obs_dim)?;
        check_len("next_obs", batch.next_obs.len(), n * self.obs_dim)?;
        check_len("action", batch.action.len(), n * self.act_dim)?;
        check_len("terminated", batch.terminated.len(), n)?;
        check_len("truncated", batch.truncated.len(), n)?;
        let Some(index) = batch.reward.iter().position(|reward| !reward.is_finite()) else {
            return Ok(());
        };
        let reward = batch.reward[index];
        let problem = match n {
            1 => format!("is {reward}, expected a finite number"),
            _ => format!("is {reward} at index {index}, expected finite numbers"),
        };
        Err(RloxError::argument("reward", problem))
    }

    /// The row that is written next.
    pub(super) fn next_row(&self) -> usize {
        self.next_row
    }

    /// The transition in `row`.
    pub fn row(&self, row: usize) -> Experience<'_, O> {
        let action = row * self.act_dim..(row + 1) * self.act_dim;
        Experience {
            obs: self.observations.obs(row),
            next_obs: self.observations.next_obs(row),
            action: &self.action[action],
            reward: self.reward[row],
            terminated: self.terminated[row],
            truncated: self.truncated[row],
        }
    }

    /// Appends the transition in `row` to a batch.
    pub(super) fn read_into(&self, row: usize, batch: &mut SampledBatch<O>) {
        let row = self.row(row);
        batch.obs.extend_from_slice(row.obs);
        batch.next_obs.extend_from_slice(row.next_obs);
        batch.action.extend_from_slice(row.action);
        batch.reward.push(row.reward);
        batch.terminated.push(row.terminated);
        batch.truncated.push(row.truncated);
    }

    /// Copies the transitions in `rows` to `out`, column by column, not row by row: in a loop over one
    /// column, the processor reads many rows at once from memory.
    pub(super) fn gather(&self, rows: &[usize], out: &mut Columns<'_, O>) {
        self.observations.gather(rows, out.obs, out.next_obs);
        let rows = rows.iter().copied();
        gather(&self.action, self.act_dim, rows.clone(), out.action);
        gather(&self.reward, 1, rows.clone(), out.reward);
        gather(&self.terminated, 1, rows.clone(), out.terminated);
        gather(&self.truncated, 1, rows, out.truncated);
    }

    /// Copies all transitions to `out`, the oldest first.
    ///
    /// # Errors
    /// If the columns of `out` do not have [`Self::len`] rows, or there is no memory for their order.
    pub fn copy_into(&self, out: &mut Columns<'_, O>) -> Result<(), RloxError> {
        check_len("reward", out.reward.len(), self.len)?;
        self.check_lengths(out, 0)?;
        let oldest = self.next_row + self.capacity - self.len;
        let mut rows = reserved(self.len)?;
        rows.extend((0..self.len).map(|i| (oldest + i) % self.capacity));
        self.gather(&rows, out);
        Ok(())
    }

    /// Checks that the columns of `out` have the same number of rows, and that a batch of so many
    /// transitions can be drawn. `weighted` is 1 if a row has a weight and an index, else 0.
    pub(super) fn check_columns(
        &self,
        out: &Columns<'_, O>,
        weighted: usize,
    ) -> Result<(), RloxError> {
        self.check_lengths(out, weighted)?;
        self.check_sample(out.reward.len())
    }

    fn check_lengths(&self, out: &Columns<'_, O>, weighted: usize) -> Result<(), RloxError> {
        let n = out.reward.len();
        check_len("obs", out.obs.len(), n * self.obs_dim)?;
        check_len("next_obs", out.next_obs.len(), n * self.obs_dim)?;
        check_len("action", out.action.len(), n * self.act_dim)?;
        check_len("terminated", out.terminated.len(), n)?;
        check_len("truncated", out.truncated.len(), n)?;
        check_len("weights", out.weights.len(), n * weighted)?;
        check_len("indices", out.indices.len(), n * weighted)
    }

    /// Checks that a batch fits into memory: its columns, and the list of its rows.
    fn check_room_for(&self, batch_size: usize) -> Result<(), RloxError> {
        let row = 2 * self.obs_dim * size_of::<O>() + self.act_dim * size_of::<f32>() + 64;
        if fits::<u8>(batch_size, row) {
            return Ok(());
        }
        Err(RloxError::argument(
            "batch_size",
            format!("is {batch_size}, which does not fit into memory; choose a smaller one"),
        ))
    }

    /// Checks that a batch of this size can be drawn.
    ///
    /// # Errors
    /// If it is zero or does not fit into memory, or there is nothing to draw from.
    pub fn check_sample(&self, batch_size: usize) -> Result<(), RloxError> {
        if batch_size == 0 {
            Err(RloxError::argument(
                "batch_size",
                "is 0, expected at least 1",
            ))
        } else if self.is_empty() {
            Err(RloxError::InvalidState(
                "the buffer is empty; push a transition before sampling".into(),
            ))
        } else if batch_size > self.len {
            self.check_room_for(batch_size)
        } else {
            Ok(())
        }
    }

    /// [`Self::check_sample`] for a [`SampledBatch`]. Since the program would abort if its memory could not
    /// be allocated, this always checks that there is memory for it.
    pub(super) fn check_batch_of(&self, batch_size: usize) -> Result<(), RloxError> {
        self.check_sample(batch_size)?;
        self.check_room_for(batch_size)
    }
}

/// Copies the rows of `from` to a ring's column, from row `first` on, and on from row 0 after the last
/// row. If `from` has more rows than the ring, only the last ones are kept.
pub(super) fn put<T: Copy>(column: &mut [T], from: &[T], width: usize, first: usize) {
    let skipped = from.len().saturating_sub(column.len());
    let (from, first) = (&from[skipped..], (first * width + skipped) % column.len());
    let (before_end, from_start) = from.split_at(from.len().min(column.len() - first));
    column[first..first + before_end.len()].copy_from_slice(before_end);
    column[..from_start.len()].copy_from_slice(from_start);
}

/// A row is prefetched while the row so many places before it is copied.
pub(super) const AHEAD: usize = 16;

/// The same rows. When one is taken, the row [`AHEAD`] places after it is prefetched.
fn asked_for<'a, T: 'a>(
    rows: impl Iterator<Item = &'a [T]> + Clone,
) -> impl Iterator<Item = &'a [T]> {
    let mut coming = rows.clone().skip(AHEAD);
    rows.inspect(move |_| {
        if let Some(row) = coming.next() {
            past_caches::ask_for(row);
        }
    })
}

/// Copies a row. If the whole sample is `large`, the copy is not written to the caches, where it would
/// displace everything else.
#[inline]
pub(super) fn copy<T: Plain>(from: &[T], to: &mut [T], large: bool) {
    if large {
        past_caches::copy(from, to);
    } else {
        to.copy_from_slice(from);
    }
}

/// Copies `rows` of a column to `to`. For widths up to 4 the compiler knows the length of a row, and copies
/// it in registers; wider rows are copied by a call each.
pub(super) fn gather<T: Plain>(
    from: &[T],
    width: usize,
    rows: impl Iterator<Item = usize> + Clone,
    to: &mut [T],
) {
    match width {
        1 => gather_narrow::<T, 1>(from, rows, to),
        2 => gather_narrow::<T, 2>(from, rows, to),
        3 => gather_narrow::<T, 3>(from, rows, to),
        4 => gather_narrow::<T, 4>(from, rows, to),
        _ => {
            let large = size_of_val(to) >= past_caches::LARGE;
            let rows = rows.map(|row| &from[row * width..(row + 1) * width]);
            for (to, from) in to.chunks_exact_mut(width).zip(asked_for(rows)) {
                copy(from, to, large);
            }
        }
    }
}

fn gather_narrow<T: Copy, const WIDTH: usize>(
    from: &[T],
    rows: impl Iterator<Item = usize>,
    to: &mut [T],
) {
    let (from, to) = (from.as_chunks::<WIDTH>().0, to.as_chunks_mut::<WIDTH>().0);
    for (to, row) in to.iter_mut().zip(rows) {
        *to = from[row];
    }
}
