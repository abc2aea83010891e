use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

use super::*;

#[derive(Debug, Default)]
struct Kept {
    spans: Mutex<Vec<FinishedSpan>>,
    omitted: AtomicU32,
}

impl SpanObserver for Kept {
    fn on_span(&self, span: FinishedSpan) {
        self.spans.lock().expect("nobody panics").push(span);
    }

    fn on_omitted(&self) {
        self.omitted.fetch_add(1, Ordering::Relaxed);
    }
}

impl Kept {
    fn take(&self) -> Vec<FinishedSpan> {
        std::mem::take(&mut *self.spans.lock().expect("nobody panics"))
    }
}

fn root() -> (Span, Arc<Kept>) {
    let kept = Arc::new(Kept::default());
    let span = Span::of_request(7, 9, Some("rojo=1"), Arc::clone(&kept) as _);
    (span, kept)
}

fn current_id() -> Option<u64> {
    Span::current().map(|span| span.span_id())
}

#[test]
fn work_for_a_span_nests_and_ends_also_by_a_panic() {
    let (outer, _kept) = root();
    assert!(Span::is_used());
    assert_eq!(current_id(), None);
    outer.within(|| {
        let inner = outer.begin(SpanKind::Internal, "inner").expect("the first");
        let panicking = || inner.span().within(|| panic!("as it should"));
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(panicking));
        assert!(caught.is_err());
        assert_eq!(current_id(), Some(9));
        let id = inner.span().within(current_id);
        assert_eq!(id, Some(inner.span().span_id()));
    });
    assert_eq!(current_id(), None);
}

#[test]
fn a_span_that_is_over_tells_what_is_known_of_it() {
    let (request, kept) = root();
    let mut span = request.begin(SpanKind::Client, "GET").expect("the first");
    span.attribute("server.port", 80_u16);
    span.attribute("url.full", "ä".repeat(SPAN_TEXT_BYTES_MAX));
    span.event("head", Duration::from_millis(2), Duration::from_millis(1));
    span.outcome(Some("cancelled".into()));
    span.outcome(None);
    assert_eq!(kept.take(), []);
    drop(span);
    let [told] = &kept.take()[..] else {
        panic!("it is one");
    };
    assert_eq!((told.trace_id, told.parent_id), (7, Some(9)));
    assert_eq!((&*told.name, told.kind), ("GET", SpanKind::Client));
    assert_eq!(told.state.as_deref(), Some("rojo=1"));
    assert_eq!(told.attributes[0], ("server.port", SpanValue::Number(80)));
    let SpanValue::Text(text) = &told.attributes[1].1 else {
        panic!("{told:?}");
    };
    assert_eq!(text.len(), SPAN_TEXT_BYTES_MAX);
    assert_eq!(told.events.len(), 1);
    assert_eq!((told.error.as_deref(), told.link), (None, None));
}

#[test]
fn a_trace_has_an_end() {
    let (request, kept) = root();
    let begin = || request.begin(SpanKind::Internal, "one of many");
    let open: Vec<_> = (0..SPANS_MAX + 2).filter_map(|_| begin()).collect();
    let ids: HashSet<_> = open.iter().map(|span| span.span().span_id()).collect();
    assert_eq!(ids.len(), SPANS_MAX as usize);
    assert!(!ids.contains(&0) && !ids.contains(&9));
    assert_eq!(kept.omitted.load(Ordering::Relaxed), 2);
}

#[test]
fn a_linked_span_begins_a_trace() {
    let (request, kept) = root();
    let span = request.begin_linked(SpanKind::Internal, "a frame");
    let below = span.span().begin(SpanKind::Internal, "below");
    drop((below, span));
    let [below, span] = &kept.take()[..] else {
        panic!("they are two");
    };
    assert!(span.trace_id != 7 && span.trace_id == below.trace_id);
    assert_eq!(
        (span.parent_id, below.parent_id),
        (None, Some(span.span_id))
    );
    let link = SpanLink {
        trace_id: 7,
        span_id: 9,
    };
    assert_eq!((span.link, below.link), (Some(link), None));
    assert_eq!(span.state, None);
}

#[test]
fn the_field_for_others_has_the_span_as_parent() {
    let (request, _kept) = root();
    assert_eq!(
        request.traceparent(),
        "00-00000000000000000000000000000007-0000000000000009-01"
    );
}

#[test]
fn a_future_that_is_carried_works_for_the_span() {
    let (request, _kept) = root();
    let mut future = pin!(request.carry(async { current_id() }));
    let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
    let polled = future.as_mut().poll(&mut cx);
    assert_eq!(polled, std::task::Poll::Ready(Some(9)));
    assert_eq!(current_id(), None);
}
