//! The paths through `src/raw`, for Miri to look at (`make miri`), and for every run to check that
//! each value is dropped exactly once.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Duration;

use greenroom_actor::{
    Actor, ActorRef, ActorSystem, AsyncHandler, Context, Dispatcher, Handler, Mailbox, Overflow,
    ReplyHandler, ReplyTo,
};

/// The number of live values; a value that is dropped twice makes it negative.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicIsize>);

impl Counter {
    fn value<const BYTES: usize>(&self) -> Value<BYTES> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Value {
            counter: self.clone(),
            bytes: [7; BYTES],
        }
    }

    fn assert_nobody(&self) {
        assert_eq!(self.0.load(Ordering::Relaxed), 0);
    }
}

struct Value<const BYTES: usize> {
    counter: Counter,
    bytes: [u8; BYTES],
}

impl<const BYTES: usize> Drop for Value<BYTES> {
    fn drop(&mut self) {
        assert!(self.bytes.iter().all(|byte| *byte == 7));
        self.counter.0.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Keeper {
    own: Value<24>,
    kept: Vec<Value<40>>,
}

impl Actor for Keeper {}

impl<const BYTES: usize> Handler<Value<BYTES>> for Keeper {
    type Reply = usize;

    fn handle(&mut self, value: Value<BYTES>, _: &mut Context<Self>) -> usize {
        value.bytes.len()
    }
}

struct Wait(Value<100>, Duration);

impl AsyncHandler<Wait> for Keeper {
    type Reply = usize;

    async fn handle(&mut self, Wait(value, time): Wait, _: &mut Context<Self>) -> usize {
        tokio::time::sleep(time).await;
        self.kept.push(value.counter.value());
        self.kept.len()
    }
}

struct Fail(Value<8>);

impl AsyncHandler<Fail> for Keeper {
    type Reply = ();

    async fn handle(&mut self, message: Fail, _: &mut Context<Self>) {
        tokio::task::yield_now().await;
        assert!(message.0.bytes.is_empty(), "it fails on purpose");
    }
}

struct Stash(#[expect(dead_code, reason = "it is dropped, which is what counts")] Value<16>);

impl Handler<Stash> for Keeper {
    type Reply = ();

    fn handle(&mut self, message: Stash, context: &mut Context<Self>) {
        if self.kept.is_empty() {
            context.stash(message).unwrap();
        }
    }
}

struct Open;

impl Handler<Open> for Keeper {
    type Reply = ();

    fn handle(&mut self, _: Open, context: &mut Context<Self>) {
        self.kept.push(self.own.counter.value());
        context.unstash_all();
    }
}

struct Relay(ActorRef<Keeper>);

impl Actor for Relay {}

struct Pass(Value<16>);

impl ReplyHandler<Pass> for Relay {
    type Reply = usize;

    fn handle(&mut self, Pass(value): Pass, reply: ReplyTo<usize>, _: &mut Context<Self>) {
        self.0.forward(value, reply);
    }
}

struct Inline(Value<16>);

impl AsyncHandler<Inline> for Relay {
    type Reply = usize;

    async fn handle(&mut self, Inline(value): Inline, _: &mut Context<Self>) -> usize {
        self.0.ask(value).await.unwrap()
    }
}

fn run(test: impl AsyncFnOnce(ActorSystem, Counter)) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    let counter = Counter::default();
    runtime.block_on(async {
        let system = ActorSystem::new().unwrap();
        test(system.clone(), counter.clone()).await;
        system.shutdown(Duration::from_mins(1)).await;
    });
    drop(runtime);
    counter.assert_nobody();
}

fn keeper(system: &ActorSystem, counter: &Counter) -> ActorRef<Keeper> {
    let counter = counter.clone();
    system.spawn(move || Keeper {
        own: counter.value(),
        kept: Vec::new(),
    })
}

#[test]
fn messages_of_all_sizes() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        keeper.tell(counter.value::<0>()).unwrap();
        keeper.tell(counter.value::<100>()).unwrap();
        keeper.tell(counter.value::<900>()).unwrap();
        keeper.tell(counter.value::<5_000>()).unwrap();
        assert_eq!(keeper.ask(counter.value::<5_000>()).await.unwrap(), 5_000);
    });
}

