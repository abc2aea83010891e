mod fairness;
mod simulation;

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_stage::{Client, fair};
use tokio::sync::oneshot::error::TryRecvError;

use super::routes::{DEPTH_MAX, Route};
use super::*;
use crate::builder::Builder;
use crate::settings::Concurrency;

const SHORT: Duration = Duration::from_micros(20);

fn pool(change: impl FnOnce(Builder) -> Builder) -> Arc<Pool> {
    Pool::new(&change(Builder::new(PathBuf::from("app.psgi"))).settings)
}

fn with_workers(keys: std::ops::Range<u32>, change: impl FnOnce(Builder) -> Builder) -> Arc<Pool> {
    let pool = pool(change);
    keys.for_each(|key| pool.add(worker(key)));
    pool
}

fn worker(key: u32) -> Arc<Worker> {
    Worker::new(key, rustix::process::getpid(), PathBuf::new(), false)
}

/// A request of a client without records.
fn from_anybody(route: Route) -> Origin {
    let client = Client::UNKNOWN;
    Origin { route, client }
}

fn acquire(pool: &Arc<Pool>) -> Admission {
    pool.acquire(from_anybody(Route::default()))
}

/// Sends a request, and returns the worker that got it.
fn send(pool: &Arc<Pool>) -> Option<u32> {
    match acquire(pool) {
        Admission::Run(run) => {
            let key = run.worker().key;
            run.sent();
            Some(key)
        }
        _ => None,
    }
}

fn respond(pool: &Pool, key: u32, busy: Duration) {
    release(pool, key, Phase::Served, busy);
}

/// Releases a run whose expected time was zero.
fn release(pool: &Pool, key: u32, to: Phase, busy: Duration) {
    let charge = Charge {
        route: Route::default(),
        flow: fair::Flow::default(),
        expected: Duration::ZERO,
        since: now(),
    };
    let (mut settlement, mut phase) = (Settlement::default(), Phase::Running);
    settlement.end_run(&mut phase, to, charge, RunEnd::Released(busy));
    pool.settle(key, &mut settlement);
}

fn change(pool: &Pool, mut phase: Phase, to: Phase) {
    let mut settlement = Settlement::default();
    settlement.change(&mut phase, to);
    pool.settle(0, &mut settlement);
}

fn prove_short(pool: &Arc<Pool>) {
    for _ in 0..64 {
        let key = send(pool).expect("a worker is free");
        respond(pool, key, SHORT);
    }
}

fn ticket(pool: &Arc<Pool>) -> Ticket {
    match acquire(pool) {
        Admission::Wait(ticket) => ticket,
        Admission::Run(_) => panic!("a worker is free"),
        Admission::Rejected(rejected) => panic!("{rejected}"),
    }
}

#[test]
fn an_unknown_application_gets_one_request_at_a_time() {
    let pool = with_workers(0..2, |builder| builder);
    assert_eq!((send(&pool), send(&pool)), (Some(0), Some(1)));
    assert_eq!(send(&pool), None);
    respond(&pool, 1, SHORT);
    assert_eq!(send(&pool), Some(1));
}

#[test]
fn one_that_has_proven_short_is_sent_runs_ahead_until_one_is_long() {
    let pool = with_workers(0..1, |builder| builder);
    prove_short(&pool);
    let sent = std::iter::repeat_with(|| send(&pool)).take_while(Option::is_some);
    assert_eq!(sent.count(), DEPTH_MAX as usize);
    respond(&pool, 0, Duration::from_millis(50));
    assert_eq!(pool.status().short_routes, 0);
    assert_eq!(send(&pool), None);
}

#[test]
fn what_may_be_long_has_a_worker_for_itself() {
    let pool = with_workers(0..1, |builder| builder);
    prove_short(&pool);
    let unknown = Route::of(&http::Method::GET, "/unknown");
    let Admission::Run(run) = pool.acquire(from_anybody(unknown)) else {
        panic!("the worker is free")
    };
    run.sent();
    assert_eq!(send(&pool), None);
    respond(&pool, 0, SHORT);
    assert_eq!(send(&pool), Some(0));
    assert!(matches!(
        pool.acquire(from_anybody(unknown)),
        Admission::Wait(_)
    ));
}

#[test]
fn requests_that_wait_for_events_hold_no_run_but_are_bounded() {
    let two = NonZeroU32::new(2).expect("two is not zero");
    let pool = with_workers(0..1, |builder| {
        builder.concurrency(Concurrency::AtMost(two))
    });
    for _ in 0..2 {
        assert_eq!(send(&pool), Some(0));
        release(&pool, 0, Phase::Waiting, SHORT);
    }
    assert_eq!(send(&pool), None);
    change(&pool, Phase::Waiting, Phase::Served);
    let load = pool.loads()[0];
    assert_eq!((load.running, load.waiting, load.served), (0, 1, 1));
    assert_eq!(send(&pool), Some(0));
}

