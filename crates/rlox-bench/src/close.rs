//! When two outcomes, written out, are the same.

/// How many units in the last place of f64 make one of f32.
const SINGLE: f64 = (1u64 << 29) as f64;

/// Whether the texts differ in nothing but numbers, and in those by no more than `tolerance`, relative
/// above 1 and absolute below; of numbers marked `f32` by as many units in the last place.
pub(crate) fn close(before: &str, after: &str, tolerance: f64) -> bool {
    let between = |c: char| c.is_whitespace() || ",()[]{}".contains(c);
    let (mut before, mut after) = (before.split(between), after.split(between));
    loop {
        match (before.next(), after.next()) {
            (None, None) => return true,
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) if near(a, b, tolerance) => {}
            _ => return false,
        }
    }
}

fn near(a: &str, b: &str, tolerance: f64) -> bool {
    let (a, b, tolerance) = match (a.strip_suffix("f32"), b.strip_suffix("f32")) {
        (Some(a), Some(b)) => (a, b, tolerance * SINGLE),
        _ => (a, b, tolerance),
    };
    match (a.parse::<f64>(), b.parse::<f64>()) {
        // Of an infinite number every other would be within the tolerance.
        (Ok(a), Ok(b)) => a.is_finite() && (a - b).abs() <= tolerance * a.abs().max(1.0),
        _ => false,
    }
}
