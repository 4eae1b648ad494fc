//! Buffers filled and driven by scripts.

use std::fmt::Write;

use rlox_core::buffer::priority::PriorityBuffer;
use rlox_core::buffer::ringbuf::RingBuffer;
use rlox_core::buffer::{BufferWiring, Experience, Replay, SampledBatch};

use crate::draw::{Draw, fixed_numbers};
use crate::pair::Size;

pub(super) const OBS_DIM: usize = 3;
pub(super) const ACT_DIM: usize = 2;

/// A transition of the dimensions above, whose columns all tell it from others.
pub(super) struct Drawn {
    numbers: Vec<f32>,
    terminated: bool,
    truncated: bool,
}

impl Drawn {
    pub(super) fn draw(case: &mut Draw<'_>) -> Self {
        let numbers = case.numbers(2 * OBS_DIM + ACT_DIM + 1);
        Self {
            numbers: super::sequences::narrow(&numbers),
            terminated: case.once_in(3),
            truncated: case.once_in(3),
        }
    }

    /// Its arrays, borrowed; a broken one has a wrong shape, and is refused.
    pub(super) fn view(&self, broken: bool) -> Experience<'_, f32> {
        let (obs, rest) = self.numbers.split_at(OBS_DIM);
        let (next_obs, rest) = rest.split_at(OBS_DIM);
        Experience {
            obs,
            next_obs: if broken { &next_obs[1..] } else { next_obs },
            action: &rest[..ACT_DIM],
            reward: rest[ACT_DIM],
            terminated: self.terminated,
            truncated: self.truncated,
        }
    }
}

/// A transition of any size for benchmarks.
pub(super) struct Wide {
    obs: Vec<f32>,
    action: Vec<f32>,
}

impl Wide {
    pub(super) fn new(obs_dim: usize, act_dim: usize) -> Self {
        Self {
            obs: super::sequences::narrow(&fixed_numbers(obs_dim, 1)),
            action: super::sequences::narrow(&fixed_numbers(act_dim, 2)),
        }
    }

    pub(super) fn view(&self, reward: f32) -> Experience<'_, f32> {
        Experience {
            obs: &self.obs,
            next_obs: &self.obs,
            action: &self.action,
            reward,
            terminated: false,
            truncated: false,
        }
    }
}

/// A ring of `rows` transitions, full.
pub(super) fn full<W: BufferWiring>(rows: usize, obs_dim: usize) -> Option<RingBuffer<f32, W>> {
    let mut ring = RingBuffer::new(rows, obs_dim, 1, 0).ok()?;
    let transition = Wide::new(obs_dim, 1);
    for row in 0..rows {
        ring.append(&transition.view(row as f32).as_batch()).ok()?;
    }
    Some(ring)
}

/// A batch whose columns hold what is to be overwritten.
pub(super) fn kept(n: usize, obs_dim: usize, act_dim: usize, weighted: bool) -> SampledBatch<f32> {
    let weighted = if weighted { n } else { 0 };
    SampledBatch {
        obs: vec![7.0; n * obs_dim],
        next_obs: vec![7.0; n * obs_dim],
        action: vec![7.0; n * act_dim],
        reward: vec![7.0; n],
        terminated: vec![true; n],
        truncated: vec![true; n],
        weights: vec![7.0; weighted],
        indices: vec![7; weighted],
    }
}

/// What a push is timed at: Pendulum, Humanoid, four frames of Atari.
pub const PUSH_SIZES: &[Size<'static>] = &[
    &[("obs_dim", 3), ("act_dim", 1)],
    &[("obs_dim", 376), ("act_dim", 17)],
    &[("obs_dim", 28_224), ("act_dim", 1)],
];

/// What a sample is timed at, of the same.
pub const SAMPLE_SIZES: &[Size<'static>] = &[
    &[("obs_dim", 3)],
    &[("obs_dim", 376)],
    &[("obs_dim", 28_224)],
];

/// Transitions that a benchmark's ring holds: at most 256 MB, and never fewer than a batch.
pub fn rows_for(obs_dim: usize) -> usize {
    (32_000_000 / obs_dim).clamp(512, 100_000)
}

/// What a case does with a buffer, written out.
pub(super) trait Play {
    /// Transitions that the buffer holds at most.
    const MOST: usize;

    /// All of it.
    fn play<B: Replay<f32>>(buffer: B, case: &mut Draw<'_>) -> String;
}

/// `P` with the one kind of buffer or the other.
pub(super) fn in_either_buffer<P: Play, W: BufferWiring>(case: &mut Draw<'_>) -> String {
    let (capacity, seed) = (1 + case.below(P::MOST), case.seed());
    let ring = RingBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, seed);
    let tree = PriorityBuffer::<f32, W>::new(capacity, OBS_DIM, ACT_DIM, 0.6, 0.4, seed);
    match (case.once_in(2), ring, tree) {
        (false, Ok(ring), _) => P::play(ring, case),
        (true, _, Ok(mut tree)) => {
            // The largest priority is then not the one that a new buffer starts with.
            drop(tree.append(&Drawn::draw(case).view(false).as_batch()));
            drop(tree.update_priorities(&[0], &[case.of(&[1.0, 3.0])]));
            P::play(tree, case)
        }
        _ => String::new(),
    }
}

/// Draws a batch into `written`, takes two columns out and gives the rest back.
pub(super) fn sample<B: Replay<f32>>(buffer: &mut B, case: &mut Draw<'_>, written: &mut String) {
    let batch_size = case.of(&[1, 2, 5, 17]);
    let seed = case.once_in(3).then(|| case.seed());
    match buffer.sample(batch_size, seed) {
        Ok(mut batch) => {
            let _ = writeln!(written, "{batch:?}");
            let obs = B::export(&mut batch.obs);
            let indices = B::export(&mut batch.indices);
            let _ = writeln!(written, "{obs:?} {indices:?}");
            if !case.once_in(4) {
                buffer.give_back(batch);
            }
        }
        Err(error) => {
            let _ = writeln!(written, "{error}");
        }
    }
}

/// The first number of every column, so that a benchmark's outcome is short.
pub(super) fn digest(batch: &SampledBatch<f32>) -> impl std::fmt::Debug + use<> {
    let first = |column: &[f32]| column.first().map(|value| value.to_bits());
    let (obs, weights) = (first(&batch.obs), first(&batch.weights));
    (
        obs,
        first(&batch.reward),
        weights,
        batch.indices.first().copied(),
    )
}
