//! The times at which requests are sent.

use std::str::FromStr;
use std::time::Duration;

/// The highest rate of a schedule, in requests per second.
const RATE_MAX: f64 = 10_000_000.0;
/// The longest schedule: a week.
const DURATION_MAX: Duration = Duration::from_hours(7 * 24);

/// The event that a request waits for.
#[derive(Clone, Debug, PartialEq)]
pub enum Pace {
    /// The response to the one before, on each connection.
    Closed,
    /// Its intended time.
    Open(Schedule),
}

/// The times at which an open loop sends, as phases one after the other.
///
/// Arrivals are evenly spaced at the momentary rate: of a constant 1,000/s, request `k` is due at
/// `k` ms; on a ramp from `a` to `b` per second over `d` seconds, when `a t + (b - a) t² / 2d`
/// reaches `k`.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    phases: Vec<Phase>,
}

/// A stretch of a schedule in which the rate is constant or changes linearly.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// Requests per second at its beginning.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
    /// Its length in time.
    pub duration: Duration,
}

/// An error in a schedule.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PaceError {
    /// A rate is no number of requests per second that is allowed.
    #[error("a rate must be from 0 to {RATE_MAX:.0} requests per second, not {0}")]
    Rate(String),
    /// A phase has no length, or is longer than a week.
    #[error("a phase must last from 1 ms to 7 days, not {0:?}")]
    Duration(Duration),
    /// Nothing would be sent.
    #[error("the schedule asks for less than one request")]
    Empty,
    /// The text has another form.
    #[error("{text:?} is not {form}")]
    Form {
        /// The text as written.
        text: String,
        /// The allowed form.
        form: &'static str,
    },
}

impl Schedule {
    /// Creates a schedule of phases in their order.
    ///
    /// # Errors
    /// [`PaceError`] when a rate or a duration is out of range, or less than one request would be
    /// sent.
    pub fn new(phases: Vec<Phase>) -> Result<Self, PaceError> {
        for phase in &phases {
            check(phase)?;
        }
        let schedule = Self { phases };
        if schedule.requests() == 0 {
            return Err(PaceError::Empty);
        }
        Ok(schedule)
    }

    /// Creates a schedule with the same rate throughout.
    ///
    /// # Errors
    /// As [`Schedule::new`].
    pub fn constant(rate: f64, duration: Duration) -> Result<Self, PaceError> {
        Self::new(vec![Phase {
            from: rate,
            to: rate,
            duration,
        }])
    }

    /// Returns its phases.
    #[must_use]
    pub fn phases(&self) -> &[Phase] {
        &self.phases
    }

    /// Returns its length in time.
    #[must_use]
    pub fn duration(&self) -> Duration {
        self.phases.iter().map(|phase| phase.duration).sum()
    }

    /// Returns the requests per second at a time; after the schedule's end the last rate.
    #[must_use]
    pub fn rate_at(&self, time: Duration) -> f64 {
        let seconds = time.as_secs_f64();
        let mut begin = 0.0;
        let mut last = 0.0;
        for phase in &self.phases {
            let part = (seconds - begin) / phase.duration.as_secs_f64();
            if part < 1.0 {
                return phase.from + (phase.to - phase.from) * part.max(0.0);
            }
            begin += phase.duration.as_secs_f64();
            last = phase.to;
        }
        last
    }

    /// Returns its lowest rate.
    #[must_use]
    pub fn lowest(&self) -> f64 {
        self.rates().fold(f64::INFINITY, f64::min)
    }

    /// Returns its highest rate.
    #[must_use]
    pub fn highest(&self) -> f64 {
        self.rates().fold(0.0, f64::max)
    }

    fn rates(&self) -> impl Iterator<Item = f64> {
        let ends = |phase: &Phase| [phase.from, phase.to];
        self.phases.iter().flat_map(ends)
    }

    /// Returns the number of its requests.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.phases.iter().map(Phase::requests).sum()
    }

    /// Returns the times of every `step`-th request, beginning with number `first`.
    #[must_use]
    pub fn arrivals(&self, first: u64, step: u64) -> Arrivals {
        Arrivals {
            schedule: self.clone(),
            phase: 0,
            phase_begin: Duration::ZERO,
            before_phase: 0,
            next: first,
            step: step.max(1),
        }
    }
}

impl Phase {
    /// Returns the number of its requests, with their fraction.
    fn area(&self) -> f64 {
        f64::midpoint(self.from, self.to) * self.duration.as_secs_f64()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and below the number of a week's requests at the highest rate"
    )]
    fn requests(&self) -> u64 {
        // Those numbered 0, 1, … below the area; the subtrahend forgives rounding.
        (self.area() - 1e-6).ceil().max(0.0) as u64
    }

    /// Returns the seconds until `count` requests were due.
    fn time_of(&self, count: f64) -> f64 {
        let slope = (self.to - self.from) / self.duration.as_secs_f64();
        // The root of slope/2 t² + from t = count, in the form that does not cancel for small
        // slopes.
        let root = self.from.mul_add(self.from, 2.0 * slope * count).max(0.0);
        let divisor = self.from + root.sqrt();
        if divisor == 0.0 {
            0.0
        } else {
            2.0 * count / divisor
        }
    }
}

fn check(phase: &Phase) -> Result<(), PaceError> {
    for rate in [phase.from, phase.to] {
        if !(0.0..=RATE_MAX).contains(&rate) {
            return Err(PaceError::Rate(rate.to_string()));
        }
    }
    if phase.duration < Duration::from_millis(1) || phase.duration > DURATION_MAX {
        return Err(PaceError::Duration(phase.duration));
    }
    Ok(())
}

