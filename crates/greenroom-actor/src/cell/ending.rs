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
    /// It had ended before it was watched.
    Unknown,
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
