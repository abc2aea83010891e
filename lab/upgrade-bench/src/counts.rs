//! Counts of one kind of client.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use serde::Serialize;

/// Failures that are kept word by word, of each kind of client.
const EXAMPLES_MAX: usize = 3;

/// A way in which a request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
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

/// A failed request: how, and in words.
#[derive(Clone, Debug)]
pub(crate) struct Failed(pub(crate) Failure, pub(crate) String);

/// Requests and their failures.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Counts {
    /// All requests, failed ones included. Of a WebSocket: handshakes and echoes.
    pub(crate) requests: u64,
    failures: BTreeMap<Failure, u64>,
    /// Connections that were opened because the server had ended one in order.
    pub(crate) reopened: u64,
    /// The longest time of a request of HTTP/3, with its connection's handshake.
    pub(crate) slowest: Duration,
    /// Streams of HTTP/2 and HTTP/3 that the server said it had not begun, and that were sent
    /// again.
    pub(crate) retried: u64,
    /// The first failures.
    pub(crate) examples: Vec<String>,
}

impl Failed {
    /// Judges an error of a connection on which something was sent.
    pub(crate) fn of(error: &io::Error, doing: &str) -> Self {
        let failure = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                Failure::Reset
            }
            ErrorKind::UnexpectedEof => Failure::Ended,
            ErrorKind::TimedOut => Failure::Late,
            _ => Failure::Wrong,
        };
        Self(failure, format!("{doing}: {error}"))
    }
}

impl Counts {
    /// Counts one request by its end.
    pub(crate) fn count(&mut self, outcome: Result<(), Failed>, seconds: f64) {
        self.requests += 1;
        let Err(Failed(failure, text)) = outcome else {
            return;
        };
        *self.failures.entry(failure).or_default() += 1;
        if self.examples.len() < EXAMPLES_MAX {
            let text = format!("at {seconds:.2} s: {failure:?}: {text}");
            self.examples.push(text);
        }
    }

    /// Returns all failures.
    pub(crate) fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// Adds another client's.
    pub(crate) fn add(&mut self, other: Self) {
        self.requests += other.requests;
        for (failure, count) in other.failures {
            *self.failures.entry(failure).or_default() += count;
        }
        self.reopened += other.reopened;
        self.slowest = self.slowest.max(other.slowest);
        self.retried += other.retried;
        let room = EXAMPLES_MAX.saturating_sub(self.examples.len());
        self.examples.extend(other.examples.into_iter().take(room));
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |(failure, count): (&Failure, &u64)| match failure {
            Failure::Refused => format!("{count} refused"),
            Failure::Reset => format!("{count} reset"),
            Failure::Ended => format!("{count} ended without a response"),
            Failure::Wrong => format!("{count} wrong"),
            Failure::Late => format!("{count} late"),
        };
        let texts: Vec<String> = self.failures.iter().map(text).collect();
        f.write_str(&texts.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_counted_by_kind() {
        let mut counts = Counts::default();
        counts.count(Ok(()), 0.0);
        for kind in [ErrorKind::ConnectionReset, ErrorKind::UnexpectedEof] {
            let error = io::Error::from(kind);
            counts.count(Err(Failed::of(&error, "reading")), 1.5);
        }
        let mut all = Counts::default();
        all.add(counts.clone());
        all.add(counts);
        assert_eq!((all.requests, all.failed()), (6, 4));
        assert_eq!(all.to_string(), "2 reset, 2 ended without a response");
        assert_eq!(all.examples.len(), EXAMPLES_MAX);
        assert!(all.examples[0].starts_with("at 1.50 s: Reset: reading: "));
    }
}
