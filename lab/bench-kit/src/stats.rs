//! Medians with their spread.

use std::fmt;

/// The middle and the ends of some samples.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    /// The middle one, or the mean of the middle two.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

impl Spread {
    /// Returns the spread; `None` without samples.
    pub fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = samples.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len() % 2 == 1 {
            sorted[middle]
        } else {
            sorted[middle - 1].midpoint(sorted[middle])
        };
        Some(Self { median, min, max })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Self { median, min, max } = self;
        write!(f, "{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_lies_between_the_middle_two() {
        let spread = Spread::of([4.0, 1.0, 3.0, 2.0]).expect("samples");
        assert_eq!(format!("{spread:.1}"), "2.5 (1.0–4.0)");
    }
}
