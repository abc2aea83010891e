use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::response::{IntoResponse, Response};
use greenroom_timing::Timing;
use http::Extensions;
use pin_project_lite::pin_project;

use super::body::Settled;
use super::origin::Origin;
use super::outer;
use super::parts;
use super::route::Route;
use super::stopwatch::Stopwatch;
use crate::stage::{Panicked, Stage};
use crate::watchdog;

pin_project! {
    /// A run of a route, which measures its poll time: the time inside `poll`, over all polls of a
    /// request, without what [parts](parts::counted) of its body are given.
    pub(crate) struct Measured<F> {
        #[pin]
        run: F,
        origin: Origin,
        is_recorded: bool,
        poll_time: Duration,
        timed: Option<Timed>,
    }

    impl<F> PinnedDrop for Measured<F> {
        fn drop(this: Pin<&mut Self>) {
            this.record_given_up();
        }
    }
}

/// The record of a request that was submitted to a stage.
pub(super) struct Timed {
    timing: Timing,
    /// There until the run has its first thread.
    submitted: Option<Instant>,
}

impl Timed {
    /// Returns the record of a request that is submitted now, if it has one.
    pub(super) fn of(extensions: &Extensions) -> Option<Self> {
        if !Timing::is_used() {
            return None;
        }
        extensions.get::<Timing>().map(|timing| Self {
            timing: timing.clone(),
            submitted: Some(Instant::now()),
        })
    }

    fn polled(&mut self, stage: Option<&Stage>, poll: impl FnOnce()) {
        if let Some(submitted) = self.submitted.take() {
            let stage = stage.map_or("", Stage::name);
            self.timing.queued(stage, submitted.elapsed());
        }
        self.timing.polled(poll);
    }
}

impl<F> Measured<F> {
    /// Creates a run that took `poll_time` when it was called.
    #[inline]
    pub(super) fn new(run: F, origin: Origin, poll_time: Duration) -> Self {
        Self {
            run,
            origin,
            is_recorded: false,
            poll_time,
            timed: None,
        }
    }

    /// Has the run tell how long it waited for a thread and was polled there.
    pub(super) fn timed(mut self, timed: Option<Timed>) -> Self {
        self.timed = timed;
        self
    }

    /// Records a run that its client gave up, if it was long by then: of what it would have done
    /// else nothing is known, least of all that it is short.
    fn record_given_up(self: Pin<&mut Self>) {
        if self.poll_time > self.origin.route().long_run() {
            self.record();
        }
    }

    /// Records the run's poll time; a run that never began is not recorded.
    fn record(self: Pin<&mut Self>) {
        let this = self.project();
        if *this.is_recorded || this.poll_time.is_zero() {
            return;
        }
        *this.is_recorded = true;
        this.origin.record(*this.poll_time);
    }

    /// Ends the run. A body that is yet to come is a part of it, and records both.
    fn end(mut self: Pin<&mut Self>, response: &mut Response, settled: &mut Settled) {
        let this = self.as_mut().project();
        *this.is_recorded = settled.place(response, this.origin, *this.poll_time);
        self.record();
    }
}

