//! The route of a request, where its time goes and the spans below its own, told by whoever knows
//! them to the server of its connection; the parts of its body, told by the server; and the file
//! that the body of its response comes from, offered by that.
//!
//! Routers, stages and gateways do not know the server that they run under, and the server knows
//! none of them; what passes between them is here.

mod body;
mod file;
mod method;
mod route;
mod span;
mod timing;

pub use body::{body_bytes_during, tell_body_part};
pub use file::{FileOffer, FileRest};
pub use method::known_method;
pub use route::{during, interned, tell_route};
pub use span::{
    FinishedSpan, OpenSpan, SPAN_TEXT_BYTES_MAX, SPANS_MAX, Span, SpanEvent, SpanKind, SpanLink,
    SpanObserver, SpanValue,
};
pub use timing::{Times, Timing};
