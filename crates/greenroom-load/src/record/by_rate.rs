//! Outcomes by the rate that was asked for.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Times;
use crate::plan::{Pace, Schedule};

/// The most rates that are told apart, from a schedule's lowest to its highest.
const RATES_MAX: f64 = 60.0;

/// The share of requests that must be served in time at a rate that is not too much.
const SERVED_MIN: f64 = 0.99;

/// The ratio from which two rates differ: 0.1 %.
const RATIO_MIN: f64 = 1.001;

/// Outcomes by the rate that the schedule asked for at each request's intended time.
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
    filled: BTreeMap<u32, AtRate>,
}

/// The outcomes of the requests that were due at about one rate.
#[derive(Clone, Debug)]
pub struct AtRate {
    sum_of_rates: f64,
    ended: u64,
    good: u64,
    times: Times,
}

/// The outcome of one request. Times are in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Ended {
    /// A response with a status below 400, after this latency.
    Good(u64),
    /// No response in time, after so long.
    TimedOut(u64),
    /// Another status, or no response for another reason: a quick rejection is no short latency.
    Bad,
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

    /// Adds a request with this intended time of the schedule, in nanoseconds.
    pub(crate) fn record(&mut self, intended: u64, ended: Ended) {
        if let Some(bins) = &mut self.bins {
            bins.record(intended, ended);
        }
    }

    /// Adds the outcomes of another, of the same schedule.
    pub fn add(&mut self, other: &Self) {
        let Some(others) = &other.bins else { return };
        match &mut self.bins {
            Some(bins) => bins.add(others),
            None => self.bins = Some(others.clone()),
        }
    }

    /// Iterates over the rates, from the lowest.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &AtRate> {
        self.bins.iter().flat_map(|bins| bins.filled.values())
    }

    /// Returns the rate from which on more than 1 % of the requests had no response with a status
    /// below 400 within `longest`; `None` if the highest rate was served so.
    ///
    /// Rates below the last one that was served so do not count: a pause of the machine is no
    /// collapse.
    #[must_use]
    pub fn collapse(&self, longest: Duration) -> Option<f64> {
        let collapsed = |at: &&AtRate| at.served_within(longest) < SERVED_MIN;
        let lowest = self.iter().rev().take_while(collapsed).last();
        lowest.map(AtRate::rate)
    }
}

impl Bins {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rate of at most 10 million, of which the width is a part"
    )]
    fn record(&mut self, intended: u64, ended: Ended) {
        let rate = self.schedule.rate_at(Duration::from_nanos(intended));
        let bin = self.bin((rate / self.width) as u32);
        bin.sum_of_rates += rate;
        bin.ended += 1;
        match ended {
            Ended::Good(latency) => {
                bin.good += 1;
                bin.times.record(latency);
            }
            Ended::TimedOut(lasted) => bin.times.record(lasted),
            Ended::Bad => {}
        }
    }

    fn add(&mut self, others: &Self) {
        for (number, other) in &others.filled {
            let bin = self.bin(*number);
            bin.sum_of_rates += other.sum_of_rates;
            bin.ended += other.ended;
            bin.good += other.good;
            bin.times.add(&other.times);
        }
    }

    fn bin(&mut self, number: u32) -> &mut AtRate {
        self.filled.entry(number).or_insert_with(|| AtRate {
            sum_of_rates: 0.0,
            ended: 0,
            good: 0,
            times: Times::rough(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
impl AtRate {
    /// Returns the mean of the rates, in requests per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.sum_of_rates / self.ended as f64
    }

    /// Returns the latencies, to 1 %, of responses with a status below 400, and of requests that
    /// timed out the time that they had lasted.
    #[must_use]
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// Returns the share of the requests that got a response with a status below 400.
    #[must_use]
    pub fn served(&self) -> f64 {
        self.good as f64 / self.ended as f64
    }

    /// Returns the share of the requests that got a response with a status below 400 within a time;
    /// it must be shorter than the time-out of requests.
    #[must_use]
    pub fn served_within(&self, longest: Duration) -> f64 {
        self.times.count_within(longest) as f64 / self.ended as f64
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
        rates.record(10 * SECOND, Ended::Good(90 * SECOND));
        rates.record(59 * SECOND, Ended::TimedOut(SECOND));
        let told: Vec<_> = rates
            .iter()
            .map(|at| (at.rate().round(), at.times().max().as_secs()))
            .collect();
        assert_eq!(told[0].0.to_bits(), 100_f64.to_bits());
        assert_eq!(told[1].0.to_bits(), 590_f64.to_bits());
        assert!(told[0].1 >= 89 && told[1].1 <= 1, "{told:?}");
    }

    #[test]
    fn those_of_threads_and_rounds_are_put_together() {
        let mut one = ByRate::of(&ramp());
        (0..60).for_each(|second| one.record(second * SECOND, Ended::Good(SECOND)));
        let mut sum = ByRate::default();
        sum.add(&one);
        sum.add(&one);
        assert_eq!(sum.iter().count(), one.iter().count());
        assert_eq!(sum.iter().map(|at| at.times().count()).sum::<u64>(), 120);
    }

    #[test]
    fn a_constant_rate_and_a_closed_loop_have_none() {
        let constant = Schedule::constant(100.0, Duration::from_secs(1)).expect("valid");
        for pace in [Pace::Open(constant), Pace::Closed] {
            let mut rates = ByRate::of(&pace);
            rates.record(0, Ended::Good(SECOND));
            assert_eq!(rates.iter().count(), 0);
        }
    }

    #[test]
    fn a_rejection_is_no_short_latency() {
        let mut rates = ByRate::of(&ramp());
        rates.record(30 * SECOND, Ended::Good(SECOND));
        rates.record(30 * SECOND, Ended::Bad);
        let at = rates.iter().next().expect("a rate");
        assert_eq!(at.rate().to_bits(), 300_f64.to_bits());
        assert_eq!(at.times().count(), 1);
        assert_eq!(at.served().to_bits(), 0.5_f64.to_bits());
    }

    #[test]
    fn the_collapse_is_the_rate_from_which_on_too_few_are_served_in_time() {
        let longest = Duration::from_millis(500);
        let served = |late: fn(u64) -> Ended| {
            let mut rates = ByRate::of(&ramp());
            for second in 0..60 {
                // A pause at 100 per second is over at the next rate.
                let is_late = second == 10 || second >= 40;
                let ended = if is_late { late } else { Ended::Good };
                rates.record(second * SECOND, ended(1000));
            }
            rates
        };
        let late = [
            |_| Ended::Bad,
            |_| Ended::Good(SECOND),
            |_| Ended::TimedOut(SECOND),
        ];
        for late in late {
            let collapse = served(late).collapse(longest).expect("one");
            assert!((399.0..=401.0).contains(&collapse), "{collapse}");
        }
        assert_eq!(served(Ended::Good).collapse(longest), None);
    }
}
