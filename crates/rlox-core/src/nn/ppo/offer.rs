//! Work that one thread, the owner, offers to another one, the helper. Whichever gets to it first does
//! it, so the owner never waits for a helper that has not begun.

#[cfg(all(test, loom))]
mod interleavings;

use crate::pool::Spinning;
use crate::sync::atomic::{AtomicU8, Ordering::*};
use crate::sync::thread::{self, Thread};
use crate::sync::{Mutex, MutexGuard, PoisonError, hint};

/// The states of an offer.
mod state {
    /// Nothing is on offer: before the first offer, and after the work was done or withdrawn.
    pub(super) const NOTHING: u8 = 0;
    /// The work is on offer, and nobody has begun it.
    pub(super) const OPEN: u8 = 1;
    /// The helper is doing the work.
    pub(super) const TAKEN: u8 = 2;
    /// The helper panicked while it did the work.
    pub(super) const UNWOUND: u8 = 3;
    /// The owner will offer no more.
    pub(super) const CLOSED: u8 = 4;
}
use state::*;

/// Who did a piece of work.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Done {
    /// The owner.
    Alone,
    /// The helper.
    Helped,
    /// The helper, which panicked on the way: the work is half done.
    Half,
}

/// A piece of work that its owner can offer to the helper, again and again.
pub(super) struct Offer<W> {
    state: AtomicU8,
    work: Mutex<W>,
    owner: Thread,
}

impl<W> Offer<W> {
    /// The calling thread becomes the owner. Nothing is on offer yet.
    pub(super) fn new(work: W) -> Self {
        Self {
            state: AtomicU8::new(NOTHING),
            work: Mutex::new(work),
            owner: thread::current(),
        }
    }

    /// For the owner, while the work is not on offer: access to the work. The lock is free then.
    pub(super) fn work(&self) -> MutexGuard<'_, W> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work itself, after the helper has ended.
    pub(super) fn into_work(self) -> W {
        (self.work.into_inner()).unwrap_or_else(PoisonError::into_inner)
    }

    /// For the owner: offers the work. `wake` must unpark the helper.
    pub(super) fn open(&self, wake: impl Fn()) {
        self.state.store(OPEN, Release);
        wake();
    }

    /// For the owner: sees to it that the work is done. If it was not offered or the helper has not
    /// begun, the owner does it by `run`; otherwise it waits for the helper.
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

    /// For the helper: does by `run` whatever is offered, until the owner closes the offer.
    pub(super) fn help(&self, run: impl Fn(&mut W)) {
        while !matches!(self.wait_while(NOTHING), CLOSED | UNWOUND) {
            if self.moves(OPEN, TAKEN) {
                let taken = Taken(self);
                run(&mut self.work());
                drop(taken);
            }
        }
    }

    /// For the owner: a guard that closes the offer when it is dropped, also by a panic, so that
    /// [`help`](Self::help) ends. `wake` must unpark the helper.
    pub(super) fn closing<F: Fn()>(&self, wake: F) -> Closing<'_, W, F> {
        Closing { offer: self, wake }
    }

    /// Waits until the helper has begun with what is on offer, and returns true; false if nothing is on
    /// offer.
    #[cfg(test)]
    pub(super) fn is_taken(&self) -> bool {
        self.wait_while(OPEN) != NOTHING
    }

    /// Changes the state if it is `from`; returns whether it was.
    fn moves(&self, from: u8, to: u8) -> bool {
        let moved = self.state.compare_exchange(from, to, Acquire, Relaxed);
        moved.is_ok()
    }

    /// Waits while the state is `state`, and returns the next one. Spins first, then sleeps: whoever
    /// changes the state unparks the other thread.
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

/// Held by the helper while it works: when dropped, also by a panic, tells the owner that the work has
/// ended.
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
        // An owner that panics may have work on offer, which is withdrawn. A helper at work is waited
        // for: its `Taken` sets the state at the end, which would undo the closing, and it would wait
        // for ever.
        self.offer.moves(OPEN, NOTHING);
        if self.offer.wait_while(TAKEN) != UNWOUND {
            self.offer.state.store(CLOSED, Release);
        }
        (self.wake)();
    }
}
