//! How one transition gets from NumPy's memory into the ring:
//! `push(buffer, experience)`, where `experience` borrows the arrays' memory.

pub(crate) mod baseline;
