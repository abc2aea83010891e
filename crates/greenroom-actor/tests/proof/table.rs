//! The fate of every message.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use greenroom_actor::ActorId;

/// The table of all messages of one run.
#[derive(Default)]
pub(crate) struct MessageTable(Mutex<Accounts>);

#[derive(Default)]
struct Accounts {
    entries: Vec<Entry>,
    /// The last message that an actor began to handle of each sender.
    last: BTreeMap<(ActorId, u32), u64>,
    terminated: BTreeSet<ActorId>,
}

/// The account of one message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Entry {
    pub(crate) is_asked: bool,
    /// A handler was called with it, and did not set it aside or send it on.
    pub(crate) begun: u32,
    /// The handler was done with it.
    pub(crate) finished: u32,
    /// A dead letter held it.
    pub(crate) dead: u32,
    /// Its sender was notified that it was not handled, or not in time.
    pub(crate) is_returned: bool,
    pub(crate) dropped: u32,
}

/// The message itself.
pub(crate) struct Parcel {
    pub(crate) number: u64,
    /// None if it may be overtaken.
    pub(crate) sender: Option<u32>,
    pub(crate) deed: Deed,
    table: Arc<MessageTable>,
}

/// The task for a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deed {
    Nothing,
    Panic,
    GiveUp,
    Stop,
    Stash,
    Unstash,
    Tell,
    Pipe,
    Remind,
    Watch,
    Link,
    Wait,
    WaitAndPanic,
    Send,
    Ask,
    Keep,
    Forward,
}

impl MessageTable {
    pub(crate) fn parcel(
        self: &Arc<Self>,
        sender: Option<u32>,
        is_asked: bool,
        deed: Deed,
    ) -> Parcel {
        let entries = &mut self.lock().entries;
        let number = entries.len() as u64;
        entries.push(Entry {
            is_asked,
            ..Entry::default()
        });
        Parcel {
            number,
            sender,
            deed,
            table: Arc::clone(self),
        }
    }

    pub(crate) fn begin(&self, actor: ActorId, is_in_order: bool, parcel: &Parcel) {
        let mut accounts = self.lock();
        assert!(
            !accounts.terminated.contains(&actor),
            "{actor} handles after its end"
        );
        if let (true, Some(sender)) = (is_in_order, parcel.sender) {
            let last = accounts.last.insert((actor, sender), parcel.number);
            assert!(
                last < Some(parcel.number),
                "{actor} got {} after {last:?}",
                parcel.number
            );
        }
        accounts.entries[parcel.number as usize].begun += 1;
    }

    /// The handler does not handle it now: it sets it aside, or sends it on.
    pub(crate) fn postpone(&self, parcel: &Parcel) {
        self.lock().entries[parcel.number as usize].begun -= 1;
    }

    pub(crate) fn finish(&self, number: u64) {
        self.lock().entries[number as usize].finished += 1;
    }

    pub(crate) fn dead_letter(&self, number: u64) {
        self.lock().entries[number as usize].dead += 1;
    }

    pub(crate) fn give_back(&self, number: u64) {
        self.lock().entries[number as usize].is_returned = true;
    }

    /// A message that was noted as given back is on its way after all.
    pub(crate) fn take_back(&self, number: u64) {
        self.lock().entries[number as usize].is_returned = false;
    }

    pub(crate) fn terminate(&self, actor: ActorId) {
        self.lock().terminated.insert(actor);
    }

    pub(crate) fn entries(&self) -> Vec<Entry> {
        self.lock().entries.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Accounts> {
        // Some handlers panic with a failed assertion, which the test is to report.
        self.0
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        self.table.lock().entries[self.number as usize].dropped += 1;
    }
}

impl Entry {
    /// Checks that it was handled once, or is in a dead letter, or was returned to its sender, and
    /// not two of these; an asker may be notified, of a time-out or a dead letter, as well.
    pub(crate) fn check(&self) -> Result<(), String> {
        let failed = self.begun.checked_sub(self.finished);
        let Some(failed) = failed else {
            return Err(format!("finished without being begun: {self:?}"));
        };
        let outcomes = self.finished + self.dead + failed;
        let is_told = u32::from(self.is_returned);
        let is_right = if self.is_asked {
            outcomes <= 1 && outcomes + is_told >= 1
        } else {
            outcomes + is_told == 1
        };
        if !is_right {
            return Err(format!("not accounted for: {self:?}"));
        }
        if self.dropped != 1 {
            return Err(format!("dropped {} times: {self:?}", self.dropped));
        }
        Ok(())
    }

    /// True if its handler panicked or was given up.
    pub(crate) fn has_failed(&self) -> bool {
        self.begun > self.finished
    }
}