/// The intended times of requests, in their order, as nanoseconds from the schedule's begin.
#[derive(Clone, Debug)]
pub struct Arrivals {
    schedule: Schedule,
    phase: usize,
    phase_begin: Duration,
    before_phase: u64,
    next: u64,
    step: u64,
}

impl Iterator for Arrivals {
    type Item = u64;

    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a week in nanoseconds and its requests are below 2^53"
    )]
    fn next(&mut self) -> Option<u64> {
        loop {
            let phase = self.schedule.phases.get(self.phase)?;
            let within = self.next - self.before_phase;
            let requests = phase.requests();
            if within < requests {
                let begin = self.phase_begin.as_secs_f64();
                self.next += self.step;
                return Some(((begin + phase.time_of(within as f64)) * 1e9) as u64);
            }
            self.before_phase += requests;
            self.phase_begin += phase.duration;
            self.phase += 1;
        }
    }
}

/// The rates at a ramp's begin and end, written `0..5000`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ramp {
    /// Requests per second at its begin.
    pub from: f64,
    /// Requests per second at its end.
    pub to: f64,
}

impl FromStr for Ramp {
    type Err = PaceError;

    fn from_str(text: &str) -> Result<Self, PaceError> {
        let form = "FROM..TO in requests per second, such as 0..5000";
        let (from, to) = text.split_once("..").ok_or_else(|| malformed(text, form))?;
        Ok(Self {
            from: rate(from)?,
            to: rate(to)?,
        })
    }
}

/// Parses a rate such as `1000` or `0.5`, per second.
///
/// # Errors
/// [`PaceError::Rate`] when it is no number, or out of range.
pub fn rate(text: &str) -> Result<f64, PaceError> {
    let rate = text.trim().parse().ok();
    rate.filter(|rate| (0.0..=RATE_MAX).contains(rate))
        .ok_or_else(|| PaceError::Rate(format!("{text:?}")))
}

fn malformed(text: &str, form: &'static str) -> PaceError {
    PaceError::Form {
        text: text.to_owned(),
        form,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schedule(phases: &[(f64, f64, u64)]) -> Schedule {
        let phase = |&(from, to, seconds): &(f64, f64, u64)| Phase {
            from,
            to,
            duration: Duration::from_secs(seconds),
        };
        Schedule::new(phases.iter().map(phase).collect()).expect("a valid schedule")
    }

    #[test]
    fn a_constant_rate_is_evenly_spaced() {
        let schedule = schedule(&[(1000.0, 1000.0, 20)]);
        assert_eq!(schedule.requests(), 20_000);
        let times: Vec<_> = schedule.arrivals(0, 1).collect();
        assert_eq!(times.len(), 20_000);
        for (number, time) in (0..).zip(&times) {
            assert!(time.abs_diff(number * 1_000_000) <= 2, "{number}: {time}");
        }
    }

    #[test]
    fn the_last_rate_holds_after_the_schedule() {
        let phase = |from, to| Phase {
            from,
            to,
            duration: Duration::from_secs(10),
        };
        let schedule = Schedule::new(vec![phase(0.0, 100.0), phase(500.0, 500.0)]).expect("valid");
        let rate_at = |seconds| schedule.rate_at(Duration::from_secs(seconds));
        assert!((rate_at(5) - 50.0).abs() < 1e-9);
        assert!((rate_at(15) - 500.0).abs() < 1e-9);
        assert!((rate_at(99) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn a_ramp_reaches_its_rate() {
        let schedule = schedule(&[(0.0, 5000.0, 30)]);
        assert_eq!(schedule.requests(), 75_000);
        let times: Vec<_> = schedule.arrivals(0, 1).collect();
        // A quarter of the requests is due in the first half of the time.
        let first_half = times.iter().filter(|time| **time < 15_000_000_000).count();
        assert!(first_half.abs_diff(18_750) <= 1, "{first_half}");
        assert!(times.is_sorted());
        assert!(times.last().is_some_and(|last| *last < 30_000_000_000));
    }

    #[test]
    fn a_ramp_may_go_down() {
        let times: Vec<_> = schedule(&[(100.0, 0.0, 10)]).arrivals(0, 1).collect();
        assert_eq!(times.len(), 500);
        assert!(times.is_sorted());
        assert!(times.last().is_some_and(|last| *last < 10_000_000_000));
    }

    #[test]
    fn steps_follow_each_other() {
        let schedule = schedule(&[(100.0, 100.0, 10), (500.0, 500.0, 10)]);
        let times: Vec<_> = schedule.arrivals(0, 1).collect();
        assert_eq!(times.len(), 6000);
        assert_eq!(times[1000], 10_000_000_000);
        assert_eq!(times[1001], 10_002_000_000);
        assert_eq!(schedule.duration(), Duration::from_secs(20));
    }

    #[test]
    fn threads_share_a_schedule_without_loss_or_repetition() {
        let schedule = schedule(&[(0.0, 300.0, 3), (7.0, 7.0, 1), (50.0, 50.0, 2)]);
        let mut shared: Vec<_> = (0..3)
            .flat_map(|first| schedule.arrivals(first, 3))
            .collect();
        shared.sort_unstable();
        assert_eq!(shared, schedule.arrivals(0, 1).collect::<Vec<_>>());
    }

    #[test]
    fn what_cannot_be_scheduled_is_reported() {
        let second = Duration::from_secs(1);
        assert!(Schedule::constant(f64::NAN, second).is_err());
        assert!(Schedule::constant(-1.0, second).is_err());
        assert!(Schedule::constant(1.0, Duration::ZERO).is_err());
        assert_eq!(Schedule::constant(0.0, second), Err(PaceError::Empty));
        assert!("5".parse::<Ramp>().is_err());
        assert_eq!(
            "0..5000".parse(),
            Ok(Ramp {
                from: 0.0,
                to: 5000.0
            })
        );
    }
}
