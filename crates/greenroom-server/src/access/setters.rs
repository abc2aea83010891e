use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use super::{RequestObserver, ServerTiming, TraceParents, Tracing};
use crate::ServerBuilder;

/// Settings of what is told of requests.
impl ServerBuilder {
    /// Logs each request at level `info`, target `greenroom::access`, with the fields `peer`,
    /// `client` (whom a trusted proxy has named), `method`, `target`, `version`, `status` (none if
    /// it ended without a response), `bytes`, `cut` (if it ended before its response did),
    /// `micros`, `referer`, `user_agent`, `request_id` and `sample`, as far as they are known.
    /// Default: off.
    #[must_use]
    pub fn access_log(mut self, on: bool) -> Self {
        self.settings.telling.access_log = on;
        self
    }

    /// Logs one request of so many, drawn by chance; those that failed (a status of 400 or more,
    /// or none, or a response that was cut) and those that were slow (by
    /// [`slow_log`](Self::slow_log), or 1 s) are always logged. A line that stands for others says
    /// so in `sample`. Default: 1, all.
    #[must_use]
    pub fn access_log_sample(mut self, one_of: NonZeroU32) -> Self {
        self.settings.telling.access_log_sample = one_of.get();
        self
    }

    /// Gives each request an id, in the field `x-request-id` that the application sees, in its
    /// extensions ([`RequestId`](crate::RequestId)), in the response and in the logs. That of a
    /// [trusted proxy](Self::trusted_proxies) is taken over, if it is visible ASCII and no longer
    /// than 128 bytes. Default: off.
    #[must_use]
    pub fn request_ids(mut self, on: bool) -> Self {
        self.settings.telling.request_ids = on;
        self
    }

    /// Logs where the time of each request went that took this long: at level `warn`, target
    /// `greenroom::slow`, at most ten lines a second for each loop, with the number of those that
    /// were left out. Default: `None`.
    ///
    /// The fields are in microseconds: `total` is the sum of `head` (the head was coming), of
    /// `queue` (for a stage), `poll` (in the handler's code), `worker_queue` and `worker` (Perl),
    /// `waiting` (for anything else) and `write` (since the response began); `body`, until the last
    /// piece of the request's body came, is beside them, and not known over HTTP/2 and HTTP/3.
    #[must_use]
    pub fn slow_log(mut self, least: Option<Duration>) -> Self {
        self.settings.telling.slow_log = least;
        self
    }

    /// Says in responses where the time went until they began. Default: [`ServerTiming::Off`].
    #[must_use]
    pub fn server_timing(mut self, which: ServerTiming) -> Self {
        self.settings.telling.server_timing = which;
        self
    }

    /// Traces requests: tells the observer of each whose trace is sampled when it is over, with
    /// where its time went, and of the spans below it, and gives every request a
    /// [`TraceContext`](crate::TraceContext), in the fields `traceparent` and `tracestate` that the
    /// application sees, and in its extensions. A request whose `traceparent` is
    /// [taken](Self::trace_parents) belongs to that trace and is sampled if it says so; of the
    /// others, one of so many is, drawn by chance. Default: off, and the fields are passed on as
    /// they come.
    #[must_use]
    pub fn trace_requests(
        mut self,
        one_of: NonZeroU32,
        observer: impl RequestObserver + 'static,
    ) -> Self {
        self.settings.telling.tracing = Some(Tracing::new(one_of, Arc::new(observer)));
        self
    }

    /// Says whose `traceparent` is taken, if requests are [traced](Self::trace_requests). Default:
    /// [`TraceParents::Trusted`], that of [trusted proxies](Self::trusted_proxies).
    #[must_use]
    pub fn trace_parents(mut self, parents: TraceParents) -> Self {
        self.settings.telling.trace_parents = parents;
        self
    }

    /// Counts requests and their durations, by route, method and status: for
    /// [`RequestMetrics::now`](crate::RequestMetrics::now). The route is what a router or placement
    /// tells by `greenroom_timing::tell_route`. Default: off.
    #[must_use]
    pub fn request_metrics(mut self, on: bool) -> Self {
        self.settings.request_metrics = on;
        self
    }
}
