//! The checker of histories.

mod entity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use crate::history::{Event, Log, Outcome, Work};

/// The time by which an ask may exceed its deadline, beside what its process was late by: the
/// deadline is kept by a timer of 1 ms and one task, so this is some hundred times what it takes.
const MARGIN_MS: u64 = 500;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Violation {
    /// A durable message was acknowledged, and is applied nowhere.
    Lost { op: u64, work: Work },
    /// An operation changed an entity more than once.
    Twice { op: u64, entity: u32 },
    /// An ask was answered as done, and is not in the state.
    Undone { op: u64, entity: u32 },
    /// An ask was answered as done at one place of the list, and is at another.
    Misplaced {
        op: u64,
        told: u64,
        place: Option<usize>,
    },
    /// A message changed an entity, although its sender was told that it was surely not handled.
    NotRefused { op: u64, entity: u32 },
    /// An entity was changed by something that nobody sent to it.
    Invented { op: u64, entity: u32 },
    /// An activation wrote after a later one.
    OldFence {
        entity: u32,
        revision: u64,
        fence: u64,
        after: u64,
    },
    /// A write was not made of the one before it.
    LostUpdate { entity: u32, revision: u64 },
    /// An activation began with another state than was saved last.
    ChangedByLoad { entity: u32, revision: u64 },
    /// An activation wrote with a fence that no lease had.
    NoSuchFence { entity: u32, fence: u64 },
    /// An activation was told that its write succeeded, and no record has it.
    NotSaved { entity: u32, fence: u64, op: u64 },
    /// An operation that began after another of its client had ended stands before that one.
    Overtaken { op: u64, by: u64 },
    /// An operation did not end.
    Unanswered { op: u64, work: Work },
    /// An operation ended after its deadline.
    Late {
        op: u64,
        took_ms: u64,
        limit_ms: u64,
        late_ms: u64,
    },
    /// Durable messages were not handled within the time after the faults.
    NotHandled { messages: u64 },
    /// An entity did not say what it has, or said something else than is stored.
    NotRead { entity: u32 },
    /// A run proved nothing: one of the things to be checked did not happen.
    Empty { what: &'static str },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Numbers of a history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) asks: u64,
    pub(crate) asks_done: u64,
    pub(crate) asks_refused: u64,
    pub(crate) asks_unknown: u64,
    pub(crate) durable: u64,
    pub(crate) acknowledged: u64,
    pub(crate) applied: u64,
    /// Deliveries to the group beyond the first of a message.
    pub(crate) repeated: u64,
    pub(crate) writes: u64,
    pub(crate) activations: u64,
    /// Claims of an entity whose lease another node had and did not release.
    pub(crate) takeovers: u64,
    /// The longest that an operation took beyond its deadline, in milliseconds.
    pub(crate) late_ms: u64,
    /// The longest by which a client's process was late by itself.
    pub(crate) lateness_ms: u64,
}

/// The knowledge of one operation, over all its tries.
#[derive(Clone, Copy, Debug)]
struct Op {
    work: Work,
    begun: u32,
    ended: u32,
    is_done: bool,
    /// The place in the list that its client was told.
    place: Option<u64>,
    is_unknown: bool,
}

impl Op {
    /// Returns `true` if it was surely not done.
    fn is_refused(&self) -> bool {
        !self.is_done && !self.is_unknown && self.begun == self.ended
    }

    fn entity(&self) -> Option<u32> {
        match self.work {
            Work::Append { entity }
            | Work::Swap { entity, .. }
            | Work::DurableAppend { entity } => Some(entity),
            Work::DurableGroup => None,
        }
    }

    fn is_durable(&self) -> bool {
        matches!(self.work, Work::DurableAppend { .. } | Work::DurableGroup)
    }
}

/// Checks a history, and counts what is in it.
pub(crate) fn check(logs: &[Log]) -> (Counts, Vec<Violation>) {
    let (mut counts, mut violations) = (Counts::default(), Vec::new());
    for log in logs {
        deadlines(log, &mut counts, &mut violations);
    }
    let ops = ops(logs);
    let entities = entity::of(logs);
    let handled = handled(logs);
    let mut applied: BTreeMap<u64, u64> = BTreeMap::new();
    for (entity, history) in &entities {
        history.check(*entity, &mut violations);
        counts.writes += history.writes();
        counts.activations += history.activations();
        counts.takeovers += history.takeovers();
        for op in history.last() {
            *applied.entry(*op).or_default() += 1;
            let is_sent = ops.get(op).is_some_and(|op| op.entity() == Some(*entity));
            if !is_sent {
                let (op, entity) = (*op, *entity);
                violations.push(Violation::Invented { op, entity });
            }
        }
    }
    for (op, sent) in &ops {
        let in_group = handled.get(op).copied().unwrap_or(0);
        count(sent, in_group, applied.contains_key(op), &mut counts);
        let times = applied.get(op).copied().unwrap_or(0);
        outcome(*op, sent, (times, in_group), &mut violations);
        if let (Some(told), Some(entity)) = (sent.place, sent.entity()) {
            let place = entities
                .get(&entity)
                .and_then(|history| history.last().iter().position(|other| other == op));
            if place.is_some() && place != usize::try_from(told).ok() {
                let op = *op;
                violations.push(Violation::Misplaced { op, told, place });
            }
        }
    }
    for log in logs {
        order(log, &ops, &entities, &mut violations);
        end(log, &ops, &entities, &mut violations);
    }
    empty(&counts, &mut violations);
    (counts, violations)
}

/// Collects the operations of all clients.
fn ops(logs: &[Log]) -> BTreeMap<u64, Op> {
    let mut ops = BTreeMap::new();
    for event in logs.iter().flat_map(|log| &log.events) {
        match event {
            Event::Begun { op, work } => {
                let new = Op {
                    work: *work,
                    begun: 0,
                    ended: 0,
                    is_done: false,
                    place: None,
                    is_unknown: false,
                };
                ops.entry(*op).or_insert(new).begun += 1;
            }
            Event::Ended { op, outcome, .. } => {
                let Some(op) = ops.get_mut(op) else { continue };
                op.ended += 1;
                match outcome {
                    Outcome::Done { place } => (op.is_done, op.place) = (true, *place),
                    Outcome::NotDone => {}
                    Outcome::Unknown => op.is_unknown = true,
                }
            }
            _ => {}
        }
    }
    ops
}

/// Counts how often a member of the group handled each message.
fn handled(logs: &[Log]) -> BTreeMap<u64, u64> {
    let mut handled = BTreeMap::new();
    for event in logs.iter().flat_map(|log| &log.events) {
        if let Event::Handled { op } = event {
            *handled.entry(*op).or_default() += 1;
        }
    }
    handled
}

fn outcome(op: u64, sent: &Op, (times, in_group): (u64, u64), violations: &mut Vec<Violation>) {
    let work = sent.work;
    if sent.begun != sent.ended {
        violations.push(Violation::Unanswered { op, work });
    }
    let Some(entity) = sent.entity() else {
        if sent.is_done && in_group == 0 {
            violations.push(Violation::Lost { op, work });
        }
        return;
    };
    if times > 1 {
        violations.push(Violation::Twice { op, entity });
    }
    if times == 0 && sent.is_done {
        violations.push(if sent.is_durable() {
            Violation::Lost { op, work }
        } else {
            Violation::Undone { op, entity }
        });
    }
    if times > 0 && sent.is_refused() {
        violations.push(Violation::NotRefused { op, entity });
    }
}

fn count(sent: &Op, in_group: u64, is_in_entity: bool, counts: &mut Counts) {
    if sent.is_durable() {
        counts.durable += 1;
        counts.acknowledged += u64::from(sent.is_done);
        counts.applied += u64::from(in_group > 0 || is_in_entity);
        counts.repeated += in_group.saturating_sub(1);
    } else {
        counts.asks += 1;
        counts.asks_done += u64::from(sent.is_done);
        counts.asks_refused += u64::from(sent.is_refused());
        counts.asks_unknown += u64::from(sent.is_unknown);
    }
}

/// Checks that each operation of a client ended by its deadline.
fn deadlines(log: &Log, counts: &mut Counts, violations: &mut Vec<Violation>) {
    let lateness = log.events.iter().filter_map(|event| match event {
        Event::Lateness { ms } => Some(*ms),
        _ => None,
    });
    let late_ms = lateness.max().unwrap_or(0);
    counts.lateness_ms = counts.lateness_ms.max(late_ms);
    for event in &log.events {
        let Event::Ended {
            op,
            took_ms,
            limit_ms,
            ..
        } = *event
        else {
            continue;
        };
        counts.late_ms = counts.late_ms.max(took_ms.saturating_sub(limit_ms));
        // Before and after the wait, and once more where a message is retried, a task may be late.
        if took_ms > limit_ms + MARGIN_MS + 4 * late_ms {
            violations.push(Violation::Late {
                op,
                took_ms,
                limit_ms,
                late_ms,
            });
        }
    }
}

/// Checks that what a client was told to be done stands before what it began later.
fn order(
    log: &Log,
    ops: &BTreeMap<u64, Op>,
    entities: &BTreeMap<u32, entity::History>,
    violations: &mut Vec<Violation>,
) {
    let places: BTreeMap<u64, usize> = entities
        .values()
        .flat_map(|history| history.last().iter().enumerate())
        .map(|(place, op)| (*op, place))
        .collect();
    // Of each entity the last place that was told, and by which operation.
    let mut told: BTreeMap<u32, (usize, u64)> = BTreeMap::new();
    let mut began: BTreeMap<u64, Option<(usize, u64)>> = BTreeMap::new();
    for event in &log.events {
        match event {
            Event::Begun { op, .. } => {
                let before = ops
                    .get(op)
                    .and_then(Op::entity)
                    .and_then(|entity| told.get(&entity));
                began.entry(*op).or_insert_with(|| before.copied());
            }
            Event::Ended {
                op,
                outcome: Outcome::Done { place: Some(_) },
                ..
            } => {
                let (Some(place), Some(entity)) =
                    (places.get(op), ops.get(op).and_then(Op::entity))
                else {
                    continue;
                };
                let last = told.entry(entity).or_insert((*place, *op));
                *last = (*last).max((*place, *op));
            }
            _ => {}
        }
    }
    for (op, before) in began {
        if let (Some((last, by)), Some(place)) = (before, places.get(&op))
            && *place < last
        {
            violations.push(Violation::Overtaken { op, by });
        }
    }
}

/// Checks what was seen after the faults.
fn end(
    log: &Log,
    sent: &BTreeMap<u64, Op>,
    entities: &BTreeMap<u32, entity::History>,
    violations: &mut Vec<Violation>,
) {
    for event in &log.events {
        match event {
            Event::Left { messages } if *messages > 0 => {
                let messages = *messages;
                violations.push(Violation::NotHandled { messages });
            }
            Event::Final { entity, ops } => {
                let stored = entities.get(entity).map_or(&[][..], entity::History::last);
                // An ask that a link held back, and that its client has given up, may come later.
                let is_late = |op: &u64| sent.get(op).is_some_and(|op| !op.is_done);
                let later = ops.as_deref().and_then(|ops| stored.strip_prefix(ops));
                if !later.is_some_and(|later| later.iter().all(is_late)) {
                    let entity = *entity;
                    violations.push(Violation::NotRead { entity });
                }
            }
            _ => {}
        }
    }
}

fn empty(counts: &Counts, violations: &mut Vec<Violation>) {
    let things = [
        (counts.acknowledged, "a durable message was acknowledged"),
        (counts.asks_done, "an ask was done"),
        (counts.writes, "an entity was written"),
    ];
    for (count, what) in things {
        if count == 0 {
            violations.push(Violation::Empty { what });
        }
    }
}
