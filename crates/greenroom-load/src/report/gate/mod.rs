//! Bounds that a run must keep, for `--fail-if`.

mod display;
mod parse;
#[cfg(test)]
mod tests;

use std::time::Duration;

use crate::record::Tally;
use crate::report::quantity::{milliseconds, number, percent, share};
use crate::run::StreamMeasurement;

pub use parse::GateError;

/// A condition under which a run counts as failed: a metric, a comparison, and a bound.
///
/// | metric | of what | bound |
/// |---|---|---|
/// | `p0` to `p100`, also `p99.9` | latency | a time: `50ms`, `1.5s` |
/// | `mean`, `min`, `max` | latency | a time |
/// | `errors` | failures, and responses of 5xx | a number, or a part of those that ended: `0.1%` |
/// | `non2xx` | responses with another status than 2xx | a number, or a part of the responses |
/// | `late` | open loop: requests sent more than 1 ms late | a number, or a part of those sent |
/// | `missed` | open loop: requests due, but never sent | a number, or a part of those due |
/// | `rate` | responses per second | a number |
///
/// Comparisons are `>`, `>=`, `<` and `<=`. Blanks around them are ignored. `errors>0.1%` means:
/// fail if more than 0.1 % of the requests failed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    condition: Condition,
    comparison: Comparison,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Condition {
    Latency(Statistic, Duration),
    Count(Counter, Amount),
    Rate(f64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Statistic {
    /// A percentile from 0 to 100.
    Percentile(f64),
    Mean,
    Min,
    Max,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Errors,
    Non2xx,
    Late,
    Missed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Amount {
    Absolute(u64),
    /// A percentage from 0 to 100.
    Percent(f64),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Above,
    AtLeast,
    Below,
    AtMost,
}

impl Gate {
    /// Returns the gate and the measured value if a stream meets the condition. A stream without
    /// any response also breaks a gate on latencies, and one without anything to be a part of a
    /// gate on a part.
    #[must_use]
    pub fn broken_by(&self, stream: &StreamMeasurement) -> Option<String> {
        let measured = match self.condition {
            Condition::Latency(statistic, bound) => self.latency(stream, statistic, bound),
            Condition::Count(counter, amount) => self.count(stream, counter, amount),
            Condition::Rate(bound) => {
                let rate = stream.requests_per_second();
                self.comparison
                    .holds(rate, bound)
                    .then(|| format!("measured {rate:.2} per second"))
            }
        }?;
        Some(format!("{self}: {measured}"))
    }

    fn latency(
        &self,
        stream: &StreamMeasurement,
        statistic: Statistic,
        bound: Duration,
    ) -> Option<String> {
        if stream.tally.responses() == 0 {
            return Some("no request got a response".to_owned());
        }
        let latency = stream.tally.latency();
        let time = match statistic {
            Statistic::Percentile(percentile) => latency.quantile(percentile / 100.0),
            Statistic::Mean => latency.mean(),
            Statistic::Min => latency.min(),
            Statistic::Max => latency.max(),
        };
        let is_broken = self.comparison.holds(time, bound);
        is_broken.then(|| format!("measured {:.3} ms", milliseconds(time)))
    }

    fn count(
        &self,
        stream: &StreamMeasurement,
        counter: Counter,
        amount: Amount,
    ) -> Option<String> {
        let (part, whole) = counter.measure(stream);
        let is_broken = match amount {
            Amount::Absolute(bound) => self.comparison.holds(part, bound),
            Amount::Percent(_) if whole == 0 => {
                return Some(format!("there were no requests {}", counter.whole()));
            }
            Amount::Percent(bound) => {
                // Multiplied out, so that exactly 1 of 1000 is not above 0.1 %.
                self.comparison
                    .holds(number(part) * 100.0, bound * number(whole))
            }
        };
        is_broken.then(|| {
            let share = percent(share(part, whole));
            format!(
                "measured {part} of {whole} requests {} ({share})",
                counter.whole()
            )
        })
    }
}

impl Counter {
    /// Returns the number of events, and the number of which they are a part.
    fn measure(self, stream: &StreamMeasurement) -> (u64, u64) {
        let tally = &stream.tally;
        let counts = &tally.counts;
        match self {
            Self::Errors => (errors(tally), tally.ended()),
            Self::Non2xx => (tally.not_2xx(), tally.responses()),
            Self::Late => (counts.late(), counts.sent),
            Self::Missed if stream.plan.is_open_loop() => {
                (counts.due.saturating_sub(counts.sent), counts.due)
            }
            Self::Missed => (0, counts.sent),
        }
    }

    fn whole(self) -> &'static str {
        match self {
            Self::Errors => "that ended",
            Self::Non2xx => "that got a response",
            Self::Late => "that were sent",
            Self::Missed => "that were due",
        }
    }
}

impl Comparison {
    fn holds<T: PartialOrd + Copy>(self, measured: T, bound: T) -> bool {
        match self {
            Self::Above => measured > bound,
            Self::AtLeast => measured >= bound,
            Self::Below => measured < bound,
            Self::AtMost => measured <= bound,
        }
    }
}

/// Returns the number of requests that failed, or got a status of 500 or more.
pub(super) fn errors(tally: &Tally) -> u64 {
    let refused = tally.statuses().filter(|(status, _)| *status >= 500);
    tally.failures.total() + refused.map(|(_, count)| count).sum::<u64>()
}
