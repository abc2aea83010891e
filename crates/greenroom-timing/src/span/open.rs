use std::borrow::Cow;
use std::time::{Duration, Instant, SystemTime};

use super::{FinishedSpan, Span, SpanEvent, SpanKind, SpanLink, SpanValue};

/// A span that is under way. It ends when this is dropped, and its observer is told.
#[derive(Debug)]
pub struct OpenSpan {
    span: Span,
    began: Instant,
    /// There until it is dropped. On the heap, since what carries it is moved more than it is.
    told: Option<Box<FinishedSpan>>,
}

impl OpenSpan {
    pub(super) fn begin(
        span: Span,
        (parent_id, link): (Option<u64>, Option<SpanLink>),
        kind: SpanKind,
        name: Cow<'static, str>,
    ) -> Self {
        let told = Box::new(FinishedSpan {
            trace_id: span.trace.id,
            state: span.trace.state.clone(),
            span_id: span.id,
            parent_id,
            link,
            kind,
            name,
            began: SystemTime::now(),
            took: Duration::ZERO,
            attributes: Vec::new(),
            events: Vec::new(),
            error: None,
        });
        Self {
            span,
            began: Instant::now(),
            told: Some(told),
        }
    }

    /// Returns the span, for those below it.
    #[must_use]
    pub fn span(&self) -> &Span {
        &self.span
    }

    /// Returns the time since its begin.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Adds an attribute.
    pub fn attribute(&mut self, name: &'static str, value: impl Into<SpanValue>) {
        if let Some(told) = &mut self.told {
            told.attributes.push((name, value.into()));
        }
    }

    /// Adds an event, at this time since the begin, which took, or ended, that long.
    pub fn event(&mut self, name: &'static str, at: Duration, took: Duration) {
        if let Some(told) = &mut self.told {
            told.events.push(SpanEvent { name, at, took });
        }
    }

    /// Says whether what the span is of failed, and how; the last word counts.
    pub fn outcome(&mut self, error: Option<Cow<'static, str>>) {
        if let Some(told) = &mut self.told {
            told.error = error;
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if let Some(mut told) = self.told.take() {
            told.took = self.began.elapsed();
            self.span.trace.observer.on_span(*told);
        }
    }
}
