//! Admission of new work: predicts its wait in its own turn, and rejects it if that is too long.

use std::time::{Duration, Instant};

use super::builder::Settings;
use super::error::{Reason, Rejected};
use super::lanes::{Band, LENGTHS, Newcomer};
use super::priority::Priority;
use super::scheduler::View;
use super::submission::Submission;
use super::ticket::Terms;
use crate::admission::{BURST_FACTOR, Load, admit as within, predicted_wait, retry_after};

/// The part of `queue_max` that a flow with nothing waiting may exceed it by: a flood that fills
/// the queue keeps itself out, and not clients that come for the first time.
const FIRST_RESERVE_DIVISOR: usize = 16;

/// The part of the time that new work may wait for which begun work may need as well: what comes
/// beyond counts as part of the wait.
const BEGUN_DIVISOR: u32 = 2;

/// Work that waits.
pub(super) trait Queued {
    /// Returns how late it is if its turn comes now.
    fn late(&self, now: Instant) -> Duration;
}

/// The expected processor time beyond which work computes, so that it is worth interrupting.
const COMPUTES_FROM: Duration = Duration::from_millis(1);

/// The state of a stage besides its queue.
#[derive(Clone, Copy, Debug)]
pub(super) struct State<'a> {
    pub(super) settings: &'a Settings,
    /// Mean time for which a run holds a thread.
    pub(super) held: Duration,
    /// Bytes that the queue holds.
    pub(super) held_bytes: usize,
    /// Waiting runs that have been given up.
    pub(super) abandoned: usize,
}

/// New work that is not admitted.
#[derive(Clone, Copy, Debug)]
pub(super) struct NotAdmitted {
    pub(super) rejected: Rejected,
    /// The time it was expected to use.
    pub(super) expected: Duration,
}

/// Admits new work, and returns its terms.
pub(super) fn admit<T: Queued>(
    view: &mut View<'_, T>,
    submission: &Submission,
    bytes: usize,
    state: &State<'_>,
    now: Instant,
) -> Result<Terms, NotAdmitted> {
    let expected = view.lanes.expected(submission.route.key, submission.stated);
    let predicted = predict(view, submission, expected, state, now);
    let priority = submission.rank.admitted_as();
    let limit = match priority {
        Priority::Critical => state.settings.limits.queue_wait_max,
        Priority::Normal | Priority::Bulk => view.lanes.standing.wait_max(now, predicted),
    };
    let reject = |reason, retry_after| {
        let rejected = Rejected {
            reason,
            retry_after,
        };
        Err(NotAdmitted { rejected, expected })
    };
    if !has_room(view, submission, bytes, state) {
        return reject(Reason::QueueFull, retry_after(predicted, limit));
    }
    let wait_max = priority.wait_max(limit);
    if let Err(seconds) = within(predicted, wait_max) {
        return reject(Reason::Wait, seconds);
    }
    let is_burst = limit > state.settings.limits.queue_wait_max;
    Ok(Terms {
        predicted,
        // Of a burst little is known yet, and admitted work is not to be dropped for that.
        wait_max: wait_max.map(|max| max.saturating_mul(if is_burst { BURST_FACTOR } else { 1 })),
        expected,
        computes: expected > COMPUTES_FROM,
    })
}

/// Predicts the wait of the last of all waiting runs.
pub(super) fn longest_wait<T>(view: &View<'_, T>, state: &State<'_>) -> Duration {
    let backlog = view
        .lanes
        .backlog(Band::Normal)
        .max(view.lanes.backlog(Band::Short));
    let waiting = view.waiting.saturating_sub(state.abandoned);
    predicted_wait(&Load {
        waiting,
        backlog,
        ..load(view, state)
    })
}

fn has_room<T>(
    view: &View<'_, T>,
    submission: &Submission,
    bytes: usize,
    state: &State<'_>,
) -> bool {
    let settings = state.settings;
    let waiting = view.waiting.saturating_sub(state.abandoned);
    let is_first = view
        .lanes
        .queue(submission.band())
        .len_of(submission.flow())
        == 0;
    let reserve = if is_first {
        settings.limits.queue_max / FIRST_RESERVE_DIVISOR
    } else {
        0
    };
    let queue_max = submission
        .rank
        .admitted_as()
        .queue_max(settings.limits.queue_max);
    waiting < queue_max.saturating_add(reserve)
        && state.held_bytes.saturating_add(bytes) <= settings.limits.queue_bytes_max
}

