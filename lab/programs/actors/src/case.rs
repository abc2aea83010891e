//! The cases of the benchmark.

use clap::ValueEnum;

/// A row of the table of goals, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Case {
    /// A task fills the mailbox of one actor, one worker
    Tell,
    /// A token goes around a ring of 503 actors, one worker
    Hop,
    /// 8 tasks send to one bounded mailbox, one worker
    FanIn,
    /// 8 tasks send to one bounded mailbox, two workers
    FanInTwo,
    /// 8 actors send to one bounded mailbox, one worker
    FanInActors,
    /// 8 actors send to one bounded mailbox, two workers
    FanInActorsTwo,
    /// A task asks an actor, which must be scheduled, one worker
    Ask,
    /// A handler asks another actor, which must be scheduled, one worker
    AskQueued,
    /// A handler asks another actor, which may reply on the spot, one worker
    AskInline,
    /// 64 pairs of actors play beside 4 that compute, two workers
    PingPong,
    /// A million actors are started, one worker
    Spawn,
    /// Memory of a million idle actors, one worker
    Idle,
    /// As tell, by an async handler that does not wait, one worker
    Async,
    /// One publisher, 1,000 subscribers, one worker
    Bus,
}

impl Case {
    /// Returns the name of the case on the command line.
    ///
    /// # Panics
    /// Never: no case is hidden.
    #[must_use]
    pub fn name(self) -> String {
        let value = self.to_possible_value().expect("no case is hidden");
        value.get_name().to_owned()
    }

    /// Returns the description of the case, in a line.
    #[must_use]
    pub fn title(self) -> String {
        let value = self.to_possible_value();
        let help = value.and_then(|value| value.get_help().map(ToString::to_string));
        help.unwrap_or_default()
    }

    /// Returns the number of threads that run actors, and of cores that the process has; 1 is a
    /// runtime on one thread.
    #[must_use]
    pub fn workers(self) -> usize {
        match self {
            Self::FanInTwo | Self::FanInActorsTwo | Self::PingPong => 2,
            _ => 1,
        }
    }
}
