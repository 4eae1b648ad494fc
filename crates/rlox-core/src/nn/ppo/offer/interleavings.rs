//! Beliefs about an offer, each tested by loom in every interleaving of its two threads, and with every
//! value that a load may see. Loom also reports a thread that would wait for ever.
#![allow(clippy::unwrap_used)]

use super::{Done, Offer};
use crate::sync::Arc;
use crate::sync::thread::unwinds;

/// The work: adds one. It must be done once in a round, by either thread.
fn once(work: &mut usize) {
    *work += 1;
}

#[test]
fn work_is_done_once_in_each_round_whoever_does_it() {
    const ROUNDS: usize = 2; // a state left by the first must not be mistaken for the second's
    loom::model(|| {
        let offer = Arc::new(Offer::new(0));
        let helpers = Arc::clone(&offer);
        let helper = loom::thread::spawn(move || helpers.help(once));
        for round in 1..=ROUNDS {
            offer.open(|| helper.thread().unpark());
            assert!(offer.finish(true, once) != Done::Half);
            assert_eq!(*offer.work(), round);
        }
        drop(offer.closing(|| helper.thread().unpark()));
        helper.join().unwrap();
    });
}

#[test]
fn who_stops_while_work_is_on_offer_ends_the_helper() {
    loom::model(|| {
        let offer = Arc::new(Offer::new(0));
        let helpers = Arc::clone(&offer);
        let helper = loom::thread::spawn(move || helpers.help(once));
        offer.open(|| helper.thread().unpark());
        drop(offer.closing(|| helper.thread().unpark()));
        helper.join().unwrap();
        assert!(*offer.work() <= 1);
    });
}

#[test]
fn what_a_helper_that_unwinds_had_begun_is_not_held_to_be_done() {
    const HALF: usize = 10;
    loom::model(|| {
        let offer = Arc::new(Offer::new(0));
        let helpers = Arc::clone(&offer);
        let helper = loom::thread::spawn(move || {
            helpers.help(|work| {
                *work += HALF;
                unwinds();
            });
        });
        offer.open(|| helper.thread().unpark());
        let done = offer.finish(true, once);
        drop(offer.closing(|| helper.thread().unpark()));
        helper.join().unwrap();
        let work = if done == Done::Half { HALF } else { 1 };
        assert_eq!(*offer.work(), work);
    });
}
