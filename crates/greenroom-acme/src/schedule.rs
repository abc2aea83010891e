//! The time of a renewal.

use std::time::{Duration, SystemTime};

use instant_acme::RenewalInfo;

use crate::certificate::Certificate;

/// The shortest time between two questions for the time of a renewal: RFC 9773, 4.3.2 lets a
/// client bound what the authority asks for.
pub const ASK_AGAIN_MIN: Duration = Duration::from_mins(1);

/// The longest time between two questions for the time of a renewal.
pub const ASK_AGAIN_MAX: Duration = Duration::from_hours(24);

/// The longest time between two attempts to save a certificate, such as on a full disk: 1 h.
pub const SAVE_AGAIN_MAX: Duration = Duration::from_hours(1);

/// The time until the next question after one that failed (RFC 9773, 4.3.3).
pub(crate) const ASK_AGAIN_AFTER_FAILURE: Duration = Duration::from_hours(6);

/// A time in which the authority suggests to renew, and the moment in it that was chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    start: SystemTime,
    end: SystemTime,
    pub(crate) chosen: SystemTime,
}

impl Window {
    /// Chooses a moment by chance, as RFC 9773, 4.2 asks, unless one was chosen in the same
    /// window before: choosing anew with each question would favour early ones. Returns `None` if
    /// the window ends before it begins.
    pub(crate) fn choose(info: &RenewalInfo, before: Option<Self>) -> Option<Self> {
        let suggested = &info.suggested_window;
        let (start, end) = (suggested.start.into(), suggested.end.into());
        Self::choose_between(start, end, before)
    }

    fn choose_between(start: SystemTime, end: SystemTime, before: Option<Self>) -> Option<Self> {
        let length = end
            .duration_since(start)
            .ok()
            .filter(|length| !length.is_zero())?;
        let same = before.filter(|before| before.start == start && before.end == end);
        Some(same.unwrap_or_else(|| Self {
            start,
            end,
            chosen: start + length.mul_f64(fastrand::f64()),
        }))
    }
}

/// Returns the time of renewal where the authority suggests none: at two thirds of the life.
pub(crate) fn two_thirds(certificate: &Certificate) -> SystemTime {
    certificate.not_before + life(certificate) * 2 / 3
}

/// Returns the time after which no renewal is put off, whatever the authority suggests: at nine
/// tenths of the life.
pub(crate) fn latest(certificate: &Certificate) -> SystemTime {
    certificate.not_before + life(certificate) * 9 / 10
}

/// Returns the time for which no order follows, after a certificate was obtained.
pub(crate) fn pause(interval: Duration, certificate: &Certificate) -> Duration {
    interval.min(life(certificate) / 2)
}

fn life(certificate: &Certificate) -> Duration {
    let life = certificate.not_after.duration_since(certificate.not_before);
    life.unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::UNIX_EPOCH;

    fn at(seconds: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(seconds)
    }

    #[test]
    fn rfc9773_4_2_a_moment_in_the_window_is_chosen_once() {
        let first = Window::choose_between(at(1000), at(2000), None).expect("a window");
        assert!((at(1000)..=at(2000)).contains(&first.chosen));
        let again = Window::choose_between(at(1000), at(2000), Some(first)).expect("a window");
        assert_eq!(again.chosen, first.chosen);
        let moved = Window::choose_between(at(10), at(20), Some(first)).expect("a window");
        assert!((at(10)..=at(20)).contains(&moved.chosen));
    }

    #[test]
    fn rfc9773_4_2_a_window_that_ends_before_it_begins_is_none() {
        assert!(Window::choose_between(at(20), at(10), None).is_none());
        assert!(Window::choose_between(at(20), at(20), None).is_none());
    }
}
