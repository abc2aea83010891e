//! Spans below that of a request, as OpenTelemetry has them.

use std::str::FromStr;

use greenroom::{FinishedSpan, SpanEvent, SpanLink, SpanValue};
use opentelemetry::trace::{
    Event, Link, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, StringValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// Returns a span as it is sent.
pub(super) fn span(span: FinishedSpan, scope: &InstrumentationScope) -> SpanData {
    let error = span.error.clone();
    let state = span.state.as_deref();
    let state = state.and_then(|state| TraceState::from_str(state).ok());
    let mut events = SpanEvents::default();
    events.events = span.events.iter().map(|it| event(&span, it)).collect();
    let attributes = span.attributes.into_iter();
    let mut attributes: Vec<_> = attributes
        .map(|(name, it)| KeyValue::new(name, value(it)))
        .collect();
    attributes.extend(error.map(|error| KeyValue::new("error.type", StringValue::from(error))));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(span.trace_id),
            SpanId::from(span.span_id),
            TraceFlags::SAMPLED,
            false,
            state.unwrap_or_default(),
        ),
        parent_span_id: span.parent_id.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: false,
        span_kind: match span.kind {
            greenroom::SpanKind::Client => SpanKind::Client,
            greenroom::SpanKind::Internal => SpanKind::Internal,
        },
        name: span.name,
        start_time: span.began,
        end_time: span.began.checked_add(span.took).unwrap_or(span.began),
        attributes,
        dropped_attributes_count: 0,
        events,
        links: links(span.link),
        status: span.error.map_or(Status::Unset, |_| Status::error("")),
        instrumentation_scope: scope.clone(),
    }
}

/// Returns a link to a span of another trace, as the links of a span.
pub(super) fn links(to: Option<SpanLink>) -> SpanLinks {
    let mut links = SpanLinks::default();
    links.links = to
        .into_iter()
        .map(|to| {
            let flags = TraceFlags::default();
            let (trace, span) = (TraceId::from(to.trace_id), SpanId::from(to.span_id));
            Link::with_context(SpanContext::new(
                trace,
                span,
                flags,
                true,
                TraceState::default(),
            ))
        })
        .collect();
    links
}

fn event(of: &FinishedSpan, event: &SpanEvent) -> Event {
    let at = of.began.checked_add(event.at).unwrap_or(of.began);
    let took = KeyValue::new("greenroom.seconds", event.took.as_secs_f64());
    Event::new(event.name, at, vec![took], 0)
}

fn value(value: SpanValue) -> Value {
    match value {
        SpanValue::Number(number) => Value::I64(number),
        SpanValue::Text(text) => Value::String(StringValue::from(text)),
    }
}
