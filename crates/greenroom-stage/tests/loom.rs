//! Every interleaving of pushing, taking, closing and the controller's part, by loom. The file
//! under test is the library's own, compiled here against loom's locks.

#![allow(
    dead_code,
    unreachable_pub,
    unused_imports,
    missing_docs,
    clippy::unwrap_used,
    reason = "the modules are the library's; not all of them is used here"
)]

#[path = "../src/admission/mod.rs"]
mod admission;
#[path = "../src/stage/band_queue.rs"]
mod band_queue;
#[path = "../src/stage/begun.rs"]
mod begun;
#[path = "../src/fair/mod.rs"]
mod fair;
#[path = "../src/stage/lanes.rs"]
mod lanes;
#[path = "../src/stage/scheduler.rs"]
mod scheduler;
mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}
#[path = "../src/stage/thread_limit.rs"]
mod thread_limit;

use std::time::{Duration, Instant};

use fair::Flow;
use lanes::{Band, Ended, Entry, Spent};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use scheduler::{Bounds, Pushed, Scheduler};

const FOREVER: Duration = Duration::MAX;

/// Two preemptions find nearly every fault of such code, and the model stays small.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(model);
}

fn scheduler(base: usize, compute_max: usize, threads_max: usize) -> Arc<Scheduler<usize>> {
    let bounds = Bounds {
        base,
        compute_max,
        threads_max,
    };
    Arc::new(Scheduler::new(bounds, Duration::from_millis(500)))
}

fn start(scheduler: &Arc<Scheduler<usize>>, done: &Arc<AtomicUsize>) -> thread::JoinHandle<()> {
    assert!(scheduler.announce());
    let (scheduler, done) = (Arc::clone(scheduler), Arc::clone(done));
    thread::spawn(move || {
        let worker = scheduler.enter(0);
        let mut used = None;
        while let Some(taken) = scheduler.next(worker, used, FOREVER) {
            done.fetch_add(taken.turn.work, Ordering::SeqCst);
            used = Some(Spent {
                used: Duration::from_millis(1),
                run: Some(Ended {
                    wanted: Duration::from_millis(1),
                    stated: Some(Duration::from_millis(2)),
                }),
                ..Spent::nothing(&taken, std::time::Instant::now())
            });
        }
    })
}

fn push(scheduler: &Scheduler<usize>, work: usize) -> bool {
    push_to(scheduler, Band::Normal, work)
}

fn push_to(scheduler: &Scheduler<usize>, band: Band, work: usize) -> bool {
    scheduler.reserve(|_| Ok::<(), ()>(())).unwrap();
    let entry = Entry {
        band,
        flow: Flow::default(),
        expected: Duration::from_millis(1),
        advance: None,
        is_begun: false,
    };
    match scheduler.push(entry, work) {
        Pushed::Done => false,
        Pushed::NotifyController => true,
        Pushed::Closed(_) => panic!("it is open"),
    }
}

/// Pushed work is taken, or the controller is notified; then it finds the work.
#[test]
fn nothing_is_lost_between_a_push_and_an_idle_thread() {
    check(|| {
        let (stage, done) = (scheduler(1, 1, 1), Arc::new(AtomicUsize::new(0)));
        let worker = start(&stage, &done);
        let _told = push(&stage, 1);
        let _told = push(&stage, 10);
        stage.close();
        worker.join().unwrap();
        assert_eq!(done.load(Ordering::SeqCst), 11);
        assert_eq!(stage.counts().threads, 0);
    });
}

#[test]
fn two_threads_share_the_work_and_both_leave() {
    check(|| {
        let (stage, done) = (scheduler(2, 2, 2), Arc::new(AtomicUsize::new(0)));
        let workers = [start(&stage, &done), start(&stage, &done)];
        let _told = push(&stage, 1);
        stage.close();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(done.load(Ordering::SeqCst), 1);
    });
}

