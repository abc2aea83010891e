use std::time::Duration;

use crate::placement::rule::STREAK_MAX;

/// Short polls in a row that together bring a body back to the loop, the first time.
const POLLS_FIRST: u32 = 64;

/// The weight of a poll that left the body waiting. A body that fills its buffer in one go and
/// yields it in pieces, as compressors do, has many short polls in a row, and waits for nothing.
const WAIT_WEIGHT: u32 = 16;

/// The longest poll on the loop that adds nothing to a run: writing its frame takes the server as
/// long.
const QUICK_POLL: Duration = Duration::from_micros(25);

/// Decides for each body where its next poll takes place.
///
/// - The time a body computes between two waits is one run of it. One that is long (over 1 ms)
///   sends the body to the stage: a compressor that yields a frame every 200 us goes there with the
///   sixth.
/// - On the stage, 64 polls in a row of which none is over 250 us and all together are not long
///   bring it to the loop, where one that leaves it waiting counts as 16: a stream of events, after
///   four.
/// - Each time it is sent away it must be short for twice as many: 128, 256 … together in no more
///   time. So a body that computes all the time, be it in little pieces, is on the stage soon.
#[derive(Debug)]
pub(super) struct Pace {
    short_run: Duration,
    long_run: Duration,
    is_on_stage: bool,
    /// Weighted polls of the streak on the stage, and their poll time in all.
    polls: u32,
    polls_time: Duration,
    needed: u32,
    /// Poll time since it last waited.
    run: Duration,
    longest: Duration,
}

impl Pace {
    pub(super) fn new(short_run: Duration, long_run: Duration, is_on_stage: bool) -> Self {
        Self {
            short_run,
            long_run,
            is_on_stage,
            polls: 0,
            polls_time: Duration::ZERO,
            needed: POLLS_FIRST,
            run: Duration::ZERO,
            longest: Duration::ZERO,
        }
    }

    pub(super) fn is_on_stage(&self) -> bool {
        self.is_on_stage
    }

    /// Returns the longest run so far.
    pub(super) fn longest(&self) -> Duration {
        self.longest
    }

    /// Takes a poll into account; `is_waiting` if it left the body waiting.
    pub(super) fn record(&mut self, poll_time: Duration, is_waiting: bool) {
        if poll_time > QUICK_POLL {
            self.run += poll_time;
            self.longest = self.longest.max(self.run);
        }
        if self.is_on_stage {
            self.prolong(poll_time, if is_waiting { WAIT_WEIGHT } else { 1 });
        } else if self.run > self.long_run {
            self.is_on_stage = true;
            self.needed = (self.needed * 2).min(STREAK_MAX);
            self.begin_streak();
        }
        if is_waiting {
            self.run = Duration::ZERO;
        }
    }

    fn prolong(&mut self, poll_time: Duration, weight: u32) {
        self.polls += weight;
        self.polls_time += poll_time;
        if poll_time > self.short_run || self.polls_time > self.long_run {
            self.begin_streak();
        } else if self.polls >= self.needed {
            self.is_on_stage = false;
            self.run = Duration::ZERO;
        }
    }

    fn begin_streak(&mut self) {
        self.polls = 0;
        self.polls_time = Duration::ZERO;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::placement::{LONG_RUN, SHORT_RUN};

    fn pace(is_on_stage: bool) -> Pace {
        Pace::new(SHORT_RUN, LONG_RUN, is_on_stage)
    }

    const TINY: Duration = Duration::from_micros(10);
    const PIECE: Duration = Duration::from_micros(200);

    #[test]
    fn a_body_that_waits_comes_to_the_loop_and_stays() {
        let mut pace = pace(true);
        for _ in 0..4 {
            assert!(pace.is_on_stage());
            pace.record(TINY, true);
            pace.record(TINY, false);
        }
        for _ in 0..100_000 {
            assert!(!pace.is_on_stage());
            pace.record(PIECE, true);
            pace.record(PIECE, false);
        }
        assert_eq!(pace.longest(), 2 * PIECE);
    }

    #[test]
    fn one_that_computes_in_pieces_is_a_small_part_of_its_time_on_the_loop() {
        let mut pace = pace(false);
        let pieces = 10_000_u32;
        let mut on_loop = 0_u32;
        for _ in 0..pieces {
            on_loop += u32::from(!pace.is_on_stage());
            pace.record(PIECE / 2, false);
        }
        assert!(on_loop * 50 <= pieces, "{on_loop}");
        assert!(pace.longest() > LONG_RUN);
    }

    #[test]
    fn one_long_poll_sends_it_to_the_stage() {
        let mut pace = pace(false);
        pace.record(LONG_RUN + TINY, true);
        assert!(pace.is_on_stage());
        for _ in 0..2 * POLLS_FIRST {
            assert!(pace.is_on_stage());
            pace.record(TINY / 10, false);
        }
        assert!(!pace.is_on_stage());
    }

    /// As with a compressor: a block at a time, yielded in 16 frames.
    #[test]
    fn one_that_computes_for_long_and_hands_it_out_in_pieces_stays_on_the_stage() {
        let mut pace = pace(true);
        for _ in 0..1_000 {
            pace.record(10 * LONG_RUN, false);
            (0..16).for_each(|_| pace.record(TINY, false));
            assert!(pace.is_on_stage());
        }
    }

    #[test]
    fn a_large_body_in_small_frames_is_no_long_run() {
        let mut pace = pace(false);
        (0..100_000).for_each(|_| pace.record(TINY, false));
        assert!(!pace.is_on_stage() && pace.longest().is_zero());
    }
}
