//! The optimised form.

/// To be written: what the seam does with `input`, of any length.
///
/// # Errors
/// Always, so that the tests of the pair fail until both twins are there.
pub fn run(_input: &[f64]) -> Result<Vec<f64>, &'static str> {
    Err("$ID: optimized.rs is not written yet")
}