/// Without a controller: work for which no thread comes must have led to a notification.
#[test]
fn a_push_without_a_free_thread_tells_the_controller_once() {
    check(|| {
        let stage = scheduler(1, 1, 2);
        let pusher = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || push(&stage, 1))
        };
        let told = push(&stage, 2);
        let told_too = pusher.join().unwrap();
        assert!(told ^ told_too);
        let (counts, _) = stage.inspect();
        assert_eq!(counts.waiting, 2);
        assert_eq!(stage.apply(&[], [0, 1], Instant::now()), 1);
    });
}

/// The thread that comes for such work would put it back among the long ones, for which there may
/// be no thread, and go idle: the controller must have been notified by then.
#[test]
fn work_of_a_route_that_was_mistaken_for_short_tells_the_controller() {
    check(|| {
        let stage = scheduler(2, 1, 2);
        assert!(stage.announce());
        let _told = push_to(&stage, Band::Short, 1);
        assert!(stage.next(stage.enter(0), None, FOREVER).is_some());
        let later = Instant::now() + Duration::from_secs(1);
        assert_eq!(stage.apply(&[], [0, 0], later), 0);
        assert_eq!(stage.inspect().0.waiting, 0);
        assert!(stage.announce());
        assert!(push_to(&stage, Band::Short, 2));
        assert_eq!(stage.counts().waiting_of, [0, 1]);
    });
}

/// No thread comes for it, and it may become overdue.
#[test]
fn work_of_a_client_that_is_given_no_more_threads_tells_the_controller() {
    check(|| {
        let stage = scheduler(1, 1, 8);
        for _ in 0..7 {
            assert!(stage.announce());
            let _told = push(&stage, 1);
            assert!(stage.next(stage.enter(0), None, FOREVER).is_some());
            let (_, mut at_work) = stage.inspect();
            for seen in &mut at_work {
                seen.is_blocked = true;
            }
            assert_eq!(stage.apply(&at_work, [0, 0], Instant::now()), 0);
        }
        assert!(push(&stage, 1));
        let counts = stage.counts();
        assert_eq!((counts.waiting, counts.waiting_of), (1, [0, 0]));
        // A thread that has ended its run takes it.
        assert!(stage.next(0, None, FOREVER).is_some());
        assert_eq!(stage.counts().waiting, 0);
    });
}

/// The controller's look may cross with a run's end and with an idle thread's call.
#[test]
fn the_controllers_part_keeps_the_counts_whole() {
    check(|| {
        let (stage, done) = (scheduler(1, 1, 2), Arc::new(AtomicUsize::new(0)));
        let worker = start(&stage, &done);
        let _told = push(&stage, 1);
        let (counts, mut at_work) = stage.inspect();
        for seen in &mut at_work {
            seen.is_blocked = true;
        }
        for _ in 0..stage.apply(&at_work, counts.waiting_of, Instant::now()) {
            stage.withdraw();
        }
        stage.close();
        worker.join().unwrap();
        let counts = stage.counts();
        assert_eq!(done.load(Ordering::SeqCst), 1);
        assert_eq!(
            (
                counts.threads,
                counts.started,
                counts.working,
                counts.blocked
            ),
            (0, 0, 0, 0)
        );
    });
}

/// A short run has a gate of its own: it does not wait for the thread that a long one holds.
#[test]
fn a_short_run_is_not_held_up_by_a_long_one() {
    check(|| {
        let (stage, done) = (scheduler(2, 1, 2), Arc::new(AtomicUsize::new(0)));
        let workers = [start(&stage, &done), start(&stage, &done)];
        let long = {
            let stage = Arc::clone(&stage);
            thread::spawn(move || push(&stage, 1))
        };
        let _told = push_to(&stage, Band::Short, 10);
        let _told = long.join().unwrap();
        stage.close();
        for worker in workers {
            worker.join().unwrap();
        }
        assert_eq!(done.load(Ordering::SeqCst), 11);
        let counts = stage.counts();
        assert_eq!((counts.threads, counts.started, counts.waiting), (0, 0, 0));
    });
}
