use std::time::Duration;

use fastrand::Rng;

use super::*;
use crate::plan::{Phase, Schedule};

const MS: u64 = 1_000_000;

/// Returns a pacer of a request each ms for 10 ms.
fn pacer() -> Pacer {
    let schedule = Schedule::constant(1000.0, Duration::from_millis(10)).expect("a schedule");
    Pacer::new(schedule.arrivals(0, 1), 10 * MS)
}

fn intended(pacer: &mut Pacer, now: u64) -> Option<u64> {
    pacer.due(now, || 0).map(|due| due.intended)
}

#[test]
fn requests_come_due_at_their_times_and_in_their_order() {
    let mut pacer = pacer();
    assert_eq!(intended(&mut pacer, 0), Some(0));
    assert_eq!(intended(&mut pacer, 0), Some(0), "it was not taken");
    assert_eq!(pacer.take(), Some(0));
    assert_eq!(intended(&mut pacer, MS - 1), None);
    assert_eq!(pacer.wakes_at(), Some(MS));
    for ms in 1..10 {
        assert_eq!(intended(&mut pacer, 20 * MS), Some(ms * MS));
        pacer.take();
    }
    assert!(pacer.is_over());
    assert_eq!((pacer.wakes_at(), pacer.take()), (None, None));
}

#[test]
fn a_request_that_waits_keeps_its_target() {
    let mut pacer = pacer();
    let first = pacer.due(0, || 5).expect("it is due");
    pacer.block_until(MS);
    assert_eq!(pacer.due(MS, || panic!("a second choice")), Some(first));
    pacer.take();
    let second = Due {
        intended: MS,
        target: 6,
    };
    assert_eq!(pacer.due(MS, || 6), Some(second));
}

#[test]
fn a_request_given_back_goes_before_all_others() {
    let mut pacer = pacer();
    let first = pacer.due(0, || 5).expect("it is due");
    pacer.take();
    let second = pacer.due(MS, || 6).expect("it is due");
    pacer.block_until(Pacer::FREE_CONNECTION);
    pacer.give_back([first]);
    assert_eq!((pacer.wakes_at(), pacer.waiting(MS)), (Some(0), 2));
    assert_eq!(pacer.due(MS, || 0), Some(first));
    pacer.take();
    assert_eq!(pacer.due(MS, || 0), Some(second));
}

#[test]
fn without_a_free_connection_nothing_is_due() {
    let mut pacer = pacer();
    pacer.block_until(Pacer::FREE_CONNECTION);
    assert_eq!(intended(&mut pacer, 5 * MS), None);
    assert_eq!(pacer.wakes_at(), Some(10 * MS), "at the end");
    assert!(pacer.unblock() && !pacer.unblock());
    assert_eq!(intended(&mut pacer, 5 * MS), Some(0));
}

#[test]
fn a_pause_ends_by_itself() {
    let mut pacer = pacer();
    pacer.block_until(2 * MS);
    assert!(!pacer.unblock(), "no connection ends it");
    assert_eq!(
        (intended(&mut pacer, MS), pacer.wakes_at()),
        (None, Some(2 * MS))
    );
    assert_eq!(intended(&mut pacer, 2 * MS), Some(0));
}

#[test]
fn what_comes_due_is_counted_once() {
    let mut pacer = pacer();
    assert_eq!((pacer.count_due(2 * MS), pacer.count_due(2 * MS)), (3, 0));
    assert_eq!(
        (pacer.waiting(2 * MS), pacer.next_arrival(2 * MS)),
        (3, Some(3 * MS))
    );
    pacer.take();
    assert_eq!((pacer.count_due(20 * MS), pacer.waiting(20 * MS)), (7, 9));
    assert_eq!(pacer.next_arrival(10 * MS), Some(10 * MS), "the end");
}

#[test]
fn after_the_end_only_what_waits_for_no_connection_may_be_sent_a_little_late() {
    let mut pacer = pacer();
    let grace = Tally::LATE_NS;
    assert!(!pacer.has_ended(10 * MS + grace - 1));
    assert!(pacer.has_ended(10 * MS + grace));
    pacer.block_until(Pacer::FREE_CONNECTION);
    assert!(!pacer.has_ended(10 * MS - 1));
    assert!(pacer.has_ended(10 * MS));
    assert_eq!(pacer.next_arrival(10 * MS), None);
    let given_up: Vec<_> = iter::from_fn(|| pacer.give_up()).collect();
    let expected: Vec<_> = (0..10).map(|ms| (ms * MS, 10 * MS)).collect();
    assert_eq!(given_up, expected);
    assert!(pacer.is_over() && pacer.has_ended(10 * MS));
}

/// Does things to a pacer by chance until its schedule has ended; returns the intended times of the
/// requests that were sent or given up, and the number of those that were counted.
fn run(pacer: &mut Pacer, rng: &mut Rng) -> (Vec<u64>, u64) {
    let (mut now, mut counted) = (0, 0);
    let mut ended = Vec::new();
    while !pacer.has_ended(now) {
        now += rng.u64(..3 * MS);
        counted += pacer.count_due(now);
        let mut unsent = Vec::new();
        while let Some(due) = pacer.due(now, || 0) {
            assert!(due.intended <= now);
            match rng.u8(..8) {
                0 => pacer.block_until(Pacer::FREE_CONNECTION),
                1 => pacer.block_until(now + rng.u64(1..5 * MS)),
                2 => {
                    pacer.take();
                    unsent.push(due);
                }
                _ => ended.extend(pacer.take()),
            }
        }
        pacer.give_back(unsent);
    }
    ended.extend(iter::from_fn(|| pacer.give_up()).map(|(intended, _)| intended));
    (ended, counted + pacer.count_due(now))
}

#[test]
fn every_request_ends_once() {
    let phase = |from, to| Phase {
        from,
        to,
        duration: Duration::from_millis(20),
    };
    let schedule = Schedule::new(vec![phase(0.0, 3000.0), phase(500.0, 500.0)]).expect("valid");
    let all: Vec<_> = schedule.arrivals(0, 1).collect();
    for seed in 0..1000 {
        let mut pacer = Pacer::new(schedule.arrivals(0, 1), 40 * MS);
        let (mut ended, counted) = run(&mut pacer, &mut Rng::with_seed(seed));
        ended.sort_unstable();
        assert_eq!(ended, all, "seed {seed}");
        assert_eq!(counted, all.len() as u64, "seed {seed}");
    }
}
