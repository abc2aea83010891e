//! The data of figures, apart from their style.

use std::time::Duration;

use crate::plan::{Pace, Schedule};
use crate::record::{self, ByRate, Point, Tally, Times};
use crate::run::StreamMeasurement;

use super::text::float;

/// Points of a percentile curve for each further nine.
const POINTS_PER_NINE: u32 = 50;
/// Nines that a percentile curve goes to: beyond one request in 10 million only the longest time is
/// shown.
const NINES_MAX: f64 = 7.0;

/// One curve's worth of measurement: a stream of a run, or a server with all its rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Its name in legends.
    pub name: String,
    /// The run by intervals, in order.
    pub moments: Vec<Moment>,
    /// Open loop: response times by the rate that was asked for, from the lowest.
    pub rates: Vec<AtRate>,
    /// Latency from the intended time, by percentile, in order.
    pub latency: Vec<PercentilePoint>,
    /// Service time, from the sending, by percentile, in order.
    pub service: Vec<PercentilePoint>,
}

/// The events of one interval. Rates are requests per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// The interval's middle, seconds since the run began.
    pub seconds: f64,
    /// The rate that an open loop's schedule asked for, as long as that lasts.
    pub asked: Option<f64>,
    /// The rate of responses, with any status.
    pub responses: f64,
    /// The rate of failures and of responses with a status of 400 or above.
    pub failed: f64,
    /// Latency of the requests that ended in the interval; `None` without any.
    pub latency: Option<Latency>,
}

/// Response times at one request rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtRate {
    /// Requests per second that were asked for.
    pub rate: f64,
    /// The percentage of its requests that got a response with a status below 400.
    pub served: f64,
    /// Latency of these, and of requests that timed out the time that they had lasted: a quick
    /// rejection is no short response time. `None` without any.
    pub latency: Option<Latency>,
}

/// Latency from the intended time, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The longest.
    pub max: f64,
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PercentilePoint {
    /// The rarity of longer times: 0 when all are, 1 for one in ten (the 90th percentile), 2 for
    /// one in a hundred.
    pub nines: f64,
    /// The time, in milliseconds.
    pub milliseconds: f64,
}

impl Series {
    /// Creates the series of one run's stream, under its own name.
    #[must_use]
    pub fn of(stream: &StreamMeasurement) -> Self {
        Self::of_rounds(&stream.plan.name, &[stream])
    }

    /// Combines several rounds of the same plan: counts are added, histograms joined, and rates are
    /// means.
    #[must_use]
    pub fn of_rounds(name: &str, rounds: &[&StreamMeasurement]) -> Self {
        let mut all = Tally::default();
        for round in rounds {
            all.add(&round.tally);
        }
        let latency = all.latency();
        Self {
            name: name.to_owned(),
            moments: moments(rounds),
            rates: rates(rounds, &all),
            latency: percentiles(&latency),
            service: percentiles(&all.processing),
        }
    }
}

impl AtRate {
    fn of(at: &record::AtRate) -> Self {
        Self {
            rate: at.rate(),
            served: at.served() * 100.0,
            latency: Latency::of(at.times()),
        }
    }

    fn of_whole(rate: f64, whole: &Tally) -> Self {
        let mut times = whole.good.clone();
        times.add(&whole.timed_out);
        Self {
            rate,
            served: float(whole.good.count()) / float(whole.ended()) * 100.0,
            latency: Latency::of(&times),
        }
    }
}

impl Latency {
    fn of(times: &Times) -> Option<Self> {
        let at = |part| milliseconds(times.quantile(part));
        (!times.is_empty()).then(|| Self {
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            max: milliseconds(times.max()),
        })
    }
}

/// Converts to milliseconds, never zero, for the sake of logarithms: the clock's unit is a
/// nanosecond.
fn milliseconds(time: Duration) -> f64 {
    time.max(Duration::from_nanos(1)).as_secs_f64() * 1e3
}

fn moments(rounds: &[&StreamMeasurement]) -> Vec<Moment> {
    let resolution = rounds.iter().map(|round| round.timeline.resolution()).max();
    let resolution = resolution.unwrap_or_default().as_secs_f64().max(1e-9);
    let mut slots: Vec<_> = rounds
        .iter()
        .flat_map(|round| numbered(round.timeline.points(), resolution))
        .collect();
    slots.sort_by_key(|(slot, _)| *slot);
    let schedule = schedule(rounds);
    slots
        .chunk_by(|one, next| one.0 == next.0)
        .map(|slot| moment(slot.iter().map(|(_, point)| *point), schedule))
        .collect()
}

