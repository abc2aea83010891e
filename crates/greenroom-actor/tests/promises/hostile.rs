//! Users' code that panics, or comes back, where it should not.

use std::fmt;
use std::sync::{Arc, OnceLock, mpsc};
use std::task::{Context as TaskContext, Wake, Waker};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use greenroom_actor::testing;
use greenroom_actor::{
    Actor, ActorRef, ActorSystem, BoxError, ConsistentHash, Context, DeadLetter, Dispatcher,
    Handler, Mailbox, Overflow, Router,
};
use tokio::runtime::{Builder, Runtime};

use crate::puppet::{Boom, Hang, Journal, Note, Puppet, act};

/// The time that a test on the real clock waits for an event, before it fails.
const PATIENCE: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_millis(20);

fn runtime() -> Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the system gives a runtime")
}

/// Fails if the function does not return: it waits for itself.
fn must_return(function: impl FnOnce() + Send + 'static) {
    let (returned, has_returned) = mpsc::channel();
    std::thread::spawn(move || {
        function();
        returned.send(()).expect("the test waits");
    });
    has_returned.recv_timeout(PATIENCE).expect("it returns");
}

/// Panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("on purpose, when dropped");
    }
}

#[test]
fn a_panic_whose_payload_panics_when_dropped_costs_one_message_and_one_restart() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let deed = act(|_, _| std::panic::panic_any(Fragile));
        puppet.tell(deed).expect("the mailbox has room");
        puppet.tell(Note(1)).expect("the mailbox has room");
        system.advance(Duration::from_secs(1)).await;
        assert_eq!(journal.take(), ["a started", "a restarted", "a 1"]);
        assert_eq!(system.dead_letters().total(), 1);
    });
}

/// An error that panics when it is dropped, and when it is displayed.
#[derive(Debug)]
struct FragileError(Fragile);

impl fmt::Display for FragileError {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("on purpose, when told of");
    }
}

impl fmt::Debug for Fragile {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        panic!("on purpose, when told of");
    }
}

impl std::error::Error for FragileError {}

struct Hopeless;

impl Actor for Hopeless {
    async fn started(&mut self, _: &mut Context<Self>) -> Result<(), BoxError> {
        Err(FragileError(Fragile).into())
    }
}

#[test]
fn an_error_that_panics_leaves_its_supervisor_at_work() {
    testing::run(|system| async move {
        let journal = Journal::default();
        let puppet = system.spawn(Puppet::make("a", &journal));
        let hopeless = system.spawn(|| Hopeless);
        system.advance(Duration::from_mins(1)).await;
        hopeless.terminated().await;
        puppet.tell(Boom).expect("the mailbox has room");
        system.advance(Duration::from_secs(1)).await;
        assert_eq!(journal.take(), ["a started", "a restarted"]);
    });
}

/// A waker that reports that it was woken, and panics.
struct PanicsWhenWoken(mpsc::Sender<()>);

impl Wake for PanicsWhenWoken {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
        panic!("on purpose, when woken");
    }
}

/// Asks with such a waker, and waits until that was woken at the deadline.
fn ask_with_a_waker_that_panics(puppet: &ActorRef<Puppet>) {
    let (woken, is_woken) = mpsc::channel();
    let waker = Waker::from(Arc::new(PanicsWhenWoken(woken)));
    let mut ask = puppet.ask(Note(1)).timeout(SOON);
    let polled = ask.poll_unpin(&mut TaskContext::from_waker(&waker));
    assert!(polled.is_pending());
    is_woken
        .recv_timeout(PATIENCE)
        .expect("the deadline is kept");
}

fn pool() -> (ActorSystem, ActorRef<Puppet>) {
    let builder = ActorSystem::builder().dispatcher("default", Dispatcher::pool(1));
    let system = builder.build().expect("the system gives a thread");
    let puppet = system.spawn(Puppet::make("a", &Journal::default()));
    (system, puppet)
}

#[test]
fn a_waker_that_panics_at_a_deadline_costs_no_worker() {
    let (system, puppet) = pool();
    puppet.tell(Hang).expect("the mailbox has room");
    ask_with_a_waker_that_panics(&puppet);
    let other = system.spawn(Puppet::make("b", &Journal::default()));
    runtime().block_on(async {
        let asked = other.ask(Note(2)).timeout(PATIENCE).await;
        assert_eq!(asked.expect("the worker is there"), 2);
        system.shutdown(Duration::ZERO).await;
    });
}

