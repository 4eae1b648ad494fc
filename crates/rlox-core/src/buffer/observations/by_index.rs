//! P24's optimised form: each observation is stored once, since the next observation of a transition is
//! nearly always the observation of a later one.
//!
//! Environments are stepped in turn, so the next transition of the same environment comes `stride` rows
//! later. A push writes its next observation to the place of that later observation. When the later
//! transition comes, its observation is compared with what lies there. If they are equal, nothing is
//! written. If not (an episode has ended, or transitions come in no order), what lies there is moved
//! aside, as the next observation of the earlier row alone. So any order of pushes gives back what was
//! stored, and the usual order takes half the memory.
//!
//! P27's seam lies here as well. In its optimised form, when nothing has followed twice in turn, the next
//! observation is kept aside at once, until an observation follows again.
//!
//! There are 64 more places than rows: the spare ones are for observations to come. The observations
//! that were moved aside have a column of their own, whose memory is touched only as it is needed.

use std::ops::Range;
use std::slice::from_ref;

use super::Observations;
use crate::RloxError;
use crate::buffer::BufferWiring;
use crate::buffer::pages::{too_large, zeroed};
use crate::buffer::past_caches;
use crate::buffer::storage::{AHEAD, ObsElement, copy};
use crate::memory::reserved;

/// The number of spare places, and so the largest stride. With more environments, each transition
/// stores its own next observation.
const SPARE: usize = 64;

/// Where the next observation of a row is.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    /// So many places after the row's observation.
    After(u32),
    /// Aside, with this number.
    Aside(u32),
}

impl Default for Next {
    fn default() -> Self {
        Self::After(0)
    }
}

/// The observations of a ring, each stored once.
#[derive(Debug)]
pub struct ByIndex<O> {
    capacity: usize,
    obs_dim: usize,
    /// Observations, `[capacity + SPARE, obs_dim]`.
    places: Vec<O>,
    /// Where the next observation of each row is, `[capacity]`.
    next: Vec<Next>,
    /// Next observations that are in no place, `[capacity, obs_dim]`: one for each row at most.
    aside: Vec<O>,
    /// How many of `aside` have ever been in use.
    n_aside: u32,
    /// The numbers of those in `aside` that are free again, since their rows were overwritten.
    free: Vec<u32>,
    /// The row that is stored next.
    row: usize,
    /// The place of its observation.
    place: usize,
    /// The place that row 0 got when it was last stored.
    first: usize,
    /// After how many rows the next transition of the same environment comes; 0 if no order is known.
    stride: usize,
    /// P27: whether next observations that nothing is expected to follow are kept aside at once.
    aside_at_once: bool,
}

impl<O: ObsElement> ByIndex<O> {
    /// The place of a stored row's observation. Rows of the present turn of the ring lie one after the
    /// other from `first` on. Rows left from the turn before lie one turn earlier, which is `SPARE`
    /// places later around the ring.
    fn place_of(&self, row: usize) -> usize {
        let from_first = if row < self.row { row } else { row + SPARE };
        self.on_from(self.first, from_first)
    }

    /// The place `more` places after `place`, at most once around the ring.
    fn on_from(&self, place: usize, more: usize) -> usize {
        let (place, n) = (place + more, self.capacity + SPARE);
        if place < n { place } else { place - n }
    }

    /// The range of the elements of observation `number`, in `places` or in `aside`.
    fn elements(&self, number: usize) -> Range<usize> {
        number * self.obs_dim..(number + 1) * self.obs_dim
    }

    fn at(&self, place: usize) -> &[O] {
        &self.places[self.elements(place)]
    }

    fn aside(&self, number: u32) -> &[O] {
        &self.aside[self.elements(number as usize)]
    }

    fn write(&mut self, place: usize, obs: &[O]) {
        let to = self.elements(place);
        self.places[to].copy_from_slice(obs);
    }

    /// Assigns the next observation of `row` a number in `aside`, and returns the range of its
    /// elements.
    fn aside_of(&mut self, row: usize) -> Range<usize> {
        let number = self.free.pop().unwrap_or_else(|| {
            self.n_aside += 1;
            self.n_aside - 1
        });
        self.next[row] = Next::Aside(number);
        self.elements(number as usize)
    }

    /// Moves what lies at `place` aside, as the next observation of `row`.
    fn move_aside(&mut self, row: usize, place: usize) {
        let (from, to) = (self.elements(place), self.aside_of(row));
        self.aside[to].copy_from_slice(&self.places[from]);
    }

