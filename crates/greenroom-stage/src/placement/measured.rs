use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;

use super::body::Settled;
use super::origin::Origin;
use super::outer;
use super::route::Route;
use super::stopwatch::Stopwatch;
use crate::stage::Panicked;
use crate::watchdog;

pin_project! {
    /// A run of a route: takes its busy time, the time inside `poll`, over all polls of a request.
    pub(crate) struct Measured<F> {
        #[pin]
        run: F,
        origin: Origin,
        is_recorded: bool,
        busy: Duration,
    }

    impl<F> PinnedDrop for Measured<F> {
        fn drop(this: Pin<&mut Self>) {
            this.record();
        }
    }
}

impl<F> Measured<F> {
    /// A run that was busy already when it was called.
    pub(super) fn new(run: F, origin: Origin, busy: Duration) -> Self {
        Self {
            run,
            origin,
            is_recorded: false,
            busy,
        }
    }

    /// Also a run that its client gave up tells how long it was busy; one that never began does not.
    fn record(self: Pin<&mut Self>) {
        let this = self.project();
        if *this.is_recorded || this.busy.is_zero() {
            return;
        }
        *this.is_recorded = true;
        this.origin.record(*this.busy);
    }

    /// The run has ended. A body that is yet to come is a part of it, and tells of both.
    fn end(mut self: Pin<&mut Self>, settled: Settled) -> Response {
        let this = self.as_mut().project();
        let (response, is_recorded) = settled.place(*this.origin, *this.busy);
        *this.is_recorded = is_recorded;
        self.record();
        response
    }
}

impl<F, R, E> Measured<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    /// Polls on the loop: seen by the watchdog, a panic answered with 500 as on a stage.
    pub(crate) fn poll_inline(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, E>> {
        let this = self.as_mut().project();
        let (run, route) = (this.run, this.origin.route);
        let (polled, busy) = watch(route, || poll_settled(run, cx));
        *this.busy += busy;
        match polled {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(settled)) => Poll::Ready(settled.map(|settled| self.end(settled))),
            Err(panicked) => {
                let response = route.answer_panic(&panicked);
                Poll::Ready(Ok(self.end(Settled::Whole(response))))
            }
        }
    }
}

/// Polls a run, and makes of what it is ready with a response, of whose body is found out whether it
/// is there.
fn poll_settled<F, R, E>(run: Pin<&mut F>, cx: &mut Context<'_>) -> Poll<Result<Settled, E>>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    let output = ready!(run.poll(cx));
    Poll::Ready(output.map(|output| Settled::of(output.into_response(), cx)))
}

/// Runs something of this route on the loop, watched. Returns how long the route was busy with it,
/// without what was further in.
pub(super) fn watch<R>(
    route: &'static Route,
    run: impl FnOnce() -> R,
) -> (Result<R, Panicked>, Duration) {
    let guarded = || catch_unwind(AssertUnwindSafe(|| outer::within(route, run)));
    let watched = watchdog::watch(route, guarded);
    outer::took(watched.taken);
    match watched.polled {
        Ok((result, inner)) => (Ok(result), watched.busy.saturating_sub(inner)),
        Err(payload) => (Err(Panicked::of(payload)), watched.busy),
    }
}

impl<F, R, E> Future for Measured<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    type Output = Result<Response, E>;

    /// Polls on a stage, which catches panics itself.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.as_mut().project();
        let (run, route) = (this.run, this.origin.route);
        let stopwatch = Stopwatch::start();
        let (polled, inner) = outer::within(route, || poll_settled(run, cx));
        *this.busy += stopwatch.busy().saturating_sub(inner);
        polled.map(|settled| settled.map(|settled| self.end(settled)))
    }
}

impl Route {
    pub(super) fn answer_panic(&self, panicked: &Panicked) -> Response {
        self.log_panic(panicked);
        panicked.clone().into_response()
    }

    pub(super) fn log_panic(&self, panicked: &Panicked) {
        let (method, path, message) = (self.method(), self.path(), panicked.message());
        tracing::error!(method, path, message, "a handler panicked");
        if message.contains(BLOCKED_IN_PLACE) {
            self.pin();
        }
    }
}

/// What `tokio::task::block_in_place` says where it cannot be used: on a loop, as opposed to a stage.
const BLOCKED_IN_PLACE: &str = "can call blocking only when running on the multi-threaded runtime";
