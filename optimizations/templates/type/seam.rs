//! $ID's seam: $title.

/// To be written: what both twins can do.
pub trait $Name: Default {
    /// To be written: what the seam does with `input`, of any length.
    ///
    /// # Errors
    /// Always, so that the tests of the pair fail until both twins are there.
    fn run(&mut self, input: &[f64]) -> Result<Vec<f64>, &'static str>;
}

/// The baseline, written cleanly as it is today.
#[derive(Debug, Default)]
pub struct ${Name}Baseline;

impl $Name for ${Name}Baseline {
    fn run(&mut self, _input: &[f64]) -> Result<Vec<f64>, &'static str> {
        Err("$ID: ${Name}Baseline is not written yet")
    }
}

/// The optimised form.
#[derive(Debug, Default)]
pub struct ${Name}Optimized;

impl $Name for ${Name}Optimized {
    fn run(&mut self, _input: &[f64]) -> Result<Vec<f64>, &'static str> {
        Err("$ID: ${Name}Optimized is not written yet")
    }
}
