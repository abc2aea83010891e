//! Tracing of requests: who observes them, and what of them.

use std::fmt::Debug;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::SystemTime;

use greenroom_timing::{FinishedSpan, Span, SpanObserver, Times};
use http::{HeaderValue, Method, Request, StatusCode, Version};

use super::trace::{self, Parent, TRACEPARENT, TRACESTATE, TraceContext};
use super::{Logged, Teller};
use crate::connection::About;
use crate::proxies::Sender;

/// The longest path, field and id that an observer is told, in bytes; what follows is left out.
pub const TRACED_TEXT_BYTES_MAX: usize = 1_024;

/// An observer of requests, such as one that sends their spans to a collector.
pub trait RequestObserver: Debug + Send + Sync {
    /// Takes a request that is over, and whose trace is sampled. It is called on the loop that
    /// served the request: it must not block, and hand over what takes long.
    fn on_end(&self, request: FinishedRequest);

    /// Takes a span that is over, below that of such a request: of a message to an actor, of a
    /// request to an upstream. It may be over later than the request. It is called wherever the
    /// span ended, so the same holds. Does nothing by default.
    fn on_span(&self, span: FinishedSpan) {
        drop(span);
    }

    /// A span was left out, as there were [`SPANS_MAX`](greenroom_timing::SPANS_MAX) below one
    /// request. Does nothing by default.
    fn on_span_omitted(&self) {}
}

/// The requests whose `traceparent` is taken: that they belong to its trace, and are sampled if it
/// says so. A request of others begins a trace, with a link to theirs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TraceParents {
    /// None.
    Off,
    /// Those that a trusted proxy sent.
    #[default]
    Trusted,
    /// All: any client may join a trace, and have its requests recorded.
    All,
}

impl TraceParents {
    fn are_taken_from(self, sender: Sender) -> bool {
        match self {
            Self::Off => false,
            Self::Trusted => sender == Sender::TrustedProxy,
            Self::All => true,
        }
    }
}

/// A request that is over.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct FinishedRequest {
    /// Its place in a trace.
    pub trace: TraceContext,
    /// The time at which the first byte of its head came.
    pub began: SystemTime,
    /// The parts of its time.
    pub times: Times,
    /// Its method.
    pub method: Method,
    /// The path of its target, without the query, which may hold secrets.
    pub path: String,
    /// The route that it came to, if one was told.
    pub route: Option<&'static str>,
    /// The status of its response; `None` if it ended without one.
    pub status: Option<StatusCode>,
    /// `true` if it ended before its response did.
    pub is_cut: bool,
    /// The bytes of the response's body.
    pub sent: u64,
    /// The version of HTTP.
    pub version: Version,
    /// `true` if it came over TLS.
    pub is_tls: bool,
    /// The address that is connected; `None` for a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The client: whom a trusted proxy has named, else who is connected.
    pub client: Option<IpAddr>,
    /// The field `User-Agent`.
    pub user_agent: Option<String>,
    /// Its id, if requests have ids.
    pub request_id: Option<String>,
}

/// Settings of tracing.
#[derive(Clone, Debug)]
pub(crate) struct Tracing {
    one_of: NonZeroU32,
    observer: Arc<dyn RequestObserver>,
    /// The same, as those who begin spans know it.
    spans: Arc<dyn SpanObserver>,
}

/// An observer of requests, as one of spans.
#[derive(Debug)]
struct Spans(Arc<dyn RequestObserver>);

impl SpanObserver for Spans {
    fn on_span(&self, span: FinishedSpan) {
        self.0.on_span(span);
    }

    fn on_omitted(&self) {
        self.0.on_span_omitted();
    }
}

/// A request whose end the observer is told.
#[derive(Debug)]
pub(super) struct Traced {
    context: TraceContext,
    is_tls: bool,
    observer: Arc<dyn RequestObserver>,
    /// The parent of what is done for the request.
    pub(super) span: Span,
}

impl Tracing {
    pub(super) fn new(one_of: NonZeroU32, observer: Arc<dyn RequestObserver>) -> Self {
        let spans = Arc::new(Spans(Arc::clone(&observer)));
        Self {
            one_of,
            observer,
            spans,
        }
    }

    /// Gives a request its place in a trace, in its fields and its extensions. Returns `None` if
    /// the trace is not sampled.
    pub(super) fn begin<B>(
        &self,
        request: &mut Request<B>,
        (teller, parents): (&Teller, TraceParents),
        (sender, is_tls): (Sender, bool),
    ) -> Option<Traced> {
        let said = Parent::read(request.headers());
        let (parent, link) = if parents.are_taken_from(sender) {
            (said, None)
        } else {
            (None, said)
        };
        let context = TraceContext {
            trace_id: parent
                .as_ref()
                .map_or_else(|| teller.ids.trace_id(), |parent| parent.trace_id),
            span_id: teller.ids.span_id(),
            parent_id: parent.as_ref().map(|parent| parent.span_id),
            link: link.map(|link| (link.trace_id, link.span_id)),
            is_sampled: match &parent {
                Some(parent) => parent.is_sampled,
                None => teller.sampling.is_drawn(self.one_of.get()),
            },
            // Without its parent it means nothing (Trace Context, 3.3).
            state: parent.and_then(|_| trace::state(request.headers())),
        };
        tell(&context, request);
        context.is_sampled.then(|| Traced {
            span: Span::of_request(
                context.trace_id,
                context.span_id,
                context.state(),
                Arc::clone(&self.spans),
            ),
            context,
            is_tls,
            observer: Arc::clone(&self.observer),
        })
    }
}

