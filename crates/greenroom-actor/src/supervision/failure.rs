use std::fmt;
use std::sync::Arc;

use tokio::time::Instant;

use crate::BoxError;
use crate::id::ActorId;
use crate::panics::Panic;

/// A failure of an actor.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The actor.
    pub id: ActorId,
    /// Its path.
    pub path: Arc<str>,
    /// The type of the message whose handling failed, or the name of the hook.
    pub during: &'static str,
    /// The cause.
    pub cause: Cause,
    /// `true` if there is a state that can go on: one whose `started` succeeded. Of a failure that
    /// was escalated: if so it is with each actor down to the one that failed first.
    pub(crate) has_state: bool,
    /// The moment in which it began. Of a failure that was escalated: the first of those that led
    /// to it.
    pub(crate) since: Instant,
}

/// The cause of a failure.
#[derive(Clone)]
pub enum Cause {
    /// A handler or a hook panicked, with this text.
    Panicked(Arc<str>),
    /// A hook returned an error, or the actor reported one
    /// ([`Context::fail`](crate::Context::fail)).
    Error(Arc<dyn std::error::Error + Send + Sync>),
    /// A child failed, and its failure was escalated.
    Escalated(Arc<Failure>),
    /// An actor ended to which this one is [linked](crate::Context::link).
    Linked(Arc<str>),
}

impl Cause {
    pub(crate) fn from_error(error: BoxError) -> Self {
        Self::Error(Arc::from(error))
    }

    pub(crate) fn from_panic(panic: &Panic) -> Self {
        Self::Panicked(Arc::from(panic.text()))
    }

    /// Returns `false` if it is the failure of a child without a state that can go on.
    pub(crate) fn has_state(&self) -> bool {
        match self {
            Self::Escalated(failure) => failure.has_state,
            _ => true,
        }
    }

    /// Returns the moment in which it began: now, unless it is the failure of a child.
    pub(crate) fn since(&self) -> Instant {
        match self {
            Self::Escalated(failure) => failure.since,
            _ => Instant::now(),
        }
    }

    /// Returns the text of the panic, if it was one.
    #[must_use]
    pub fn panic(&self) -> Option<&str> {
        match self {
            Self::Panicked(text) => Some(text),
            _ => None,
        }
    }
}

/// As derived, but for a failure that was escalated: that is in words, or those of a deep tree
/// would nest as deep.
impl fmt::Debug for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => f.debug_tuple("Panicked").field(text).finish(),
            Self::Error(error) => f.debug_tuple("Error").field(error).finish(),
            Self::Escalated(failure) => {
                let words = format_args!("{failure}");
                f.debug_tuple("Escalated").field(&words).finish()
            }
            Self::Linked(path) => f.debug_tuple("Linked").field(path).finish(),
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(text) => write!(f, "panicked: {text}"),
            Self::Error(error) => error.fmt(f),
            Self::Escalated(failure) => failure.write_escalated(f),
            Self::Linked(path) => write!(f, "{path}, to which it is linked, ended"),
        }
    }
}

/// A failure that was escalated is written with the one that it began with; of those in between,
/// only the number is given.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} failed in {}: {}", self.path, self.during, self.cause)
    }
}

impl Failure {
    fn write_escalated(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut first, mut escalations) = (self, 0);
        while let Cause::Escalated(failure) = &first.cause {
            first = failure;
            escalations += 1;
        }
        match escalations {
            0 => write!(f, "its child failed: {first}"),
            1 => write!(f, "its child failed: after 1 more escalation, {first}"),
            _ => write!(
                f,
                "its child failed: after {escalations} more escalations, {first}"
            ),
        }
    }
}

impl std::error::Error for Failure {}

/// Drops escalated failures one after the other and not one within the other: those of a deep tree
/// would fill the stack.
impl Drop for Failure {
    fn drop(&mut self) {
        let mut cause = self.take_cause();
        while let Cause::Escalated(failure) = cause {
            let Some(mut failure) = Arc::into_inner(failure) else {
                return;
            };
            cause = failure.take_cause();
        }
    }
}

impl Failure {
    /// Takes the cause out if that is another failure; without it nothing is left to nest.
    fn take_cause(&mut self) -> Cause {
        let nothing = Cause::Linked(Arc::default());
        match self.cause {
            Cause::Escalated(_) => std::mem::replace(&mut self.cause, nothing),
            _ => nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn escalated(times: usize) -> Failure {
        let failed = |id: usize, cause| Failure {
            id: ActorId(id as u64),
            path: format!("/actor-{id}").into(),
            during: "Work",
            cause,
            has_state: true,
            since: Instant::now(),
        };
        let first = failed(0, Cause::Panicked("out of paper".into()));
        (1..=times).fold(first, |failure, id| {
            failed(id, Cause::Escalated(Arc::new(failure)))
        })
    }

    #[test]
    fn a_failure_says_what_it_began_with() {
        let texts = [0, 1, 2, 3].map(|times| escalated(times).to_string());
        assert_eq!(
            texts,
            [
                "/actor-0 failed in Work: panicked: out of paper",
                "/actor-1 failed in Work: its child failed: /actor-0 failed in Work: panicked: out \
                 of paper",
                "/actor-2 failed in Work: its child failed: after 1 more escalation, /actor-0 \
                 failed in Work: panicked: out of paper",
                "/actor-3 failed in Work: its child failed: after 2 more escalations, /actor-0 \
                 failed in Work: panicked: out of paper",
            ]
        );
    }

    #[test]
    fn a_failure_that_came_up_a_long_chain_is_written_in_a_line_and_dropped() {
        let failure = escalated(20_000);
        let text = failure.to_string();
        assert!(text.contains("after 19999 more escalations"), "{text}");
        assert!(text.len() < 200, "{text}");
        let debug = format!("{failure:?}");
        assert!(debug.len() < 400, "{debug}");
        drop(failure.clone());
        drop(failure);
    }
}
