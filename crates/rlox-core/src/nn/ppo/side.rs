//! The two sides of an update, actor and critic: what each does in a minibatch, and when the critic's
//! side is worth offering to a second thread.

use std::thread::Thread;
use std::time::{Duration, Instant};

use super::RolloutData;
use super::offer::Done;
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
/// What is lost so, and what help brings, is reported to [`pool`], which refuses help for some time where
/// it does not pay.
pub(super) struct Pace {
    /// How many times as long as the owner's side both sides take, by the networks' parameters.
    both: f64,
    /// The shortest time that a whole minibatch took without help. Until there is one, the owner's side
    /// tells how long it would take.
    alone: Option<Duration>,
    /// When the present minibatch began, if it is a whole one, and whether help was asked for.
    now: Option<(Instant, bool)>,
    /// How long the owner's own side of the present minibatch took.
    own: Duration,
    /// Offers in a row that the helper did not take.
    missed: u32,
}

impl Pace {
    pub(super) fn new(both: f64) -> Self {
        Self {
            both,
            alone: None,
            now: None,
            own: Duration::ZERO,
            missed: 0,
        }
    }

    /// Begins a minibatch. Returns the helper if the critic's side is to be offered to it. A smaller
    /// minibatch at the end of an epoch is neither offered nor measured, since its time says nothing
    /// about the others'.
    pub(super) fn begin<'a>(
        &mut self,
        helper: Option<&'a Thread>,
        whole: bool,
    ) -> Option<&'a Thread> {
        let helper = helper.filter(|_| whole && pool::is_quiet());
        self.now = whole.then(|| (Instant::now(), helper.is_some()));
        helper
    }

    /// The owner has done its own side.
    pub(super) fn own_side_done(&mut self) {
        self.own = self
            .now
            .map_or(Duration::ZERO, |(began, _)| began.elapsed());
    }

    /// Ends the minibatch, and reports what help brought or cost.
    pub(super) fn end(&mut self, done: Done) {
        if let Some((began, offered)) = self.now {
            let done = offered.then_some(done);
            if let Some((took, alone)) = self.compared(done, began.elapsed()) {
                pool::helped(took, alone);
            }
        }
    }

    /// How long a minibatch took with help, and how long it takes without; None where this one cannot
    /// tell. `done` is None where no help was asked for. After [`MISSED`] offers in a row that were not
    /// taken, it is what they cost, and nothing.
    fn compared(&mut self, done: Option<Done>, took: Duration) -> Option<(Duration, Duration)> {
        let Some(done) = done else {
            self.alone = Some(self.alone.map_or(took, |alone| alone.min(took)));
            return None;
        };
        let alone = self.alone.unwrap_or_else(|| self.own.mul_f64(self.both));
        if done == Done::Helped {
            self.missed = 0;
            return Some((took, alone));
        }
        self.missed += 1;
        if self.missed < MISSED {
            return None;
        }
        self.missed = 0;
        // At least what it takes to start or wake a thread is lost.
        Some((alone.max(pool::SPIN), Duration::ZERO))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: Duration = Duration::from_micros(100);
    const ALONE: Duration = Duration::from_micros(200);
    const HELPED: Duration = Duration::from_micros(120);

    fn pace() -> Pace {
        Pace {
            own: OWN,
            ..Pace::new(2.5)
        }
    }

    #[test]
    fn the_shortest_time_alone_counts_and_until_there_is_one_what_the_owners_side_tells() {
        let mut pace = pace();
        let estimate = Some((HELPED, OWN.mul_f64(2.5)));
        assert_eq!(pace.compared(Some(Done::Helped), HELPED), estimate);
        for alone in [5, 3, 4].map(|times| times * ALONE) {
            assert_eq!(pace.compared(None, alone), None);
        }
        let known = Some((HELPED, 3 * ALONE));
        assert_eq!(pace.compared(Some(Done::Helped), HELPED), known);
    }

    #[test]
    fn offers_that_are_missed_in_a_row_are_a_loss() {
        let mut pace = pace();
        let missed = |pace: &mut Pace| pace.compared(Some(Done::Alone), ALONE);
        for _ in 1..MISSED {
            assert_eq!(missed(&mut pace), None);
        }
        pace.compared(Some(Done::Helped), HELPED);
        for _ in 1..MISSED {
            assert_eq!(missed(&mut pace), None);
        }
        assert_eq!(missed(&mut pace), Some((OWN.mul_f64(2.5), Duration::ZERO)));
        pace.compared(None, HELPED);
        for _ in 1..MISSED {
            missed(&mut pace);
        }
        assert_eq!(missed(&mut pace), Some((pool::SPIN, Duration::ZERO)));
    }
}