/// Tells the application, and those it asks, the server's span.
fn tell<B>(context: &TraceContext, request: &mut Request<B>) {
    let headers = request.headers_mut();
    if let Ok(value) = HeaderValue::try_from(context.traceparent()) {
        headers.insert(TRACEPARENT, value);
    }
    match &context.state {
        Some(state) => headers.insert(TRACESTATE, state.clone()),
        None => headers.remove(TRACESTATE),
    };
    request.extensions_mut().insert(context.clone());
}

impl Traced {
    pub(super) fn end(
        &self,
        about: &About,
        logged: &Logged,
        times: Times,
        peer: Option<SocketAddr>,
    ) {
        let forwarded = about.client.map(|client| client.ip);
        let text = |value: &HeaderValue| shortened(&String::from_utf8_lossy(value.as_bytes()));
        let now = SystemTime::now();
        self.observer.on_end(FinishedRequest {
            trace: self.context.clone(),
            began: now.checked_sub(times.total).unwrap_or(now),
            times,
            method: about.method.clone(),
            path: shortened(about.path().unwrap_or_default()),
            route: about.route,
            status: about.status,
            is_cut: about.cut,
            sent: about.sent,
            version: logged.version,
            is_tls: self.is_tls,
            peer,
            client: forwarded.or_else(|| peer.map(|peer| peer.ip())),
            user_agent: logged.user_agent.as_ref().map(text),
            request_id: logged.id.as_ref().map(text),
        });
    }
}

/// Returns a copy, which unlike the request's own bytes keeps no others.
fn shortened(text: &str) -> String {
    text[..text.floor_char_boundary(TRACED_TEXT_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Nobody;

    impl RequestObserver for Nobody {
        fn on_end(&self, _request: FinishedRequest) {}
    }

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn begun(one_of: u32, parent: &str) -> (Request<()>, Option<Traced>) {
        begun_by(Sender::TrustedProxy, TraceParents::Trusted, one_of, parent)
    }

    fn begun_by(
        sender: Sender,
        parents: TraceParents,
        one_of: u32,
        parent: &str,
    ) -> (Request<()>, Option<Traced>) {
        let mut request = Request::new(());
        let headers = request.headers_mut();
        headers.insert(TRACEPARENT, parent.try_into().expect("a value"));
        headers.insert(TRACESTATE, HeaderValue::from_static("rojo=1"));
        let one_of = NonZeroU32::new(one_of).expect("not zero");
        let tracing = Tracing::new(one_of, Arc::new(Nobody));
        let of = (&Teller::default(), parents);
        let traced = tracing.begin(&mut request, of, (sender, false));
        (request, traced)
    }

    #[test]
    fn a_parent_decides_what_is_sampled_and_is_passed_on_with_our_span() {
        for (flags, is_sampled) in [("-01", true), ("-00", false)] {
            let (request, traced) = begun(
                if is_sampled { u32::MAX } else { 1 },
                &PARENT.replace("-01", flags),
            );
            assert_eq!(traced.is_some(), is_sampled);
            let context = request
                .extensions()
                .get::<TraceContext>()
                .expect("it is told");
            assert_eq!(context.parent_id(), Some(0x00f0_67aa_0ba9_02b7));
            assert_eq!(request.headers()[TRACEPARENT], context.traceparent());
            assert_eq!(request.headers()[TRACESTATE], "rojo=1");
            let told = context.traceparent();
            assert!(
                told.starts_with(&PARENT[..36]) && told.ends_with(flags),
                "{told}"
            );
            assert!(!told.contains("00f067aa0ba902b7"), "{told}");
        }
    }

    #[test]
    fn a_malformed_parent_begins_a_trace() {
        let (request, traced) = begun(1, &PARENT[1..]);
        let traced = traced.expect("it is sampled");
        assert_eq!(traced.context.parent_id(), None);
        assert_ne!(traced.context.trace_id(), 0);
        assert_eq!(request.headers().get(TRACESTATE), None);
        assert_eq!(request.headers()[TRACEPARENT], traced.context.traceparent());
    }

    #[test]
    fn a_client_joins_no_trace_unless_all_may() {
        for (sender, parents, is_taken) in [
            (Sender::Client, TraceParents::Trusted, false),
            (Sender::TrustedProxy, TraceParents::Trusted, true),
            (Sender::TrustedProxy, TraceParents::Off, false),
            (Sender::Client, TraceParents::All, true),
        ] {
            // The sample takes all, so the flag counts only where the parent is taken.
            let (request, traced) = begun_by(sender, parents, 1, &PARENT.replace("-01", "-00"));
            assert_eq!(traced.is_none(), is_taken, "{sender:?} {parents:?}");
            let context = request.extensions().get::<TraceContext>();
            let context = context.expect("it is told");
            assert_eq!(context.parent_id().is_some(), is_taken);
            assert_eq!(request.headers().contains_key(TRACESTATE), is_taken);
            let theirs = (
                0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736,
                0x00f0_67aa_0ba9_02b7,
            );
            assert_eq!(context.link(), (!is_taken).then_some(theirs));
            assert_eq!(context.trace_id() == theirs.0, is_taken);
        }
    }

    #[test]
    fn texts_have_a_limit() {
        let long = "ä".repeat(TRACED_TEXT_BYTES_MAX);
        assert_eq!(shortened(&long).len(), TRACED_TEXT_BYTES_MAX);
        assert_eq!(shortened("/hello"), "/hello");
    }
}
