//! Which implementation stands at each seam of the binding; those of the core are in its own
//! switchboard.

/// P11: whether other Python threads run while a batch is sampled.
pub(crate) use crate::buffer::gil::baseline as gil;
/// P3: how one transition gets from NumPy into the ring.
pub(crate) use crate::buffer::push::baseline as push;
