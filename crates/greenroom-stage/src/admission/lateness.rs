use std::time::{Duration, Instant};

/// The time for which every run must have come late before late runs are dropped: 100 ms, the
/// interval of `CoDel` (RFC 8289, section 4.3). A burst that the stage works off within that time
/// costs nothing.
pub const STANDING_AFTER: Duration = Duration::from_millis(100);

/// The lateness beyond which a run is dropped even from a burst.
pub const LATE_GRACE: Duration = Duration::from_millis(20);

/// The wait up to which no run is late, however short the allowed one is: a thread that has to wake
/// up takes a part of it.
const WAIT_LEAST: Duration = Duration::from_millis(2);

/// Decides for each run, when its turn comes, if it is still worth running, in the manner of
/// `CoDel`: by how long it waited, not by how many wait.
///
/// - On time (waited at most `wait_max`): run.
/// - Up to [`LATE_GRACE`] late: run, unless every run of the last [`STANDING_AFTER`] was late. Then
///   the queue stands, its prediction is wrong, and only dropping shortens it.
/// - Later: dropped.
///
/// ```
/// use std::time::{Duration, Instant};
/// use greenroom_stage::admission::Lateness;
///
/// let (start, ms) = (Instant::now(), Duration::from_millis);
/// let mut lateness = Lateness::default();
/// assert!(lateness.is_worth_running(start, ms(520), ms(500))); // late, but the first
/// assert!(lateness.is_worth_running(start + ms(99), ms(520), ms(500)));
/// assert!(!lateness.is_worth_running(start + ms(100), ms(520), ms(500))); // the queue stands
/// assert!(lateness.is_worth_running(start + ms(110), ms(400), ms(500))); // on time again
/// assert!(lateness.is_worth_running(start + ms(120), ms(520), ms(500)));
/// assert!(!lateness.is_worth_running(start + ms(130), ms(521), ms(500)));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Lateness {
    /// The first and the last of the late runs since one was on time.
    late: Option<(Instant, Instant)>,
}

impl Lateness {
    /// True if a run whose turn comes `now`, after it `waited`, is to be run.
    pub fn is_worth_running(&mut self, now: Instant, waited: Duration, wait_max: Duration) -> bool {
        let wait_max = wait_max.max(WAIT_LEAST);
        if waited <= wait_max {
            self.late = None;
            return true;
        }
        // A late run of long ago, before a pause, says nothing.
        let is_recent = |last| now.saturating_duration_since(last) <= STANDING_AFTER;
        let late = self.late.filter(|(_, last)| is_recent(*last));
        let since = late.map_or(now, |(since, _)| since);
        self.late = Some((since, now));
        let is_standing = now.saturating_duration_since(since) >= STANDING_AFTER;
        waited <= wait_max.saturating_add(LATE_GRACE) && !is_standing
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_late_run_before_a_pause_does_not_count() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut lateness = Lateness::default();
        assert!(lateness.is_worth_running(start, ms(510), ms(500)));
        assert!(lateness.is_worth_running(start + ms(60_000), ms(510), ms(500)));
        assert!(lateness.is_worth_running(start + ms(60_099), ms(510), ms(500)));
        assert!(!lateness.is_worth_running(start + ms(60_100), ms(510), ms(500)));
    }

    #[test]
    fn who_may_not_wait_is_run_at_once_all_the_same() {
        let (start, ms) = (Instant::now(), Duration::from_millis);
        let mut lateness = Lateness::default();
        for turn in 0..1_000 {
            let waited = Duration::from_micros(100);
            assert!(lateness.is_worth_running(start + ms(turn), waited, Duration::ZERO));
        }
    }

    proptest! {
        #[test]
        fn what_is_on_time_runs_and_what_is_far_too_late_does_not(
            turns in prop::collection::vec((0..50_u64, 0..2_000_u64), 1..100),
        ) {
            let wait_max = Duration::from_millis(500);
            let mut now = Instant::now();
            let mut lateness = Lateness::default();
            for (later, waited) in turns {
                now += Duration::from_millis(later);
                let waited = Duration::from_millis(waited);
                let runs = lateness.is_worth_running(now, waited, wait_max);
                prop_assert!(runs || waited > wait_max);
                prop_assert!(!runs || waited <= wait_max + LATE_GRACE);
            }
        }
    }
}