/// Returns points with the number of the stretch of time that they belong to. The rest at the end
/// counts to the stretch before it: rates over a few milliseconds say nothing.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "not negative, and at most a week in nanoseconds"
)]
fn numbered(points: &[Point], resolution: f64) -> impl Iterator<Item = (u64, &Point)> {
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().map(move |(index, point)| {
        let slot = (middle(point) / resolution) as u64;
        let is_rest = index == last && point.length.as_secs_f64() < resolution / 2.0;
        (slot.saturating_sub(u64::from(is_rest)), point)
    })
}

fn middle(point: &Point) -> f64 {
    (point.begin + point.length / 2).as_secs_f64()
}

fn moment<'a>(
    points: impl Iterator<Item = &'a Point> + Clone,
    schedule: Option<&Schedule>,
) -> Moment {
    let sum = |count: fn(&Point) -> u64| float(points.clone().map(count).sum());
    let length: Duration = points.clone().map(|point| point.length).sum();
    let per_second = |count| count / length.as_secs_f64().max(1e-9);
    let begin = points.clone().map(|point| point.begin).min();
    let end = points.clone().map(|point| point.begin + point.length).max();
    let span = begin.unwrap_or_default() + end.unwrap_or_default();
    let middle = span / 2;
    let schedule = schedule.filter(|schedule| middle < schedule.duration());
    Moment {
        seconds: middle.as_secs_f64(),
        asked: schedule.map(|schedule| schedule.rate_at(middle)),
        responses: per_second(sum(|point| point.good + point.bad)),
        failed: per_second(sum(|point| point.bad + point.failed)),
        latency: joined(points),
    }
}

fn joined<'a>(points: impl Iterator<Item = &'a Point>) -> Option<Latency> {
    let mut times = Times::default();
    for point in points {
        times.add(&point.latency());
    }
    Latency::of(&times)
}

fn schedule<'a>(rounds: &[&'a StreamMeasurement]) -> Option<&'a Schedule> {
    rounds.iter().find_map(|round| match &round.plan.pace {
        Pace::Open(schedule) => Some(schedule),
        Pace::Closed => None,
    })
}

fn rates(rounds: &[&StreamMeasurement], whole: &Tally) -> Vec<AtRate> {
    let Some(schedule) = schedule(rounds) else {
        return Vec::new();
    };
    let mut by_rate = ByRate::default();
    for round in rounds {
        by_rate.add(&round.by_rate);
    }
    let varying: Vec<_> = by_rate.iter().map(AtRate::of).collect();
    if varying.is_empty() {
        let at = AtRate::of_whole(schedule.highest(), whole);
        // Where nothing was served at the only rate, there is nothing to draw.
        return Vec::from_iter(at.latency.is_some().then_some(at));
    }
    varying
}

fn percentiles(times: &Times) -> Vec<PercentilePoint> {
    if times.is_empty() {
        return Vec::new();
    }
    let end = float(times.count()).log10().min(NINES_MAX);
    let steps = (0..).map(|step| f64::from(step) / f64::from(POINTS_PER_NINE));
    let point = |nines: f64| PercentilePoint {
        nines,
        milliseconds: milliseconds(times.quantile(1.0 - 10_f64.powf(-nines))),
    };
    // The longest time stands where one request of all is longer than the rest.
    let longest = PercentilePoint {
        nines: end,
        milliseconds: milliseconds(times.max()),
    };
    steps
        .take_while(|nines| *nines < end)
        .map(point)
        .chain([longest])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_with_the_longest_time() {
        let mut times = Times::default();
        times.record_many(1_000_000, 999);
        times.record(1_000_000_000);
        let curve = percentiles(&times);
        let last = curve.last().expect("a point");
        assert!((last.nines - 3.0).abs() < 1e-9);
        assert!((last.milliseconds / 1000.0 - 1.0).abs() < 0.002, "{last:?}");
        let p99 = curve.iter().find(|point| point.nines >= 2.0).expect("p99");
        assert!((p99.milliseconds - 1.0).abs() < 0.002, "{p99:?}");
        assert_eq!(percentiles(&Times::default()), []);
    }
}
