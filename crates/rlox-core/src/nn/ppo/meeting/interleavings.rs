//! Beliefs about a meeting, each held in every interleaving of its two threads, and with every value
//! that a load may see. A seat that waits for ever is found, too: loom gives up after a thousand turns.
#![allow(clippy::unwrap_used)]

use super::{Seat, meeting};
use crate::sync::thread::unwinds;

/// What each of the two brings: no two numbers, and no two sums, are the same.
const NUMBERS: [[f64; 3]; 2] = [[1.0, 2.0, 4.0], [8.0, 16.0, 32.0]];

/// The sums of `rounds` rounds; ends at the first in which the other is gone.
fn sums(seat: &Seat, rounds: usize) -> Vec<f64> {
    let numbers = NUMBERS[seat.mine][..rounds].iter();
    numbers.map_while(|&number| seat.sum(number)).collect()
}

fn expected(rounds: usize) -> Vec<f64> {
    let both = NUMBERS[0].iter().zip(&NUMBERS[1]);
    both.map(|(a, b)| a + b).take(rounds).collect()
}

#[test]
fn both_get_the_sum_of_what_is_brought_in_each_round() {
    const ROUNDS: usize = 3; // the third round writes where the first one was read
    loom::model(|| {
        let (one, other) = meeting();
        let thread = loom::thread::spawn(move || sums(&other, ROUNDS));
        assert_eq!(sums(&one, ROUNDS), expected(ROUNDS));
        assert_eq!(thread.join().unwrap(), expected(ROUNDS));
    });
}

#[test]
fn who_unwinds_releases_the_other_with_right_sums_until_then() {
    for until in 0..=2 {
        loom::model(move || {
            let (one, other) = meeting();
            let thread = loom::thread::spawn(move || {
                let found = sums(&other, until);
                unwinds();
                drop(other);
                found
            });
            let found = sums(&one, until + 1);
            assert!(found.len() <= until, "the other one came no more");
            assert_eq!(found, expected(found.len()));
            assert_eq!(thread.join().unwrap(), expected(until));
        });
    }
}

#[test]
fn who_has_done_all_rounds_may_leave_before_the_other_has_read_the_last() {
    loom::model(|| {
        let (one, other) = meeting();
        let thread = loom::thread::spawn(move || sums(&other, 1));
        let found = sums(&one, 1);
        drop(one);
        assert_eq!(found, expected(1));
        assert_eq!(thread.join().unwrap(), expected(1));
    });
}
