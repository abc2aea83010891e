//! Medians with their spread.

use std::fmt;

/// The middle and the ends of some samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without samples.
    pub(crate) fn of(samples: impl IntoIterator<Item = f64>) -> Option<Self> {
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

    /// Of the ratios of samples that were taken in the same round.
    pub(crate) fn of_ratios(numerators: &[f64], denominators: &[f64]) -> Option<Self> {
        let pairs = numerators.iter().zip(denominators);
        Self::of(
            pairs
                .filter(|(_, below)| **below > 0.0)
                .map(|(above, below)| above / below),
        )
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(2);
        let Self { median, min, max } = self;
        write!(f, "{median:.digits$} ({min:.digits$}–{max:.digits$})")
    }
}

/// The order of `count` contestants in a round: forwards, then backwards, so that drift hits each alike.
pub(crate) fn order(round: usize, count: usize) -> Vec<usize> {
    if round.is_multiple_of(2) {
        (0..count).collect()
    } else {
        (0..count).rev().collect()
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

    #[test]
    fn ratios_are_taken_within_a_round() {
        let spread = Spread::of_ratios(&[1.0, 4.0, 9.0], &[2.0, 4.0, 3.0]).expect("samples");
        assert_eq!(format!("{spread}"), "1.00 (0.50–3.00)");
    }

    #[test]
    fn every_second_round_runs_backwards() {
        assert_eq!((order(0, 3), order(1, 3)), (vec![0, 1, 2], vec![2, 1, 0]));
    }
}