#[test]
fn handlers_that_wait_borrow_the_actor() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        let wait = || Wait(counter.value(), Duration::from_millis(3));
        assert_eq!(keeper.ask(wait()).await.unwrap(), 1);
        assert_eq!(keeper.ask(wait()).await.unwrap(), 2);
    });
}

#[test]
fn a_restart_while_a_handler_waits() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        keeper.tell(Fail(counter.value())).unwrap();
        keeper.tell(counter.value::<1>()).unwrap();
        assert_eq!(keeper.ask(counter.value::<2>()).await.unwrap(), 2);
        assert_eq!(system.dead_letters().total(), 1);
    });
}

#[test]
fn killed_while_a_handler_waits_and_messages_too() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        keeper
            .tell(Wait(counter.value(), Duration::from_secs(9)))
            .unwrap();
        keeper.tell(counter.value::<1>()).unwrap();
        tokio::task::yield_now().await;
        keeper.kill();
        keeper.terminated().await;
        assert_eq!(system.dead_letters().total(), 2);
        assert!(keeper.tell(counter.value::<1>()).is_err());
    });
}

#[test]
fn set_aside_and_taken_up_again() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        keeper.tell(Stash(counter.value())).unwrap();
        keeper.tell(Stash(counter.value())).unwrap();
        keeper.ask(Open).await.unwrap();
        keeper.ask(counter.value::<1>()).await.unwrap();
    });
}

#[test]
fn stashed_messages_of_a_killed_actor() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        keeper.ask(Stash(counter.value())).await.unwrap();
        keeper.kill();
        keeper.terminated().await;
    });
}

#[test]
fn a_full_mailbox_drops_the_oldest() {
    run(async |system, counter| {
        let own = counter.clone();
        let keeper = system
            .build(move || Keeper {
                own: own.value(),
                kept: Vec::new(),
            })
            .mailbox(Mailbox::bounded(2).overflow(Overflow::DropOldest))
            .spawn()
            .unwrap();
        for _ in 0..5 {
            keeper.tell(counter.value::<64>()).unwrap();
        }
        keeper.ask(counter.value::<1>()).await.unwrap();
        assert_eq!(system.dead_letters().total(), 4);
    });
}

#[test]
fn forwarded_and_asked_inline() {
    run(async |system, counter| {
        let keeper = keeper(&system, &counter);
        let relay = system.spawn(move || Relay(keeper.clone()));
        assert_eq!(relay.ask(Pass(counter.value())).await.unwrap(), 16);
        assert_eq!(relay.ask(Inline(counter.value())).await.unwrap(), 16);
    });
}

#[test]
fn senders_on_other_threads() {
    let counter = Counter::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let system = ActorSystem::builder()
            .dispatcher("own", Dispatcher::pool(2))
            .build()
            .unwrap();
        let own = counter.clone();
        let keeper = system
            .build(move || Keeper {
                own: own.value(),
                kept: Vec::new(),
            })
            .mailbox(Mailbox::bounded(64))
            .dispatcher("own")
            .spawn()
            .unwrap();
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (keeper, counter) = (keeper.clone(), counter.clone());
                std::thread::spawn(move || {
                    (0..20).for_each(|_| keeper.tell(counter.value::<8>()).unwrap());
                })
            })
            .collect();
        for _ in 0..5 {
            // Miri is slow.
            let asked = keeper
                .ask(counter.value::<8>())
                .timeout(Duration::from_mins(5));
            asked.await.unwrap();
        }
        for sender in senders {
            sender.join().unwrap();
        }
        keeper.stop();
        keeper.terminated().await;
        system.shutdown(Duration::from_secs(5)).await;
    });
    drop(runtime);
    counter.assert_nobody();
}

#[test]
fn a_runtime_that_ends_ends_its_actors() {
    let counter = Counter::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    let keeper = runtime.block_on(async {
        let system = ActorSystem::new().unwrap();
        let keeper = keeper(&system, &counter);
        keeper
            .tell(Wait(counter.value(), Duration::from_secs(9)))
            .unwrap();
        tokio::task::yield_now().await;
        keeper
    });
    drop(runtime);
    // No thread runs it any more: the next sender finds out.
    let _ = keeper.tell(counter.value::<8>());
    drop(keeper.tell(counter.value::<8>()).unwrap_err());
    drop(keeper);
    counter.assert_nobody();
}