impl<F, R, E> Measured<F>
where
    F: Future<Output = Result<R, E>>,
    R: IntoResponse,
{
    /// Polls on the loop, watched by the watchdog; a panic becomes a 500 as on a stage.
    pub(crate) fn poll_inline(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Response, E>> {
        let this = self.as_mut().project();
        let (run, route) = (this.run, this.origin.route());
        let mut ended = Ended::default();
        let client = &this.origin.client;
        let poll = || client.within_if_another(|| ended.poll(run, route, cx));
        let (polled, poll_time, bytes) = watch(route, poll);
        *this.poll_time += parts::counted(bytes, poll_time, this.origin.short_run());
        if let Err(panicked) = polled {
            ended = Ended::whole(route.panic_response(&panicked));
        }
        self.pass_on(&mut ended)
    }

    /// Converts the end of a poll, if it was one, to the response for the server.
    fn pass_on(self: Pin<&mut Self>, ended: &mut Ended<E>) -> Poll<Result<Response, E>> {
        match &mut ended.result {
            None => return Poll::Pending,
            Some(Ok(response)) => self.end(response, &mut ended.settled),
            Some(Err(_)) => self.record(),
        }
        ended.result.take().map_or(Poll::Pending, Poll::Ready)
    }
}

/// The result of a handler, if it has ended, and the kind of its body. It is left here by who polls
/// it: a response is some hundred bytes, and each function that returned it would copy them.
struct Ended<E> {
    result: Option<Result<Response, E>>,
    settled: Settled,
}

impl<E> Default for Ended<E> {
    fn default() -> Self {
        Self {
            result: None,
            settled: Settled::Whole,
        }
    }
}

impl<E> Ended<E> {
    fn whole(response: Response) -> Self {
        Self {
            result: Some(Ok(response)),
            settled: Settled::Whole,
        }
    }

    fn poll<F, R>(&mut self, run: Pin<&mut F>, route: &Route, cx: &mut Context<'_>)
    where
        F: Future<Output = Result<R, E>>,
        R: IntoResponse,
    {
        let Poll::Ready(output) = run.poll(cx) else {
            return;
        };
        self.result = Some(output.map(IntoResponse::into_response));
        if let Some(Ok(response)) = &mut self.result {
            let settle = || Settled::of(response, route, cx);
            match catch_unwind(AssertUnwindSafe(settle)) {
                Ok(settled) => self.settled = settled,
                Err(payload) => {
                    // Dropped during the panic, one that panics as well would end the process.
                    route.drop_guarded(self.result.take());
                    resume_unwind(payload);
                }
            }
        }
    }
}

/// Runs a closure of this route on the loop, watched. Returns the poll time of the route, without
/// that of inner routes, and the bytes of its request's body that it took.
pub(super) fn watch<R>(
    route: &Route,
    run: impl FnOnce() -> R,
) -> (Result<R, Panicked>, Duration, u64) {
    let guarded = || catch_unwind(AssertUnwindSafe(|| outer::within(route, run)));
    let watched = watchdog::watch(route, guarded);
    outer::took(watched.taken);
    match watched.polled {
        Ok((result, shares)) => {
            let poll_time = watched.poll_time.saturating_sub(shares.inner);
            (Ok(result), poll_time, shares.body_bytes)
        }
        Err(payload) => (Err(Panicked::of(payload)), watched.poll_time, 0),
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
        let (run, route, stage) = (this.run, this.origin.route(), this.origin.stage());
        let mut ended = Ended::default();
        let poll = || ended.poll(run, route, cx);
        let poll = || match this.timed {
            Some(timed) => timed.polled(stage, poll),
            None => poll(),
        };
        let stopwatch = Stopwatch::start();
        let ((), shares) = outer::within(route, poll);
        let poll_time = stopwatch.poll_time().saturating_sub(shares.inner);
        *this.poll_time += parts::counted(shares.body_bytes, poll_time, this.origin.short_run());
        self.pass_on(&mut ended)
    }
}

impl Route {
    pub(super) fn panic_response(&self, panicked: &Panicked) -> Response {
        self.log_panic(panicked);
        panicked.clone().into_response()
    }

    /// Drops a value of the handler's. A destructor that panics costs nothing else.
    pub(super) fn drop_guarded<T>(&self, value: T) {
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| drop(value))) {
            self.log_panic(&Panicked::of(payload));
        }
    }

    pub(super) fn log_panic(&self, panicked: &Panicked) {
        let (method, path, message) = (self.method(), self.path(), panicked.message());
        tracing::error!(method, path, message, "a handler panicked");
        if BLOCKED.iter().any(|text| message.contains(text)) {
            self.pin();
        }
    }
}

/// The panic messages of what blocks where it cannot: on a loop, as opposed to a stage.
const BLOCKED: [&str; 3] = [
    // `tokio::task::block_in_place`.
    "can call blocking only when running on the multi-threaded runtime",
    // `Handle::block_on`, `Runtime::block_on`, `blocking_lock`, `blocking_send` and the like.
    "attempted to block the current thread while the thread is being used to drive asynchronous",
    // The end of a `Runtime` of the handler's own.
    "Cannot drop a runtime in a context where blocking is not allowed",
];
