//! The pairs: the baseline and the optimised form of every optimisation, side by side.
//!
//! A [`pair::Pair`] says what its twins do with a generated case, and what they are timed at.
//! Property tests, benchmarks and the interleaved [`timing`] are made from the one list in [`pairs`].

mod close;
pub mod counting;
pub mod draw;
pub mod pair;
pub mod pairs;
pub mod timing;
