//! Latencies by the rate that was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Times;
use crate::plan::{Pace, Schedule};

/// The most rates that are told apart, from a schedule's lowest to its highest.
const RATES_MAX: f64 = 60.0;

/// The ratio from which two rates differ: 0.1 %.
const RATIO_MIN: f64 = 1.001;

/// Latencies by the rate that the schedule asked for at each request's intended time, to 1 %.
///
/// A late response counts to the rate at which its request was due: once a server is over its
/// limit, responses come at any later rate, and those after the schedule's end at none. Empty
/// unless the rate varies. At most 61 histograms of some 40 kB.
#[derive(Clone, Debug, Default)]
pub struct ByRate {
    bins: Option<Bins>,
}

#[derive(Clone, Debug)]
struct Bins {
    schedule: Schedule,
    width: f64,
    filled: BTreeMap<u32, Bin>,
}

#[derive(Clone, Debug)]
struct Bin {
    sum_of_rates: f64,
    times: Times,
}

impl ByRate {
    /// Creates empty latencies for a stream of this pace.
    #[must_use]
    pub fn of(pace: &Pace) -> Self {
        let Pace::Open(schedule) = pace else {
            return Self::default();
        };
        let rates = schedule.lowest()..schedule.highest();
        let bins = (rates.end > rates.start * RATIO_MIN).then(|| Bins {
            schedule: schedule.clone(),
            width: (rates.end - rates.start) / RATES_MAX,
            filled: BTreeMap::new(),
        });
        Self { bins }
    }

    /// Adds a request with this intended time of the schedule. Both times are in nanoseconds.
    pub(crate) fn record(&mut self, intended: u64, latency: u64) {
        if let Some(bins) = &mut self.bins {
            bins.record(intended, latency);
        }
    }

    /// Adds the latencies of another, of the same schedule.
    pub fn add(&mut self, other: &Self) {
        let Some(others) = &other.bins else { return };
        match &mut self.bins {
            Some(bins) => bins.add(others),
            None => self.bins = Some(others.clone()),
        }
    }

    /// Iterates over the mean of each bin's rates, with the latencies at it, from the lowest.
    pub fn iter(&self) -> impl Iterator<Item = (f64, &Times)> {
        let bins = self.bins.iter().flat_map(|bins| bins.filled.values());
        bins.map(|bin| (bin.rate(), &bin.times))
    }
}

impl Bins {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of at most 10 million, of which the width is a part"
    )]
    fn record(&mut self, intended: u64, latency: u64) {
        let rate = self.schedule.rate_at(Duration::from_nanos(intended));
        let bin = self.bin((rate / self.width) as u32);
        bin.sum_of_rates += rate;
        bin.times.record(latency);
    }

    fn add(&mut self, others: &Self) {
        for (number, other) in &others.filled {
            let bin = self.bin(*number);
            bin.sum_of_rates += other.sum_of_rates;
            bin.times.add(&other.times);
        }
    }

    fn bin(&mut self, number: u32) -> &mut Bin {
        self.filled.entry(number).or_insert_with(|| Bin {
            sum_of_rates: 0.0,
            times: Times::rough(),
        })
    }
}

impl Bin {
    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    fn rate(&self) -> f64 {
        self.sum_of_rates / self.times.count() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Phase;

    const SECOND: u64 = 1_000_000_000;

    fn ramp() -> Pace {
        let phase = Phase {
            from: 0.0,
            to: 600.0,
            duration: Duration::from_mins(1),
        };
        Pace::Open(Schedule::new(vec![phase]).expect("valid"))
    }

    #[test]
    fn what_is_late_counts_to_the_rate_at_which_it_was_asked_for() {
        let mut rates = ByRate::of(&ramp());
        rates.record(10 * SECOND, 90 * SECOND);
        rates.record(59 * SECOND, SECOND);
        let told: Vec<_> = rates
            .iter()
            .map(|(rate, times)| (rate.round(), times.max().as_secs()))
            .collect();
        assert_eq!(told[0].0.to_bits(), 100_f64.to_bits());
        assert_eq!(told[1].0.to_bits(), 590_f64.to_bits());
        assert!(told[0].1 >= 89 && told[1].1 <= 1, "{told:?}");
    }

    #[test]
    fn those_of_threads_and_rounds_are_put_together() {
        let mut one = ByRate::of(&ramp());
        (0..60).for_each(|second| one.record(second * SECOND, SECOND));
        let mut sum = ByRate::default();
        sum.add(&one);
        sum.add(&one);
        assert_eq!(sum.iter().count(), one.iter().count());
        assert_eq!(sum.iter().map(|(_, times)| times.count()).sum::<u64>(), 120);
    }

    #[test]
    fn a_constant_rate_and_a_closed_loop_have_none() {
        let constant = Schedule::constant(100.0, Duration::from_secs(1)).expect("valid");
        for pace in [Pace::Open(constant), Pace::Closed] {
            let mut rates = ByRate::of(&pace);
            rates.record(0, SECOND);
            assert_eq!(rates.iter().count(), 0);
        }
    }
}
