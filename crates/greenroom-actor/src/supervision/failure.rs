use std::fmt;
use std::sync::Arc;

use crate::BoxError;
use crate::panics::Panic;
use crate::reference::ActorId;

/// A failure of an actor.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The actor.
    pub id: ActorId,
    /// Its path.
    pub path: Arc<str>,
    /// The type of the message whose handling failed, or the name of the hook.
    pub during: &'static str,
    /// What went wrong.
    pub cause: Cause,
}

/// What went wrong.
#[derive(Clone, Debug)]
pub enum Cause {
    /// A handler or a hook panicked, with this text.
    Panicked(Arc<str>),
    /// A hook returned an error, or the actor reported one ([`Context::fail`](crate::Context::fail)).
    Error(Arc<dyn std::error::Error + Send + Sync>),
    /// A child failed, and its failure was escalated.
    Escalated(Arc<Failure>),
    /// An actor ended that this one is [linked](crate::Context::link) to.
    Linked(Arc<str>),
}

impl Cause {
    pub(crate) fn from_error(error: BoxError) -> Self {
        Self::Error(Arc::from(error))
    }

    pub(crate) fn from_panic(panic: &Panic) -> Self {
        Self::Panicked(Arc::from(panic.text()))
    }

    /// The text of the panic, if it was one.
    #[must_use]
    pub fn panic(&self) -> Option<&str> {
        match self {
            Self::Panicked(text) => Some(text),
            _ => None,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Error(error) => error.fmt(f),
            Self::Escalated(failure) => write!(f, "its child failed: {failure}"),
            Self::Linked(path) => write!(f, "{path}, to which it is linked, ended"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed in {}: {}", self.path, self.during, self.cause)
    }
}

impl std::error::Error for Failure {}
