//! P10's seam: how a step reports Gymnasium's `info`. It is always empty, since no built-in environment has
//! anything to report.

use std::collections::HashMap;

/// Named numbers that a step reports besides its reward.
pub trait StepInfo: Send + 'static {
    /// An empty report.
    fn nothing() -> Self;

    /// The number that was reported under `name`.
    fn get(&self, name: &str) -> Option<f64>;
}

/// P10's baseline: every step makes a map, although it stays empty.
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

/// P10's optimised form: a step makes a map only if it has something to report.
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
