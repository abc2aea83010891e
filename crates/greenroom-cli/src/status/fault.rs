use std::io;
use std::time::Duration;

use http::StatusCode;

use super::Target;

/// The reason why there is no status to print.
#[derive(Debug)]
pub(super) enum Fault {
    Connect(io::Error),
    /// The response is none of an admin server.
    Other {
        path: &'static str,
        status: StatusCode,
    },
    Http(hyper::Error),
    Request(http::Error),
    Body(String),
    Late(Duration),
}

const ADVICE: &str = "\n\nName the address of the server's --status-listen.";

impl Fault {
    /// Returns it as a message to the user.
    pub(super) fn about(&self, target: &Target) -> String {
        match self {
            Self::Connect(error) => match error.kind() {
                io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => format!(
                    "nothing listens at {target} ({error}){ADVICE} A server without it shows no \
                     status."
                ),
                _ => format!("{target} cannot be reached: {error}{ADVICE}"),
            },
            Self::Other { path, status } => format!(
                "what listens at {target} is no admin server: it responds to {path} with \
                 {status}{ADVICE}"
            ),
            Self::Http(error) => format!(
                "what listens at {target} does not speak HTTP as an admin server does: \
                 {error}{ADVICE}"
            ),
            Self::Request(error) => format!("{target} cannot be asked: {error}"),
            Self::Body(error) => format!("the status of {target} could not be read: {error}"),
            Self::Late(time) => format!(
                "{target} did not respond within {}; --timeout gives it more time",
                humantime::format_duration(*time)
            ),
        }
    }
}

impl From<hyper::Error> for Fault {
    fn from(error: hyper::Error) -> Self {
        Self::Http(error)
    }
}
