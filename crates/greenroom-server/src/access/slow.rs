//! The slow log: where the time of each slow request went.

use std::cell::Cell;
use std::net::SocketAddr;
use std::time::Duration;

use greenroom_quantiles::micros;
use greenroom_timing::Times;
use tokio::time::Instant;

use super::{Logged, number, text};
use crate::connection::About;

/// Lines of a loop within a second; when all requests are slow, as under overload, some tell as
/// much as all.
const LINES_PER_SECOND_MAX: u32 = 10;
const SECOND: Duration = Duration::from_secs(1);

/// The lines of a loop in this second.
#[derive(Debug, Default)]
pub(super) struct SlowLines {
    since: Cell<Option<Instant>>,
    written: Cell<u32>,
    left_out: Cell<u64>,
}

impl SlowLines {
    /// Returns the number of lines that were left out before this one, or `None` if this one is to
    /// be left out, too.
    fn next(&self, now: Instant) -> Option<u64> {
        if self.since.get().is_none_or(|since| now - since >= SECOND) {
            self.since.set(Some(now));
            self.written.set(0);
        }
        if self.written.get() == LINES_PER_SECOND_MAX {
            self.left_out.set(self.left_out.get() + 1);
            return None;
        }
        self.written.set(self.written.get() + 1);
        Some(self.left_out.take())
    }
}

/// Logs a slow request. Of its target only the path is told, for the query may hold secrets.
pub(super) fn log(
    about: &About,
    logged: &Logged,
    times: &Times,
    lines: &SlowLines,
    peer: Option<SocketAddr>,
) {
    let Some(left_out) = lines.next(Instant::now()) else {
        return;
    };
    tracing::warn!(
        target: "greenroom::slow",
        request_id = text(logged.id.as_ref()),
        peer = peer.map(tracing::field::display),
        client = about.client.map(tracing::field::display),
        method = %about.method,
        path = about.path(),
        route = about.route,
        status = number(about.status),
        bytes = about.sent,
        cut = about.cut.then_some(true),
        total_micros = micros(times.total),
        head_micros = micros(times.head),
        body_micros = micros(times.body),
        queue_micros = micros(times.queue),
        poll_micros = micros(times.poll),
        polls = times.polls,
        worker_queue_micros = micros(times.worker_queue),
        worker_micros = micros(times.worker),
        waiting_micros = micros(times.waiting()),
        write_micros = micros(times.write()),
        stage = times.stage.as_deref(),
        worker_pid = times.worker_pid,
        left_out = Some(left_out).filter(|count| *count > 0),
        "a slow request"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_limit_and_those_left_out_are_counted() {
        let (lines, begin) = (SlowLines::default(), Instant::now());
        let within = |time| lines.next(begin + time);
        for _ in 0..LINES_PER_SECOND_MAX {
            assert_eq!(within(Duration::ZERO), Some(0));
        }
        assert_eq!(within(SECOND / 2), None);
        assert_eq!(within(SECOND / 2), None);
        assert_eq!(within(SECOND), Some(2));
        assert_eq!(within(SECOND), Some(0));
    }
}
