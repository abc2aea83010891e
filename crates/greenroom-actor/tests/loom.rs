//! Every interleaving of the lane, the accounts and a worker's rest, by loom. The files under test
//! are the library's own, compiled here against loom's atomics.

#![allow(
    dead_code,
    unreachable_pub,
    unsafe_code,
    missing_docs,
    clippy::unwrap_used,
    reason = "the modules are the library's; not all of them is used here"
)]

#[path = "../src/cell/accounts.rs"]
mod accounts;
#[path = "../src/raw/lane.rs"]
mod lane;
#[path = "../src/dispatcher/sleep.rs"]
mod sleep;
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering, fence};
}

use std::ptr::NonNull;

use accounts::Accounts;
use lane::{Lane, Link, Push};
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::thread;
use sleep::Sleeper;

/// Three preemptions find nearly every fault of such code, and the models stay small.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[repr(C)]
struct Node {
    link: Link,
    value: u32,
}

/// An actor that remembers what it was sent; its cell is loom's, so two turns at once are a fault.
struct Actor {
    lane: Lane,
    seen: UnsafeCell<Vec<u32>>,
    signals: AtomicUsize,
}

// SAFETY: `seen` is only touched by the turn's holder, which is what the models check.
unsafe impl Sync for Actor {}
// SAFETY: as above.
unsafe impl Send for Actor {}

impl Actor {
    fn new() -> Self {
        Self {
            lane: Lane::new(),
            seen: UnsafeCell::new(Vec::new()),
            signals: AtomicUsize::new(0),
        }
    }

    /// Sends a value; the sender that gets the turn runs the actor on the spot.
    fn send(&self, value: u32) -> bool {
        let node = Box::into_raw(Box::new(Node {
            link: Link::new(),
            value,
        }));
        // SAFETY: the node is fresh, and taken back if the lane is closed.
        match unsafe { self.lane.push(NonNull::new(node).unwrap().cast()) } {
            Push::Queued => true,
            Push::Turn => {
                self.run();
                true
            }
            Push::Closed => {
                // SAFETY: the lane did not take it.
                drop(unsafe { Box::from_raw(node) });
                false
            }
        }
    }

    fn signal(&self) {
        if self.lane.signal() {
            self.run();
        }
    }

    fn run(&self) {
        loop {
            if self.lane.is_signalled() {
                self.lane.acknowledge();
                self.signals.fetch_add(1, Ordering::Relaxed);
            }
            self.take_all();
            if self.lane.rest(false) {
                return;
            }
        }
    }

    fn take_all(&self) {
        let mut link = self.lane.take();
        while !link.is_null() {
            // SAFETY: taken links are the turn's, and came from boxed nodes.
            let node = unsafe { Box::from_raw(link.cast::<Node>()) };
            link = node.link.next;
            // SAFETY: only the turn's holder gets here.
            self.seen
                .with_mut(|seen| unsafe { (*seen).push(node.value) });
        }
    }

    fn seen(&self) -> Vec<u32> {
        // SAFETY: called when all other threads have ended.
        self.seen.with(|seen| unsafe { (*seen).clone() })
    }
}

#[test]
fn every_message_is_seen_once_and_in_its_senders_order_by_one_turn_at_a_time() {
    check(|| {
        let actor = Arc::new(Actor::new());
        let other = Arc::clone(&actor);
        let sender = thread::spawn(move || {
            other.send(1);
            other.send(2);
        });
        actor.send(10);
        sender.join().unwrap();
        let seen = actor.seen();
        assert_eq!(seen.len(), 3, "{seen:?}");
        let first = seen.iter().position(|value| *value == 1);
        assert!(
            first < seen.iter().position(|value| *value == 2),
            "{seen:?}"
        );
    });
}

#[test]
fn a_signal_is_never_missed() {
    check(|| {
        let actor = Arc::new(Actor::new());
        let other = Arc::clone(&actor);
        let sender = thread::spawn(move || other.signal());
        actor.send(1);
        sender.join().unwrap();
        assert_eq!(actor.signals.load(Ordering::Relaxed), 1);
        assert_eq!(actor.seen(), [1]);
    });
}

#[test]
fn a_suspended_actor_is_woken_by_a_signal_and_not_by_a_message() {
    check(|| {
        let actor = Arc::new(Actor::new());
        assert!(actor.lane.claim());
        let (sender, waker) = (Arc::clone(&actor), Arc::clone(&actor));
        let sender = thread::spawn(move || sender.send(1));
        let waker = thread::spawn(move || waker.signal());
        // It waits for an event that the waker reports.
        if !actor.lane.rest(true) {
            actor.run();
        }
        sender.join().unwrap();
        waker.join().unwrap();
        assert_eq!(actor.signals.load(Ordering::Relaxed), 1);
        assert_eq!(actor.seen(), [1]);
    });
}

#[test]
fn a_message_is_either_let_in_before_the_end_or_returned() {
    check(|| {
        let actor = Arc::new(Actor::new());
        assert!(actor.lane.claim());
        let other = Arc::clone(&actor);
        let sender = thread::spawn(move || other.send(1));
        actor.lane.close();
        actor.take_all();
        let is_let_in = sender.join().unwrap();
        assert_eq!(actor.seen().len(), usize::from(is_let_in));
    });
}

#[test]
fn only_one_claims_an_idle_actor() {
    check(|| {
        let actor = Arc::new(Actor::new());
        let other = Arc::clone(&actor);
        let claim = |actor: &Actor| {
            let has_turn = actor.lane.claim();
            if has_turn {
                actor.seen.with_mut(|seen| {
                    // SAFETY: only the turn's holder gets here.
                    unsafe { (*seen).push(0) }
                });
                actor.run();
            }
            usize::from(has_turn)
        };
        let thread = thread::spawn(move || claim(&other));
        let claimed = claim(&actor) + thread.join().unwrap();
        assert!(claimed >= 1);
        assert_eq!(actor.seen().len(), claimed);
    });
}

#[test]
fn never_more_than_the_capacity_are_let_in() {
    check(|| {
        let accounts = Arc::new(Accounts::new());
        let waiting = Arc::new(AtomicUsize::new(0));
        let senders: Vec<_> = (0..2)
            .map(|_| {
                let (accounts, waiting) = (Arc::clone(&accounts), Arc::clone(&waiting));
                thread::spawn(move || {
                    let is_let_in = accounts.reserve(1);
                    if is_let_in {
                        assert_eq!(waiting.fetch_add(1, Ordering::AcqRel), 0);
                    }
                    is_let_in
                })
            })
            .collect();
        // The actor takes one out, once there is one.
        if waiting.load(Ordering::Acquire) == 1 {
            waiting.fetch_sub(1, Ordering::AcqRel);
            accounts.take();
        }
        let let_in = senders
            .into_iter()
            .filter_map(|sender| sender.join().ok())
            .filter(|is| *is);
        assert!(let_in.count() >= 1);
    });
}

#[test]
fn work_is_never_left_to_a_sleeping_worker() {
    check(|| {
        let sleeper = Arc::new(Sleeper::new());
        let work = Arc::new(AtomicUsize::new(0));
        let (other, given) = (Arc::clone(&sleeper), Arc::clone(&work));
        let sender = thread::spawn(move || {
            given.store(1, Ordering::Relaxed);
            other.wake()
        });
        sleeper.go_to_sleep();
        let is_seen = work.load(Ordering::Relaxed) == 1;
        let is_woken = sender.join().unwrap();
        assert!(is_seen || is_woken);
    });
}
