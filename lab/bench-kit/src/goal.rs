//! Goals and their verdicts.

use std::fmt;

use serde::Serialize;

/// A goal beside the measured value.
#[derive(Debug, Serialize)]
pub struct Verdict {
    what: String,
    measured: Option<f64>,
    #[serde(flatten)]
    goal: Goal,
    unit: &'static str,
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
enum Goal {
    AtLeast(f64),
    AtMost(f64),
}

impl Verdict {
    /// Requires that `measured` is no greater; it is `None` when a contestant was left out. `unit`
    /// follows each number.
    #[must_use]
    pub fn at_most(
        what: impl Into<String>,
        measured: Option<f64>,
        goal: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            what: what.into(),
            measured,
            goal: Goal::AtMost(goal),
            unit,
        }
    }

    /// Requires that `measured` is no less.
    #[must_use]
    pub fn at_least(
        what: impl Into<String>,
        measured: Option<f64>,
        goal: f64,
        unit: &'static str,
    ) -> Self {
        Self {
            goal: Goal::AtLeast(goal),
            ..Self::at_most(what, measured, goal, unit)
        }
    }
}

impl Goal {
    /// Returns the distance by which a value misses the goal; not above 0 when it is met.
    fn missed_by(self, value: f64) -> f64 {
        match self {
            Self::AtLeast(least) => least - value,
            Self::AtMost(most) => value - most,
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AtLeast(least) => write!(f, ">= {least}"),
            Self::AtMost(most) => write!(f, "<= {most}"),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            measured,
            goal,
            unit,
        } = self;
        write!(f, "{what}: goal {goal}{unit}, ")?;
        let Some(value) = *measured else {
            return write!(f, "not measured");
        };
        write!(f, "measured {value:.2}{unit}: ")?;
        let missed_by = goal.missed_by(value);
        // A goal without a comparison counts as missed.
        if missed_by > 0.0 || missed_by.is_nan() {
            write!(f, "missed by {missed_by:.2}{unit}")
        } else {
            write!(f, "met")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_says_by_how_much() {
        let told =
            |measured| Verdict::at_most("user CPU / hyper", measured, 0.65, " x").to_string();
        assert_eq!(
            told(Some(0.5)),
            "user CPU / hyper: goal <= 0.65 x, measured 0.50 x: met"
        );
        assert_eq!(
            told(Some(0.75)),
            "user CPU / hyper: goal <= 0.65 x, measured 0.75 x: missed by 0.10 x"
        );
        assert!(told(Some(f64::NAN)).ends_with("missed by NaN x"));
        assert_eq!(told(None), "user CPU / hyper: goal <= 0.65 x, not measured");
    }

    #[test]
    fn a_goal_may_be_a_least() {
        let told = |measured| Verdict::at_least("rate", Some(measured), 99.9, " %").to_string();
        assert_eq!(told(100.0), "rate: goal >= 99.9 %, measured 100.00 %: met");
        assert_eq!(
            told(99.5),
            "rate: goal >= 99.9 %, measured 99.50 %: missed by 0.40 %"
        );
    }
}