    /// From now on, transitions of `n` environments come in turn. If the stride changes, the next
    /// observations of the latest rows are moved aside, since the transitions that they wait for will
    /// come to other places.
    fn set_stride(&mut self, n: usize) {
        let n = if n <= SPARE && n < self.capacity {
            n
        } else {
            0
        };
        if n == self.stride {
            return;
        }
        for back in 1..=self.stride {
            let row = self.before(self.row, back);
            if self.is_ahead(row) {
                self.move_aside(row, self.on_from(self.place_of(row), self.stride));
            }
        }
        self.stride = n;
    }

    /// The row `back` rows before `row`, at most once around the ring.
    fn before(&self, row: usize, back: usize) -> usize {
        if row >= back {
            row - back
        } else {
            row + self.capacity - back
        }
    }

    /// Whether the next observation of one of the latest rows lies in the place of the transition that is
    /// expected to follow it.
    fn is_ahead(&self, row: usize) -> bool {
        self.stride > 0 && self.next[row] == Next::After(self.stride as u32)
    }

    /// Whether a transition that starts from `obs` follows nothing, nor did the one before it of the same
    /// environment, in row `last`.
    fn is_apart(&self, last: usize, obs: &[O]) -> bool {
        let one_before = self.before(last, self.stride);
        match (self.next[last], self.next[one_before]) {
            (Next::Aside(number), Next::Aside(_)) => !O::same(self.aside(number), obs),
            _ => false,
        }
    }

    /// Stores a transition in the row whose turn it is.
    fn store(&mut self, obs: &[O], next_obs: &[O]) {
        let (row, place) = (self.row, self.place);
        if let Next::Aside(number) = self.next[row] {
            self.free.push(number); // the transition in this row is overwritten
        }
        let last = self.before(row, self.stride);
        let expected = self.is_ahead(last);
        if !(expected && O::same(self.at(place), obs)) {
            if expected {
                self.move_aside(last, place);
            }
            self.write(place, obs);
        }
        if self.stride > 0 && !(self.aside_at_once && self.is_apart(last, obs)) {
            self.write(self.on_from(place, self.stride), next_obs);
            self.next[row] = Next::After(self.stride as u32);
        } else {
            let to = self.aside_of(row);
            self.aside[to].copy_from_slice(next_obs);
        }
        self.place = self.on_from(place, 1);
        self.row = row + 1;
        if self.row == self.capacity {
            (self.row, self.first) = (0, self.place);
        }
    }
}

impl<O: ObsElement> Observations<O> for ByIndex<O> {
    fn new<W: BufferWiring>(capacity: usize, obs_dim: usize) -> Result<Self, RloxError> {
        // Numbers in `aside` have 32 bits.
        if u32::try_from(capacity).is_err() {
            return Err(too_large::<O>(capacity, obs_dim));
        }
        let mut free = zeroed::<W, _>(capacity, 1)?;
        free.clear(); // it keeps its memory
        Ok(Self {
            capacity,
            obs_dim,
            places: zeroed::<W, _>(capacity.saturating_add(SPARE), obs_dim)
                .map_err(|_| too_large::<O>(capacity, obs_dim))?,
            next: {
                let mut next = reserved(capacity).map_err(|_| too_large::<Next>(capacity, 1))?;
                next.resize(capacity, Next::default());
                next
            },
            aside: zeroed::<W, _>(capacity, obs_dim)?,
            n_aside: 0,
            free,
            row: 0,
            place: 0,
            first: 0,
            stride: 0,
            aside_at_once: W::P27,
        })
    }

    fn push(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        debug_assert_eq!(row, self.row);
        self.set_stride(1);
        self.store(obs, next_obs);
    }

    fn push_batch(&mut self, row: usize, obs: &[O], next_obs: &[O]) {
        debug_assert_eq!(row, self.row);
        let (dim, n) = (self.obs_dim, obs.len() / self.obs_dim);
        if n == 0 {
            return;
        }
        // The batch is either a step of `n` environments or `n` steps of one: then one transition
        // follows the other.
        let of_one = n > 1 && O::same(&next_obs[..dim], &obs[dim..2 * dim]);
        self.set_stride(if of_one { 1 } else { n });
        for (obs, next_obs) in obs.chunks_exact(dim).zip(next_obs.chunks_exact(dim)) {
            self.store(obs, next_obs);
        }
    }

    fn obs(&self, row: usize) -> &[O] {
        self.at(self.place_of(row))
    }

    fn next_obs(&self, row: usize) -> &[O] {
        match self.next[row] {
            Next::After(stride) => self.at(self.on_from(self.place_of(row), stride as usize)),
            Next::Aside(number) => self.aside(number),
        }
    }

