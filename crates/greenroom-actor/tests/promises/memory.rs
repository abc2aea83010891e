//! Every value is dropped once, and not later than it should be.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use greenroom_actor::testing::{self, TestKit, TestSystem};
use greenroom_actor::{
    Actor, ActorSystem, AsyncHandler, BoxError, Context, DeadLetter, Directive, Handler, Mailbox,
    Overflow, Supervision,
};

use crate::puppet::{Journal, Puppet, act};

/// Counts the values that there are and were.
#[derive(Clone, Default)]
struct Counter {
    alive: Arc<AtomicI64>,
    made: Arc<AtomicU64>,
}

impl Counter {
    fn one(&self) -> One {
        self.alive.fetch_add(1, Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Relaxed);
        One(self.clone())
    }

    fn alive(&self) -> i64 {
        self.alive.load(Ordering::Relaxed)
    }
}

/// A counted value; never dropped twice, or the count would be negative.
struct One(Counter);

impl Drop for One {
    fn drop(&mut self) {
        let before = self.0.alive.fetch_sub(1, Ordering::Relaxed);
        assert!(before > 0, "dropped twice");
    }
}

struct Holder {
    _state: One,
    counter: Counter,
}

impl Holder {
    fn make(counter: &Counter) -> impl Fn() -> Self + Send + 'static + use<> {
        let counter = counter.clone();
        move || Self {
            _state: counter.one(),
            counter: counter.clone(),
        }
    }
}

impl Actor for Holder {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        context.every(Duration::from_secs(1), Tick(Arc::new(self.counter.one())));
        let message = self.counter.one();
        let _waits = context.pipe(std::future::pending::<()>(), move |()| Keep(message));
        Ok(())
    }
}

