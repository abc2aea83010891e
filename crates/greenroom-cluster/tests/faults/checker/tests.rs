//! Histories with one violation each: the checker finds it, and nothing else.

use super::{Violation, check};
use crate::history::{Event, Log, Outcome, Work};

const ENTITY: u32 = 3;
const FIRST_FENCE: u64 = 10;
const SECOND_FENCE: u64 = 20;

fn client(events: Vec<Event>) -> Log {
    let process = "client".to_owned();
    Log { process, events }
}

fn begun(op: u64, work: Work) -> Event {
    Event::Begun { op, work }
}

fn ended(op: u64, outcome: Outcome) -> Event {
    Event::Ended {
        op,
        outcome,
        took_ms: 5,
        limit_ms: 300,
    }
}

fn record(revision: u64, fence: u64, ops: &[u64]) -> Event {
    Event::Record {
        entity: ENTITY,
        revision,
        fence,
        ops: ops.to_vec(),
    }
}

fn claim(revision: u64, node: &str) -> Event {
    Event::Claim {
        entity: ENTITY,
        revision,
        node: node.to_owned(),
    }
}

fn done(place: u64) -> Outcome {
    Outcome::Done { place: Some(place) }
}

const APPEND: Work = Work::Append { entity: ENTITY };
const DURABLE: Work = Work::DurableAppend { entity: ENTITY };
const ACKNOWLEDGED: Outcome = Outcome::Done { place: None };

/// Two activations, an ask and durable messages for the entity and the group.
fn good() -> Log {
    client(vec![
        begun(1, APPEND),
        ended(1, done(0)),
        begun(2, DURABLE),
        ended(2, Outcome::Unknown),
        begun(2, DURABLE),
        ended(2, ACKNOWLEDGED),
        begun(3, Work::DurableGroup),
        ended(3, ACKNOWLEDGED),
        begun(4, APPEND),
        ended(4, Outcome::NotDone),
        Event::Handled { op: 3 },
        Event::Saved {
            entity: ENTITY,
            fence: FIRST_FENCE,
            op: 1,
        },
        claim(FIRST_FENCE, "one"),
        claim(SECOND_FENCE, "two"),
        record(1, FIRST_FENCE, &[]),
        record(2, FIRST_FENCE, &[1]),
        record(3, SECOND_FENCE, &[1]),
        record(4, SECOND_FENCE, &[1, 2]),
        Event::Left { messages: 0 },
        Event::Final {
            entity: ENTITY,
            ops: Some(vec![1, 2]),
        },
    ])
}

/// Checks the good history with one event replaced by others.
fn changed(old: &Event, new: &[Event]) -> Vec<Violation> {
    let mut log = good();
    let place = log.events.iter().position(|event| event == old);
    let place = place.expect("it is in the good history");
    log.events.splice(place..=place, new.iter().cloned());
    check(&[log]).1
}

#[test]
fn a_good_history_has_no_violation() {
    let (counts, violations) = check(&[good()]);
    assert_eq!(violations, []);
    assert_eq!(
        (counts.asks, counts.asks_done, counts.asks_refused),
        (2, 1, 1)
    );
    assert_eq!((counts.acknowledged, counts.applied), (2, 2));
    assert_eq!((counts.activations, counts.takeovers), (2, 1));
}

#[test]
fn an_acknowledged_message_that_is_nowhere_is_lost() {
    let work = Work::DurableGroup;
    let found = changed(&Event::Handled { op: 3 }, &[]);
    assert_eq!(found, [Violation::Lost { op: 3, work }]);
    let found = changed(
        &record(4, SECOND_FENCE, &[1, 2]),
        &[record(4, SECOND_FENCE, &[1, 5])],
    );
    assert!(
        found.contains(&Violation::Lost {
            op: 2,
            work: DURABLE
        }),
        "{found:?}"
    );
    let invented = Violation::Invented {
        op: 5,
        entity: ENTITY,
    };
    assert!(found.contains(&invented), "{found:?}");
}

#[test]
fn a_message_that_changed_an_entity_twice_is_found() {
    let last = record(4, SECOND_FENCE, &[1, 2]);
    let found = changed(&last, &[last.clone(), record(5, SECOND_FENCE, &[1, 2, 2])]);
    let twice = Violation::Twice {
        op: 2,
        entity: ENTITY,
    };
    let not_read = Violation::NotRead { entity: ENTITY };
    assert_eq!(found, [twice, not_read]);
}

#[test]
fn an_ask_that_was_done_and_is_not_in_the_state_is_found() {
    let found = changed(&ended(4, Outcome::NotDone), &[ended(4, done(2))]);
    assert_eq!(
        found,
        [Violation::Undone {
            op: 4,
            entity: ENTITY
        }]
    );
    let found = changed(&ended(1, done(0)), &[ended(1, done(1))]);
    let misplaced = Violation::Misplaced {
        op: 1,
        told: 1,
        place: Some(0),
    };
    assert_eq!(found, [misplaced]);
}

