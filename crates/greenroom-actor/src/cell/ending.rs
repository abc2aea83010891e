use std::sync::Arc;

use crate::id::ActorId;
use crate::supervision::Failure;

/// The way in which an actor ended.
#[derive(Clone, Debug, Default)]
pub enum Ending {
    /// It was stopped, and had handled what was in its mailbox.
    #[default]
    Stopped,
    /// It was killed.
    Killed,
    /// It failed, and its supervisor ended it.
    Failed(Arc<Failure>),
    /// It had failed before it was watched.
    Unknown,
}

/// The way in which an actor ended, as far as is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum How {
    Alive,
    Stopped,
    Killed,
    Failed,
}

impl How {
    pub(super) fn of(ending: &Ending) -> Self {
        match ending {
            Ending::Stopped => Self::Stopped,
            Ending::Killed => Self::Killed,
            Ending::Failed(_) | Ending::Unknown => Self::Failed,
        }
    }

    /// Returns the ending that was stored; `None` while the actor is alive.
    pub(super) fn stored(how: u8) -> Option<Ending> {
        match how {
            how if how == Self::Alive as u8 => None,
            how if how == Self::Stopped as u8 => Some(Ending::Stopped),
            how if how == Self::Killed as u8 => Some(Ending::Killed),
            _ => Some(Ending::Unknown),
        }
    }
}

/// The notice that an actor gets of the end of one that it [watches](crate::Context::watch). It
/// comes by the control lane, so it overtakes messages and is never refused.
#[derive(Clone, Debug)]
pub struct Terminated {
    /// The actor that ended.
    pub id: ActorId,
    /// Its path.
    pub path: Arc<str>,
    /// The way in which it ended.
    pub ending: Ending,
}
