//! The history of one entity, as leases and storage have it.

use std::collections::{BTreeMap, BTreeSet};

use super::Violation;
use crate::history::{Event, Log};

/// The claims and records of one entity, by their revisions, and what its activations were told.
#[derive(Debug, Default)]
pub(super) struct History {
    claims: BTreeMap<u64, String>,
    records: BTreeMap<u64, Record>,
    /// Fence and operation.
    saved: BTreeSet<(u64, u64)>,
}

/// The fence of a record, and its state.
type Record = (u64, Vec<u64>);

/// Collects the histories of all entities.
pub(super) fn of(logs: &[Log]) -> BTreeMap<u32, History> {
    let mut entities: BTreeMap<u32, History> = BTreeMap::new();
    for event in logs.iter().flat_map(|log| &log.events) {
        match event {
            Event::Claim {
                entity,
                revision,
                node,
            } => {
                let history = entities.entry(*entity).or_default();
                history.claims.insert(*revision, node.clone());
            }
            Event::Record {
                entity,
                revision,
                fence,
                ops,
            } => {
                let history = entities.entry(*entity).or_default();
                history.records.insert(*revision, (*fence, ops.clone()));
            }
            Event::Saved { entity, fence, op } => {
                let history = entities.entry(*entity).or_default();
                history.saved.insert((*fence, *op));
            }
            _ => {}
        }
    }
    entities
}

impl History {
    /// Returns the state that was stored last.
    pub(super) fn last(&self) -> &[u64] {
        let last = self.records.last_key_value();
        last.map_or(&[], |(_, (_, ops))| ops)
    }

    pub(super) fn writes(&self) -> u64 {
        self.records.len() as u64
    }

    pub(super) fn activations(&self) -> u64 {
        let fences: BTreeSet<_> = self.records.values().map(|(fence, _)| fence).collect();
        fences.len() as u64
    }

    pub(super) fn takeovers(&self) -> u64 {
        let claims: Vec<_> = self.claims.values().collect();
        let is_takeover = |pair: &&[&String]| {
            let (before, after) = (pair[0], pair[1]);
            !before.is_empty() && !after.is_empty() && before != after
        };
        claims.windows(2).filter(is_takeover).count() as u64
    }

    pub(super) fn check(&self, entity: u32, violations: &mut Vec<Violation>) {
        let none = (0, Vec::new());
        let mut last = &none;
        let mut written = BTreeSet::new();
        for (revision, record) in &self.records {
            self.check_step(entity, *revision, (last, record), violations);
            if let Some(op) = record.1.last().filter(|_| last.0 == record.0) {
                written.insert((record.0, *op));
            }
            last = record;
        }
        for (fence, op) in self.saved.difference(&written).copied() {
            violations.push(Violation::NotSaved { entity, fence, op });
        }
    }

    fn check_step(
        &self,
        entity: u32,
        revision: u64,
        (before, after): (&Record, &Record),
        violations: &mut Vec<Violation>,
    ) {
        let (after_fence, fence) = (before.0, after.0);
        if fence < after_fence {
            violations.push(Violation::OldFence {
                entity,
                revision,
                fence,
                after: after_fence,
            });
        }
        if self.claims.get(&fence).is_none_or(String::is_empty) {
            violations.push(Violation::NoSuchFence { entity, fence });
        }
        if fence > after_fence {
            if before.1 != after.1 {
                violations.push(Violation::ChangedByLoad { entity, revision });
            }
            return;
        }
        let is_built_on = after
            .1
            .split_last()
            .is_some_and(|(_, rest)| rest == before.1);
        // Before it is passivated an entity forgets old ids of messages, and keeps its state.
        if !is_built_on && before.1 != after.1 {
            violations.push(Violation::LostUpdate { entity, revision });
        }
    }
}