    fn gather(&self, rows: &[usize], obs: &mut [O], next_obs: &mut [O]) {
        // Row by row, not column by column: a row's next observation mostly lies close behind its
        // observation. Where it lies is prefetched, too, since the address of what is prefetched after
        // that depends on it.
        let large = size_of_val(obs) >= past_caches::LARGE;
        let (obs, next_obs) = (
            obs.chunks_exact_mut(self.obs_dim),
            next_obs.chunks_exact_mut(self.obs_dim),
        );
        for (i, ((&row, to), next_to)) in rows.iter().zip(obs).zip(next_obs).enumerate() {
            if let Some(&row) = rows.get(i + 2 * AHEAD) {
                past_caches::ask_for(from_ref(&self.next[row]));
            }
            if let Some(&row) = rows.get(i + AHEAD) {
                past_caches::ask_for(self.obs(row));
                past_caches::ask_for(self.next_obs(row));
            }
            copy(self.obs(row), to, large);
            copy(self.next_obs(row), next_to, large);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::buffer::observations::Twice;
    use crate::wiring::{Shipped, shipped};

    crate::wiring!(AfterP27 = shipped but { const P27: bool = true; });

    /// As many environments as there are spare places, one fewer and one more. The rings hold about one
    /// step of them, or two.
    #[test]
    fn the_widest_strides_give_back_what_was_stored() {
        for n in SPARE - 1..=SPARE + 1 {
            for capacity in [n - 1, n, n + 1, 2 * n + 3] {
                let mut found = ByIndex::<f32>::new::<Shipped>(capacity, 2).unwrap();
                let mut plain = Twice::<f32>::new::<Shipped>(capacity, 2).unwrap();
                let mut obs: Vec<f32> = (0..n).flat_map(|env| [env as f32, 0.0]).collect();
                for step in 1..9 {
                    let next_obs: Vec<f32> =
                        (0..n).flat_map(|env| [env as f32, step as f32]).collect();
                    let pushed = (step - 1) * n;
                    found.push_batch(pushed % capacity, &obs, &next_obs);
                    plain.push_batch(pushed % capacity, &obs, &next_obs);
                    for row in 0..capacity.min(pushed + n) {
                        let (found, plain) = (
                            (found.obs(row), found.next_obs(row)),
                            (plain.obs(row), plain.next_obs(row)),
                        );
                        assert_eq!(found, plain, "{n} {capacity} {step} {row}");
                    }
                    obs = next_obs;
                    // Some episodes end, and the next ones start elsewhere.
                    for env in (step % 5..n).step_by(5) {
                        obs[2 * env + 1] = -1.0;
                    }
                }
            }
        }
    }

    #[test]
    fn a_capacity_that_is_too_large_is_told_as_it_was_given() {
        for capacity in [1 << 60, 1 << 32] {
            let error = ByIndex::<u8>::new::<Shipped>(capacity, 1)
                .unwrap_err()
                .to_string();
            let told = format!("capacity: is {capacity}, whose rows of 1 x 1 bytes do not fit");
            assert!(error.starts_with(&told), "{error}");
        }
    }

    /// With more environments than spare places, every row has its next observation aside. The memory
    /// for that is there from the start.
    #[test]
    fn what_is_aside_has_its_memory_from_the_start() {
        let (capacity, n) = (5, SPARE + 1);
        let mut rows = ByIndex::<u8>::new::<Shipped>(capacity, 1).unwrap();
        let room = (rows.aside.as_ptr(), rows.free.as_ptr());
        for step in 0..4 {
            rows.push_batch(step * n % capacity, &[1; SPARE + 1], &[2; SPARE + 1]);
        }
        assert_eq!((rows.aside.as_ptr(), rows.free.as_ptr()), room);
        assert_eq!(rows.n_aside, 5);
    }
    /// Two transitions in turn that follow nothing are enough, and one that follows again ends it.
    #[test]
    fn what_nothing_follows_is_aside_at_once_until_something_follows_again() {
        let mut rows = ByIndex::<f32>::new::<AfterP27>(9, 1).unwrap();
        let mut is_aside = |row: usize, obs: f32| {
            rows.push(row, &[obs], &[obs + 1.0]);
            assert_eq!(
                (rows.obs(row), rows.next_obs(row)),
                (&[obs][..], &[obs + 1.0][..])
            );
            matches!(rows.next[row], Next::Aside(_))
        };
        let apart = [10.0, 20.0, 30.0, 40.0];
        let at_once: Vec<_> = apart
            .iter()
            .enumerate()
            .map(|(row, &obs)| is_aside(row, obs))
            .collect();
        assert_eq!(at_once, [false, false, true, true]);
        let following = [41.0, 42.0];
        assert!(
            following
                .iter()
                .enumerate()
                .all(|(row, &obs)| !is_aside(4 + row, obs))
        );
    }
}