#[derive(Clone)]
struct Tick(#[expect(dead_code, reason = "it is only counted")] Arc<One>);

impl Handler<Tick> for Holder {
    type Reply = ();
    fn handle(&mut self, _: Tick, _: &mut Context<Self>) {}
}

/// Dropped at once, or after a wait, or in a panic.
struct Keep(#[expect(dead_code, reason = "it is only counted")] One);

impl Handler<Keep> for Holder {
    type Reply = One;
    fn handle(&mut self, _: Keep, _: &mut Context<Self>) -> One {
        self.counter.one()
    }
}

struct KeepLong(One);

impl AsyncHandler<KeepLong> for Holder {
    type Reply = One;
    async fn handle(&mut self, KeepLong(one): KeepLong, _: &mut Context<Self>) -> One {
        tokio::time::sleep(Duration::from_millis(3)).await;
        one
    }
}

struct Fail(#[expect(dead_code, reason = "it is only counted")] One);

impl Handler<Fail> for Holder {
    type Reply = One;
    fn handle(&mut self, fail: Fail, _: &mut Context<Self>) -> One {
        let _held = fail;
        std::panic::resume_unwind(Box::new("fails"));
    }
}

struct Stash(One);

impl Handler<Stash> for Holder {
    type Reply = ();
    fn handle(&mut self, Stash(one): Stash, context: &mut Context<Self>) {
        let _full = context.stash(Keep(one));
    }
}

/// Sends messages of all kinds, some of which are rejected, and drops the results.
async fn bother(holder: greenroom_actor::ActorRef<Holder>, counter: Counter) {
    for round in 0..10 {
        let _ = holder.tell(Keep(counter.one()));
        let _ = holder.tell(Stash(counter.one()));
        let _ = holder
            .ask(KeepLong(counter.one()))
            .timeout(Duration::from_millis(2))
            .await;
        let _ = holder.tell(KeepLong(counter.one()));
        if round % 3 == 0 {
            let _ = holder.ask(Fail(counter.one())).await;
        }
        let _ = holder.send(Keep(counter.one())).await;
        let _ = holder.ask(Keep(counter.one())).await;
    }
}

async fn bothered(system: TestSystem, overflow: Overflow, counter: Counter) {
    let spawned = system
        .build(Holder::make(&counter))
        .mailbox(Mailbox::bounded(2).overflow(overflow))
        .spawn();
    let holder = spawned.expect("the default dispatcher is there");
    for _ in 0..3 {
        tokio::spawn(bother(holder.clone(), counter.clone()));
    }
    let lives = 20 + 7 * system.seed();
    system.advance(Duration::from_millis(lives)).await;
    if system.seed().is_multiple_of(2) {
        holder.kill();
    } else {
        holder.stop();
    }
    holder.terminated().await;
    system.advance(Duration::from_mins(1)).await;
    // The reference is still there, and what belongs to the actor is not.
    assert_eq!(counter.alive(), 0);
    assert!(!holder.is_alive());
}

#[test]
fn state_and_messages_are_dropped_once_and_by_the_end_of_the_actor() {
    for overflow in [
        Overflow::BackPressure,
        Overflow::Refuse,
        Overflow::DropNewest,
        Overflow::DropOldest,
    ] {
        for directive in [Directive::Restart, Directive::Resume] {
            let supervision = Supervision::one_for_one().always(directive);
            let kit = TestKit::new().system(ActorSystem::builder().supervision(supervision));
            kit.run_seeded(0..20, |system| async move {
                let counter = Counter::default();
                bothered(system, overflow, counter.clone()).await;
                assert!(counter.made.load(Ordering::Relaxed) > 30);
            });
        }
    }
}

#[test]
fn nothing_of_an_ended_actor_is_left_when_nobody_refers_to_it() {
    testing::run(|system| async move {
        let puppet = system.spawn(Puppet::make("a", &Journal::default()));
        let child = act(|_, context| drop(context.spawn(Puppet::make("c", &Journal::default()))));
        puppet.ask(child).await.expect("it is handled");
        puppet.stop();
        puppet.terminated().await;
        let weak = puppet.downgrade();
        drop(puppet);
        system.settle().await;
        assert!(weak.upgrade().is_none());
    });
}

#[test]
fn an_actor_that_watched_or_linked_is_not_kept_by_those_that_live_on() {
    testing::run(|system| async move {
        let old = system.spawn(Puppet::make("old", &Journal::default()));
        for is_linked in [false, true] {
            let young = system.spawn(Puppet::make("young", &Journal::default()));
            let whom = old.clone();
            let deed = act(move |_, context| {
                if is_linked {
                    context.link(&whom);
                } else {
                    context.watch(&whom);
                }
            });
            young.ask(deed).await.expect("it is handled");
            young.stop();
            young.terminated().await;
            let weak = young.downgrade();
            drop(young);
            system.settle().await;
            assert!(weak.upgrade().is_none(), "linked: {is_linked}");
        }
    });
}

/// A subscriber, which the system keeps, and which keeps the system.
struct Reader;

impl Actor for Reader {}

impl Handler<DeadLetter> for Reader {
    type Reply = ();

    fn handle(&mut self, _: DeadLetter, _: &mut Context<Self>) {}
}

#[test]
fn nothing_of_a_system_is_left_after_its_shutdown() {
    let counter = Counter::default();
    let one = counter.one();
    let supervision = Supervision::one_for_one().decide(move |_| {
        let _kept = &one;
        Directive::Restart
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    runtime
        .expect("the system gives a runtime")
        .block_on(async {
            let builder = ActorSystem::builder().supervision(supervision);
            let system = builder.build().expect("there is a runtime");
            system.spawn(Puppet::make("a", &Journal::default()));
            let reader = system.spawn(|| Reader);
            system.dead_letters().subscribe(reader.recipient());
            drop(reader);
            system.shutdown(Duration::from_secs(1)).await;
        });
    assert_eq!(counter.alive(), 0);
}

#[test]
fn nothing_of_a_system_is_left_after_its_runtime() {
    let counter = Counter::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build();
    let of = counter.clone();
    runtime
        .expect("the system gives a runtime")
        .block_on(async move {
            let system = ActorSystem::new().expect("there is a runtime");
            let holder = system.spawn(Holder::make(&of));
            holder.ask(Keep(of.one())).await.expect("it is handled");
            holder
                .tell(KeepLong(of.one()))
                .expect("the mailbox has room");
            tokio::task::yield_now().await;
        });
    assert_eq!(counter.alive(), 0);
}
