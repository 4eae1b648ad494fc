//! P3's seam: how a transition in somebody else's memory, such as NumPy's, enters a buffer.

pub mod baseline;
pub mod optimized;
