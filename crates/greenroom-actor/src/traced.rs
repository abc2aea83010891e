//! Messages that are sent while a sampled request is worked for: each has a span.
//!
//! A message without one is put into its envelope as it is, so it costs one read to find out.

use std::any::Any;
use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};
use std::time::{Duration, Instant};

use greenroom_timing::{OpenSpan, Span, SpanKind};

use crate::BoxError;
use crate::actor::Actor;
use crate::cell::AnyCell;
use crate::context::Context;
use crate::raw::{ActorCell, Deliver, Envelope, Job};
use crate::reason::Reason;

const HANDLED: &str = "handled";
/// The outcome of a message that is dropped before anybody has had it, with its actor's memory.
const DROPPED: &str = "dropped";

/// The span of a message, from its coming into the mailbox to the end of its handling.
pub(crate) struct MessageSpan {
    /// From there until the actor has taken the message.
    waited: Option<Duration>,
    /// In the handler's code.
    poll_time: Duration,
    polls: u32,
    /// There while the handler's code runs.
    polling: Option<Instant>,
    outcome: &'static str,
    span: OpenSpan,
}

/// A message with its span.
struct Traced<T> {
    content: T,
    span: Box<MessageSpan>,
}

/// A handler that waits, with the span of its message.
struct TracedJob<'a> {
    // Dropped first: what the handler does then is its work.
    job: Job<'a>,
    span: Box<MessageSpan>,
}

impl<A: Actor> ActorCell<A> {
    /// Puts a message into an envelope, with a span if this thread works for one.
    #[inline]
    pub(crate) fn envelop<T: Deliver<A>>(&self, content: T) -> Envelope<A> {
        envelope(content, MessageSpan::begin(self, T::message))
    }
}

/// Puts a message into an envelope, with its span if it has one.
#[inline]
pub(crate) fn envelope<A: Actor, T: Deliver<A>>(
    content: T,
    span: Option<Box<MessageSpan>>,
) -> Envelope<A> {
    match span {
        None => Envelope::new(content),
        Some(span) => envelope_traced(content, span),
    }
}

// Not inlined, so that messages without a span do not pay for it.
#[cold]
#[inline(never)]
fn envelope_traced<A: Actor, T: Deliver<A>>(content: T, span: Box<MessageSpan>) -> Envelope<A> {
    Envelope::new(Traced { content, span })
}

impl MessageSpan {
    /// Begins the span of a message to an actor, if this thread works for one.
    #[inline]
    pub(crate) fn begin<A: Actor>(
        to: &ActorCell<A>,
        message: fn() -> &'static str,
    ) -> Option<Box<Self>> {
        if Span::is_used() {
            Self::begin_below_current(to, message)
        } else {
            None
        }
    }

    #[cold]
    #[inline(never)]
    fn begin_below_current<A: Actor>(
        to: &ActorCell<A>,
        message: fn() -> &'static str,
    ) -> Option<Box<Self>> {
        Self::begin_below(&Span::current()?, to, message()).map(Box::new)
    }

    fn begin_below<A: Actor>(
        parent: &Span,
        to: &ActorCell<A>,
        message: &'static str,
    ) -> Option<Self> {
        let settings = &to.shared.settings;
        let actor = settings.type_name();
        let mut span = parent.begin(SpanKind::Internal, format!("handle {actor}"))?;
        for (name, text) in [
            ("messaging.system", "greenroom_actor"),
            ("messaging.operation.name", "handle"),
            ("messaging.operation.type", "process"),
            ("messaging.destination.template", actor),
            ("greenroom.actor.message", message),
        ] {
            span.attribute(name, text);
        }
        span.attribute("messaging.destination.name", AnyCell::path(to));
        span.attribute(
            "greenroom.actor.dispatcher",
            settings.dispatcher.name.to_string(),
        );
        Some(Self {
            waited: None,
            poll_time: Duration::ZERO,
            polls: 0,
            polling: None,
            outcome: DROPPED,
            span,
        })
    }

    /// Runs a poll of the handler.
    fn polled<T>(&mut self, poll: impl FnOnce() -> T) -> T {
        self.waited.get_or_insert_with(|| self.span.elapsed());
        self.polls += 1;
        self.polling = Some(Instant::now());
        self.outcome = Reason::Failed.label();
        let result = self.span.span().within(poll);
        self.outcome = Reason::Aborted.label();
        self.stop_watch();
        result
    }

    fn end(&mut self, is_handled: bool) {
        self.outcome = if is_handled {
            HANDLED
        } else {
            Reason::Failed.label()
        };
    }

    fn stop_watch(&mut self) {
        let polled = self.polling.take().map(|began| began.elapsed());
        self.poll_time += polled.unwrap_or_default();
    }
}

impl Drop for MessageSpan {
    fn drop(&mut self) {
        // There if the handler panics.
        self.stop_watch();
        let Self { span, outcome, .. } = self;
        span.attribute("greenroom.actor.outcome", *outcome);
        span.outcome((*outcome != HANDLED).then(|| (*outcome).into()));
        let Some(waited) = self.waited else {
            return;
        };
        let whole = span.elapsed();
        let waiting = whole.saturating_sub(waited + self.poll_time);
        span.attribute("greenroom.polls", i64::from(self.polls));
        span.event("mailbox wait", waited, waited);
        span.event("first poll", waited, self.poll_time);
        span.event("waiting", whole, waiting);
    }
}

impl<A: Actor, T: Deliver<A>> Deliver<A> for Traced<T> {
    fn deliver<'a>(self, actor: &'a mut A, context: &'a mut Context<A>) -> Option<Job<'a>> {
        let Self { content, mut span } = self;
        let Some(job) = span.polled(|| content.deliver(actor, context)) else {
            span.end(true);
            return None;
        };
        Some(Job::new(job.about(), TracedJob { job, span }))
    }

    fn refuse(self, reason: Reason) -> Box<dyn Any + Send> {
        let Self { content, mut span } = self;
        span.outcome = reason.label();
        content.refuse(reason)
    }

    fn message() -> &'static str {
        T::message()
    }
}

impl Future for TracedJob<'_> {
    type Output = Result<(), BoxError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<Self::Output> {
        let Self { job, span } = &mut *self;
        let polled = span.polled(|| job.poll(cx));
        if let Poll::Ready(end) = &polled {
            span.end(end.is_ok());
        }
        polled
    }
}
