//! Clients that all want the same.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::{Client, Outcome};

const MILLIS_PER_SECOND: f64 = 1_000.0;

/// One client for each address that is listed, and a connection for each.
#[derive(Clone, Debug)]
pub(crate) struct Crowd {
    pub(crate) sources: Vec<Ipv4Addr>,
    pub(crate) path: String,
    pub(crate) timeout: Duration,
}

/// Requests by their outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Counts {
    /// With status 200.
    pub(crate) answered: u64,
    /// With status 503.
    pub(crate) refused: u64,
    /// Otherwise: another status, reset, timed out.
    pub(crate) failed: u64,
}

/// One request of each client, all at once.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Wave {
    pub(crate) counts: Counts,
    /// Until the last of them got its response, or gave up.
    pub(crate) longest_ms: f64,
}

impl Crowd {
    /// Each asks as soon as it has a response, and a while after it got none, until that time.
    pub(crate) async fn flood(
        &self,
        server: SocketAddr,
        retry_after: Duration,
        until: Instant,
    ) -> Counts {
        let mut clients = JoinSet::new();
        for client in self.clients(server) {
            clients.spawn(come_back(client, retry_after, until));
        }
        sum(clients.join_all().await)
    }

    /// Each asks once.
    pub(crate) async fn wave(&self, server: SocketAddr) -> Wave {
        let begin = Instant::now();
        let mut clients = JoinSet::new();
        for mut client in self.clients(server) {
            clients.spawn(async move { Counts::default().with(client.ask().await) });
        }
        let counts = sum(clients.join_all().await);
        Wave {
            counts,
            longest_ms: begin.elapsed().as_secs_f64() * MILLIS_PER_SECOND,
        }
    }

    fn clients(&self, server: SocketAddr) -> impl Iterator<Item = Client> {
        self.sources.iter().map(move |source| Client {
            timeout: self.timeout,
            ..Client::new(*source, server, &self.path)
        })
    }
}

async fn come_back(mut client: Client, retry_after: Duration, until: Instant) -> Counts {
    let mut counts = Counts::default();
    // What is under way at the end is given up, and not counted.
    while let Ok(outcome) = timeout_at(until, client.ask()).await {
        counts = counts.with(outcome);
        if outcome != Outcome::Responded(200) {
            sleep(retry_after).await;
        }
        if Instant::now() >= until {
            break;
        }
    }
    counts
}

fn sum(counts: impl IntoIterator<Item = Counts>) -> Counts {
    counts.into_iter().fold(Counts::default(), Counts::and)
}

impl Counts {
    fn with(self, outcome: Outcome) -> Self {
        let (answered, refused, failed) = match outcome {
            Outcome::Responded(200) => (1, 0, 0),
            Outcome::Responded(503) => (0, 1, 0),
            Outcome::Responded(_) | Outcome::Failed => (0, 0, 1),
        };
        self.and(Self {
            answered,
            refused,
            failed,
        })
    }

    /// Both together.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            answered: self.answered + other.answered,
            refused: self.refused + other.refused,
            failed: self.failed + other.failed,
        }
    }

    /// Requests with any outcome.
    pub(crate) fn all(self) -> u64 {
        self.answered + self.refused + self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_200_is_a_good_response_and_only_503_a_rejection() {
        let outcomes = [200, 503, 404].map(Outcome::Responded);
        let counts = outcomes.into_iter().fold(Counts::default(), Counts::with);
        let counts = counts.with(Outcome::Failed);
        let expected = Counts {
            answered: 1,
            refused: 1,
            failed: 2,
        };
        assert_eq!((counts, counts.all()), (expected, 4));
    }
}