#[test]
fn a_waker_that_panics_at_a_deadline_costs_no_watchdog() {
    let (_system, puppet) = pool();
    let (release, released) = mpsc::channel::<()>();
    let hold = act(move |_, _| {
        let _ = released.recv();
    });
    puppet.tell(hold).expect("the mailbox has room");
    ask_with_a_waker_that_panics(&puppet);
    runtime().block_on(async {
        let ask = puppet.ask(Note(1)).timeout(SOON);
        let asked = tokio::time::timeout(PATIENCE, ask).await;
        let error = asked.expect("the watchdog keeps the deadline");
        assert!(error.expect_err("it is held").is_timeout());
    });
    drop(release);
}

/// A waker that asks an actor when it is dropped.
struct AsksWhenDropped(ActorRef<Puppet>);

impl Wake for AsksWhenDropped {
    fn wake(self: Arc<Self>) {}
}

impl Drop for AsksWhenDropped {
    fn drop(&mut self) {
        let mut ask = self.0.ask(Note(1)).timeout(PATIENCE);
        let polled = ask.poll_unpin(&mut TaskContext::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    }
}

#[test]
fn a_waker_that_is_replaced_may_ask_the_same_actor_when_it_is_dropped() {
    must_return(|| {
        let (_system, puppet) = pool();
        puppet.tell(Hang).expect("the mailbox has room");
        let mut ask = puppet.ask(Note(1)).timeout(PATIENCE);
        let waker = Waker::from(Arc::new(AsksWhenDropped(puppet.clone())));
        let polled = ask.poll_unpin(&mut TaskContext::from_waker(&waker));
        assert!(polled.is_pending());
        drop(waker);
        // Drops the last clone of the other.
        let polled = ask.poll_unpin(&mut TaskContext::from_waker(Waker::noop()));
        assert!(polled.is_pending());
    });
}

/// A future of this actor's end that will wake this waker.
fn end_of<'a>(puppet: &'a ActorRef<Puppet>, waker: &Waker) -> BoxFuture<'a, ()> {
    let mut end = puppet.terminated().boxed();
    let polled = end.poll_unpin(&mut TaskContext::from_waker(waker));
    assert!(polled.is_pending());
    end
}

/// A waker that tells when it is woken.
struct TellsWhenWoken(mpsc::Sender<()>);

impl Wake for TellsWhenWoken {
    fn wake(self: Arc<Self>) {
        let _ = self.0.send(());
    }
}

#[test]
fn a_waker_that_panics_keeps_nobody_else_from_being_told_of_an_end() {
    let (_system, puppet) = pool();
    let (woken, is_woken) = mpsc::channel();
    let hostile = Waker::from(Arc::new(PanicsWhenWoken(woken.clone())));
    let friendly = Waker::from(Arc::new(TellsWhenWoken(woken)));
    let _ends = [&hostile, &friendly].map(|waker| end_of(&puppet, waker));
    puppet.stop();
    for _ in 0..2 {
        is_woken.recv_timeout(PATIENCE).expect("both are woken");
    }
}

/// A waker that waits for an actor's end itself, for a moment, when it is woken and when it is
/// dropped.
struct Listens(ActorRef<Puppet>, mpsc::Sender<()>);

impl Listens {
    fn listen(&self) {
        let mut end = self.0.terminated().boxed();
        let _ = end.poll_unpin(&mut TaskContext::from_waker(Waker::noop()));
        drop(end);
        let _ = self.1.send(());
    }
}

impl Wake for Listens {
    fn wake(self: Arc<Self>) {
        self.listen();
    }
}

impl Drop for Listens {
    fn drop(&mut self) {
        self.listen();
    }
}

#[test]
fn a_waker_may_wait_for_the_end_that_it_is_told_of() {
    let (system, puppet) = pool();
    let (listened, has_listened) = mpsc::channel();
    let waker = Waker::from(Arc::new(Listens(puppet.clone(), listened)));
    let end = end_of(&puppet, &waker);
    puppet.stop();
    has_listened
        .recv_timeout(PATIENCE)
        .expect("it listens when it is woken");
    drop((end, waker));
    has_listened
        .recv_timeout(PATIENCE)
        .expect("it listens when it is dropped");
    let other = system.spawn(Puppet::make("b", &Journal::default()));
    let asked = runtime().block_on(async { other.ask(Note(2)).timeout(PATIENCE).await });
    assert_eq!(asked.expect("the worker is there"), 2);
}

