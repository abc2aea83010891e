use std::borrow::Cow;
use std::time::{Duration, SystemTime};

/// The longest text of a span, in bytes; what follows is left out.
pub const SPAN_TEXT_BYTES_MAX: usize = 1_024;

/// A span that is over.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FinishedSpan {
    /// The id of its trace.
    pub trace_id: u128,
    /// The `tracestate` that the request came with.
    pub state: Option<Box<str>>,
    /// Its id.
    pub span_id: u64,
    /// The id of the span that it is below; `None` if it begins a trace.
    pub parent_id: Option<u64>,
    /// The span of another trace that led to it.
    pub link: Option<SpanLink>,
    /// Its part in what goes on between processes.
    pub kind: SpanKind,
    /// Its name.
    pub name: Cow<'static, str>,
    /// The time at which it began.
    pub began: SystemTime,
    /// The time that it took.
    pub took: Duration,
    /// Attributes: names and values.
    pub attributes: Vec<(&'static str, SpanValue)>,
    /// Events, in the order in which they were told.
    pub events: Vec<SpanEvent>,
    /// The kind of its failure, if it failed.
    pub error: Option<Cow<'static, str>>,
}

/// The place of a span in another trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpanLink {
    /// The id of the trace.
    pub trace_id: u128,
    /// The id of the span.
    pub span_id: u64,
}

/// The part of a span in what goes on between processes, as OpenTelemetry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpanKind {
    /// A request to another process.
    Client,
    /// Work within this process.
    Internal,
}

/// A value of an attribute.
#[derive(Clone, Debug, PartialEq)]
pub enum SpanValue {
    /// A number without unit.
    Number(i64),
    /// A text of at most [`SPAN_TEXT_BYTES_MAX`].
    Text(Cow<'static, str>),
}

/// Something that happened within a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpanEvent {
    /// Its name.
    pub name: &'static str,
    /// From the begin of the span to it.
    pub at: Duration,
    /// The time that it took, or that ended then.
    pub took: Duration,
}

impl From<i64> for SpanValue {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<u16> for SpanValue {
    fn from(number: u16) -> Self {
        Self::Number(number.into())
    }
}

impl From<&'static str> for SpanValue {
    fn from(text: &'static str) -> Self {
        Self::Text(text[..text.floor_char_boundary(SPAN_TEXT_BYTES_MAX)].into())
    }
}

impl From<String> for SpanValue {
    fn from(mut text: String) -> Self {
        text.truncate(text.floor_char_boundary(SPAN_TEXT_BYTES_MAX));
        Self::Text(text.into())
    }
}
