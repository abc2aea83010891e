use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::{Backoff, Failure};

/// The decision of a supervisor about a child that fails.
///
/// The default: the child that failed is restarted ([`Scope::OneForOne`]), up to 5 times within
/// 5 s, after a rest that doubles from 100 ms ([`Backoff`]); one failure more is escalated.
///
/// Across a restart the mailbox survives, all but the message that failed; the state is new,
/// timers, pipes and children of the old one end, and stashed messages come first. Children drain,
/// for at most [`RESTART_GRACE`](Self::RESTART_GRACE).
#[derive(Clone)]
pub struct Supervision {
    scope: Scope,
    directive: Decide,
    intensity: u32,
    within: Duration,
    backoff: Backoff,
}

#[derive(Clone)]
enum Decide {
    Always(Directive),
    By(Arc<dyn Fn(&Failure) -> Directive + Send + Sync>),
}

/// The children that the decision about one concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The one that failed.
    OneForOne,
    /// All of them.
    OneForAll,
    /// The one that failed and those that were spawned after it.
    RestForOne,
}

/// A decision about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Directive {
    /// Restarts the actor with a new state, which goes on with the next message.
    Restart,
    /// Keeps the state, and goes on with the next message. Where there is none, as the function
    /// that makes it or `started` failed, one is made as by a restart: that counts, and comes after
    /// a rest. So it is too when the failure of a child without a state was escalated.
    Resume,
    /// Ends the actor. The messages in its mailbox become dead letters.
    Stop,
    /// Fails in turn: the supervisor's supervisor decides, about the supervisor.
    Escalate,
}

impl Supervision {
    /// Creates the default supervision of the child that failed.
    #[must_use]
    pub fn one_for_one() -> Self {
        Self::new(Scope::OneForOne)
    }

    /// Creates the default supervision of all children together.
    #[must_use]
    pub fn one_for_all() -> Self {
        Self::new(Scope::OneForAll)
    }

    /// Creates the default supervision of the child that failed and those spawned after it.
    #[must_use]
    pub fn rest_for_one() -> Self {
        Self::new(Scope::RestForOne)
    }

    /// Sets the decision about every failure. Default: [`Directive::Restart`].
    #[must_use]
    pub fn always(self, directive: Directive) -> Self {
        Self {
            directive: Decide::Always(directive),
            ..self
        }
    }

    /// Decides about each failure by a function, which must not block. If it panics, the failure is
    /// escalated.
    #[must_use]
    pub fn decide(self, decide: impl Fn(&Failure) -> Directive + Send + Sync + 'static) -> Self {
        Self {
            directive: Decide::By(Arc::new(decide)),
            ..self
        }
    }

    /// Allows `restarts` within this time; one failure more is escalated. Default: 5 within 5 s.
    /// Each child has its own count. At most 1,000.
    ///
    /// If a child fails because one of its own children failed too often, the time from the
    /// first of those failures to the one that was escalated does not count. So an actor that
    /// always fails is given up in the end, however deep in the tree it is, and the limits of the
    /// levels multiply: with the defaults, by two levels, its 36th failure goes beyond both.
    #[must_use]
    pub fn intensity(self, restarts: u32, within: Duration) -> Self {
        Self {
            intensity: restarts.min(Self::INTENSITY_MAX),
            within,
            ..self
        }
    }

    /// Sets the wait before a child is restarted.
    #[must_use]
    pub fn backoff(self, backoff: Backoff) -> Self {
        Self { backoff, ..self }
    }

    /// The largest number of restarts of an intensity.
    pub const INTENSITY_MAX: u32 = 1_000;

    /// The time that the children of an actor have to end when it is restarted, as long as
    /// supervisors of Erlang wait. Those that are left then are killed, with a WARN in the log.
    pub const RESTART_GRACE: Duration = Duration::from_secs(5);

    pub(crate) fn scope(&self) -> Scope {
        self.scope
    }

    pub(crate) fn directive(&self, failure: &Failure) -> Directive {
        match &self.directive {
            Decide::Always(directive) => *directive,
            Decide::By(decide) => decide(failure),
        }
    }

    pub(crate) fn restarts_max(&self) -> u32 {
        self.intensity
    }

    pub(crate) fn within(&self) -> Duration {
        self.within
    }

    pub(crate) fn rest(&self, restart: u32) -> Duration {
        self.backoff.rest(restart, fastrand::f64())
    }

    fn new(scope: Scope) -> Self {
        Self {
            scope,
            directive: Decide::Always(Directive::Restart),
            intensity: 5,
            within: Duration::from_secs(5),
            backoff: Backoff::default(),
        }
    }
}

impl Default for Supervision {
    fn default() -> Self {
        Self::one_for_one()
    }
}

impl fmt::Debug for Supervision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Supervision")
            .field("scope", &self.scope)
            .field("intensity", &self.intensity)
            .field("within", &self.within)
            .field("backoff", &self.backoff)
            .finish_non_exhaustive()
    }
}