/// Predicts the wait of this work: the work that goes before it counts, not all that waits.
///
/// Work of clients that are given no more threads goes before nobody else's; and for one of these
/// clients the threads at work are all that there are.
fn predict<T: Queued>(
    view: &mut View<'_, T>,
    submission: &Submission,
    expected: Duration,
    state: &State<'_>,
    now: Instant,
) -> Duration {
    let (band, flow) = (submission.band(), submission.flow());
    let settings = state.settings;
    let computing = u32::try_from(settings.bounds.compute_max).unwrap_or(u32::MAX);
    let in_time = settings.limits.queue_wait_max.saturating_mul(computing);
    let newcomer = Newcomer {
        band,
        flow,
        expected,
        begun_max: in_time / BEGUN_DIVISOR,
    };
    let longest = in_time.saturating_mul(2 * BURST_FACTOR);
    let is_at_limit = band != Band::Critical && view.at_limit.contains(&flow.client);
    let set_aside = if is_at_limit { &[] } else { view.at_limit };
    let waiting = waiting_without(view, set_aside).saturating_sub(state.abandoned);
    let mut load = load(view, state);
    view.lanes.without(set_aside, |lanes| {
        load.backlog = lanes.ahead(&newcomer, longest, now);
        load.waiting = part(waiting, load.backlog, lanes.backlog(band));
        let oldest = lanes.queue(band).oldest(flow);
        load.head_late = oldest.map_or(Duration::ZERO, |work| work.late(now));
    });
    if is_at_limit {
        load.threads_max = load.running;
    }
    predicted_wait(&load)
}

/// Returns the number of waiting runs that have a turn without these clients.
fn waiting_without<T>(view: &View<'_, T>, clients: &[u64]) -> usize {
    let have_turns = LENGTHS.map(|length| view.lanes.len_without(length, clients));
    view.waiting - (view.lanes.len() - have_turns.iter().sum::<usize>())
}

/// Estimates how many of the waiting runs go before, if each is expected to use the same.
fn part(waiting: usize, ahead: Duration, backlog: Duration) -> usize {
    if backlog.is_zero() || ahead >= backlog {
        return waiting;
    }
    let part = ahead.as_nanos().saturating_mul(waiting as u128) / backlog.as_nanos();
    usize::try_from(part).unwrap_or(waiting)
}

/// Returns the load of a stage in which nothing waits.
fn load<T>(view: &View<'_, T>, state: &State<'_>) -> Load {
    let bounds = &state.settings.bounds;
    Load {
        waiting: 0,
        running: view.started,
        compute_threads: bounds.compute_max,
        threads_max: bounds.threads_max,
        backlog: Duration::ZERO,
        held: state.held,
        head_late: Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::{Entry, Lanes};
    use super::super::simulation::{QUEUE_WAIT_MAX, settings, submission};
    use super::*;

    const FLOOD: u32 = 1;
    const POLITE: u32 = 2;

    impl Queued for () {
        fn late(&self, _now: Instant) -> Duration {
            Duration::ZERO
        }
    }

    /// All but a few threads block for seconds, and more such work waits.
    #[test]
    fn work_of_a_client_that_is_given_no_more_threads_is_before_nobody_elses() {
        let now = Instant::now();
        let mut lanes = Lanes::new(QUEUE_WAIT_MAX, now);
        let flow = |client| submission(1, client).flow();
        for is_begun in [false, true] {
            for _ in 0..1_000 {
                let entry = Entry {
                    band: Band::Normal,
                    flow: flow(FLOOD),
                    expected: Duration::ZERO,
                    advance: None,
                    is_begun,
                };
                lanes.push(entry, ());
            }
        }
        // Else it would have its turn before.
        lanes.usage.charge(flow(POLITE), QUEUE_WAIT_MAX, now);
        let at_limit = [flow(FLOOD).client];
        assert!(lanes.pop(|_| true, &at_limit, now).is_none());
        let mut settings = settings(2);
        settings.bounds.threads_max = 576;
        let state = State {
            settings: &settings,
            held: Duration::from_secs(2),
            held_bytes: 0,
            abandoned: 0,
        };
        let mut predicted = |client, at_limit: &[u64]| {
            let mut view = View {
                waiting: lanes.len(),
                started: 504,
                lanes: &mut lanes,
                at_limit,
            };
            let submission = submission(1, client);
            predict(&mut view, &submission, Duration::ZERO, &state, now)
        };
        assert!(predicted(POLITE, &[]) > QUEUE_WAIT_MAX);
        assert_eq!(predicted(POLITE, &at_limit), Duration::ZERO);
        assert!(predicted(FLOOD, &at_limit) > predicted(FLOOD, &[]));
    }
}
