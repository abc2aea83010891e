//! A failure in one place stays there.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use greenroom_actor::{
    Actor, ActorRef, ActorSystem, AsyncHandler, Backoff, BoxError, Context, Handler, Supervision,
};

struct Neighbour;

impl Actor for Neighbour {}

impl Handler<u64> for Neighbour {
    type Reply = u64;

    fn handle(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        number
    }
}

/// A value that panics when it is dropped.
struct Fragile;

impl Drop for Fragile {
    fn drop(&mut self) {
        panic!("on purpose, when dropped");
    }
}

struct Keeper;

impl Actor for Keeper {}

impl Handler<Fragile> for Keeper {
    type Reply = ();

    fn handle(&mut self, fragile: Fragile, _: &mut Context<Self>) {
        std::mem::forget(fragile);
    }
}

/// Sets a timer whose message is never sent.
struct Keep;

impl Handler<Keep> for Keeper {
    type Reply = ();

    fn handle(&mut self, _: Keep, context: &mut Context<Self>) {
        context.once(Duration::from_mins(1), Fragile);
    }
}

/// Panics with a value that panics when it is dropped.
struct Explode;

impl Handler<Explode> for Keeper {
    type Reply = ();

    fn handle(&mut self, _: Explode, _: &mut Context<Self>) {
        std::panic::panic_any(Fragile);
    }
}

#[tokio::test]
async fn a_destructor_that_panics_costs_its_own_actor_and_no_other() {
    let system = ActorSystem::new().unwrap();
    let (keeper, neighbour) = (system.spawn(|| Keeper), system.spawn(|| Neighbour));
    keeper.ask(Keep).await.unwrap();
    keeper.stop();
    let other = system.spawn(|| Keeper);
    other.tell(Explode).unwrap();
    for number in 0..10 {
        assert_eq!(neighbour.ask(number).await.unwrap(), number);
    }
}

/// Spawns two workers, and counts how often they were made.
struct Boss {
    made: Arc<AtomicUsize>,
    workers: Vec<ActorRef<Worker>>,
}

struct Worker;

impl Actor for Worker {}

struct Fail;

impl Handler<Fail> for Worker {
    type Reply = ();

    fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

struct Nap;

impl AsyncHandler<Nap> for Worker {
    type Reply = ();

    async fn handle(&mut self, _: Nap, _: &mut Context<Self>) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

impl Boss {
    fn hire(&mut self, context: &mut Context<Self>) {
        let made = Arc::clone(&self.made);
        self.workers.push(context.spawn(move || {
            made.fetch_add(1, Ordering::Relaxed);
            Worker
        }));
    }
}

impl Actor for Boss {
    fn supervision() -> Supervision {
        let first = Duration::from_millis(300);
        Supervision::one_for_all().backoff(Backoff {
            first,
            ..Backoff::default()
        })
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        self.hire(context);
        self.hire(context);
        Ok(())
    }
}

struct Workers;

impl Handler<Workers> for Boss {
    type Reply = Vec<ActorRef<Worker>>;

    fn handle(&mut self, _: Workers, _: &mut Context<Self>) -> Vec<ActorRef<Worker>> {
        self.workers.clone()
    }
}

struct Collapse;

impl Handler<Collapse> for Boss {
    type Reply = ();

    fn handle(&mut self, _: Collapse, _: &mut Context<Self>) {
        panic!("on purpose");
    }
}

fn boss(system: &ActorSystem) -> (ActorRef<Boss>, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&made);
    let boss = system.spawn(move || Boss {
        made: Arc::clone(&counter),
        workers: Vec::new(),
    });
    (boss, made)
}

#[tokio::test(start_paused = true)]
async fn siblings_that_fail_together_are_restarted_together_once() {
    let system = ActorSystem::new().unwrap();
    let (boss, made) = boss(&system);
    let workers = boss.ask(Workers).await.unwrap();
    workers[0].tell(Fail).unwrap();
    tokio::time::advance(Duration::from_millis(50)).await;
    workers[1].tell(Fail).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(made.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn a_rest_that_ends_after_the_parent_was_restarted_concerns_nobody() {
    let system = ActorSystem::builder()
        .supervision(Supervision::one_for_one().backoff(Backoff::NONE))
        .build()
        .unwrap();
    let (boss, made) = boss(&system);
    let workers = boss.ask(Workers).await.unwrap();
    workers[0].tell(Fail).unwrap();
    tokio::time::advance(Duration::from_millis(50)).await;
    boss.tell(Collapse).unwrap();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(made.load(Ordering::Relaxed), 4);
}

#[tokio::test(start_paused = true)]
async fn a_restart_waits_for_children_that_are_busy_and_then_goes_on() {
    let system = ActorSystem::builder()
        .supervision(Supervision::one_for_one().backoff(Backoff::NONE))
        .build()
        .unwrap();
    let (boss, _) = boss(&system);
    let workers = boss.ask(Workers).await.unwrap();
    workers[0].tell(Nap).unwrap();
    tokio::task::yield_now().await;
    boss.tell(Collapse).unwrap();
    let workers = boss
        .ask(Workers)
        .timeout(Duration::from_secs(9))
        .await
        .unwrap();
    assert_eq!(workers.len(), 2);
    assert!(system.shutdown(Duration::from_secs(9)).await.is_clean());
}
