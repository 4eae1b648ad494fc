//! Storing one transition: which form of it, owned or borrowed, is the primary one.
//!
//! Two functions, each the other's detour: `push_record(storage, record)` for a transition that owns
//! its arrays and `push_slices(storage, experience)` for borrowed ones. Both return the row written.

pub mod baseline;
pub mod optimized;
