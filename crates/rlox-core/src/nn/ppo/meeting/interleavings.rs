//! Beliefs about a meeting, each held in every interleaving of its two threads, and with every value
//! that a load may see. A seat that waits for ever is found, too: loom gives up after a thousand turns.
#![allow(clippy::unwrap_used)]

use super::{Seat, meeting};
use crate::sync::thread::unwinds;

/// What each of the two brings: no two numbers are the same.
const NUMBERS: [[f64; 3]; 2] = [[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]];

/// What a seat is given in `rounds` rounds; ends at the first in which the other is gone.
fn given(seat: &Seat, rounds: usize) -> Vec<f64> {
    let numbers = NUMBERS[seat.mine][..rounds].iter();
    numbers.map_while(|&number| seat.exchange(number)).collect()
}

#[test]
fn each_is_given_what_the_other_brings_in_each_round() {
    const ROUNDS: usize = 3; // the third round writes where the first one was read
    loom::model(|| {
        let (one, other) = meeting();
        let thread = loom::thread::spawn(move || given(&other, ROUNDS));
        assert_eq!(given(&one, ROUNDS), NUMBERS[1]);
        assert_eq!(thread.join().unwrap(), NUMBERS[0]);
    });
}

#[test]
fn who_unwinds_releases_the_other_with_right_numbers_until_then() {
    for until in 0..=2 {
        loom::model(move || {
            let (one, other) = meeting();
            let thread = loom::thread::spawn(move || {
                let found = given(&other, until);
                unwinds();
                drop(other);
                found
            });
            let found = given(&one, until + 1);
            assert!(found.len() <= until, "the other one came no more");
            assert_eq!(found, NUMBERS[1][..found.len()]);
            assert_eq!(thread.join().unwrap(), NUMBERS[0][..until]);
        });
    }
}

#[test]
fn who_has_done_all_rounds_may_leave_before_the_other_has_read_the_last() {
    loom::model(|| {
        let (one, other) = meeting();
        let thread = loom::thread::spawn(move || given(&other, 1));
        let found = given(&one, 1);
        drop(one);
        assert_eq!(found, NUMBERS[1][..1]);
        assert_eq!(thread.join().unwrap(), NUMBERS[0][..1]);
    });
}
