//! The priority of a load generator beside a server that takes all cores.

use std::process::Command;

/// The niceness, in the form of `nice`.
const RAISED: &str = "-10";

/// The priority at which a program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Priority {
    /// Above programs of the usual priority: niceness -10.
    Raised,
    /// The priority of this program.
    Usual,
}

impl Priority {
    /// Returns the highest priority that this machine allows: only root may raise it.
    #[must_use]
    pub fn highest() -> Self {
        // Without an argument it prints the niceness that it runs at.
        let told = Command::new("nice").args(["-n", RAISED, "nice"]).output();
        match told {
            Ok(told) if told.stdout.trim_ascii() == RAISED.as_bytes() => Self::Raised,
            _ => Self::Usual,
        }
    }

    /// Sets a command's priority.
    pub(crate) fn apply(self, command: Command) -> Command {
        if self == Self::Usual {
            return command;
        }
        let mut raised = Command::new("nice");
        raised.args(["-n", RAISED]).arg(command.get_program());
        raised.args(command.get_args());
        raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raised_command_is_the_same_behind_nice() {
        let mut command = Command::new("true");
        command.arg("--help");
        let raised = format!("{:?}", Priority::Raised.apply(command));
        assert_eq!(raised, r#""nice" "-n" "-10" "true" "--help""#);
    }
}
