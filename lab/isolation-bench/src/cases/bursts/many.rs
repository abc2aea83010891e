//! Thousands of requests at once, by several client processes.

use std::thread;

use bench_kit::tools::{GreenroomBench, GreenroomReport, Stream};
use serde::Serialize;

use crate::cases::{Context, HELLO};
use crate::contestant::Contestant;

/// A client process each: descriptors are limited by process, ports by address.
const SOURCES: [&str; 3] = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
const TIMEOUT_SECONDS: &str = "30";
const MILLIS_PER_SECOND: f64 = 1_000.0;

#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Many {
    pub(super) requests: u64,
    pub(super) answered: u64,
    pub(super) refused: u64,
    /// Reset, timed out, never sent.
    pub(super) failed: u64,
    /// Until the last response, of the slowest process.
    pub(super) seconds: f64,
    pub(super) longest_ms: f64,
}

pub(super) fn note() -> String {
    format!(
        "at once: a connection for each request, opened in a row by {} processes of greenroom \
            bench with an address each, at the usual priority, on the cores that the server has, \
            against a server that was just started and asked for nothing before; {TIMEOUT_SECONDS} \
            s of patience",
        SOURCES.len()
    )
}

impl Many {
    pub(super) fn measure(
        contestant: &Contestant,
        context: &Context,
        requests: u32,
    ) -> anyhow::Result<Self> {
        let server = contestant.start(context)?;
        let url = server.url(HELLO);
        let bench = context.at_usual_priority().bench()?;
        let bench = bench.flags(["-l", "-s", TIMEOUT_SECONDS]);
        let shares = shares(requests);
        let processes = SOURCES.iter().zip(shares).map(|(source, share)| {
            let bench = bench.clone().connections(share.into(), share);
            bench.flags(["-B", source])
        });
        Ok(Self::of(&at_once(processes, &url)?, requests.into()))
    }

    fn of(reports: &[GreenroomReport], requests: u64) -> Self {
        let streams = || reports.iter().map(|report| &report.streams()[0]);
        let sum = |count: fn(&Stream) -> u64| streams().map(count).sum::<u64>();
        let most = |values: &mut dyn Iterator<Item = f64>| values.fold(0.0, f64::max);
        let answered = sum(|stream| stream.with_status(200));
        let refused = sum(|stream| stream.with_status(503));
        let longest_ms = most(&mut streams().map(|stream| stream.latency().max_ms));
        Self {
            requests,
            answered,
            refused,
            failed: requests.saturating_sub(answered + refused),
            seconds: most(&mut reports.iter().map(|report| report.elapsed_seconds)),
            longest_ms,
        }
    }

    /// All that did not get 200.
    pub(super) fn other_than_200(&self) -> u64 {
        self.refused + self.failed
    }

    pub(super) fn longest_seconds(&self) -> f64 {
        self.longest_ms / MILLIS_PER_SECOND
    }
}

/// One for each process, and all of them together.
fn shares(requests: u32) -> [u32; SOURCES.len()] {
    let third = requests / 3;
    [third, third, requests - 2 * third]
}

fn at_once(
    processes: impl Iterator<Item = GreenroomBench>,
    url: &str,
) -> anyhow::Result<Vec<GreenroomReport>> {
    thread::scope(|scope| {
        let start = |bench: GreenroomBench| scope.spawn(move || bench.run_against_all_odds(url));
        let started: Vec<_> = processes.map(start).collect();
        let reports = started.into_iter();
        reports
            .map(|report| report.join().expect("to run a program does not panic"))
            .collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_request_is_lost_in_the_sharing() {
        assert_eq!(shares(5_000).iter().sum::<u32>(), 5_000);
        assert_eq!(shares(15_000), [5_000; 3]);
    }
}
