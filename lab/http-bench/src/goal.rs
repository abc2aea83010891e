//! Goals, and whether they were met.

use std::fmt;

use serde::Serialize;

/// One goal beside what was measured.
#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    what: String,
    measured: Option<f64>,
    at_most: f64,
    unit: &'static str,
}

impl Verdict {
    /// `measured` is `None` when a contestant was left out.
    pub(crate) fn new(
        what: impl Into<String>,
        measured: Option<f64>,
        at_most: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            measured,
            at_most,
            unit,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            measured,
            at_most,
            unit,
        } = self;
        write!(f, "{what}: goal <= {at_most}{unit}, ")?;
        match measured {
            None => write!(f, "not measured"),
            Some(value) if value <= at_most => write!(f, "measured {value:.2}{unit}: met"),
            Some(value) => write!(
                f,
                "measured {value:.2}{unit}: missed by {:.2}{unit}",
                value - at_most
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_by_how_much() {
        let told = |measured| Verdict::new("user CPU / hyper", measured, 0.65, " x").to_string();
        assert_eq!(
            told(Some(0.5)),
            "user CPU / hyper: goal <= 0.65 x, measured 0.50 x: met"
        );
        assert_eq!(
            told(Some(0.75)),
            "user CPU / hyper: goal <= 0.65 x, measured 0.75 x: missed by 0.10 x"
        );
        assert_eq!(told(None), "user CPU / hyper: goal <= 0.65 x, not measured");
    }
}
