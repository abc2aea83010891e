//! Admission of new work: predicts its wait in its own turn, and rejects it if that is too long.

use std::time::{Duration, Instant};

use super::builder::Settings;
use super::error::{Reason, Rejected};
use super::lanes::{Band, Newcomer};
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
    predicted_wait(&load(view, backlog, waiting, Duration::ZERO, state))
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
fn predict<T: Queued>(
    view: &View<'_, T>,
    submission: &Submission,
    expected: Duration,
    state: &State<'_>,
    now: Instant,
) -> Duration {
    let (band, flow) = (submission.band(), submission.flow());
    let (lanes, settings) = (&view.lanes, state.settings);
    let computing = u32::try_from(settings.bounds.compute_max).unwrap_or(u32::MAX);
    let in_time = settings.limits.queue_wait_max.saturating_mul(computing);
    let newcomer = Newcomer {
        band,
        flow,
        expected,
        begun_max: in_time / BEGUN_DIVISOR,
    };
    let longest = in_time.saturating_mul(2 * BURST_FACTOR);
    let ahead = lanes.ahead(&newcomer, longest, now);
    let waiting = view.waiting.saturating_sub(state.abandoned);
    let before = part(waiting, ahead, lanes.backlog(band));
    let oldest = lanes.queue(band).oldest(flow);
    let late = oldest.map_or(Duration::ZERO, |work| work.late(now));
    predicted_wait(&load(view, ahead, before, late, state))
}

/// Estimates how many of the waiting runs go before, if each is expected to use the same.
fn part(waiting: usize, ahead: Duration, backlog: Duration) -> usize {
    if backlog.is_zero() || ahead >= backlog {
        return waiting;
    }
    let part = ahead.as_nanos().saturating_mul(waiting as u128) / backlog.as_nanos();
    usize::try_from(part).unwrap_or(waiting)
}

fn load<T>(
    view: &View<'_, T>,
    backlog: Duration,
    waiting: usize,
    head_late: Duration,
    state: &State<'_>,
) -> Load {
    let bounds = &state.settings.bounds;
    Load {
        waiting,
        running: view.started,
        compute_threads: bounds.compute_max,
        threads_max: bounds.threads_max,
        backlog,
        held: state.held,
        head_late,
    }
}