#[tokio::test]
async fn the_queue_is_served_in_order() {
    let pool = with_workers(0..1, |builder| builder);
    assert_eq!(send(&pool), Some(0));
    let (first, mut second) = (ticket(&pool), tokio_test_task(ticket(&pool)));
    respond(&pool, 0, SHORT);
    let run = first.await.expect("its turn came in time");
    assert_eq!(second.try_recv().err(), Some(TryRecvError::Empty));
    run.sent();
    respond(&pool, 0, SHORT);
    second
        .await
        .expect("the task goes on")
        .expect("its turn came in time")
        .sent();
}

/// Waits for a turn in a task of its own.
fn tokio_test_task(ticket: Ticket) -> tokio::sync::oneshot::Receiver<Result<Run, Rejected>> {
    let (tell, told) = tokio::sync::oneshot::channel();
    tokio::spawn(async move { tell.send(ticket.await) });
    told
}

#[tokio::test]
async fn who_leaves_the_queue_gives_its_turn_to_the_next() {
    let pool = with_workers(0..1, |builder| builder);
    assert_eq!(send(&pool), Some(0));
    let (left, called, next) = (ticket(&pool), ticket(&pool), ticket(&pool));
    drop(left);
    respond(&pool, 0, SHORT);
    drop(called);
    next.await.expect("its turn came in time").sent();
    assert_eq!(pool.loads()[0].running, 1);
}

#[test]
fn a_full_queue_and_a_long_wait_are_refused() {
    let pool = with_workers(0..1, |builder| builder.queue_max(1));
    assert_eq!(send(&pool), Some(0));
    let _waits = ticket(&pool);
    let Admission::Rejected(rejected) = acquire(&pool) else {
        panic!("the queue is full")
    };
    assert_eq!(rejected.reason, greenroom_stage::Reason::QueueFull);

    let pool = with_workers(0..1, |builder| {
        builder.queue_wait_max(Duration::from_secs(1))
    });
    assert_eq!(send(&pool), Some(0));
    respond(&pool, 0, Duration::from_secs(2));
    assert_eq!(send(&pool), Some(0));
    let Admission::Rejected(rejected) = acquire(&pool) else {
        panic!("it would wait for two seconds")
    };
    assert_eq!(
        (rejected.reason, rejected.retry_after),
        (greenroom_stage::Reason::Wait, 2)
    );
    let sheds = pool.status().sheds;
    assert_eq!((sheds.wait, sheds.total()), (1, 1));
}

#[tokio::test]
async fn a_draining_worker_gets_nothing_and_tells_when_it_is_idle() {
    let pool = with_workers(0..2, |builder| builder);
    assert_eq!(send(&pool), Some(0));
    pool.drain(0);
    pool.changed().await;
    assert_eq!(send(&pool), Some(1));
    assert_eq!(send(&pool), None);
    respond(&pool, 0, SHORT);
    pool.changed().await;
    assert_eq!(pool.loads()[0].running, 0);
    assert_eq!(send(&pool), None);
}

#[tokio::test]
async fn a_worker_that_has_served_enough_is_told_of_once() {
    let pool = with_workers(0..1, |builder| builder.max_requests(2));
    for _ in 0..2 {
        assert_eq!(send(&pool), Some(0));
        respond(&pool, 0, SHORT);
    }
    pool.changed().await;
    assert_eq!(pool.loads()[0].served, 2);
}

#[test]
fn why_a_worker_ended_is_known_after_it_is_gone() {
    let pool = with_workers(0..1, |builder| builder);
    assert_eq!(pool.ending(0), Ending::Crashed);
    pool.note_ending(0, Ending::Hung);
    assert_eq!(send(&pool), None);
    pool.remove(0);
    assert_eq!(pool.ending(0), Ending::Hung);
    assert!(pool.loads().is_empty());
}

#[test]
fn only_runs_that_are_not_exempt_can_be_stuck() {
    let pool = with_workers(0..1, |builder| builder);
    assert!(pool.loads()[0].stuck.is_none());
    assert_eq!(send(&pool), Some(0));
    assert!(pool.loads()[0].stuck.is_some());
    change(&pool, Phase::Running, Phase::Stalled);
    assert!(pool.loads()[0].stuck.is_none());
    change(&pool, Phase::Stalled, Phase::Running);
    assert!(pool.loads()[0].stuck.is_some());
}

#[test]
fn requests_are_counted_by_their_phase() {
    let pool = with_workers(0..1, |builder| builder);
    let counted = || {
        let load = pool.loads()[0];
        (load.running, load.waiting, load.served)
    };
    assert_eq!(send(&pool), Some(0));
    assert_eq!(counted(), (1, 0, 0));
    release(&pool, 0, Phase::Waiting, SHORT);
    assert_eq!(counted(), (0, 1, 0));
    // Its client leaves, and it keeps its worker from nothing but from more than it may have.
    change(&pool, Phase::Waiting, Phase::Unwanted);
    assert_eq!(counted(), (0, 0, 0));
    change(&pool, Phase::Unwanted, Phase::Served);
    assert_eq!(counted(), (0, 0, 1));
    drop(pool.acquire(from_anybody(Route::default())));
    assert_eq!(counted(), (0, 0, 1), "it was never sent");
    let stay = pool.stay(0);
    assert_eq!(counted(), (0, 1, 1));
    drop(stay);
    assert_eq!(counted(), (0, 0, 1));
}
