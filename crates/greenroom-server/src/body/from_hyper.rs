use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use greenroom_timing::tell_body_part;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep};

use super::{BodyError, BodyPace, Open};
use crate::Limits;

/// State that a body of HTTP/2 or HTTP/3 shares with the task that responds to its request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Noted {
    /// The server responds to this.
    pub(crate) rejected: Arc<OnceLock<BodyError>>,
    pub(crate) pace: BodyPace,
}

/// A body that hyper receives, held to the same limits as one that we receive.
#[derive(Debug)]
pub(crate) struct FromHyper {
    incoming: Incoming,
    bytes_max: u64,
    received: u64,
    pace: Pace,
    noted: Noted,
    /// While there is more of it. Only of HTTP/2, where the connection needs to know.
    open: Option<Open>,
}

/// The time that the application has waited for the client, and the most that it will.
#[derive(Debug)]
pub(crate) struct Pace {
    grace: Duration,
    rate_min: u64,
    waited: Duration,
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl FromHyper {
    pub(crate) fn new(
        incoming: Incoming,
        limits: &Limits,
        noted: Noted,
        open: Option<Open>,
    ) -> Self {
        Self {
            incoming,
            bytes_max: limits.body_bytes_max,
            received: 0,
            pace: Pace::new(limits),
            noted,
            open,
        }
    }

    pub(crate) fn poll_frame(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let promised = self.received + self.incoming.size_hint().lower();
        if let Err(error) = self.within_limit(promised) {
            return Poll::Ready(Some(Err(error)));
        }
        let Poll::Ready(frame) = Pin::new(&mut self.incoming).poll_frame(cx) else {
            if self.noted.pace.is_lifted() {
                return Poll::Pending;
            }
            ready!(self.pace.poll_over(self.received, cx));
            return Poll::Ready(Some(Err(self.refuse(BodyError::TooSlow))));
        };
        self.pace.heard();
        match frame {
            None => {
                self.open = None;
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(self.refuse(reason(&error))))),
            Some(Ok(frame)) => {
                let bytes = frame.data_ref().map_or(0, Bytes::len);
                self.received += bytes as u64;
                tell_body_part(bytes as u64);
                if let Some(open) = &self.open {
                    open.take(bytes);
                }
                Poll::Ready(Some(self.within_limit(self.received).map(|()| frame)))
            }
        }
    }

    /// It is the application that responds to a body over the limit.
    fn within_limit(&self, bytes: u64) -> Result<(), BodyError> {
        if bytes > self.bytes_max {
            return Err(BodyError::TooLarge);
        }
        Ok(())
    }

    /// Has the server respond to this, whatever the application makes of it.
    fn refuse(&self, error: BodyError) -> BodyError {
        *self.noted.rejected.get_or_init(|| error)
    }

    pub(crate) fn is_end(&self) -> bool {
        self.incoming.is_end_stream()
    }

    pub(crate) fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

fn reason(error: &hyper::Error) -> BodyError {
    if error.is_parse() || error.is_user() {
        BodyError::Malformed
    } else {
        BodyError::Disconnected
    }
}

impl Pace {
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            grace: limits.body_grace,
            rate_min: limits.body_rate_min,
            waited: Duration::ZERO,
            waiting: None,
        }
    }

    /// Ready when the client was waited for longer than `received` bytes allow.
    pub(crate) fn poll_over(&mut self, received: u64, cx: &mut Context<'_>) -> Poll<()> {
        let allowed = allowance(self.grace, self.rate_min, received).saturating_sub(self.waited);
        let (_, sleep) = self
            .waiting
            .get_or_insert_with(|| (Instant::now(), Box::pin(sleep(allowed))));
        sleep.as_mut().poll(cx)
    }

    pub(crate) fn heard(&mut self) {
        if let Some((since, _)) = self.waiting.take() {
            self.waited += since.elapsed();
        }
    }
}

/// Returns the time for which a client may be waited for in all, once it has sent `received` bytes:
/// with a grace of 10 s and 1,000 bytes a second, 10 s for the first byte and 12 s for 2,000.
pub(crate) fn allowance(grace: Duration, rate_min: u64, received: u64) -> Duration {
    match rate_min {
        0 => Duration::MAX,
        rate => {
            let earned = Duration::from_millis(received.saturating_mul(1_000) / rate);
            grace.saturating_add(earned)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn allowance_grows_by_a_second_for_each_thousand_bytes() {
        let grace = Duration::from_secs(10);
        assert_eq!(allowance(grace, 1_000, 0), grace);
        assert_eq!(allowance(grace, 1_000, 2_000), Duration::from_secs(12));
        assert!(allowance(grace, 0, 0) > Duration::from_secs(1 << 40));
    }
}
