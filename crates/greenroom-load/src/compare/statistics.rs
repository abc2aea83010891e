//! Medians, ratios and their intervals.

use serde::Serialize;

/// Resamples of the rounds for an interval.
const RESAMPLES: usize = 10_000;
/// The seed of the resampling; it is fixed, so the same rounds always give the same interval.
const SEED: u64 = 0x6772_6565_6e72_6f6f;
/// The share of the medians that the interval leaves out at either end: 2.5 %.
const TAIL: f64 = 0.025;
/// The fewest rounds for an interval; with fewer, chance alone puts all ratios on one side of 1 too
/// often: 2 x 0.5^5 is 6 %, 2 x 0.5^6 is 3 %.
const ROUNDS_MIN: usize = 6;

/// The ratio of two servers, taken round by round.
///
/// The interval is a percentile bootstrap of the median: of `n` rounds, `n` are drawn with
/// replacement 10,000 times, and 95 % of the medians lie within. With seven ratios 0.90, 0.91 …
/// 0.96 the median is 0.93 and the interval 0.91 to 0.95.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The median of the rounds' ratios.
    pub median: f64,
    /// Begin of the 95 % interval.
    pub low: f64,
    /// End of the 95 % interval.
    pub high: f64,
    /// Rounds in which both servers have a value.
    pub rounds: usize,
    /// The conclusion from the interval.
    pub difference: Difference,
}

/// The conclusion from a ratio's interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Difference {
    /// The interval does not contain 1.
    Seen,
    /// The interval contains 1.
    NotSeen,
    /// Less than 6 rounds show nothing.
    TooFewRounds,
}

impl Ratio {
    /// Computes the ratio from pairs of the same round, the other server's value first and the base
    /// server's second. Pairs whose second value is zero are left out; `None` without any other.
    #[must_use]
    pub fn of(pairs: &[(f64, f64)]) -> Option<Self> {
        let pairs = pairs.iter().filter(|(_, below)| *below > 0.0);
        let ratios: Vec<f64> = pairs.map(|(above, below)| above / below).collect();
        let (low, high) = interval(&ratios)?;
        Some(Self {
            median: median(&ratios)?,
            low,
            high,
            rounds: ratios.len(),
            difference: match low <= 1.0 && high >= 1.0 {
                _ if ratios.len() < ROUNDS_MIN => Difference::TooFewRounds,
                true => Difference::NotSeen,
                false => Difference::Seen,
            },
        })
    }
}

/// Returns the middle value, or the mean of the middle two; `None` without values.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    median_of(&mut sorted)
}

fn median_of(values: &mut [f64]) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    if values.len() % 2 == 1 {
        return Some(upper);
    }
    Some(values[values.len() / 2 - 1].midpoint(upper))
}

fn interval(values: &[f64]) -> Option<(f64, f64)> {
    if values.is_empty() {
        return None;
    }
    let mut random = fastrand::Rng::with_seed(SEED);
    let mut drawn = vec![0.0; values.len()];
    let mut medians: Vec<f64> = (0..RESAMPLES)
        .filter_map(|_| {
            drawn.fill_with(|| values[random.usize(..values.len())]);
            median_of(&mut drawn)
        })
        .collect();
    medians.sort_unstable_by(f64::total_cmp);
    Some((quantile(&medians, TAIL), quantile(&medians, 1.0 - TAIL)))
}

#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an index below the number of draws"
)]
fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(ratios: &[f64]) -> Ratio {
        let pairs: Vec<_> = ratios.iter().map(|ratio| (ratio * 3.0, 3.0)).collect();
        Ratio::of(&pairs).expect("ratios")
    }

    fn about(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-9
    }

    #[test]
    fn seven_rounds_have_the_interval_of_the_documentation() {
        let ratio = of(&[0.96, 0.90, 0.94, 0.92, 0.93, 0.91, 0.95]);
        assert!(about(ratio.median, 0.93), "{ratio:?}");
        assert!(
            about(ratio.low, 0.91) && about(ratio.high, 0.95),
            "{ratio:?}"
        );
        assert_eq!((ratio.rounds, ratio.difference), (7, Difference::Seen));
        assert_eq!(ratio, of(&[0.96, 0.90, 0.94, 0.92, 0.93, 0.91, 0.95]));
    }

    /// The exact distribution: the median of seven draws is at most the k-th value when at least
    /// four draws are.
    #[test]
    fn the_interval_is_that_of_the_binomial_distribution() {
        let at_most = |k: i32| -> f64 {
            let part = f64::from(k) / 7.0;
            [(4, 35.0), (5, 21.0), (6, 7.0), (7, 1.0)]
                .map(|(draws, ways)| ways * part.powi(draws) * (1.0 - part).powi(7 - draws))
                .iter()
                .sum()
        };
        // So 2.5 % lies at the second value, and 97.5 % at the sixth.
        assert!(at_most(1) < TAIL && at_most(2) > TAIL);
        assert!(at_most(5) < 1.0 - TAIL && at_most(6) > 1.0 - TAIL);
    }

    #[test]
    fn an_interval_around_one_shows_nothing() {
        let ratio = of(&[0.97, 1.02, 1.01, 0.99, 1.03, 0.98, 1.0]);
        assert_eq!(ratio.difference, Difference::NotSeen);
        assert!(about(ratio.median, 1.0));
    }

    #[test]
    fn few_rounds_show_nothing() {
        let ratio = of(&[2.0; 5]);
        assert_eq!(ratio.difference, Difference::TooFewRounds);
        assert_eq!(of(&[2.0; 6]).difference, Difference::Seen);
    }

    #[test]
    fn without_a_base_there_is_no_ratio() {
        assert_eq!(Ratio::of(&[]), None);
        assert_eq!(Ratio::of(&[(1.0, 0.0)]), None);
        assert_eq!((median(&[]), median(&[3.0, 1.0])), (None, Some(2.0)));
    }
}
