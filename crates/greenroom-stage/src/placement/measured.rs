use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use pin_project_lite::pin_project;

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
        route: &'static Route,
        is_inline: bool,
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
    /// A run on the loop, which was busy already when it was called.
    pub(crate) fn called(run: F, route: &'static Route, busy: Duration) -> Self {
        Self {
            run,
            route,
            is_inline: true,
            is_recorded: false,
            busy,
        }
    }

    /// A run on a stage.
    pub(crate) fn staged(run: F, route: &'static Route) -> Self {
        Self {
            run,
            route,
            is_inline: false,
            is_recorded: false,
            busy: Duration::ZERO,
        }
    }

    /// Also a run that its client gave up tells how long it was busy; one that never began does not.
    fn record(self: Pin<&mut Self>) {
        let this = self.project();
        if *this.is_recorded || this.busy.is_zero() {
            return;
        }
        *this.is_recorded = true;
        if *this.is_inline {
            this.route.record_inline(*this.busy);
        } else {
            this.route.record_staged(*this.busy);
        }
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
        let run = this.run;
        let (polled, busy) = watch(this.route, || run.poll(cx));
        *this.busy += busy;
        let answer = match polled {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(answer)) => answer.map(IntoResponse::into_response),
            Err(panicked) => Ok(this.route.answer_panic(&panicked)),
        };
        self.record();
        Poll::Ready(answer)
    }
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

impl<F: Future> Future for Measured<F> {
    type Output = F::Output;

    /// Polls on a stage, which catches panics itself.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.as_mut().project();
        let stopwatch = Stopwatch::start();
        let (polled, inner) = outer::within(this.route, || this.run.poll(cx));
        *this.busy += stopwatch.busy().saturating_sub(inner);
        if polled.is_ready() {
            self.record();
        }
        polled
    }
}

impl Route {
    pub(super) fn answer_panic(&self, panicked: &Panicked) -> Response {
        let (method, path, message) = (self.method(), self.path(), panicked.message());
        tracing::error!(method, path, message, "a handler panicked");
        panicked.clone().into_response()
    }
}