#[test]
fn a_waker_that_is_replaced_may_wait_for_the_same_end_when_it_is_dropped() {
    must_return(|| {
        let (_system, puppet) = pool();
        let (listened, has_listened) = mpsc::channel();
        let waker = Waker::from(Arc::new(Listens(puppet.clone(), listened)));
        let mut end = end_of(&puppet, &waker);
        drop(waker);
        let polled = end.poll_unpin(&mut TaskContext::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        has_listened
            .try_recv()
            .expect("it was dropped, and listened");
    });
}

/// An actor of a type of which there was none before.
struct Unseen;

impl Actor for Unseen {}

/// Spawns another when the settings of its type are made.
struct Curious;

static SYSTEM_OF_CURIOUS: OnceLock<ActorSystem> = OnceLock::new();

impl Actor for Curious {
    fn mailbox() -> Mailbox {
        let system = SYSTEM_OF_CURIOUS.get().expect("it is there");
        system.spawn(|| Unseen);
        Mailbox::default()
    }
}

#[test]
fn the_settings_of_a_type_may_spawn_actors_of_another() {
    must_return(|| {
        let (system, _puppet) = pool();
        let system = SYSTEM_OF_CURIOUS.get_or_init(|| system);
        system.spawn(|| Curious);
    });
}

type Keyed = Router<Puppet, ConsistentHash<Note>>;

#[test]
fn the_key_of_a_message_may_resize_the_router_that_asks_for_it() {
    must_return(|| {
        let (system, _puppet) = pool();
        let router: Arc<OnceLock<Keyed>> = Arc::default();
        let of = Arc::clone(&router);
        let by_number = ConsistentHash::by(move |Note(number): &Note| {
            let router = of.get().expect("it is there");
            router.resize(3).expect("the dispatcher is there");
            *number
        });
        let build = system.build(Puppet::make("a", &Journal::default()));
        let first = build.router(by_number, 2).expect("the dispatcher is there");
        let router = router.get_or_init(|| first);
        router.tell(Note(1)).expect("the mailbox has room");
        assert_eq!(router.size(), 3);
    });
}

/// Subscribes to the dead letters of its system when it is dropped.
struct SubscribesWhenDropped(ActorSystem, ActorRef<Reader>);

impl Drop for SubscribesWhenDropped {
    fn drop(&mut self) {
        self.0.dead_letters().subscribe(self.1.recipient());
    }
}

/// Reads dead letters, one at a time.
struct Reader;

impl Actor for Reader {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(1).overflow(Overflow::DropOldest)
    }
}

impl Handler<DeadLetter> for Reader {
    type Reply = ();
    fn handle(&mut self, _: DeadLetter, _: &mut Context<Self>) {}
}

impl Handler<mpsc::Receiver<()>> for Reader {
    type Reply = ();
    fn handle(&mut self, held: mpsc::Receiver<()>, _: &mut Context<Self>) {
        let _ = held.recv();
    }
}

impl Handler<SubscribesWhenDropped> for Puppet {
    type Reply = ();
    fn handle(&mut self, _: SubscribesWhenDropped, _: &mut Context<Self>) {}
}

#[test]
fn a_dead_letter_may_subscribe_to_dead_letters_when_it_is_dropped() {
    must_return(|| {
        let (system, _puppet) = pool();
        let full = system
            .build(Puppet::make("full", &Journal::default()))
            .mailbox(Mailbox::bounded(1).overflow(Overflow::DropNewest))
            .spawn()
            .expect("the dispatcher is there");
        let reader = system.spawn(|| Reader);
        let (release, held) = mpsc::channel::<()>();
        full.tell(Hang).expect("it drops what does not fit");
        while full.waiting() > 0 {
            std::thread::yield_now();
        }
        full.tell(Note(1)).expect("it drops what does not fit");
        reader.tell(held).expect("it drops what does not fit");
        while reader.waiting() > 0 {
            std::thread::yield_now();
        }
        system.dead_letters().subscribe(reader.recipient());
        // With the second the first has to go from the reader's mailbox.
        for _ in 0..2 {
            let message = SubscribesWhenDropped(system.clone(), reader.clone());
            full.tell(message).expect("it drops what does not fit");
        }
        drop(release);
    });
}
