use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;
use serde::Serialize;

use super::submission::{RouteName, Submission};
use crate::client::Client;
use crate::fair::{Flow, HALF_LIFE};

/// Flows of which is remembered what they used; for another one the least goes.
const REMEMBERED_MAX: usize = 256;

/// Of these so many are shown, those first that used most of late.
pub(super) const SHOWN_MAX: usize = 32;

/// What one client has used of a stage on one route. Times are in microseconds.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    /// The route's method; nothing for work that no route asked for.
    pub method: &'static str,
    /// The route's path, as [`RouteStatus`](crate::RouteStatus) has it.
    pub path: &'static str,
    /// The client: its address or network, the name that a [`ClientKey`](crate::ClientKey) gave it, or `unknown`.
    pub client: Client,
    /// Its part of all that was used of late, in percent: what was used fades by half each second.
    pub percent: f64,
    /// What it used since it was first seen, of processors or threads, whichever it used more of.
    pub used_micros: u64,
    /// How many runs it was that ended or gave way.
    pub runs: u64,
    /// How many were refused, or dropped because their turn came too late.
    pub refused: u64,
}

/// What the flows of a stage that use most have used.
#[derive(Debug, Default)]
pub(crate) struct Shares(FxHashMap<Flow, Row>);

#[derive(Debug)]
struct Row {
    route: RouteName,
    client: Client,
    /// What was used until `at`, faded.
    recent: f64,
    at: Instant,
    used: Duration,
    runs: u64,
    refused: u64,
}

impl Shares {
    pub(crate) fn used(&mut self, submission: &Submission, used: Duration, now: Instant) {
        let row = self.row(submission, now);
        row.recent = row.faded(now) + used.as_secs_f64();
        row.at = now;
        row.used += used;
        row.runs += 1;
    }

    pub(crate) fn refused(&mut self, submission: &Submission, now: Instant) {
        self.row(submission, now).refused += 1;
    }

    /// Those first that used most of late.
    pub(crate) fn shown(&self, now: Instant) -> Vec<Share> {
        let mut rows: Vec<_> = self.0.values().map(|row| (row.faded(now), row)).collect();
        let all: f64 = rows.iter().map(|(recent, _)| recent).sum();
        rows.sort_by(|(one, _), (other, _)| other.total_cmp(one));
        rows.truncate(SHOWN_MAX);
        let percent = |recent| if all > 0.0 { recent / all * 100.0 } else { 0.0 };
        rows.into_iter()
            .map(|(recent, row)| row.shown(percent(recent)))
            .collect()
    }

    fn row(&mut self, submission: &Submission, now: Instant) -> &mut Row {
        let flow = submission.flow();
        if self.0.len() >= REMEMBERED_MAX && !self.0.contains_key(&flow) {
            self.forget_least(now);
        }
        self.0.entry(flow).or_insert_with(|| Row {
            route: submission.route,
            client: submission.client,
            recent: 0.0,
            at: now,
            used: Duration::ZERO,
            runs: 0,
            refused: 0,
        })
    }

    fn forget_least(&mut self, now: Instant) {
        let rows = self.0.iter();
        let least = rows.min_by(|(_, one), (_, other)| one.faded(now).total_cmp(&other.faded(now)));
        if let Some(flow) = least.map(|(flow, _)| *flow) {
            self.0.remove(&flow);
        }
    }
}

impl Row {
    fn faded(&self, now: Instant) -> f64 {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        self.recent * (-elapsed / HALF_LIFE.as_secs_f64()).exp2()
    }

    fn shown(&self, percent: f64) -> Share {
        Share {
            method: self.route.method,
            path: self.route.path,
            client: self.client,
            percent: (percent * 10.0).round() / 10.0,
            used_micros: super::book::micros(self.used),
            runs: self.runs,
            refused: self.refused,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stage::Importance;

    fn of(client: &str) -> Submission {
        Submission {
            client: Client::named(client),
            ..Submission::of_caller(Importance::Normal)
        }
    }

    #[test]
    fn who_uses_most_of_late_is_shown_first_and_many_small_ones_do_not_drive_it_out() {
        let start = Instant::now();
        let mut shares = Shares::default();
        shares.used(&of("large"), Duration::from_secs(3), start);
        for number in 0..10 * REMEMBERED_MAX {
            shares.used(&of(&number.to_string()), Duration::from_micros(1), start);
        }
        shares.refused(&of("large"), start);
        let shown = shares.shown(start + HALF_LIFE);
        assert_eq!(shown.len(), SHOWN_MAX);
        assert_eq!(shown[0].client, Client::named("large"));
        assert!(shown[0].percent > 99.0, "{shown:?}");
        assert_eq!((shown[0].used_micros, shown[0].refused), (3_000_000, 1));
    }
}
