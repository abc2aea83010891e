//! The ways in which requests fail.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::time::timeout;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Failure {
    /// Nobody accepted the connection.
    Refused,
    /// The connection was reset after the request was sent, in part or whole.
    Reset,
    /// The connection ended in order before the response did.
    Ended,
    /// Another status, body, frame or close code than expected.
    Wrong,
    /// No response in time.
    Late,
}

impl Failure {
    /// Returns a failure of this kind.
    pub(crate) fn by(self, why: impl Display) -> Failed {
        Failed(self, why.to_string())
    }
}

/// A failed request: how, and in words.
#[derive(Clone, Debug)]
pub(crate) struct Failed(pub(crate) Failure, pub(crate) String);

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        let failure = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Failure::Reset
            }
            ErrorKind::UnexpectedEof => Failure::Ended,
            ErrorKind::TimedOut => Failure::Late,
            _ => Failure::Wrong,
        };
        failure.by(error)
    }
}

/// Does something that fails if it takes longer than this time.
pub(crate) async fn within<T, E: Into<Failed>>(
    time: Duration,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, Failed> {
    match timeout(time, work).await {
        Ok(outcome) => outcome.map_err(Into::into),
        Err(_) => Err(Failure::Late.by(format!("not over in {time:?}"))),
    }
}
