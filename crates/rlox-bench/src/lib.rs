//! Benchmarks of the core, run by `cargo bench`.
