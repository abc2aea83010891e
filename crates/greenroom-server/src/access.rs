//! Telling operators of each request: the access log, the slow log, the request's id, the
//! field `Server-Timing`, and traces.

mod ids;
mod line;
mod sampling;
mod server_timing;
mod setters;
mod slow;
mod trace;
mod tracing;

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use greenroom_timing::Timing;
use http::header::{HeaderMap, REFERER, USER_AGENT};
use http::{HeaderValue, Request, StatusCode, Version};
use tokio::time::Instant;

use crate::connection::About;
use crate::proxies::Sender;
use crate::settings::Settings;
use ids::Ids;
pub use ids::{REQUEST_ID_BYTES_MAX, RequestId};
pub(crate) use line::log_rejection;
use sampling::Sampling;
pub use server_timing::ServerTiming;
use slow::SlowLines;
pub use trace::{TRACE_STATE_BYTES_MAX, TRACE_STATE_MEMBERS_MAX, TraceContext};
pub use tracing::{FinishedRequest, RequestObserver, TRACED_TEXT_BYTES_MAX, TraceParents};
use tracing::{Traced, Tracing};

/// Settings of what a server tells of its requests.
#[derive(Clone, Debug)]
pub(crate) struct Telling {
    pub(crate) access_log: bool,
    /// One request of so many is logged, and each that failed or was slow.
    pub(crate) access_log_sample: u32,
    pub(crate) request_ids: bool,
    pub(crate) slow_log: Option<Duration>,
    pub(crate) server_timing: ServerTiming,
    pub(crate) tracing: Option<Tracing>,
    pub(crate) trace_parents: TraceParents,
}

impl Default for Telling {
    fn default() -> Self {
        Self {
            access_log: false,
            access_log_sample: 1,
            request_ids: false,
            slow_log: None,
            server_timing: ServerTiming::Off,
            tracing: None,
            trace_parents: TraceParents::Trusted,
        }
    }
}

impl Telling {
    /// Returns `true` if somebody may want to know where the time of a request goes.
    pub(crate) fn is_timed(&self) -> bool {
        self.tells_times() || self.tracing.is_some()
    }

    /// Returns `true` if that is to be told of every request.
    fn tells_times(&self) -> bool {
        self.slow_log.is_some() || self.server_timing != ServerTiming::Off
    }

    fn is_off(&self) -> bool {
        !self.access_log && !self.request_ids && !self.is_timed()
    }
}

/// The state of a loop for telling of its requests.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    ids: Ids,
    sampling: Sampling,
    slow: Rc<SlowLines>,
}

/// Facts about a request that only those have who told the server to tell them.
#[derive(Debug)]
pub(crate) struct Logged {
    began: Instant,
    version: Version,
    referer: Option<HeaderValue>,
    user_agent: Option<HeaderValue>,
    /// There if requests have ids.
    id: Option<HeaderValue>,
    /// There if somebody wants to know where the time goes.
    pub(crate) timing: Option<Timing>,
    /// The response says it, too.
    says_times: bool,
    line: line::Wanted,
    slow: Option<(Duration, Rc<SlowLines>)>,
    /// There if its trace is sampled.
    traced: Option<Traced>,
}

impl Logged {
    /// Collects them, if anything is to be told, and gives the request its id and its record of
    /// times. The head took `head` to come.
    #[inline]
    pub(crate) fn begin<B>(
        request: &mut Request<B>,
        sender: Sender,
        of: (&Settings, &Teller),
        arrival: (Duration, bool),
    ) -> Option<Box<Self>> {
        if of.0.telling.is_off() {
            return None;
        }
        Some(Self::collect(request, sender, of, arrival))
    }

    fn collect<B>(
        request: &mut Request<B>,
        sender: Sender,
        (settings, teller): (&Settings, &Teller),
        (head, is_tls): (Duration, bool),
    ) -> Box<Self> {
        let telling = &settings.telling;
        let id = telling
            .request_ids
            .then(|| teller.ids.give(request, sender));
        let tracing = telling.tracing.as_ref();
        let of = (teller, telling.trace_parents);
        let traced = tracing.and_then(|tracing| tracing.begin(request, of, (sender, is_tls)));
        let is_timed = telling.tells_times() || traced.is_some();
        let span = traced.as_ref().map(|traced| traced.span.clone());
        let timing = is_timed.then(|| Timing::begin(head, span));
        if let Some(timing) = &timing {
            request.extensions_mut().insert(timing.clone());
        }
        let slow = telling.slow_log;
        let headers = request.headers();
        Box::new(Self {
            began: Instant::now(),
            version: request.version(),
            referer: headers.get(REFERER).cloned(),
            user_agent: headers.get(USER_AGENT).cloned(),
            id,
            timing,
            says_times: telling.server_timing.is_for(sender, headers),
            line: teller.sampling.next(telling),
            slow: slow.map(|least| (least, Rc::clone(&teller.slow))),
            traced,
        })
    }

    /// Completes the head of the response.
    fn respond(&self, headers: &mut HeaderMap) {
        if let Some(id) = &self.id {
            ids::tell(id, headers);
        }
        if let Some(timing) = &self.timing {
            timing.responded();
            if self.says_times {
                server_timing::tell(&timing.times(), headers);
            }
        }
    }
}

impl About {
    /// Runs a step of the request's handler, which may tell its route, and takes its time if
    /// somebody wants to know.
    pub(crate) fn during<T>(about: Option<&mut Self>, step: impl FnOnce() -> T) -> T {
        let Some(about) = about.filter(|about| about.is_watched()) else {
            return step();
        };
        let timing = about
            .logged
            .as_ref()
            .and_then(|logged| logged.timing.as_ref());
        let (result, route) = greenroom_timing::during(|| match timing {
            Some(timing) => timing.polled(step),
            None => step(),
        });
        about.route = route.or(about.route);
        result
    }

    fn is_watched(&self) -> bool {
        self.metered.is_some() || self.logged.is_some()
    }

    /// Completes the head of the response.
    pub(crate) fn respond(&self, headers: &mut HeaderMap) {
        if let Some(logged) = &self.logged {
            logged.respond(headers);
        }
    }

    /// A piece of the request's body has come.
    pub(crate) fn body_came(&self) {
        let logged = self.logged.as_ref();
        if let Some(timing) = logged.and_then(|logged| logged.timing.as_ref()) {
            timing.body_came();
        }
    }
}

/// Ends a request: counts it, and logs it where that is wanted, with the response's status, or none
/// if it ended without one. The peer is who is connected, the client whom a trusted proxy has
/// named.
#[inline]
pub(crate) fn end(about: &mut About, peer: Option<SocketAddr>) {
    if about.is_watched() {
        tell_end(about, peer);
    }
}

fn tell_end(about: &mut About, peer: Option<SocketAddr>) {
    if let Some(metered) = about.metered.take() {
        metered.end(about.route, about.status);
    }
    let Some(logged) = &about.logged else {
        return;
    };
    if let Some(timing) = &logged.timing {
        let times = timing.times();
        if let Some((least, lines)) = &logged.slow
            && times.total >= *least
        {
            slow::log(about, logged, &times, lines, peer);
        }
        if let Some(traced) = &logged.traced {
            traced.end(about, logged, times, peer);
        }
    }
    line::log(about, logged, peer);
}

/// Returns the status as logs show it.
fn number(status: Option<StatusCode>) -> Option<u16> {
    status.map(|status| status.as_u16())
}

/// Returns the id of a request as logs show it: it is visible ASCII.
fn text(id: Option<&HeaderValue>) -> Option<&str> {
    id.and_then(|id| id.to_str().ok())
}
