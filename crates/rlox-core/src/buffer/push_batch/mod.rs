//! P21's seam: storing many transitions at once.
//!
//! `push_batch(buffer, batch)` stores all of them, in order, or on an error none.

pub mod baseline;
pub mod optimized;