#[test]
fn an_ask_that_was_refused_and_is_in_the_state_is_found() {
    let found = changed(&ended(1, done(0)), &[ended(1, Outcome::NotDone)]);
    let not_refused = Violation::NotRefused {
        op: 1,
        entity: ENTITY,
    };
    assert_eq!(found[0], not_refused);
    assert_eq!(
        changed(&ended(4, Outcome::NotDone), &[ended(4, Outcome::Unknown)]),
        []
    );
}

#[test]
fn an_activation_that_wrote_after_a_later_one_is_found() {
    let last = record(4, SECOND_FENCE, &[1, 2]);
    let found = changed(&last, &[record(4, FIRST_FENCE, &[1, 2])]);
    let old = Violation::OldFence {
        entity: ENTITY,
        revision: 4,
        fence: FIRST_FENCE,
        after: SECOND_FENCE,
    };
    assert_eq!(found[0], old);
}

#[test]
fn a_write_that_is_not_made_of_the_one_before_is_found() {
    let not_built_on = Violation::LostUpdate {
        entity: ENTITY,
        revision: 4,
    };
    let last = record(4, SECOND_FENCE, &[1, 2]);
    for ops in [&[2][..], &[2, 1], &[1, 2, 2]] {
        let found = changed(&last, &[record(4, SECOND_FENCE, ops)]);
        assert!(found.contains(&not_built_on), "{found:?}");
    }
    let found = changed(
        &record(3, SECOND_FENCE, &[1]),
        &[record(3, SECOND_FENCE, &[])],
    );
    let by_load = Violation::ChangedByLoad {
        entity: ENTITY,
        revision: 3,
    };
    assert_eq!(found[0], by_load);
}

#[test]
fn a_fence_without_a_lease_is_found() {
    for claims in [&[][..], &[claim(SECOND_FENCE, "")]] {
        let found = changed(&claim(SECOND_FENCE, "two"), claims);
        let fence = SECOND_FENCE;
        let violation = Violation::NoSuchFence {
            entity: ENTITY,
            fence,
        };
        assert_eq!(found, [violation.clone(), violation]);
    }
}

#[test]
fn a_write_that_was_told_to_have_succeeded_and_is_not_stored_is_found() {
    let saved = |fence, op| Event::Saved {
        entity: ENTITY,
        fence,
        op,
    };
    for (fence, op) in [(SECOND_FENCE, 1), (FIRST_FENCE, 4)] {
        let found = changed(&saved(FIRST_FENCE, 1), &[saved(fence, op)]);
        let entity = ENTITY;
        assert_eq!(found, [Violation::NotSaved { entity, fence, op }]);
    }
}

#[test]
fn an_operation_that_stands_before_an_earlier_one_is_found() {
    let mut log = good();
    // The ask is done, at place 0, before the ask that is told of place 0 begins.
    log.events.insert(0, ended(9, done(1)));
    log.events.insert(0, begun(9, APPEND));
    for event in &mut log.events {
        match event {
            Event::Record { ops, .. } if ops.len() == 2 => ops[1] = 9,
            Event::Final { ops, .. } => *ops = Some(vec![1, 9]),
            _ => {}
        }
    }
    log.events.retain(|event| {
        !matches!(
            event,
            Event::Begun { op: 2, .. } | Event::Ended { op: 2, .. }
        )
    });
    assert_eq!(check(&[log]).1, [Violation::Overtaken { op: 1, by: 9 }]);
}

#[test]
fn an_operation_that_does_not_end_or_ends_late_is_found() {
    let refused = ended(4, Outcome::NotDone);
    let work = APPEND;
    assert_eq!(
        changed(&refused, &[]),
        [Violation::Unanswered { op: 4, work }]
    );
    let at = |took_ms| Event::Ended {
        op: 4,
        outcome: Outcome::Unknown,
        took_ms,
        limit_ms: 300,
    };
    assert_eq!(changed(&refused, &[at(800)]), []);
    let late = Violation::Late {
        op: 4,
        took_ms: 801,
        limit_ms: 300,
        late_ms: 0,
    };
    assert_eq!(changed(&refused, &[at(801)]), [late]);
    // The process itself was late by so much.
    let lateness = Event::Lateness { ms: 1 };
    assert_eq!(changed(&refused, &[at(801), lateness]), []);
}

#[test]
fn what_is_not_handled_or_not_read_in_the_end_is_found() {
    let found = changed(&Event::Left { messages: 0 }, &[Event::Left { messages: 2 }]);
    assert_eq!(found, [Violation::NotHandled { messages: 2 }]);
    let read = |ops| Event::Final {
        entity: ENTITY,
        ops,
    };
    for ops in [None, Some(vec![1])] {
        let found = changed(&read(Some(vec![1, 2])), &[read(ops)]);
        assert_eq!(found, [Violation::NotRead { entity: ENTITY }]);
    }
}

#[test]
fn a_history_that_proves_nothing_is_found() {
    let found = check(&[client(Vec::new())]).1;
    assert!(matches!(
        found[..],
        [
            Violation::Empty { .. },
            Violation::Empty { .. },
            Violation::Empty { .. }
        ]
    ));
}
