//! Work that one thread offers and another one may take: whichever is free first does it.

#[cfg(all(test, loom))]
mod interleavings;

use std::time::{Duration, Instant};

use crate::sync::atomic::{AtomicU8, Ordering::*};
use crate::sync::thread::{self, Thread};
use crate::sync::{Mutex, MutexGuard, PoisonError, hint};

/// How long a thread that waits spins before it sleeps: about as long as it takes to wake one on a
/// virtual machine, and a small part of what a scheduler gives a thread at a time.
pub(super) const SPIN: Duration = Duration::from_micros(200);

/// What has become of the work that was offered last.
mod state {
    /// Nothing is on offer.
    pub(super) const NOTHING: u8 = 0;
    /// It is on offer, and nobody has begun.
    pub(super) const OPEN: u8 = 1;
    /// The helper does it.
    pub(super) const TAKEN: u8 = 2;
    /// The helper unwound while it did it.
    pub(super) const UNWOUND: u8 = 3;
    /// No more will be offered.
    pub(super) const CLOSED: u8 = 4;
}
use state::*;

/// How a piece of work was done.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Done {
    /// By the owner.
    Alone,
    /// By the helper.
    Helped,
    /// By a helper that unwound before its end.
    Half,
}

/// Work on offer by one thread, its owner, to a second one, its helper.
pub(super) struct Offer<W> {
    state: AtomicU8,
    work: Mutex<W>,
    owner: Thread,
}

impl<W> Offer<W> {
    /// Of the thread that calls it, which is the owner. Nothing is on offer yet.
    pub(super) fn new(work: W) -> Self {
        Self {
            state: AtomicU8::new(NOTHING),
            work: Mutex::new(work),
            owner: thread::current(),
        }
    }

    /// For the owner: the work, where it is not on offer. It never has to wait for it.
    pub(super) fn work(&self) -> MutexGuard<'_, W> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work, when no thread shares it any more.
    pub(super) fn into_work(self) -> W {
        (self.work.into_inner()).unwrap_or_else(PoisonError::into_inner)
    }

    /// For the owner: offers the work to the helper, whom `wake` unparks.
    pub(super) fn open(&self, wake: impl Fn()) {
        self.state.store(OPEN, Release);
        wake();
    }

    /// For the owner: does the work by `run` if it was not offered or nobody has begun, else waits for
    /// the helper.
    pub(super) fn finish(&self, offered: bool, run: impl Fn(&mut W)) -> Done {
        if !offered || self.moves(OPEN, NOTHING) {
            run(&mut self.work());
            return Done::Alone;
        }
        match self.wait_while(TAKEN) {
            UNWOUND => Done::Half,
            _ => Done::Helped,
        }
    }

    /// For the helper: does by `run` what it finds on offer, until no more comes.
    pub(super) fn help(&self, run: impl Fn(&mut W)) {
        while !matches!(self.wait_while(NOTHING), CLOSED | UNWOUND) {
            if self.moves(OPEN, TAKEN) {
                let taken = Taken(self);
                run(&mut self.work());
                drop(taken);
            }
        }
    }

    /// For the owner: ends the helper's [`help`](Self::help) when the guard is dropped, and unparks it
    /// by `wake`.
    pub(super) fn closing<F: Fn()>(&self, wake: F) -> Closing<'_, W, F> {
        Closing { offer: self, wake }
    }

    /// Whether the helper has begun with what is on offer, for which it waits; false where nothing is.
    #[cfg(test)]
    pub(super) fn is_taken(&self) -> bool {
        self.wait_while(OPEN) != NOTHING
    }

    fn moves(&self, from: u8, to: u8) -> bool {
        let moved = self.state.compare_exchange(from, to, Acquire, Relaxed);
        moved.is_ok()
    }

    /// Returns the first other state; spins, then sleeps until somebody who changed it says so.
    fn wait_while(&self, state: u8) -> u8 {
        let mut spinning = Spinning::default();
        loop {
            match self.state.load(Acquire) {
                at if at != state => return at,
                _ if spinning.goes_on() => hint::spin_loop(),
                _ => thread::park(),
            }
        }
    }
}

/// Counts the time of a loop that waits.
#[derive(Default)]
struct Spinning {
    turns: u32,
    began: Option<Instant>,
}

impl Spinning {
    /// False once [`SPIN`] has passed, which is looked at now and then.
    fn goes_on(&mut self) -> bool {
        if cfg!(loom) {
            return false; // a turn of loom's lets the other thread go on, so that none would ever sleep
        }
        self.turns += 1;
        !self.turns.is_multiple_of(64)
            || self.began.get_or_insert_with(Instant::now).elapsed() < SPIN
    }
}

/// Gives the work back, done or half done.
struct Taken<'a, W>(&'a Offer<W>);

impl<W> Drop for Taken<'_, W> {
    fn drop(&mut self) {
        let end = if thread::panicking() {
            UNWOUND
        } else {
            NOTHING
        };
        self.0.state.store(end, Release);
        self.0.owner.unpark();
    }
}

/// See [`Offer::closing`].
pub(super) struct Closing<'a, W, F: Fn()> {
    offer: &'a Offer<W>,
    wake: F,
}

impl<W, F: Fn()> Drop for Closing<'_, W, F> {
    fn drop(&mut self) {
        // What an owner that unwinds had offered is withdrawn. A helper that is at work gives it back
        // first: otherwise its giving back would undo the closing, and it would wait for ever.
        self.offer.moves(OPEN, NOTHING);
        if self.offer.wait_while(TAKEN) != UNWOUND {
            self.offer.state.store(CLOSED, Release);
        }
        (self.wake)();
    }
}
