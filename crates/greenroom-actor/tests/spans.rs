//! Spans of messages that are sent while a sampled request is worked for.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use greenroom_actor::{
    Actor, ActorRef, ActorSystem, AsyncHandler, Context, Dispatcher, Handler, Mailbox, Overflow,
};
use greenroom_timing::{FinishedSpan, SPANS_MAX, Span, SpanObserver, SpanValue};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

const REQUEST: u64 = 9;
/// The time-out of what must happen; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_mins(1);

#[derive(Debug)]
struct Kept {
    spans: mpsc::UnboundedSender<FinishedSpan>,
    omitted: AtomicU32,
}

impl SpanObserver for Kept {
    fn on_span(&self, span: FinishedSpan) {
        // A test that has ended looks at no more.
        let _kept = self.spans.send(span);
    }

    fn on_omitted(&self) {
        self.omitted.fetch_add(1, Ordering::Relaxed);
    }
}

/// A sampled request, and the spans that end below it.
struct Request {
    span: Span,
    kept: Arc<Kept>,
    spans: mpsc::UnboundedReceiver<FinishedSpan>,
}

impl Request {
    fn new() -> Self {
        let (sender, spans) = mpsc::unbounded_channel();
        let kept = Arc::new(Kept {
            spans: sender,
            omitted: AtomicU32::new(0),
        });
        let span = Span::of_request(7, REQUEST, None, Arc::clone(&kept) as _);
        Self { span, kept, spans }
    }

    async fn next(&mut self) -> FinishedSpan {
        let next = timeout(PATIENCE, self.spans.recv()).await;
        next.expect("a span ends").expect("the sender lives")
    }
}

fn attribute(span: &FinishedSpan, name: &str) -> String {
    let found = span.attributes.iter().find(|(key, _)| *key == name);
    match &found.unwrap_or_else(|| panic!("{name}: {span:?}")).1 {
        SpanValue::Text(text) => text.clone().into_owned(),
        SpanValue::Number(number) => number.to_string(),
    }
}

fn outcome(span: &FinishedSpan) -> (String, Option<&str>) {
    (
        attribute(span, "greenroom.actor.outcome"),
        span.error.as_deref(),
    )
}

fn took(span: &FinishedSpan, event: &str) -> Duration {
    let found = span.events.iter().find(|it| it.name == event);
    let found = found.unwrap_or_else(|| panic!("{event}: {span:?}"));
    assert!(found.at <= span.took, "{span:?}");
    found.took
}

#[derive(Default)]
struct Counter(u64);

impl Actor for Counter {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(1).overflow(Overflow::DropNewest)
    }
}

struct Add(u64);
impl Handler<Add> for Counter {
    type Reply = u64;
    fn handle(&mut self, Add(amount): Add, _: &mut Context<Self>) -> u64 {
        self.0 += amount;
        self.0
    }
}

struct Fail;
impl Handler<Fail> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("as it should");
    }
}

/// Tells itself to go on, for ever.
struct Again;
impl Handler<Again> for Counter {
    type Reply = ();
    fn handle(&mut self, _: Again, context: &mut Context<Self>) {
        self.0 += 1;
        let _told = context.myself().tell(Again);
    }
}

/// Asks a counter, and waits in between.
struct Asker(ActorRef<Counter>);

impl Actor for Asker {}

struct Ask;
impl AsyncHandler<Ask> for Asker {
    type Reply = u64;
    async fn handle(&mut self, _: Ask, _: &mut Context<Self>) -> u64 {
        tokio::task::yield_now().await;
        self.0.ask(Add(1)).await.unwrap()
    }
}

struct Wait(Arc<Notify>);
impl AsyncHandler<Wait> for Asker {
    type Reply = ();
    async fn handle(&mut self, Wait(begun): Wait, _: &mut Context<Self>) {
        begun.notify_one();
        std::future::pending::<()>().await;
    }
}

struct Later;
impl Handler<Later> for Asker {
    type Reply = ();
    fn handle(&mut self, _: Later, context: &mut Context<Self>) {
        context.stash(Unstashed).unwrap();
        context.unstash_all();
        context.pipe(async {}, |()| Piped).unwrap();
    }
}

struct Unstashed;
impl Handler<Unstashed> for Asker {
    type Reply = ();
    fn handle(&mut self, _: Unstashed, _: &mut Context<Self>) {}
}

struct Piped;
impl Handler<Piped> for Asker {
    type Reply = ();
    fn handle(&mut self, _: Piped, _: &mut Context<Self>) {}
}

fn system() -> ActorSystem {
    ActorSystem::builder()
        .dispatcher("other", Dispatcher::pool(1))
        .build()
        .unwrap()
}

fn elsewhere<A: Actor>(system: &ActorSystem, make: impl Fn() -> A + Send + 'static) -> ActorRef<A> {
    let spawn = system.build(make).dispatcher("other").name("far");
    spawn.spawn().unwrap()
}

