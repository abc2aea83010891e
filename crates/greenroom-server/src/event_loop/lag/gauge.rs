use std::time::Duration;

use super::Pressure;

/// Turns lags into pressure: the smaller of what two probes in a row say.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gauge {
    lag_max: Duration,
    /// What the last probe said.
    last: Pressure,
    pressure: Pressure,
}

impl Gauge {
    pub(super) fn new(lag_max: Duration) -> Self {
        Self {
            lag_max,
            last: Pressure::None,
            pressure: Pressure::None,
        }
    }

    pub(super) fn pressure(self) -> Pressure {
        self.pressure
    }

    /// After a probe that ended with this lag.
    #[must_use]
    pub(super) fn concluded(self, lag: Duration) -> Self {
        let said = Pressure::of(lag, self.lag_max);
        Self {
            lag_max: self.lag_max,
            last: said,
            pressure: said.min(self.last),
        }
    }

    /// While a probe is under way that will end with this lag or a longer one.
    #[must_use]
    pub(super) fn foreseen(self, lag: Duration) -> Self {
        let said = Pressure::of(lag, self.lag_max);
        Self {
            pressure: self.pressure.max(said.min(self.last)),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAG_MAX: Duration = Duration::from_millis(20);

    fn after(lags: &[u64]) -> Gauge {
        let lags = lags.iter().copied().map(Duration::from_millis);
        lags.fold(Gauge::new(LAG_MAX), Gauge::concluded)
    }

    #[test]
    fn the_smaller_of_two_lags_in_a_row_decides() {
        for (lags, pressure) in [
            (&[][..], Pressure::None),
            (&[900], Pressure::None),
            (&[900, 1, 900], Pressure::None),
            (&[10, 10], Pressure::None),
            (&[11, 11], Pressure::Raised),
            (&[12, 30], Pressure::Raised),
            (&[20, 20], Pressure::Raised),
            (&[30, 21], Pressure::Over),
            (&[30, 30, 12], Pressure::Raised),
            (&[30, 30, 10], Pressure::None),
        ] {
            assert_eq!(after(lags).pressure(), pressure, "{lags:?}");
        }
    }

    #[test]
    fn a_probe_under_way_can_only_raise() {
        let foreseen = |lags: &[u64], so_far| {
            let so_far = Duration::from_millis(so_far);
            after(lags).foreseen(so_far).pressure()
        };
        assert_eq!(foreseen(&[], 900), Pressure::None);
        assert_eq!(foreseen(&[30], 21), Pressure::Over);
        assert_eq!(foreseen(&[30], 12), Pressure::Raised);
        assert_eq!(foreseen(&[12], 900), Pressure::Raised);
        assert_eq!(foreseen(&[30, 30], 1), Pressure::Over);
    }

    #[test]
    fn a_probe_that_was_foreseen_still_counts_once() {
        let stalled = after(&[]).foreseen(Duration::from_millis(900));
        let ended = stalled.concluded(Duration::from_millis(901));
        assert_eq!(ended.pressure(), Pressure::None);
    }
}
