use std::time::{Duration, Instant};

use greenroom_stage::Client;
use greenroom_stage::fair::Flow;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::micros;

/// How many flows are told apart; of more, the half that wanted least is forgotten.
const FLOWS_MAX: usize = 256;

/// How many of them are shown, those that wanted most.
const SHOWN_MAX: usize = 32;

/// In this time half of what is shown fades: longer than what decides whose turn it is, so that whoever
/// looks after a flood still sees whose it was.
const SHOWN_HALF_LIFE: Duration = Duration::from_secs(10);

/// What one client used of the workers of late by one route, and what it was refused.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Share {
    /// The client: its address or network, or what the gateway's
    /// [client key](crate::Builder::client_key) says.
    pub client: Client,
    /// A hash of the method and the first two segments of the path, in 16 hexadecimal digits; zeros for
    /// all routes of which no run has ended yet.
    pub route: String,
    /// Its requests that wait.
    pub queue_len: usize,
    /// The time for which it kept workers busy, faded by half every 10 s.
    pub used_micros: u64,
    /// Its requests that were refused, or dropped before they began, as far back as it is remembered.
    pub refused: u64,
}

/// Who used how much, and who was refused: for operators. Nothing is decided by it.
#[derive(Debug, Default)]
pub(super) struct Shares(FxHashMap<Flow, Row>);

#[derive(Debug)]
struct Row {
    client: Client,
    used: Faded,
    /// What its requests would have used that were refused.
    missed: Faded,
    refused: u64,
}

/// Seconds that fade.
#[derive(Debug)]
struct Faded {
    seconds: f64,
    at: Instant,
}

impl Shares {
    /// A flow was given a run: from now on what it uses is remembered.
    pub(super) fn note(&mut self, flow: Flow, client: Client, now: Instant) {
        self.row(flow, client, now);
    }

    pub(super) fn add_used(&mut self, flow: Flow, used: Duration, now: Instant) {
        if let Some(row) = self.0.get_mut(&flow) {
            row.used.add(used, now);
        }
    }

    pub(super) fn add_refused(
        &mut self,
        flow: Flow,
        client: Client,
        expected: Duration,
        now: Instant,
    ) {
        let row = self.row(flow, client, now);
        row.missed.add(expected, now);
        row.refused += 1;
    }

    /// Those that wanted most, the greediest first.
    pub(super) fn shown(&self, now: Instant, queue_len: impl Fn(Flow) -> usize) -> Vec<Share> {
        let rows = self
            .0
            .iter()
            .map(|(flow, row)| (row.wanted(now), flow, row));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_unstable_by(|one, other| other.0.total_cmp(&one.0));
        let shown = rows.into_iter().take(SHOWN_MAX);
        let shown = shown.map(|(_, flow, row)| Share {
            client: row.client,
            route: format!("{:016x}", flow.route),
            queue_len: queue_len(*flow),
            used_micros: micros(Duration::from_secs_f64(row.used.of_late(now))),
            refused: row.refused,
        });
        shown.collect()
    }

    fn row(&mut self, flow: Flow, client: Client, now: Instant) -> &mut Row {
        if self.0.len() >= FLOWS_MAX && !self.0.contains_key(&flow) {
            self.forget_half(now);
        }
        self.0.entry(flow).or_insert_with(|| Row {
            client,
            used: Faded::new(now),
            missed: Faded::new(now),
            refused: 0,
        })
    }

    fn forget_half(&mut self, now: Instant) {
        let mut wanted: Vec<f64> = self.0.values().map(|row| row.wanted(now)).collect();
        let middle = wanted.len() / 2;
        let (_, median, _) = wanted.select_nth_unstable_by(middle, f64::total_cmp);
        let median = *median;
        self.0.retain(|_, row| row.wanted(now) > median);
    }
}

impl Row {
    fn wanted(&self, now: Instant) -> f64 {
        self.used.of_late(now) + self.missed.of_late(now)
    }
}

impl Faded {
    fn new(at: Instant) -> Self {
        Self { seconds: 0.0, at }
    }

    fn add(&mut self, used: Duration, now: Instant) {
        self.seconds = self.of_late(now) + used.as_secs_f64();
        self.at = now;
    }

    fn of_late(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.seconds * (-elapsed / SHOWN_HALF_LIFE.as_secs_f64()).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(client: Client) -> Flow {
        Flow {
            route: 7,
            client: client.key(),
        }
    }

    #[test]
    fn the_greedy_are_shown_however_many_others_come() {
        let now = Instant::now();
        let mut shares = Shares::default();
        let refused = Client::named("refused");
        for _ in 0..10 {
            shares.add_refused(flow(refused), refused, Duration::from_secs(2), now);
        }
        for number in 0..10 * FLOWS_MAX {
            let client = Client::named(&format!("passer-by {number}"));
            shares.note(flow(client), client, now);
            shares.add_used(flow(client), Duration::from_millis(1), now);
        }
        assert!(shares.0.len() <= FLOWS_MAX);
        let shown = shares.shown(now, |_| 3);
        assert!((2..=SHOWN_MAX).contains(&shown.len()));
        let first = &shown[0];
        assert_eq!((first.client, first.refused), (refused, 10));
        assert_eq!((first.queue_len, first.used_micros), (3, 0));
        assert_eq!(first.route, "0000000000000007");
    }

    #[test]
    fn what_is_shown_fades() {
        let now = Instant::now();
        let mut shares = Shares::default();
        let client = Client::UNKNOWN;
        shares.note(flow(client), client, now);
        shares.add_used(flow(client), Duration::from_secs(8), now);
        let shown = shares.shown(now + 3 * SHOWN_HALF_LIFE, |_| 0);
        assert_eq!(shown[0].used_micros, 1_000_000);
    }
}
