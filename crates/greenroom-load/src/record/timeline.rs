//! A stream's progress over time, in a bounded number of points.

use std::time::Duration;

use super::{Tally, Times};

/// Points of a time line before each two are merged.
const POINTS_MAX: usize = 300;

/// A stream over time: a point for each interval. When 300 are full, each two are merged, so memory
/// is bounded and a run of any length keeps at least 150 points.
#[derive(Clone, Debug)]
pub struct Timeline {
    interval: Duration,
    /// Intervals in each point.
    merged: u32,
    points: Vec<Point>,
}

/// The events of one stretch of time.
#[derive(Clone, Debug)]
pub struct Point {
    /// Its begin, counted from the stream's begin.
    pub begin: Duration,
    /// Its length.
    pub length: Duration,
    /// Open loop: requests that were due.
    pub due: u64,
    /// Requests sent.
    pub sent: u64,
    /// Responses with a status below 400.
    pub good: u64,
    /// Responses with another status.
    pub bad: u64,
    /// Requests that failed.
    pub failed: u64,
    latency: Box<[u8]>,
    intervals: u32,
}

impl Timeline {
    pub(crate) fn new(interval: Duration) -> Self {
        Self {
            interval,
            merged: 1,
            points: Vec::new(),
        }
    }

    /// Adds the interval that began at `begin`.
    pub(crate) fn push(&mut self, begin: Duration, length: Duration, tally: &Tally) {
        let point = Point::new(begin, length, tally);
        match self.points.last_mut() {
            Some(last) if last.intervals < self.merged => last.merge(&point),
            _ => self.points.push(point),
        }
        let is_full = |last: &Point| last.intervals == self.merged;
        if self.points.len() >= POINTS_MAX && self.points.last().is_some_and(is_full) {
            self.halve();
        }
    }

    fn halve(&mut self) {
        self.merged *= 2;
        let points = std::mem::take(&mut self.points);
        let mut points = points.into_iter();
        while let Some(mut point) = points.next() {
            if let Some(next) = points.next() {
                point.merge(&next);
            }
            self.points.push(point);
        }
    }

    /// Returns the points, in order.
    #[must_use]
    pub fn points(&self) -> &[Point] {
        &self.points
    }

    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the length of a whole point.
    #[must_use]
    pub fn resolution(&self) -> Duration {
        self.interval * self.merged
    }
}

impl Point {
    /// Creates a point from the tally of an interval.
    #[must_use]
    pub fn new(begin: Duration, length: Duration, tally: &Tally) -> Self {
        Self {
            begin,
            length,
            due: tally.counts.due,
            sent: tally.counts.sent,
            good: tally.good.count(),
            bad: tally.bad.count(),
            failed: tally.failures.total(),
            latency: tally.latency().to_bytes(),
            intervals: 1,
        }
    }

    /// Returns the latencies of the requests that ended in this time, to 1 %.
    #[must_use]
    pub fn latency(&self) -> Times {
        let mut times = Times::default();
        times.add_bytes(&self.latency);
        times
    }

    /// Returns the requested rate per second: due in an open loop, else sent.
    #[must_use]
    pub fn asked_rate(&self, is_open_loop: bool) -> f64 {
        self.per_second(if is_open_loop { self.due } else { self.sent })
    }

    /// Returns the responses per second, with any status.
    #[must_use]
    pub fn response_rate(&self) -> f64 {
        self.per_second(self.good + self.bad)
    }

    #[expect(clippy::cast_precision_loss, reason = "a count of requests")]
    fn per_second(&self, count: u64) -> f64 {
        count as f64 / self.length.as_secs_f64().max(1e-9)
    }

    fn merge(&mut self, next: &Self) {
        let mut latency = self.latency();
        latency.add_bytes(&next.latency);
        self.latency = latency.to_bytes();
        self.length = (next.begin + next.length).saturating_sub(self.begin);
        self.due += next.due;
        self.sent += next.sent;
        self.good += next.good;
        self.bad += next.bad;
        self.failed += next.failed;
        self.intervals += next.intervals;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_run_keeps_a_bounded_number_of_points_and_every_request() {
        let mut line = Timeline::new(Duration::from_secs(1));
        let mut tally = Tally::default();
        tally.counts.sent = 1;
        tally.good.record(1_000_000);
        for second in 0..1000 {
            line.push(Duration::from_secs(second), Duration::from_secs(1), &tally);
        }
        let points = line.points();
        assert!((POINTS_MAX / 2..POINTS_MAX).contains(&points.len()));
        assert_eq!(points.iter().map(|point| point.good).sum::<u64>(), 1000);
        let kept: u64 = points.iter().map(|point| point.latency().count()).sum();
        assert_eq!(kept, 1000);
        assert_eq!(points[0].length, line.resolution());
        assert!((points[3].asked_rate(false) - 1.0).abs() < 1e-9);
        // What an open loop sends while nothing is due is late.
        assert!(points[3].asked_rate(true).abs() < 1e-9);
    }
}
