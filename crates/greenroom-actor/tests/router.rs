//! Pools of actors behind one handle.
#![allow(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use greenroom_actor::{
    Actor, ActorId, ActorSystem, AsyncHandler, Backoff, BoxError, ConsistentHash, Context,
    Dispatcher, Handler, LeastLoaded, Mailbox, ROUTEES_MAX, Reason, ReplyHandler, ReplyTo,
    RoundRobin, Router, SendError, Strategy, Supervision,
};
use tokio::sync::Semaphore;

/// Replies with its number; waits before it does, if there is a gate.
#[derive(Clone, Default)]
struct Worker {
    gate: Option<Arc<Semaphore>>,
    handled: Arc<AtomicU32>,
}
impl Actor for Worker {}

impl Worker {
    fn gated() -> (Self, Arc<Semaphore>) {
        let gate = Arc::new(Semaphore::new(0));
        let worker = Self {
            gate: Some(Arc::clone(&gate)),
            ..Self::default()
        };
        (worker, gate)
    }
}

#[derive(Clone, Debug)]
struct Who;
impl Handler<Who> for Worker {
    type Reply = ActorId;
    fn handle(&mut self, _: Who, context: &mut Context<Self>) -> ActorId {
        self.handled.fetch_add(1, Ordering::Relaxed);
        context.myself().id()
    }
}

struct Like {
    picture: u64,
    is_last: bool,
}
impl Like {
    fn of(picture: u64) -> Self {
        Self {
            picture,
            is_last: false,
        }
    }
}
impl Handler<Like> for Worker {
    type Reply = ActorId;
    fn handle(&mut self, like: Like, context: &mut Context<Self>) -> ActorId {
        if like.is_last {
            context.stop();
        }
        context.myself().id()
    }
}

struct Path;
impl Handler<Path> for Worker {
    type Reply = String;
    fn handle(&mut self, _: Path, context: &mut Context<Self>) -> String {
        context.myself().path()
    }
}

struct Long;
impl AsyncHandler<Long> for Worker {
    type Reply = ActorId;
    async fn handle(&mut self, _: Long, context: &mut Context<Self>) -> ActorId {
        let gate = self.gate.as_ref().expect("only gated workers are asked");
        gate.acquire().await.unwrap().forget();
        self.handled.fetch_add(1, Ordering::Relaxed);
        context.myself().id()
    }
}

/// Waits at this gate; counted when it begins.
#[derive(Debug)]
struct Pass(Arc<Semaphore>);
impl AsyncHandler<Pass> for Worker {
    type Reply = ();
    async fn handle(&mut self, Pass(gate): Pass, _: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        gate.acquire().await.unwrap().forget();
    }
}

struct Fail;
impl Handler<Fail> for Worker {
    type Reply = ();
    fn handle(&mut self, _: Fail, _: &mut Context<Self>) {
        panic!("as the test wants");
    }
}

struct Leave;
impl Handler<Leave> for Worker {
    type Reply = ();
    fn handle(&mut self, _: Leave, context: &mut Context<Self>) {
        context.stop();
    }
}

fn by_picture() -> ConsistentHash<Like> {
    ConsistentHash::by(|like: &Like| like.picture)
}

async fn owners(router: &Router<Worker, ConsistentHash<Like>>, keys: u64) -> HashMap<u64, ActorId> {
    let mut owners = HashMap::new();
    for picture in 0..keys {
        owners.insert(picture, router.ask(Like::of(picture)).await.unwrap());
    }
    owners
}

