use std::sync::Arc;

use crate::reference::ActorId;
use crate::supervision::Failure;

/// How an actor ended.
#[derive(Clone, Debug, Default)]
pub enum Ending {
    /// It was stopped, and had handled what was in its mailbox.
    #[default]
    Stopped,
    /// It was killed.
    Killed,
    /// It failed, and its supervisor ended it.
    Failed(Arc<Failure>),
    /// It had ended before anybody asked.
    Unknown,
}

/// The notice that a [watched](crate::Context::watch) actor gets to know of. It comes by the control lane, so
/// it overtakes messages and is never refused.
#[derive(Clone, Debug)]
pub struct Terminated {
    /// The actor that ended.
    pub id: ActorId,
    /// Its path.
    pub path: Arc<str>,
    /// How it ended.
    pub ending: Ending,
}
