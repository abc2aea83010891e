//! Bursts that are over within seconds: no overload, though they come all at once.

mod many;
mod report;

use std::time::Duration;

use bench_kit::Report;
use bench_kit::rounds::{interleave, samples};
use bench_kit::tools::{Ab, AbCounts, is_installed};
use serde::Serialize;

use super::calibrate::Heavy;
use super::{Context, HELLO};
use crate::client::{self, Crowd, Wave, addresses};
use crate::contestant::{Contestant, all_servers, ours};
use crate::rivals::Rivals;
use many::Many;

const ROUNDS_MAX: usize = 2;

/// Requests at once, against a server that was just started.
const MANY: [u32; 2] = [15_000, 5_000];

const AB_REQUESTS: u64 = 1_000;
const AB_CONCURRENCY: u32 = 50;
/// One for each core.
const RIVALS: usize = 2;

const COMPUTATIONS: u8 = 30;
const COMPUTATION_MS: f64 = 50.0;
const COMPUTATIONS_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// In the order of [`MANY`].
    many: [Many; MANY.len()],
    busy: Option<Busy>,
    computing: Computing,
}

/// ab, while other programs want every core.
#[derive(Clone, Copy, Debug, Serialize)]
struct Busy {
    answered: u64,
    refused: u64,
    longest_ms: u32,
}

/// Computations, all at once.
#[derive(Clone, Copy, Debug, Serialize)]
struct Computing {
    one: Heavy,
    wave: Wave,
}

impl Computing {
    /// Never, where one was refused.
    fn all_done_ms(&self) -> f64 {
        let Wave { counts, longest_ms } = self.wave;
        if counts.answered == counts.all() {
            longest_ms
        } else {
            f64::INFINITY
        }
    }
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let (contestants, left_out) = all_servers(context, ours())?;
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("bursts", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "bursts",
        title: format!(
            "{} and {} x /hello at once; ab -n {AB_REQUESTS} -c {AB_CONCURRENCY} on a busy \
                machine; {COMPUTATIONS} computations at once",
            MANY[0], MANY[1]
        ),
        notes: notes(rounds, left_out),
        table: report::tables(&rows),
        verdicts: report::verdicts(&rows),
        samples: samples(&rows),
    })
}

fn notes(rounds: usize, left_out: Vec<String>) -> Vec<String> {
    let mut notes = vec![
        format!("medians of {rounds} rounds (least–most), each part against a fresh server"),
        many::note(),
        format!(
            "busy: {RIVALS} programs that do nothing but compute, on any core, while ab asks for \
                /hello, with a connection for each request, at the usual priority"
        ),
        format!(
            "computations: /fib/N of about {COMPUTATION_MS} ms, N found for each server, idle; it \
                is at most 100,000, and \"alone\" tells what came out. They come from \
                {COMPUTATIONS} addresses, each with {} s of patience",
            COMPUTATIONS_TIMEOUT.as_secs()
        ),
        "refused or failed: all that did not get 200; judged by the worst round".to_owned(),
    ];
    if !is_installed("ab") {
        notes.push(
            "LEFT OUT: ab on a busy machine: no ab here (apt-get install apache2-utils)".to_owned(),
        );
    }
    notes.extend(left_out);
    notes
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let [first, second] = MANY;
    let many = |requests| Many::measure(contestant, context, requests);
    Ok(Sample {
        many: [many(first)?, many(second)?],
        busy: busy(contestant, context)?,
        computing: computing(contestant, context)?,
    })
}

fn busy(contestant: &Contestant, context: &Context) -> anyhow::Result<Option<Busy>> {
    if !is_installed("ab") {
        return Ok(None);
    }
    let server = contestant.start(context)?;
    let _rivals = Rivals::start(RIVALS, None)?;
    let ab = Ab {
        core: None,
        ..Ab::new(AB_REQUESTS, AB_CONCURRENCY)
    };
    let AbCounts {
        complete,
        not_2xx,
        broken,
        longest_ms,
    } = ab.count(&server.url(HELLO))?;
    let answered = complete.saturating_sub(not_2xx + broken);
    Ok(Some(Busy {
        answered,
        refused: AB_REQUESTS.saturating_sub(answered),
        longest_ms,
    }))
}

fn computing(contestant: &Contestant, context: &Context) -> anyhow::Result<Computing> {
    let server = contestant.start(context)?;
    let one = Heavy::of(context, &server, COMPUTATION_MS)?;
    let crowd = Crowd {
        sources: addresses(2, COMPUTATIONS),
        path: one.fib(),
        timeout: COMPUTATIONS_TIMEOUT,
    };
    Ok(Computing {
        one,
        wave: client::run(crowd.wave(server.address()))?,
    })
}
