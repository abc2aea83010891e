//! Clients that send few requests, and wait for each response.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde::Serialize;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{Client, Outcome};

/// Behind the end, in which requests that were due before it are still sent.
const GRACE: Duration = Duration::from_secs(1);
const MILLIS_PER_SECOND: f64 = 1_000.0;
const PERCENT: f64 = 100.0;

/// One request in each period, from the addresses in turn, each over one connection.
#[derive(Clone, Debug)]
pub(crate) struct Polite {
    pub(crate) sources: Vec<Ipv4Addr>,
    pub(crate) path: String,
    pub(crate) period: Duration,
}

/// The responses that they got.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Summary {
    pub(crate) asked: u64,
    pub(crate) answered_percent: f64,
    pub(crate) refused: u64,
    /// Of responses with 200, from the time at which the request was due; infinite without any.
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) longest_ms: f64,
}

/// Outcomes, each with its latency.
type Asked = Vec<(Outcome, Duration)>;

impl Polite {
    /// Asks until that time, and waits for the last responses. What was due and could not be sent
    /// has failed.
    pub(crate) async fn ask(&self, server: SocketAddr, until: Instant) -> Summary {
        let mut clients = JoinSet::new();
        let count = u32::try_from(self.sources.len()).unwrap_or(u32::MAX);
        let mut first = Instant::now();
        for source in &self.sources {
            let client = Client::new(*source, server, &self.path);
            clients.spawn(ask(client, first, self.period * count, until));
            first += self.period;
        }
        Summary::of(&clients.join_all().await.concat())
    }
}

async fn ask(mut client: Client, first: Instant, period: Duration, until: Instant) -> Asked {
    let (mut asked, mut due) = (Asked::new(), first);
    while due < until {
        // A time that has passed is not waited for: who was kept waiting is late, and that counts.
        sleep_until(due).await;
        let outcome = if Instant::now() < until + GRACE {
            client.ask().await
        } else {
            Outcome::Failed
        };
        asked.push((outcome, due.elapsed()));
        due += period;
    }
    asked
}

impl Summary {
    #[expect(clippy::cast_precision_loss, reason = "a few hundred")]
    fn of(asked: &[(Outcome, Duration)]) -> Self {
        let good = asked
            .iter()
            .filter(|(outcome, _)| *outcome == Outcome::Responded(200));
        let mut good_ms: Vec<f64> = good
            .map(|(_, latency)| latency.as_secs_f64() * MILLIS_PER_SECOND)
            .collect();
        good_ms.sort_by(f64::total_cmp);
        let refused = asked
            .iter()
            .filter(|(outcome, _)| *outcome == Outcome::Responded(503));
        Self {
            asked: asked.len() as u64,
            answered_percent: good_ms.len() as f64 / asked.len().max(1) as f64 * PERCENT,
            refused: refused.count() as u64,
            p50_ms: of_hundred(&good_ms, 50),
            p99_ms: of_hundred(&good_ms, 99),
            longest_ms: of_hundred(&good_ms, 100),
        }
    }
}

/// The least that so many of a hundred do not exceed.
fn of_hundred(sorted: &[f64], part: usize) -> f64 {
    let place = (sorted.len() * part).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied().unwrap_or(f64::INFINITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_good_responses() {
        let asked = |status, millis| (Outcome::Responded(status), Duration::from_millis(millis));
        let mut all: Asked = (1..=99).map(|millis| asked(200, millis)).collect();
        all.push(asked(503, 500));
        let summary = Summary::of(&all);
        assert_eq!((summary.asked, summary.refused), (100, 1));
        assert!(
            (summary.answered_percent - 99.0).abs() < 1e-9,
            "{summary:?}"
        );
        assert!((summary.p50_ms - 50.0).abs() < 1e-9, "{summary:?}");
        assert!((summary.p99_ms - 99.0).abs() < 1e-9, "{summary:?}");
        assert!(Summary::of(&[asked(503, 1)]).p99_ms.is_infinite());
    }
}
