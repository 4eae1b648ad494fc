//! What the two sides of an update do in each minibatch, and when one of them is worth offering to a
//! second thread.

use std::thread::Thread;
use std::time::{Duration, Instant};

use super::Rollout;
use super::offer::{self, Done};
use crate::pool;

/// One of the two networks in training.
pub(super) trait Side {
    /// Makes the gradient of the loss of a minibatch; its squared length, or None to end the update
    /// before this minibatch.
    fn gradient(&mut self, rollout: &Rollout<'_>, batch: &[i64]) -> Option<f64>;
    /// Adam's step number `t` with that gradient, times `scale`; what the minibatch adds to the figures.
    fn step(&mut self, t: u64, scale: f32);
}

/// What a side does between two meetings: the step of the minibatch before, once both know its
/// length, and the gradient of the next one.
pub(super) struct Round<'a, S> {
    side: S,
    /// Number and scale of the step that is due.
    pub(super) step: Option<(u64, f32)>,
    pub(super) batch: &'a [i64],
    /// What [`Side::gradient`] gave.
    pub(super) norm: Option<f64>,
}

impl<S: Side> Round<'_, S> {
    pub(super) fn new(side: S) -> Self {
        Self {
            side,
            step: None,
            batch: &[],
            norm: None,
        }
    }

    pub(super) fn run(&mut self, rollout: &Rollout<'_>) {
        self.step_if_due();
        self.norm = self.side.gradient(rollout, self.batch);
    }

    fn step_if_due(&mut self) {
        if let Some((t, scale)) = self.step.take() {
            self.side.step(t, scale);
        }
    }

    /// The side, with no step due.
    pub(super) fn settled(mut self) -> S {
        self.step_if_due();
        self.side
    }
}

/// Offers in a row that no helper takes, before it is held to have no core to run on.
const MISSED: u32 = 4;

/// How long a minibatch takes with help and without it, and so whether help pays.
///
/// Where other programs keep the cores busy, the helper waits for one while the owner waits for the
/// helper. What was lost so is told to [`pool`], which lets no thread help for some time.
#[derive(Default)]
pub(super) struct Pace {
    /// The shortest time of a whole minibatch without help.
    alone: Option<Duration>,
    /// When the present minibatch began, if it is a whole one, and whether it is helped.
    now: Option<(Instant, bool)>,
    /// Offers in a row that the helper did not take.
    missed: u32,
}

impl Pace {
    /// Begins a minibatch; gives back the helper if it shall be offered half of it. A smaller one at
    /// the end of an epoch says nothing of how long the others take, and is not offered.
    pub(super) fn begin<'a>(
        &mut self,
        helper: Option<&'a Thread>,
        whole: bool,
    ) -> Option<&'a Thread> {
        let helper = helper.filter(|_| whole && self.alone.is_some() && pool::is_quiet());
        self.now = whole.then(|| (Instant::now(), helper.is_some()));
        helper
    }

    /// Ends it.
    pub(super) fn end(&mut self, done: Done) {
        let Some((began, offered)) = self.now else {
            return;
        };
        let took = began.elapsed();
        let Some(alone) = self.alone.filter(|_| offered) else {
            self.alone = Some(self.alone.map_or(took, |alone| alone.min(took)));
            return;
        };
        if done == Done::Helped {
            self.missed = 0;
            pool::wasted(took.saturating_sub(alone));
            return;
        }
        self.missed += 1;
        if self.missed == MISSED {
            self.missed = 0;
            pool::wasted(alone.max(offer::SPIN)); // about what it takes to make or wake a thread
        }
    }
}
