use std::time::Duration;

use tokio::time::Instant;

use super::Pressure;
use super::standing::Standing;

/// Turns lags into pressure: what every probe of an interval has said, or, once that has been
/// [`Pressure::Over`] and for as long as it comes again within an interval, what two probes in a
/// row say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    lag_max: Duration,
    /// The pressure by the last probe alone.
    last: Pressure,
    raised: Standing,
    over: Standing,
    pressure: Pressure,
}

impl Gauge {
    pub(super) fn new(lag_max: Duration, standing: Duration) -> Self {
        Self {
            lag_max,
            last: Pressure::None,
            raised: Standing::after(standing),
            over: Standing::after(standing),
            pressure: Pressure::None,
        }
    }

    pub(super) fn pressure(self) -> Pressure {
        self.pressure
    }

    /// After a probe that ended now with this lag.
    #[must_use]
    pub(super) fn concluded(mut self, lag: Duration, now: Instant) -> Self {
        let said = Pressure::of(lag, self.lag_max);
        self.raised.look(said >= Pressure::Raised, now);
        self.over.look(said >= Pressure::Over, now);
        let pressure = self.bounded(said, now);
        self.last = said;
        self.take(pressure, now)
    }

    /// While a probe is under way that will end with this lag or a longer one.
    #[must_use]
    pub(super) fn foreseen(self, lag: Duration, now: Instant) -> Self {
        let said = Pressure::of(lag, self.lag_max);
        let pressure = self.pressure.max(self.bounded(said, now));
        self.take(pressure, now)
    }

    /// The smaller of what this probe and the last one say, and of what stands unless it is armed.
    fn bounded(&self, said: Pressure, now: Instant) -> Pressure {
        let twice = said.min(self.last);
        if self.over.is_armed(now) || self.over.stands(now) {
            twice
        } else if self.raised.stands(now) {
            twice.min(Pressure::Raised)
        } else {
            Pressure::None
        }
    }