#[tokio::test]
async fn asks_nest_across_dispatchers() {
    let (system, mut request) = (system(), Request::new());
    let counter = elsewhere(&system, Counter::default);
    let asker = system.spawn(move || Asker(counter.clone()));
    let reply = request.span.clone().carry(async { asker.ask(Ask).await });
    assert_eq!(reply.await.unwrap(), 1);
    // The counter has replied before the asker has, and may note it later, on its own thread.
    let mut both = [request.next().await, request.next().await];
    both.sort_unstable_by_key(|span| span.name == "handle Asker");
    let [inner, outer] = both;
    assert_eq!(
        (&*outer.name, outer.parent_id),
        ("handle Asker", Some(REQUEST))
    );
    assert_eq!(
        (&*inner.name, inner.parent_id),
        ("handle Counter", Some(outer.span_id))
    );
    for span in [&inner, &outer] {
        assert_eq!(span.trace_id, 7);
        assert_eq!(outcome(span), ("handled".to_owned(), None));
        let all = took(span, "mailbox wait") + took(span, "first poll") + took(span, "waiting");
        assert!(all <= span.took, "{span:?}");
    }
    assert_eq!(attribute(&inner, "messaging.destination.name"), "/far");
    assert_eq!(attribute(&inner, "greenroom.actor.dispatcher"), "other");
    assert_eq!(attribute(&inner, "greenroom.polls"), "1");
    assert!(attribute(&inner, "greenroom.actor.message").ends_with("::Add"));
    assert!(attribute(&outer, "greenroom.polls").parse::<u32>().unwrap() >= 2);
}

#[tokio::test]
async fn actors_of_one_dispatcher_that_ask_each_other_are_traced_as_well() {
    let (system, mut request) = (ActorSystem::new().unwrap(), Request::new());
    let counter = system.spawn(Counter::default);
    let asker = system.spawn(move || Asker(counter.clone()));
    let reply = request.span.clone().carry(async { asker.ask(Ask).await });
    assert_eq!(reply.await.unwrap(), 1);
    let (inner, outer) = (request.next().await, request.next().await);
    assert_eq!(inner.parent_id, Some(outer.span_id));
    assert_eq!(outer.parent_id, Some(REQUEST));
}

#[tokio::test]
async fn a_message_that_is_told_is_traced_and_others_are_not() {
    let (system, mut request) = (ActorSystem::new().unwrap(), Request::new());
    let counter = system.spawn(Counter::default);
    assert_eq!(counter.ask(Add(1)).await.unwrap(), 1);
    request.span.within(|| counter.tell(Add(1)).unwrap());
    let span = request.next().await;
    assert_eq!((span.parent_id, outcome(&span).1), (Some(REQUEST), None));
    assert_eq!(counter.ask(Add(1)).await.unwrap(), 3);
    assert!(request.spans.try_recv().is_err());
}

#[tokio::test]
async fn a_message_that_nobody_handled_says_why() {
    let (system, mut request) = (system(), Request::new());
    let far = elsewhere(&system, Counter::default);
    request.span.within(|| far.tell(Fail).unwrap());
    let span = request.next().await;
    assert_eq!(outcome(&span), ("failed".to_owned(), Some("failed")));
    // On this runtime's only thread it takes nothing before the test waits.
    let near = system.spawn(Counter::default);
    request.span.within(|| {
        near.tell(Add(1)).unwrap();
        near.tell(Add(2)).unwrap();
    });
    let dropped = request.next().await;
    let expected = ("dropped_newest".to_owned(), Some("dropped_newest"));
    assert_eq!(outcome(&dropped), expected);
    assert_eq!(outcome(&request.next().await), ("handled".to_owned(), None));
    let asker = system.spawn(move || Asker(near.clone()));
    let begun = Arc::new(Notify::new());
    let wait = Wait(Arc::clone(&begun));
    request.span.within(|| asker.tell(wait).unwrap());
    begun.notified().await;
    asker.kill();
    let killed = request.next().await;
    assert_eq!(outcome(&killed), ("aborted".to_owned(), Some("aborted")));
}

#[tokio::test]
async fn what_an_actor_puts_off_is_below_the_message_that_it_was_put_off_in() {
    let (system, mut request) = (ActorSystem::new().unwrap(), Request::new());
    let counter = system.spawn(Counter::default);
    let asker = system.spawn(move || Asker(counter.clone()));
    request.span.within(|| asker.tell(Later).unwrap());
    let later = request.next().await;
    let mut below = [request.next().await, request.next().await];
    below.sort_by_key(|span| attribute(span, "greenroom.actor.message"));
    for (span, message) in below.iter().zip(["::Piped", "::Unstashed"]) {
        assert!(
            attribute(span, "greenroom.actor.message").ends_with(message),
            "{span:?}"
        );
        assert_eq!(span.parent_id, Some(later.span_id));
    }
}

#[tokio::test]
async fn an_actor_that_never_stops_telling_itself_ends_the_trace() {
    let (system, mut request) = (ActorSystem::new().unwrap(), Request::new());
    let counter = system.spawn(Counter::default);
    request.span.within(|| counter.tell(Again).unwrap());
    for _ in 0..SPANS_MAX {
        request.next().await;
    }
    assert!(
        timeout(PATIENCE, system.shutdown(Duration::ZERO))
            .await
            .is_ok()
    );
    assert!(request.spans.try_recv().is_err());
    assert_eq!(request.kept.omitted.load(Ordering::Relaxed), 1);
}
