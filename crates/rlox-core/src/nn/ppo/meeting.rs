//! Where two threads meet to give each other a number.

#[cfg(all(test, loom))]
mod interleavings;

use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Arc, hint, thread};

/// Turns of the loop that waits, before it lets other threads run: some microseconds. A minibatch
/// takes tens of them, so whoever is still away then is not running at all.
const SPINS: u32 = 2_000;
/// Round of a thread that comes no more.
const GONE: u64 = u64::MAX;

/// What one of the two has brought; on a cache line of its own.
#[derive(Default)]
#[repr(align(128))]
struct Side {
    /// Rounds that it has come to.
    round: AtomicU64,
    /// Bits of its numbers in rounds of even and of odd number. Two, since it may bring the next
    /// one while the other still reads this one; it cannot be two rounds ahead.
    numbers: [AtomicU64; 2],
}

/// One thread's end of a meeting.
pub(super) struct Seat {
    sides: Arc<[Side; 2]>,
    mine: usize,
}

/// The two ends of a meeting.
pub(super) fn meeting() -> (Seat, Seat) {
    let sides = Arc::<[Side; 2]>::default();
    let seat = |mine| Seat {
        sides: Arc::clone(&sides),
        mine,
    };
    (seat(0), seat(1))
}

impl Seat {
    /// Gives `number` for what the other thread brings in this round; None if that thread is gone.
    pub(super) fn exchange(&self, number: f64) -> Option<f64> {
        let (mine, other) = (&self.sides[self.mine], &self.sides[1 - self.mine]);
        let round = mine.round.load(Ordering::Relaxed) + 1;
        let parity = usize::from(round % 2 == 1);
        mine.numbers[parity].store(number.to_bits(), Ordering::Relaxed);
        mine.round.store(round, Ordering::Release);
        let mut spins = 0;
        loop {
            match other.round.load(Ordering::Acquire) {
                GONE => return None,
                at if at >= round => {
                    let number = other.numbers[parity].load(Ordering::Relaxed);
                    return Some(f64::from_bits(number));
                }
                _ if spins < SPINS => hint::spin_loop(),
                _ => thread::yield_now(),
            }
            spins += 1;
        }
    }
}

/// A thread that unwinds does not leave the other one waiting.
impl Drop for Seat {
    fn drop(&mut self) {
        if thread::panicking() {
            self.sides[self.mine].round.store(GONE, Ordering::Release);
        }
    }
}
