//! Spans of a request, by OpenTelemetry's semantic conventions for HTTP.

use std::str::FromStr;
use std::time::{Duration, SystemTime};

use greenroom::{FinishedRequest, SpanLink, known_method};
use http::{StatusCode, Version};
use opentelemetry::trace::{
    Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{IdGenerator, RandomIdGenerator, SpanData, SpanEvents, SpanLinks};

use super::below::links;

/// Returns the server's span of a request, and that of the Perl worker which had it, if one had.
pub(super) fn spans(request: &FinishedRequest, scope: &InstrumentationScope) -> Vec<SpanData> {
    let parts = Parts { request, scope };
    let mut spans = vec![parts.server()];
    spans.extend(parts.worker());
    spans
}

/// Returns the number of these spans.
pub(super) fn count(request: &FinishedRequest) -> u64 {
    let times = &request.times;
    1 + u64::from(times.worker_began.is_some() && times.worker_ended.is_some())
}

struct Parts<'a> {
    request: &'a FinishedRequest,
    scope: &'a InstrumentationScope,
}

impl Parts<'_> {
    fn server(&self) -> SpanData {
        let (request, trace) = (self.request, &self.request.trace);
        let parent = trace.parent_id();
        let mut attributes = self.attributes();
        let error = error(request);
        attributes.extend(
            error
                .clone()
                .map(|error| KeyValue::new("error.type", error)),
        );
        let mut events = SpanEvents::default();
        events.events = self.events();
        SpanData {
            parent_span_is_remote: parent.is_some(),
            attributes,
            events,
            links: links(
                trace
                    .link()
                    .map(|(trace_id, span_id)| SpanLink { trace_id, span_id }),
            ),
            status: error.map_or(Status::Unset, |_| Status::error("")),
            ..self.span(
                SpanId::from(trace.span_id()),
                parent.map_or(SpanId::INVALID, SpanId::from),
                (SpanKind::Server, name(request)),
                (Duration::ZERO, request.times.total),
            )
        }
    }

    fn worker(&self) -> Option<SpanData> {
        let times = &self.request.times;
        let during = (
            times.head + times.worker_began?,
            times.head + times.worker_ended?,
        );
        let pid = times.worker_pid.map(i64::from);
        let span = self.span(
            RandomIdGenerator::default().new_span_id(),
            SpanId::from(self.request.trace.span_id()),
            (SpanKind::Internal, "psgi worker".to_owned()),
            during,
        );
        Some(SpanData {
            attributes: pid
                .map(|pid| KeyValue::new("process.pid", pid))
                .into_iter()
                .collect(),
            ..span
        })
    }

    /// Returns a span from and to these times since the first byte of the head.
    fn span(
        &self,
        id: SpanId,
        parent: SpanId,
        (span_kind, name): (SpanKind, String),
        (begin, end): (Duration, Duration),
    ) -> SpanData {
        let trace = &self.request.trace;
        let state = trace
            .state()
            .and_then(|state| TraceState::from_str(state).ok());
        SpanData {
            span_context: SpanContext::new(
                TraceId::from(trace.trace_id()),
                id,
                TraceFlags::SAMPLED,
                false,
                state.unwrap_or_default(),
            ),
            parent_span_id: parent,
            parent_span_is_remote: false,
            span_kind,
            name: name.into(),
            start_time: self.at(begin),
            end_time: self.at(end),
            attributes: Vec::new(),
            dropped_attributes_count: 0,
            events: SpanEvents::default(),
            links: SpanLinks::default(),
            status: Status::Unset,
            instrumentation_scope: self.scope.clone(),
        }
    }

    fn attributes(&self) -> Vec<KeyValue> {
        let request = self.request;
        let text = |name: &'static str, value: Option<String>| {
            value.map(|value| KeyValue::new(name, value))
        };
        let number =
            |name: &'static str, value: Option<i64>| value.map(|value| KeyValue::new(name, value));
        let method = request.method.as_str();
        let known = known_method(method);
        let unknown = known.is_none().then(|| shortened(method));
        let scheme = if request.is_tls { "https" } else { "http" };
        let peer = request.peer;
        [
            text(
                "http.request.method",
                Some(known.unwrap_or("_OTHER").to_owned()),
            ),
            text("http.request.method_original", unknown),
            text("url.path", Some(request.path.clone())),
            text("url.scheme", Some(scheme.to_owned())),
            text("http.route", request.route.map(str::to_owned)),
            number(
                "http.response.status_code",
                request.status.map(|it| it.as_u16().into()),
            ),
            number("http.response.body.size", i64::try_from(request.sent).ok()),
            text(
                "network.protocol.version",
                version(request.version).map(str::to_owned),
            ),
            text(
                "client.address",
                request.client.map(|client| client.to_string()),
            ),
            text(
                "network.peer.address",
                peer.map(|peer| peer.ip().to_string()),
            ),
            number("network.peer.port", peer.map(|peer| peer.port().into())),
            text("user_agent.original", request.user_agent.clone()),
            text("greenroom.request_id", request.request_id.clone()),
            text(
                "greenroom.stage",
                request.times.stage.as_deref().map(str::to_owned),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns what happened, in order; each with the time that it took or ended, in seconds.
    fn events(&self) -> Vec<Event> {
        let times = &self.request.times;
        let mut events = Vec::new();
        let mut add = |name: &'static str, at: Duration, took: Duration| {
            let took = KeyValue::new("greenroom.seconds", took.as_secs_f64());
            events.push(Event::new(name, self.at(at), vec![took], 0));
        };
        if !times.head.is_zero() {
            add("head", times.head, times.head);
        }
        if !times.body.is_zero() {
            add("body", times.head + times.body, times.body);
        }
        if let Some(first) = times.first_thread {
            add(
                "queue wait",
                times.head + first.saturating_sub(times.queue),
                times.queue,
            );
            add("first poll", times.head + first, times.poll);
        }
        if let Some(began) = times.worker_began {
            let since = began.saturating_sub(times.worker_queue);
            add("worker queue wait", times.head + since, times.worker_queue);
        }
        if let Some(response) = times.response {
            let begins = times.head + response;
            add("waiting", begins, times.waiting());
            add("write", begins, times.write());
        }
        events.sort_by_key(|event| event.timestamp);
        events
    }

    fn at(&self, time: Duration) -> SystemTime {
        let began = self.request.began;
        began.checked_add(time).unwrap_or(began)
    }
}

fn name(request: &FinishedRequest) -> String {
    let method = known_method(request.method.as_str()).unwrap_or("HTTP");
    match request.route {
        Some(route) => format!("{method} {route}"),
        None => method.to_owned(),
    }
}

/// Returns the kind of the failure, if it is the server's, or the request has none response.
fn error(request: &FinishedRequest) -> Option<String> {
    match request.status {
        Some(status) if status.is_server_error() => Some(StatusCode::as_str(&status).to_owned()),
        Some(_) if !request.is_cut => None,
        _ => Some("cut".to_owned()),
    }
}

fn version(version: Version) -> Option<&'static str> {
    let versions = [
        (Version::HTTP_10, "1.0"),
        (Version::HTTP_11, "1.1"),
        (Version::HTTP_2, "2"),
        (Version::HTTP_3, "3"),
    ];
    let known = versions.iter().find(|(known, _)| *known == version);
    known.map(|(_, name)| *name)
}

fn shortened(text: &str) -> String {
    text.chars().take(64).collect()
}
