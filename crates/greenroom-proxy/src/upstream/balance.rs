//! The choice of an upstream, and the rests of those that fail. Pure: time comes from outside.

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Settings;

/// The upstreams' load and health.
#[derive(Debug)]
pub(super) struct Balance {
    members: Vec<Member>,
    /// The first that is looked at, so that equals take turns.
    next: usize,
    in_flight_max: u32,
    failures_max: u32,
    rest_first: Duration,
    rest_longest: Duration,
}

#[derive(Debug, Default)]
pub(super) struct Member {
    pub(super) in_flight: u32,
    pub(super) failures_in_a_row: u32,
    rest: Option<Rest>,
}

#[derive(Clone, Copy, Debug)]
struct Rest {
    until: Instant,
    time: Duration,
    /// One request at a time finds out whether it is over.
    has_trial: bool,
}

/// An upstream for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) index: usize,
    /// Its response decides whether the upstream's rest is over.
    pub(super) is_trial: bool,
}

impl Member {
    pub(super) fn is_resting(&self) -> bool {
        self.rest.is_some()
    }
}

impl Balance {
    pub(super) fn new(settings: &Settings) -> Self {
        Self {
            members: settings.to.iter().map(|_| Member::default()).collect(),
            next: 0,
            in_flight_max: settings.in_flight_max,
            failures_max: settings.failures_max,
            rest_first: settings.rest_first,
            rest_longest: settings.rest_longest,
        }
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// Chooses an upstream that is not among `tried`, and counts the request as in flight there.
    /// `None` if all have as many as they may.
    ///
    /// One whose rest is over comes first, for its trial; then the healthy one with the fewest
    /// requests. If all rest, it is the one whose rest ends first.
    pub(super) fn choose(&mut self, now: Instant, tried: &[usize]) -> Option<Choice> {
        let count = self.members.len();
        let in_turn = (self.next..count).chain(0..self.next);
        let open: Vec<_> = in_turn.filter(|index| !tried.contains(index)).collect();
        let has_room = |member: &Member| member.in_flight < self.in_flight_max;
        let is_due = |rest: &Rest| rest.until <= now && !rest.has_trial;
        let due = open.iter().copied().find(|&index| {
            let member = &self.members[index];
            member.rest.as_ref().is_some_and(is_due) && has_room(member)
        });
        if let Some(index) = due {
            return Some(self.enter(index, true));
        }
        let is_resting = |index: &usize| self.members[*index].is_resting();
        let all_rest = open.iter().all(is_resting);
        let mut candidates = open;
        candidates.retain(|index| is_resting(index) == all_rest);
        candidates.retain(|&index| has_room(&self.members[index]));
        let chosen = candidates.into_iter().min_by_key(|&index| {
            let member = &self.members[index];
            (member.rest.map(|rest| rest.until), member.in_flight)
        });
        chosen.map(|index| self.enter(index, false))
    }

    fn enter(&mut self, index: usize, is_trial: bool) -> Choice {
        self.next = (index + 1) % self.members.len();
        let member = &mut self.members[index];
        member.in_flight += 1;
        if let Some(rest) = &mut member.rest {
            rest.has_trial |= is_trial;
        }
        Choice { index, is_trial }
    }

    /// Counts a request as over.
    pub(super) fn leave(&mut self, index: usize) {
        self.members[index].in_flight -= 1;
    }

    /// Notes that a trial ended without a verdict.
    pub(super) fn end_trial(&mut self, index: usize) {
        if let Some(rest) = &mut self.members[index].rest {
            rest.has_trial = false;
        }
    }

    /// Notes a response, and returns `true` if that ended a rest.
    pub(super) fn responded(&mut self, index: usize) -> bool {
        let member = &mut self.members[index];
        member.failures_in_a_row = 0;
        member.rest.take().is_some()
    }

    /// Notes a failure, and returns the time of the rest that it began, if it did.
    pub(super) fn failed(&mut self, choice: Choice, now: Instant) -> Option<Duration> {
        let member = &mut self.members[choice.index];
        member.failures_in_a_row = member.failures_in_a_row.saturating_add(1);
        let time = match &member.rest {
            Some(rest) if choice.is_trial => rest.time.saturating_mul(2),
            // It rests already, and only its trials make that longer.
            Some(_) => return None,
            None if member.failures_in_a_row < self.failures_max => return None,
            None => self.rest_first,
        };
        let time = time.min(self.rest_longest);
        member.rest = Some(Rest {
            until: now + time,
            time,
            has_trial: false,
        });
        Some(time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balance(upstreams: usize) -> Balance {
        let address = "http://127.0.0.1:1".parse().expect("an address");
        let settings = Settings {
            in_flight_max: 3,
            ..Settings::new(vec![address; upstreams])
        };
        Balance::new(&settings)
    }

    fn chosen(balance: &mut Balance, now: Instant, tried: &[usize]) -> Option<(usize, bool)> {
        let choice = balance.choose(now, tried)?;
        Some((choice.index, choice.is_trial))
    }

    fn fail(balance: &mut Balance, index: usize, is_trial: bool, now: Instant) -> Option<u64> {
        let rest = balance.failed(Choice { index, is_trial }, now)?;
        Some(rest.as_secs())
    }

    #[test]
    fn requests_go_where_fewest_are_and_in_turn_among_equals() {
        let (mut balance, now) = (balance(3), Instant::now());
        let mut next = || chosen(&mut balance, now, &[]).expect("room").0;
        assert_eq!([next(), next(), next(), next()], [0, 1, 2, 0]);
        balance.leave(1);
        assert_eq!(chosen(&mut balance, now, &[]), Some((1, false)));
        assert_eq!(chosen(&mut balance, now, &[1, 2]), Some((0, false)));
        for _ in 0..4 {
            assert!(balance.choose(now, &[]).is_some());
        }
        assert_eq!(balance.choose(now, &[]), None);
        balance.leave(2);
        assert_eq!(chosen(&mut balance, now, &[]), Some((2, false)));
    }

    #[tokio::test(start_paused = true)]
    async fn an_upstream_that_fails_rests_and_one_trial_finds_out_more() {
        let (mut balance, now) = (balance(2), Instant::now());
        assert_eq!(fail(&mut balance, 0, false, now), None);
        assert_eq!(fail(&mut balance, 0, false, now), None);
        assert_eq!(fail(&mut balance, 0, false, now), Some(1));
        // What was under way there changes nothing any more.
        assert_eq!(fail(&mut balance, 0, false, now), None);
        for _ in 0..3 {
            assert_eq!(chosen(&mut balance, now, &[]), Some((1, false)));
        }
        // The other one is full, which is no reason to disturb this one.
        assert_eq!(chosen(&mut balance, now, &[]), None);
        let due = now + Duration::from_secs(1);
        assert_eq!(chosen(&mut balance, due, &[]), Some((0, true)));
        assert_eq!(chosen(&mut balance, due, &[]), None);
        assert_eq!(fail(&mut balance, 0, true, due), Some(2));
        balance.leave(0);
        let due = due + Duration::from_secs(2);
        assert_eq!(chosen(&mut balance, due, &[]), Some((0, true)));
        // Its client left, so the next request is the trial.
        balance.end_trial(0);
        balance.leave(0);
        assert_eq!(chosen(&mut balance, due, &[]), Some((0, true)));
        assert!(balance.responded(0));
        assert_eq!(chosen(&mut balance, due, &[]), Some((0, false)));
    }

    #[test]
    fn rests_double_up_to_the_longest() {
        let (mut balance, now) = (balance(1), Instant::now());
        for _ in 0..2 {
            fail(&mut balance, 0, false, now);
        }
        let mut is_trial = false;
        let mut next = || {
            let rest = fail(&mut balance, 0, is_trial, now);
            is_trial = true;
            rest.expect("a rest")
        };
        let rests: Vec<_> = (0..7).map(|_| next()).collect();
        assert_eq!(rests, [1, 2, 4, 8, 16, 30, 30]);
    }

    #[test]
    fn if_all_rest_the_first_to_end_is_asked() {
        let (mut balance, now) = (balance(2), Instant::now());
        let later = now + Duration::from_millis(10);
        for (index, when) in [(1, now), (0, later)] {
            for _ in 0..3 {
                fail(&mut balance, index, false, when);
            }
        }
        assert_eq!(chosen(&mut balance, later, &[]), Some((1, false)));
        assert_eq!(chosen(&mut balance, later, &[1]), Some((0, false)));
    }
}
