//! What happens to the global interpreter lock while a batch is sampled: `sampling(py, work)` runs
//! `work`, which touches nothing of Python's.

pub(crate) mod baseline;
