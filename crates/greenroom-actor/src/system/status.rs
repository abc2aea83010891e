use std::collections::HashMap;
use std::sync::Arc;

use greenroom_stage::StatusScope;
use serde::Serialize;

use super::counts::Counts;
use super::{ActorSystem, SystemShared, registry};
use crate::cell::AnyCell;
use crate::dispatcher::DispatcherStatus;
use crate::reason::Reason;

/// The number of actors of a system whose mailboxes a status looks at; there may be more.
pub const STATUS_ACTORS_MAX: usize = 100_000;

/// An actor system at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct ActorSystemStatus {
    /// The system's name.
    pub name: String,
    /// Its types of actors, by name.
    pub types: Vec<TypeStatus>,
    /// Its dispatchers, by name.
    pub dispatchers: Vec<DispatcherStatus>,
    /// Its dead letters.
    pub dead_letters: DeadLetterCounts,
    /// Actors whose mailboxes were looked at, at most [`STATUS_ACTORS_MAX`].
    pub looked_at: usize,
}

/// The actors of one type.
#[derive(Clone, Debug, Serialize)]
pub struct TypeStatus {
    /// The type's name.
    pub name: &'static str,
    /// The number of actors that live.
    pub alive: u64,
    /// The number of actors that were spawned.
    pub spawned: u64,
    /// The number of failures.
    pub failures: u64,
    /// The number of restarts.
    pub restarts: u64,
    /// The number of messages in their mailboxes, of those that were looked at.
    pub waiting: u64,
    /// The fullest mailbox of those that were looked at.
    pub waiting_max: u32,
    /// The path of the actor whose mailbox that is, if it is not empty.
    pub fullest: Option<String>,
}

/// Dead letters by [reason](Reason).
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeadLetterCounts {
    /// All of them.
    pub total: u64,
    /// [`Reason::Failed`].
    pub failed: u64,
    /// [`Reason::Aborted`].
    pub aborted: u64,
    /// [`Reason::DroppedNewest`].
    pub dropped_newest: u64,
    /// [`Reason::DroppedOldest`].
    pub dropped_oldest: u64,
    /// [`Reason::MailboxFull`].
    pub mailbox_full: u64,
    /// [`Reason::Ended`].
    pub ended: u64,
}

/// Returns the status of all actor systems of the process at this moment, the oldest first.
#[must_use]
pub fn status() -> Vec<ActorSystemStatus> {
    registry::systems()
        .iter()
        .map(|system| system.status())
        .collect()
}

/// Returns the state of the actor systems that this scope [claims](ActorSystem::claim), and of
/// those that none does, the oldest first.
#[must_use]
pub fn status_within(scope: &StatusScope) -> Vec<ActorSystemStatus> {
    registry::systems_within(scope)
        .iter()
        .map(|system| system.status())
        .collect()
}

impl ActorSystem {
    /// Claims this system for a scope, such as a server: the status of other scopes does not show
    /// it any more, unless they claim it too.
    pub fn claim(&self, scope: &StatusScope) {
        registry::claim(&self.0, scope);
    }

    /// Returns the status of this system at this moment.
    #[must_use]
    pub fn status(&self) -> ActorSystemStatus {
        self.0.status()
    }
}

/// The mailboxes of one type.
#[derive(Default)]
struct Mailboxes {
    waiting: u64,
    fullest: Option<(u32, Arc<dyn AnyCell>)>,
}

impl SystemShared {
    fn status(&self) -> ActorSystemStatus {
        let (looked_at, mut mailboxes) = self.look_at_mailboxes();
        let types = self.types.counts().into_iter().map(|(name, counts)| {
            let of_type = mailboxes.remove(&Arc::as_ptr(&counts));
            let Mailboxes { waiting, fullest } = of_type.unwrap_or_default();
            TypeStatus {
                name,
                alive: counts.alive(),
                spawned: counts.total(),
                failures: counts.failures(),
                restarts: counts.restarts(),
                waiting,
                waiting_max: fullest.as_ref().map_or(0, |(waiting, _)| *waiting),
                fullest: fullest.map(|(_, actor)| actor.path()),
            }
        });
        ActorSystemStatus {
            name: self.name.clone(),
            types: types.collect(),
            dispatchers: self.cores().iter().map(|core| core.status()).collect(),
            dead_letters: self.count_dead_letters(),
            looked_at,
        }
    }

    /// Returns the number of mailboxes, and those of each type by its counters: types may have the
    /// same name.
    fn look_at_mailboxes(&self) -> (usize, HashMap<*const Counts, Mailboxes>) {
        let mut mailboxes: HashMap<_, Mailboxes> = HashMap::new();
        let mut looked_at = 0;
        let mut unseen = self.root().map_or_else(Vec::new, |root| root.children());
        while let Some(actor) = unseen.pop() {
            looked_at += 1;
            if looked_at + unseen.len() < STATUS_ACTORS_MAX {
                unseen.extend(actor.children());
            }
            unseen.truncate(STATUS_ACTORS_MAX - looked_at.min(STATUS_ACTORS_MAX));
            let of_type = Arc::as_ptr(&actor.settings().counts);
            let of_type = mailboxes.entry(of_type).or_default();
            let waiting = actor.waiting();
            of_type.waiting += u64::from(waiting);
            if waiting > of_type.fullest.as_ref().map_or(0, |(most, _)| *most) {
                of_type.fullest = Some((waiting, actor));
            }
        }
        (looked_at, mailboxes)
    }

    fn count_dead_letters(&self) -> DeadLetterCounts {
        let count = |reason| self.dead_letters.count(reason);
        DeadLetterCounts {
            total: self.dead_letters.total(),
            failed: count(Reason::Failed),
            aborted: count(Reason::Aborted),
            dropped_newest: count(Reason::DroppedNewest),
            dropped_oldest: count(Reason::DroppedOldest),
            mailbox_full: count(Reason::MailboxFull),
            ended: count(Reason::Ended),
        }
    }
}
