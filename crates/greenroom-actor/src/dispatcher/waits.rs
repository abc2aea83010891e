//! Which actors wait for the answer of which.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use slab::Slab;

use crate::cell::AnyCell;
use crate::reference::ActorId;

const NONE: u32 = u32::MAX;

/// The questions that actors wait for, by who asked: whatever is done costs the same however many
/// there are, of one actor too.
#[derive(Default)]
pub(super) struct Waits {
    entries: Slab<Entry>,
    /// The latest question of each; the others follow it in a list.
    latest: FxHashMap<ActorId, u32>,
}

struct Entry {
    asker: ActorId,
    callee: Arc<dyn AnyCell>,
    before: u32,
    after: u32,
}

/// Names a question until it is removed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WaitKey(u32);

impl Waits {
    pub(super) fn insert(&mut self, asker: ActorId, callee: Arc<dyn AnyCell>) -> WaitKey {
        let entry = self.entries.vacant_entry();
        let index = u32::try_from(entry.key()).expect("fewer than 2^32 questions");
        let after = self.latest.insert(asker, index).unwrap_or(NONE);
        entry.insert(Entry {
            asker,
            callee,
            before: NONE,
            after,
        });
        if let Some(after) = self.entries.get_mut(after as usize) {
            after.before = index;
        }
        WaitKey(index)
    }

    /// Who was asked.
    pub(super) fn remove(&mut self, WaitKey(index): WaitKey) -> Arc<dyn AnyCell> {
        let Entry {
            asker,
            callee,
            before,
            after,
        } = self.entries.remove(index as usize);
        if let Some(after) = self.entries.get_mut(after as usize) {
            after.before = before;
        }
        if let Some(before) = self.entries.get_mut(before as usize) {
            before.after = after;
        } else if after == NONE {
            self.latest.remove(&asker);
        } else {
            self.latest.insert(asker, after);
        }
        callee
    }

    /// Whom this actor asked last, of those whose answers it waits for.
    pub(super) fn of(&self, asker: ActorId) -> Option<Arc<dyn AnyCell>> {
        let index = *self.latest.get(&asker)?;
        Some(Arc::clone(&self.entries[index as usize].callee))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Actor, ActorSystem};

    struct Callee;

    impl Actor for Callee {}

    #[tokio::test(start_paused = true)]
    async fn the_latest_question_that_is_left_is_found_in_whatever_order_the_others_go() {
        let system = ActorSystem::new().expect("there is a runtime");
        let callees = [(); 3].map(|()| system.spawn(|| Callee));
        let asker = ActorId(1);
        for order in [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ] {
            let mut waits = Waits::default();
            let other = waits.insert(ActorId(2), Arc::clone(&callees[0].0) as _);
            let mut keys = callees
                .each_ref()
                .map(|callee| Some(waits.insert(asker, Arc::clone(&callee.0) as _)));
            for (gone, place) in order.into_iter().enumerate() {
                let latest = order[gone..]
                    .iter()
                    .max()
                    .map(|latest| callees[*latest].id());
                assert_eq!(waits.of(asker).map(|callee| callee.id()), latest);
                let key = keys[place].take().expect("each goes once");
                assert_eq!(waits.remove(key).id(), callees[place].id());
            }
            assert!(waits.of(asker).is_none());
            waits.remove(other);
            assert!(waits.entries.is_empty() && waits.latest.is_empty());
        }
    }
}
