use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use greenroom_timing::FileOffer;
use http_body::Body as _;

use super::{Account, Early, Polled};
use crate::placement::measured::watch;
use crate::placement::outer;
use crate::placement::stopwatch::Stopwatch;
use crate::stage::{JoinHandle, Panicked, Stage};

/// A body and its account, at home on the loop or away on the stage.
#[derive(Debug)]
pub(super) struct Trip {
    pub(super) body: Body,
    pub(super) account: Account,
}

/// A body that comes back to the loop, with the result of its poll, or to wait there.
#[derive(Debug)]
pub(super) struct Back {
    pub(super) trip: Trip,
    pub(super) ready: Option<Early>,
}

impl Trip {
    /// Polls on the loop, watched by the watchdog.
    pub(super) fn poll_home(&mut self, cx: &mut Context<'_>) -> Poll<Polled> {
        let origin = &self.account.origin;
        let body = Pin::new(&mut self.body);
        let poll = || origin.client.within_if_another(|| body.poll_frame(cx));
        let (polled, poll_time, _) = watch(origin.route(), poll);
        let polled = polled.unwrap_or_else(|panicked| self.fail(panicked));
        self.account.polled(poll_time, polled.is_pending());
        polled
    }

    /// Spawns the poll of the next frame on the stage.
    pub(super) fn depart(self, stage: &Stage) -> JoinHandle<Back> {
        let submission = self.account.submission();
        stage.submit_begun(submission, Away(Some(self)))
    }

    fn poll_away(&mut self, cx: &mut Context<'_>) -> Poll<Polled> {
        let route = self.account.origin.route();
        let stopwatch = Stopwatch::start();
        let body = Pin::new(&mut self.body);
        let poll = || outer::within(route, || body.poll_frame(cx));
        let polled = catch_unwind(AssertUnwindSafe(poll));
        let poll_time = stopwatch.poll_time();
        let (polled, poll_time) = match polled {
            Ok((polled, shares)) => (polled, poll_time.saturating_sub(shares.inner)),
            Err(payload) => (self.fail(Panicked::of(payload)), poll_time),
        };
        self.account.polled(poll_time, polled.is_pending());
        polled
    }

    /// Drops the body, and settles its account.
    pub(super) fn end(self) {
        let Self { body, account } = self;
        account.origin.route().drop_guarded(body);
    }

    /// Ends the body after a panic: the response has begun, so no status can be sent any more.
    fn fail(&self, panicked: Panicked) -> Poll<Polled> {
        self.account.origin.route().log_panic(&panicked);
        Poll::Ready(Some(Err(axum::Error::new(panicked))))
    }
}

/// A body on the stage, until it has a frame, or has been seen to do nothing but wait.
struct Away(Option<Trip>);

impl Future for Away {
    type Output = Back;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Back> {
        let trip = self.0.as_mut().expect("polled until it is back");
        let ready = match FileOffer::during(|| trip.poll_away(cx)) {
            (Poll::Ready(polled), offer) => Some(Early { polled, offer }),
            (Poll::Pending, _) if trip.account.is_on_stage() => return Poll::Pending,
            (Poll::Pending, _) => None,
        };
        let trip = self.0.take().expect("it was just polled");
        Poll::Ready(Back { trip, ready })
    }
}
