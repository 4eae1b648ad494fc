//! P10's seam: what a step hands over as `info`. No built-in environment has anything to report.

use std::collections::HashMap;

/// Named facts about a step.
pub trait StepInfo: Send + 'static {
    /// Nothing to report.
    fn nothing() -> Self;

    /// A reported fact.
    fn get(&self, name: &str) -> Option<f64>;
}

/// The baseline: a new map at every step, empty as it is.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MapInfo(pub HashMap<String, f64>);

impl StepInfo for MapInfo {
    fn nothing() -> Self {
        Self(HashMap::new())
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }
}

/// A map only where there is something to report.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OptionalInfo(pub Option<HashMap<String, f64>>);

impl StepInfo for OptionalInfo {
    fn nothing() -> Self {
        Self(None)
    }

    fn get(&self, name: &str) -> Option<f64> {
        self.0.as_ref()?.get(name).copied()
    }
}