    fn take(mut self, pressure: Pressure, now: Instant) -> Self {
        if self.pressure.max(pressure) == Pressure::Over {
            self.over.shed(now);
        }
        self.pressure = pressure;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LAG_MAX: Duration = Duration::from_millis(20);
    const STANDING: Duration = Duration::from_secs(1);
    const MILLISECOND: Duration = Duration::from_millis(1);

    /// A gauge and the time, which moves by what each probe takes or by what a test says.
    #[derive(Clone, Copy)]
    struct Timed {
        gauge: Gauge,
        now: Instant,
    }

    impl Timed {
        fn with(standing: Duration) -> Self {
            Self {
                gauge: Gauge::new(LAG_MAX, standing),
                now: Instant::now(),
            }
        }

        fn new() -> Self {
            Self::with(STANDING)
        }

        /// One probe after the other, each for as long as its lag.
        fn probe(&mut self, lags: impl IntoIterator<Item = u64>) -> Pressure {
            for millis in lags {
                let lag = Duration::from_millis(millis);
                self.now += lag;
                self.gauge = self.gauge.concluded(lag, self.now);
            }
            self.gauge.pressure()
        }

        /// The pressure by a probe that is under way.
        fn foresee(mut self, millis: u64) -> Pressure {
            let lag = Duration::from_millis(millis);
            self.now += lag;
            self.gauge.foreseen(lag, self.now).pressure()
        }

        fn idle(&mut self, time: Duration) {
            self.now += time;
        }
    }

    /// One that has shed until now, and is up to date.
    fn armed() -> Timed {
        let mut timed = Timed::new();
        assert_eq!(timed.probe([30; 35]), Pressure::Over);
        assert_eq!(timed.probe([1]), Pressure::None);
        timed
    }

    #[test]
    fn a_burst_that_drains_within_the_interval_is_no_pressure() {
        let mut timed = Timed::new();
        // The first probe begins the interval when it ends: 30 ms, and 33 more make 990 ms.
        for _ in 0..34 {
            assert_eq!(timed.probe([30]), Pressure::None);
        }
        assert_eq!(timed.probe([3]), Pressure::None);
        assert_eq!(timed.probe([30; 34]), Pressure::None);
    }

    #[test]
    fn what_every_probe_of_the_interval_says_is_pressure() {
        for (lag, pressure) in [
            (10, Pressure::None),
            (11, Pressure::Raised),
            (20, Pressure::Raised),
            (21, Pressure::Over),
        ] {
            let probes = 1_000_usize.div_ceil(usize::try_from(lag).expect("small"));
            let mut timed = Timed::new();
            assert_eq!(timed.probe(vec![lag; probes]), Pressure::None, "{lag}");
            assert_eq!(timed.probe([lag]), pressure, "{lag}");
        }
    }

    #[test]
    fn one_shorter_lag_in_the_interval_keeps_it_at_raised() {
        let mut timed = Timed::new();
        assert_eq!(timed.probe([30; 20]), Pressure::None);
        assert_eq!(timed.probe([12]), Pressure::None);
        assert_eq!(timed.probe([30; 14]), Pressure::Raised);
        assert_eq!(timed.probe([30; 21]), Pressure::Over);
    }

    #[test]
    fn one_stall_is_no_pressure_however_long() {
        assert_eq!(Timed::new().probe([900_000]), Pressure::None);
        assert_eq!(Timed::new().foresee(900_000), Pressure::None);
        assert_eq!(Timed::new().probe([900_000, 1, 900_000]), Pressure::None);
    }

    #[test]
    fn one_that_is_armed_sheds_after_two_probes() {
        for (lags, pressure) in [
            (&[30][..], Pressure::None),
            (&[30, 21], Pressure::Over),
            (&[12, 30], Pressure::Raised),
            (&[30, 30, 12], Pressure::Raised),
            (&[30, 30, 10], Pressure::None),
            (&[30, 30, 10, 30], Pressure::None),
        ] {
            let mut timed = armed();
            assert_eq!(timed.probe(lags.iter().copied()), pressure, "{lags:?}");
        }
    }

    #[test]
    fn one_that_was_not_over_for_an_interval_is_disarmed() {
        let mut timed = armed();
        timed.idle(939 * MILLISECOND);
        assert_eq!(timed.probe([30, 30]), Pressure::Over);
        assert_eq!(timed.probe([1]), Pressure::None);
        timed.idle(STANDING);
        assert_eq!(timed.probe([30, 30]), Pressure::None);
    }

    #[test]
    fn a_probe_under_way_can_only_raise() {
        let mut timed = armed();
        assert_eq!(timed.foresee(900), Pressure::None);
        assert_eq!(timed.probe([30]), Pressure::None);
        assert_eq!(timed.foresee(21), Pressure::Over);
        assert_eq!(timed.foresee(12), Pressure::Raised);
        assert_eq!(timed.probe([30]), Pressure::Over);
        assert_eq!(timed.foresee(1), Pressure::Over);
    }

    #[test]
    fn a_probe_under_way_may_be_what_ends_the_interval() {
        let mut timed = Timed::new();
        assert_eq!(timed.probe([30; 20]), Pressure::None);
        assert_eq!(timed.foresee(400), Pressure::None);
        assert_eq!(timed.foresee(430), Pressure::Over);
    }

    #[test]
    fn a_probe_that_was_foreseen_still_counts_once() {
        let mut timed = armed();
        let lag = 900 * MILLISECOND;
        timed.now += lag;
        timed.gauge = timed.gauge.foreseen(lag, timed.now);
        let ended = timed.gauge.concluded(lag + MILLISECOND, timed.now);
        assert_eq!(ended.pressure(), Pressure::None);
    }

    #[test]
    fn without_an_interval_two_probes_decide_and_with_an_endless_one_nothing_does() {
        let mut timed = Timed::with(Duration::ZERO);
        assert_eq!(timed.probe([30]), Pressure::None);
        assert_eq!(timed.probe([30]), Pressure::Over);
        let mut timed = Timed::with(Duration::MAX);
        assert_eq!(timed.probe(vec![900_000; 100]), Pressure::None);
    }

    proptest! {
        /// Of each interval without a shed, a probe below the threshold or a pause keeps the peace.
        #[test]
        fn what_never_stands_is_never_refused(
            bursts in prop::collection::vec(prop::collection::vec(21..300_u64, 0..4), 0..50),
        ) {
            let mut timed = Timed::new();
            for burst in bursts {
                prop_assert_eq!(timed.probe(burst), Pressure::None);
                prop_assert_eq!(timed.probe([10]), Pressure::None);
            }
        }

        #[test]
        fn pressure_is_never_more_than_two_probes_in_a_row_say(
            lags in prop::collection::vec(0..60_u64, 2..400),
        ) {
            let mut timed = Timed::new();
            let of = |millis| Pressure::of(Duration::from_millis(millis), LAG_MAX);
            let mut last = 0;
            for lag in lags {
                prop_assert!(timed.probe([lag]) <= of(lag).min(of(last)));
                last = lag;
            }
        }

        /// However short shedding makes it for moments: of lasting overload only the first
        /// interval, and two probes each time, are admitted freely.
        #[test]
        fn lasting_overload_is_shed_from_the_second_probe_on(
            dips in prop::collection::vec(2..30_usize, 1..50),
        ) {
            let mut timed = armed();
            for probes in dips {
                timed.probe([1, 30]);
                for _ in 1..probes {
                    prop_assert_eq!(timed.probe([30]), Pressure::Over);
                }
            }
        }
    }
}
