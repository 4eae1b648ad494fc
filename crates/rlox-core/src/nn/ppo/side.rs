//! The two sides of an update, actor and critic: what each does in a minibatch, and when the critic's
//! side is worth offering to a second thread.

use std::thread::Thread;
use std::time::{Duration, Instant};

use super::RolloutData;
use super::offer::{self, Done};
use crate::pool;

/// The network of one side, in training.
pub(super) trait Side {
    /// Computes the gradient of the loss of a minibatch, whose transitions have the indices `batch`.
    /// Returns its squared norm, or None to end the update before this minibatch.
    fn gradient(&mut self, rollout: &RolloutData<'_>, batch: &[i64]) -> Option<f64>;
    /// Makes Adam's step number `t` with that gradient times `scale`, and counts the minibatch in the
    /// figures.
    fn step(&mut self, t: u64, scale: f32);
}

/// What a side does without needing the other one: the step of the last minibatch, whose scale is known
/// by then, and the gradient of the next one.
pub(super) struct Round<'a, S> {
    side: S,
    /// Number and scale of the step that is due.
    pub(super) step: Option<(u64, f32)>,
    pub(super) batch: &'a [i64],
    /// What [`Side::gradient`] returned.
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

    pub(super) fn run(&mut self, rollout: &RolloutData<'_>) {
        self.step_if_due();
        self.norm = self.side.gradient(rollout, self.batch);
    }

    fn step_if_due(&mut self) {
        if let Some((t, scale)) = self.step.take() {
            self.side.step(t, scale);
        }
    }

    /// The side, after the step that was due.
    pub(super) fn settled(mut self) -> S {
        self.step_if_due();
        self.side
    }
}

/// After so many offers in a row that the helper did not take, it is taken to have no core to run on.
const MISSED: u32 = 4;

/// Measures how long a minibatch takes with help and without it, and so whether help pays.
///
/// While other programs use the cores, the helper waits for a core and the owner waits for the helper.
/// The time that is wasted so is reported to [`pool`], which then refuses help for some time.
#[derive(Default)]
pub(super) struct Pace {
    /// The shortest time that a whole minibatch took without help.
    alone: Option<Duration>,
    /// When the present minibatch began, if it is a whole one, and whether help was asked for.
    now: Option<(Instant, bool)>,
    /// Offers in a row that the helper did not take.
    missed: u32,
}

impl Pace {
    /// Begins a minibatch. Returns the helper if the critic's side is to be offered to it. A smaller
    /// minibatch at the end of an epoch is neither offered nor measured, since its time says nothing
    /// about the others'.
    pub(super) fn begin<'a>(
        &mut self,
        helper: Option<&'a Thread>,
        whole: bool,
    ) -> Option<&'a Thread> {
        let helper = helper.filter(|_| whole && self.alone.is_some() && pool::is_quiet());
        self.now = whole.then(|| (Instant::now(), helper.is_some()));
        helper
    }

    /// Ends the minibatch, and reports wasted time.
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
            pool::wasted(alone.max(offer::SPIN)); // at least what it takes to start or wake a thread
        }
    }
}
