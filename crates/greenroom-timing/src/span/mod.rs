//! Spans below that of a request: messages to actors, requests to upstreams.

mod finished;
mod open;

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Debug;
use std::hash::{BuildHasher, RandomState};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

pub use finished::{FinishedSpan, SPAN_TEXT_BYTES_MAX, SpanEvent, SpanKind, SpanLink, SpanValue};
pub use open::OpenSpan;

/// Spans that one process begins below one of a request's, at most. An actor that sends itself a
/// message for each one that it handles would have a trace without an end.
pub const SPANS_MAX: u32 = 1_000;

/// `true` once a request of the process had a span.
static IS_USED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: RefCell<Option<Span>> = const { RefCell::new(None) };
}

/// An observer of spans that are over.
pub trait SpanObserver: Debug + Send + Sync {
    /// Takes a span that is over. It is called wherever that ended, also while a handler's panic
    /// unwinds: it must neither block nor panic, and hand over what takes long.
    fn on_span(&self, span: FinishedSpan);

    /// A span was not begun, as there were [`SPANS_MAX`] already.
    fn on_omitted(&self);
}

/// A span that others are begun below: that of a sampled request, or of what it led to. Clones are
/// the same span.
#[derive(Clone, Debug)]
pub struct Span {
    trace: Arc<Trace>,
    id: u64,
}

/// The spans of a process below one request.
#[derive(Debug)]
struct Trace {
    id: u128,
    state: Option<Box<str>>,
    observer: Arc<dyn SpanObserver>,
    begun: AtomicU32,
    /// The last state of the generator of ids.
    last: AtomicU64,
}

impl Span {
    /// Returns the span of a request, with its place in a trace, and the `tracestate` that it came
    /// with. Whoever calls this tells of the span itself; the observer is told of those below.
    #[must_use]
    pub fn of_request(
        trace_id: u128,
        id: u64,
        state: Option<&str>,
        observer: Arc<dyn SpanObserver>,
    ) -> Self {
        IS_USED.store(true, Ordering::Relaxed);
        Self {
            trace: Arc::new(Trace::new(trace_id, id, state.map(Into::into), observer)),
            id,
        }
    }

    /// Returns the span that the calling thread works for, if it works for a sampled request: in a
    /// handler and in what that calls, in the handler of an actor's message, and in
    /// [`carry`](Self::carry).
    #[must_use]
    pub fn current() -> Option<Self> {
        if !Self::is_used() {
            return None;
        }
        // While the thread ends there is none.
        let current = CURRENT.try_with(|current| current.borrow().clone());
        current.ok().flatten()
    }

    /// Returns `true` if the calling thread works for a span.
    #[inline]
    #[must_use]
    pub fn is_current() -> bool {
        Self::is_used() && Self::current().is_some()
    }

    /// Returns `false` while no request of the process had a span, so that nobody need look for
    /// one: one read.
    #[inline]
    #[must_use]
    pub fn is_used() -> bool {
        IS_USED.load(Ordering::Relaxed)
    }

    /// Runs a function that works for this span.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _restore = Restore(CURRENT.replace(Some(self.clone())));
        work()
    }

    /// Returns a future that works for this span, such as that of a spawned task, which otherwise
    /// works for none.
    pub async fn carry<T>(self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        std::future::poll_fn(|cx| self.within(|| future.as_mut().poll(cx))).await
    }

    /// Begins a span below this one; `None` if the trace has [`SPANS_MAX`]. The name should be one
    /// of few: what tells one from another is an attribute.
    #[must_use]
    pub fn begin(&self, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> Option<OpenSpan> {
        if !self.trace.may_begin() {
            return None;
        }
        let span = Self {
            trace: Arc::clone(&self.trace),
            id: self.trace.new_id(),
        };
        let parent = Some(self.id);
        Some(OpenSpan::begin(span, (parent, None), kind, name.into()))
    }

    /// Begins a trace of its own, with a link to this span, for what goes on long after that, such
    /// as a message of a WebSocket that a request has opened.
    #[must_use]
    pub fn begin_linked(&self, kind: SpanKind, name: impl Into<Cow<'static, str>>) -> OpenSpan {
        let trace_id = (u128::from(random()) << 64) | u128::from(random().max(1));
        let id = random().max(1);
        let observer = Arc::clone(&self.trace.observer);
        let span = Self {
            trace: Arc::new(Trace::new(trace_id, id, None, observer)),
            id,
        };
        let link = Some(SpanLink {
            trace_id: self.trace.id,
            span_id: self.id,
        });
        OpenSpan::begin(span, (None, link), kind, name.into())
    }

    /// Returns the id of its trace, as 16 bytes of which one is not zero.
    #[must_use]
    pub fn trace_id(&self) -> u128 {
        self.trace.id
    }

    /// Returns its id, as 8 bytes of which one is not zero.
    #[must_use]
    pub fn span_id(&self) -> u64 {
        self.id
    }

    /// Returns the field `traceparent` (W3C, Trace Context, 3.2) for requests to others, with this
    /// span as parent.
    #[must_use]
    pub fn traceparent(&self) -> String {
        format!("00-{:032x}-{:016x}-01", self.trace.id, self.id)
    }
}

impl Trace {
    fn new(id: u128, first: u64, state: Option<Box<str>>, observer: Arc<dyn SpanObserver>) -> Self {
        Self {
            id,
            state,
            observer,
            begun: AtomicU32::new(0),
            last: AtomicU64::new(first),
        }
    }

    fn may_begin(&self) -> bool {
        let more = |begun: u32| (begun < SPANS_MAX).then_some(begun + 1);
        let order = Ordering::Relaxed;
        let begun = self.begun.fetch_update(order, order, more);
        if begun.is_err() {
            self.observer.on_omitted();
        }
        begun.is_ok()
    }

    /// Returns the next id by splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number
    /// generators, OOPSLA 2014), from the request's, which no other has: they are no secrets.
    fn new_id(&self) -> u64 {
        const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;
        let state = self.last.fetch_add(GAMMA, Ordering::Relaxed);
        let state = state.wrapping_add(GAMMA);
        let state = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let state = (state ^ (state >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (state ^ (state >> 31)).max(1)
    }
}

/// Returns a number that others cannot know before; not for secrets.
fn random() -> u64 {
    RandomState::new().hash_one(())
}

/// A guard that restores the span before, also when the work panics.
struct Restore(Option<Span>);

impl Drop for Restore {
    fn drop(&mut self) {
        let _ours = CURRENT.replace(self.0.take());
    }
}

#[cfg(test)]
mod tests;
