//! $ID's seam: $title.
//!
//! To be written: the equations, and the shapes of what goes in and comes out.

pub mod baseline;
pub mod optimized;