/// Has one routee end, and waits until the router has noticed.
async fn lose_one<S: greenroom_actor::Strategy<Leave>>(router: &Router<Worker, S>) {
    let before = router.size();
    router.ask(Leave).await.unwrap();
    while router.size() == before {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn round_robin_takes_each_in_turn() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(RoundRobin::new(), 3)
        .unwrap();
    let mut turns = Vec::new();
    for _ in 0..9 {
        turns.push(router.ask(Who).await.unwrap());
    }
    assert_eq!(turns[..3], turns[3..6]);
    assert_eq!(turns[..3], turns[6..]);
    assert!(turns[0] != turns[1] && turns[1] != turns[2] && turns[2] != turns[0]);
}

#[tokio::test]
async fn round_robin_passes_over_full_mailboxes_and_says_when_all_are_full() {
    let system = ActorSystem::new().unwrap();
    let (worker, gate) = Worker::gated();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .mailbox(Mailbox::bounded(2))
        .router(RoundRobin::new(), 3)
        .unwrap();
    // No actor runs before the next await.
    for _ in 0..6 {
        router.tell(Long).unwrap();
    }
    assert!(router.tell(Long).unwrap_err().is_full());
    let waits = tokio::spawn({
        let router = router.clone();
        async move { router.send(Long).await }
    });
    gate.add_permits(7);
    waits.await.unwrap().unwrap();
    router.stop();
    router.terminated().await;
    assert_eq!(handled.load(Ordering::Relaxed), 7);
    assert_eq!(system.dead_letters().total(), 0);
}

#[tokio::test]
async fn one_slow_routee_of_round_robin_holds_up_nobody_else() {
    let system = ActorSystem::new().unwrap();
    let (worker, gate) = Worker::gated();
    let router = system
        .build(move || worker.clone())
        .mailbox(Mailbox::bounded(2))
        .router(RoundRobin::new(), 2)
        .unwrap();
    router.tell(Long).unwrap();
    let other = router.ask(Who).await.unwrap();
    for _ in 0..2 {
        router.tell(Who).unwrap();
        assert_eq!(router.ask(Who).await.unwrap(), other);
    }
    // The mailbox behind the long one is full now.
    for _ in 0..10 {
        assert_eq!(router.ask(Who).await.unwrap(), other);
    }
    gate.add_permits(1);
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
    assert_eq!(system.dead_letters().total(), 0);
}

/// Has two routees wait, each at a gate of its own, with full mailboxes.
async fn full<S>(system: &ActorSystem, strategy: S) -> (Router<Worker, S>, [Arc<Semaphore>; 2])
where
    S: Strategy<Pass> + Strategy<Who>,
{
    let worker = Worker::default();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .mailbox(Mailbox::bounded(1))
        .router(strategy, 2)
        .unwrap();
    let gates = [(); 2].map(|()| Arc::new(Semaphore::new(0)));
    for (begun, gate) in (1..).zip(&gates) {
        router.tell(Pass(Arc::clone(gate))).unwrap();
        while handled.load(Ordering::Relaxed) < begun {
            tokio::task::yield_now().await;
        }
    }
    router.tell(Who).unwrap();
    router.tell(Who).unwrap();
    assert!(router.tell(Who).unwrap_err().is_full());
    (router, gates)
}

/// Sends as many messages as there are routees, and waits until that is done.
async fn send_two<S: Strategy<Who>>(router: &Router<Worker, S>) {
    let sent = async { tokio::join!(router.send(Who), router.send(Who)) };
    let sent = tokio::time::timeout(Duration::from_mins(1), sent).await;
    let (first, second) = sent.expect("one of them waits where no room will be");
    first.unwrap();
    second.unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_gets_that_of_whichever_routee_has_some_first() {
    async fn check<S: Strategy<Pass> + Strategy<Who>>(strategy: S) {
        let system = ActorSystem::new().unwrap();
        let (router, [first, second]) = full(&system, strategy).await;
        let sent = tokio::spawn({
            let router = router.clone();
            async move { send_two(&router).await }
        });
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!sent.is_finished(), "none has room");
        first.add_permits(1);
        sent.await.unwrap();
        second.add_permits(1);
        assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
        assert_eq!(system.dead_letters().total(), 0);
    }
    check(RoundRobin::new()).await;
    check(LeastLoaded::new()).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_gets_that_of_a_new_routee() {
    let system = ActorSystem::new().unwrap();
    let (router, gates) = full(&system, RoundRobin::new()).await;
    let sent = tokio::spawn({
        let router = router.clone();
        async move { send_two(&router).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    router.resize(3).unwrap();
    sent.await.unwrap();
    for gate in &gates {
        gate.add_permits(1);
    }
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_is_told_when_all_routees_have_ended() {
    let system = ActorSystem::new().unwrap();
    let (router, gates) = full(&system, LeastLoaded::new()).await;
    let sent = tokio::spawn({
        let router = router.clone();
        async move { router.send(Who).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    router.stop();
    assert!(matches!(sent.await.unwrap(), Err(SendError::Closed(Who))));
    for gate in &gates {
        gate.add_permits(1);
    }
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
}

#[tokio::test(start_paused = true)]
async fn every_sender_that_waits_for_room_has_its_turn() {
    let system = ActorSystem::new().unwrap();
    let worker = Worker::default();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .mailbox(Mailbox::bounded(1))
        .router(RoundRobin::new(), 3)
        .unwrap();
    let sending = (0..20).map(|_| {
        let router = router.clone();
        tokio::spawn(async move {
            for _ in 0..100 {
                router.send(Who).await.unwrap();
            }
        })
    });
    let all = tokio::time::timeout(Duration::from_mins(1), join_all(sending)).await;
    for sent in all.expect("nobody waits for ever") {
        sent.unwrap();
    }
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
    assert_eq!(handled.load(Ordering::Relaxed), 2_000);
}

#[tokio::test]
async fn least_loaded_goes_around_those_that_are_busy() {
    let system = ActorSystem::new().unwrap();
    let (worker, gate) = Worker::gated();
    let router = system
        .build(move || worker.clone())
        .router(LeastLoaded::new(), 3)
        .unwrap();
    let long = [router.ask(Long), router.ask(Long)].map(|asked| tokio::spawn(asked.into_future()));
    // Each has begun with an empty mailbox: it is the message at hand that counts.
    let idle = router.ask(Who).await.unwrap();
    for _ in 0..30 {
        assert_eq!(router.ask(Who).await.unwrap(), idle);
    }
    gate.add_permits(2);
    for asked in long {
        assert_ne!(asked.await.unwrap().unwrap(), idle);
    }
}

#[tokio::test]
async fn least_loaded_takes_equals_in_turn() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(LeastLoaded::new(), 4)
        .unwrap();
    let mut counts = HashMap::new();
    for _ in 0..400 {
        *counts.entry(router.ask(Who).await.unwrap()).or_insert(0) += 1;
    }
    assert_eq!(counts.values().sum::<u32>(), 400);
    assert_eq!(counts.len(), 4);
}

#[tokio::test]
async fn a_key_stays_with_its_routee() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(by_picture(), 4)
        .unwrap();
    let before = owners(&router, 200).await;
    assert_eq!(owners(&router, 200).await, before);
    let all: std::collections::HashSet<_> = before.values().collect();
    assert_eq!(all.len(), 4, "and all have some");
}

#[tokio::test]
async fn a_resize_moves_only_the_keys_of_routees_that_come_or_go() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(by_picture(), 4)
        .unwrap();
    let four = owners(&router, 500).await;
    router.resize(5).unwrap();
    let five = owners(&router, 500).await;
    let moved: Vec<_> = (0..500).filter(|key| four[key] != five[key]).collect();
    let added = five[&moved[0]];
    assert!(!four.values().any(|owner| *owner == added));
    assert!(moved.iter().all(|key| five[key] == added));
    // A fifth, give or take.
    assert!((50..150).contains(&moved.len()), "{}", moved.len());
    router.resize(4).unwrap();
    assert_eq!(owners(&router, 500).await, four);
}

#[tokio::test]
async fn only_the_keys_of_a_routee_that_ended_move_and_its_replacement_gets_them() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(by_picture(), 3)
        .unwrap();
    let before = owners(&router, 100).await;
    let last = Like {
        picture: 7,
        is_last: true,
    };
    let gone = router.ask(last).await.unwrap();
    while router.size() == 3 {
        tokio::task::yield_now().await;
    }
    let without = owners(&router, 100).await;
    for key in 0..100 {
        let has_moved = before[&key] != without[&key];
        assert_eq!(has_moved, before[&key] == gone, "{key}");
    }
    router.resize(3).unwrap();
    let replaced = owners(&router, 100).await;
    let added = replaced[&7];
    for key in 0..100 {
        let is_replaced = before[&key] == gone;
        let owner = if is_replaced { added } else { before[&key] };
        assert_eq!(replaced[&key], owner, "{key}");
    }
}

#[tokio::test]
async fn a_full_mailbox_keeps_its_keys() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .mailbox(Mailbox::bounded(1))
        .router(by_picture(), 8)
        .unwrap();
    router.tell(Like::of(1)).unwrap();
    assert!(router.tell(Like::of(1)).unwrap_err().is_full());
    router.send(Like::of(1)).await.unwrap();
    assert_eq!(system.dead_letters().total(), 0);
}

#[tokio::test]
async fn broadcast_reaches_every_routee_that_lives() {
    let system = ActorSystem::new().unwrap();
    let worker = Worker::default();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .mailbox(Mailbox::bounded(2))
        .router(RoundRobin::new(), 4)
        .unwrap();
    lose_one(&router).await;
    assert_eq!(router.broadcast(Who), 3);
    assert_eq!(router.broadcast(Who), 3);
    assert_eq!(router.broadcast(Who), 3, "they live, with full mailboxes");
    assert_eq!(system.dead_letters().count(Reason::MailboxFull), 3);
    router.stop();
    router.terminated().await;
    assert_eq!(handled.load(Ordering::Relaxed), 6);
}

#[tokio::test]
async fn a_routee_that_ended_is_left_out_until_a_resize_replaces_it() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(RoundRobin::new(), 3)
        .unwrap();
    lose_one(&router).await;
    for _ in 0..9 {
        router.ask(Who).await.unwrap();
    }
    assert_eq!(router.size(), 2);
    router.resize(3).unwrap();
    assert_eq!(router.size(), 3);
    for _ in 0..3 {
        lose_one(&router).await;
    }
    assert!(!router.tell(Who).unwrap_err().is_full());
    assert!(router.send(Who).await.is_err());
    let error = router.ask(Who).await.unwrap_err();
    assert!(error.to_string().contains("has ended"), "{error}");
    router.resize(1).unwrap();
    router.ask(Who).await.unwrap();
}

#[tokio::test]
async fn a_routee_that_fails_is_restarted_and_stays_in_the_pool() {
    let supervision = Supervision::one_for_one().backoff(Backoff::NONE);
    let builder = ActorSystem::builder().supervision(supervision);
    let system = builder.build().unwrap();
    let router = system
        .build(Worker::default)
        .router(RoundRobin::new(), 2)
        .unwrap();
    let before = [
        router.ask(Who).await.unwrap(),
        router.ask(Who).await.unwrap(),
    ];
    router.ask(Fail).await.unwrap_err();
    router.ask(Fail).await.unwrap_err();
    assert_eq!(router.ask(Who).await.unwrap(), before[0]);
    assert_eq!(router.ask(Who).await.unwrap(), before[1]);
    assert_eq!(router.size(), 2);
}

#[tokio::test]
async fn those_that_a_resize_removes_handle_what_they_have() {
    let system = ActorSystem::new().unwrap();
    let (worker, gate) = Worker::gated();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .router(RoundRobin::new(), 4)
        .unwrap();
    for _ in 0..4 {
        router.ask(Who).await.unwrap();
    }
    for _ in 0..40 {
        router.tell(Long).unwrap();
    }
    router.resize(1).unwrap();
    assert_eq!(router.size(), 1);
    gate.add_permits(40);
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
    assert_eq!(handled.load(Ordering::Relaxed), 44);
    assert_eq!(system.dead_letters().total(), 0);
}

#[tokio::test]
async fn a_pool_has_from_one_to_so_many_routees() {
    let system = ActorSystem::new().unwrap();
    let router = system
        .build(Worker::default)
        .router(RoundRobin::new(), 0)
        .unwrap();
    assert_eq!(router.size(), 1);
    router.resize(usize::MAX).unwrap();
    assert_eq!(router.size(), ROUTEES_MAX);
}

#[tokio::test]
async fn an_unknown_dispatcher_is_an_error() {
    let system = ActorSystem::new().unwrap();
    let built = system
        .build(Worker::default)
        .dispatcher("images")
        .router(RoundRobin::new(), 2);
    let error = built.unwrap_err().to_string();
    assert!(error.contains("images"), "{error}");
}

/// Spreads questions over children.
struct Front(Option<Router<Worker, RoundRobin>>);
impl Actor for Front {
    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let pool = context.build(Worker::default).name("worker");
        self.0 = Some(pool.router(RoundRobin::new(), 2)?);
        Ok(())
    }
}
impl ReplyHandler<Path> for Front {
    type Reply = String;
    fn handle(&mut self, path: Path, reply: ReplyTo<String>, _: &mut Context<Self>) {
        let pool = self.0.as_ref().expect("it was made at the start");
        pool.forward(path, reply);
    }
}
struct Pool;
impl Handler<Pool> for Front {
    type Reply = Router<Worker, RoundRobin>;
    fn handle(&mut self, _: Pool, _: &mut Context<Self>) -> Self::Reply {
        self.0.clone().expect("it was made at the start")
    }
}

#[tokio::test]
async fn routees_are_children_of_who_built_the_router() {
    let system = ActorSystem::new().unwrap();
    let front = system.build(|| Front(None)).name("front").spawn().unwrap();
    assert_eq!(front.ask(Path).await.unwrap(), "/front/worker-1");
    assert_eq!(front.ask(Path).await.unwrap(), "/front/worker-2");
    let pool = front.ask(Pool).await.unwrap();
    assert_eq!(pool.size(), 2);
    front.stop();
    front.terminated().await;
    assert_eq!(pool.size(), 0);
    assert!(!pool.tell(Who).unwrap_err().is_full());
}

#[tokio::test]
async fn nothing_is_lost_while_senders_and_resizes_run_at_once() {
    const MESSAGES: u32 = 5_000;
    let builder = ActorSystem::builder().dispatcher("default", Dispatcher::pool(2));
    let system = builder.build().unwrap();
    let worker = Worker::default();
    let handled = Arc::clone(&worker.handled);
    let router = system
        .build(move || worker.clone())
        .router(LeastLoaded::new(), 4)
        .unwrap();
    let sending = (0..2).map(|_| {
        let router = router.clone();
        tokio::spawn(async move {
            for _ in 0..MESSAGES {
                router.send(Who).await.unwrap();
                tokio::task::yield_now().await;
            }
        })
    });
    let sending: Vec<_> = sending.collect();
    for size in [1, 7, 2, 5, 1, 3].into_iter().cycle().take(60) {
        router.resize(size).unwrap();
        tokio::task::yield_now().await;
    }
    for sent in sending {
        sent.await.unwrap();
    }
    assert!(system.shutdown(Duration::from_secs(30)).await.is_clean());
    let lost = u64::from(2 * MESSAGES) - u64::from(handled.load(Ordering::Relaxed));
    assert_eq!(lost, system.dead_letters().total());
}
