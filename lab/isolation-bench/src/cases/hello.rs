//! `/hello` beside floods, round after round against one server, by a generator that stands in line
//! with it.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bench_kit::process::Server;
use bench_kit::rounds::{Contestant as _, Row, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::overload::{Capacity, Flood};
use super::{Context, HELLO};
use crate::contestant::{Contestant, OURS, all_servers, ours};
use crate::http;

const FACTORS: [f64; 4] = [0.7, 2.0, 6.0, 10.0];
const ROUNDS: usize = 100;
/// Peers have one round for so many of ours: nothing is claimed of their worst.
const OURS_FOR_A_PEERS: usize = 5;
const SECONDS: u32 = 4;
/// Of each round, in which the flood's queue fills; `/hello` is measured in it as well.
const FILLING_SECONDS: u32 = 1;

/// A server is quiet when so many single requests in a row got their responses within this time.
const QUIET_REQUESTS: usize = 5;
const QUIET_WITHIN: Duration = Duration::from_millis(20);
const QUIET_PAUSE: Duration = Duration::from_millis(50);
const QUIET_AFTER_MAX: Duration = Duration::from_secs(10);

const RESPONSES_PERCENT: f64 = 100.0;
const P99_MS_MAX: f64 = 2.5;

#[derive(Clone, Copy, Debug, Serialize)]
struct Round {
    factor: f64,
    /// The server of the round before was not quiet again, and another was started.
    is_fresh: bool,
    flood: Flood,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let context = usual(context);
    let rounds = context.options.rounds_or(ROUNDS).max(FACTORS.len());
    let peers_rounds = (rounds / OURS_FOR_A_PEERS).max(FACTORS.len());
    let (contestants, left_out) = all_servers(&context, ours())?;
    let mut rows = Vec::new();
    for (index, contestant) in contestants.iter().enumerate() {
        if contestant.is_slow() {
            continue;
        }
        let rounds = if index == 0 { rounds } else { peers_rounds };
        let samples = measure(contestant, &context, rounds);
        rows.push(Row {
            name: contestant.name().to_owned(),
            samples: samples.with_context(|| contestant.name().to_owned())?,
        });
    }
    Ok(Report {
        case: "hello",
        title: "/hello at 100/s beside fib(50000) at 0.7, 2, 6, 10 x capacity in rotation, \
            generator at the usual priority"
            .to_owned(),
        notes: notes(rounds, peers_rounds, &context, left_out),
        table: tables(&rows),
        verdicts: rows
            .iter()
            .find(|row| row.name == OURS)
            .map(verdicts)
            .unwrap_or_default(),
        samples: samples(&rows),
    })
}

/// With the seconds of this case, of which a flood adds those in which its queue fills.
fn usual(context: &Context) -> Context {
    let seconds = context.options.seconds_or(SECONDS);
    Context {
        seconds: seconds.saturating_sub(FILLING_SECONDS).max(1),
        ..context.at_usual_priority()
    }
}

fn notes(rounds: usize, peers: usize, context: &Context, left_out: Vec<String>) -> Vec<String> {
    let mut notes = vec![
        format!(
            "medians (least–most) over {rounds} rounds of {} s in all, {peers} for peers, one load \
                after the other; a server goes through all its rounds, each when it is quiet again",
            context.seconds + FILLING_SECONDS
        ),
        "load by greenroom bench without any niceness, on the cores that the server has: it waits \
            for its turn as the server does, and what it takes is deducted from the capacity \
            (corrected)"
            .to_owned(),
        format!(
            "quiet: {QUIET_REQUESTS} single requests in a row within {} ms each; fresh: rounds \
                before which a server was not quiet within {} s and was started anew",
            QUIET_WITHIN.as_millis(),
            QUIET_AFTER_MAX.as_secs()
        ),
        "latencies count from the intended time, what timed out with its 2 s; all of a round \
            counts, also the second in which the queue fills"
            .to_owned(),
        "responses are judged by the worst round, p99 by the median of the rounds; the worst round \
            is what stands behind the dash"
            .to_owned(),
        "whoever takes seconds for fib(50000), as Starman does, is left out".to_owned(),
    ];
    notes.extend(left_out);
    notes
}

fn measure(
    contestant: &Contestant,
    context: &Context,
    rounds: usize,
) -> anyhow::Result<Vec<Round>> {
    let mut server = start(contestant, context)?;
    let capacity = Capacity::measure(context, &server)?;
    let mut measured = Vec::new();
    for (round, factor) in FACTORS.into_iter().cycle().take(rounds).enumerate() {
        eprintln!(
            "hello, round {} of {rounds}: {}, {factor} x",
            round + 1,
            contestant.name()
        );
        let is_fresh = !is_quiet_in_time(server.address());
        if is_fresh {
            drop(server);
            server = start(contestant, context)?;
        }
        measured.push(Round {
            factor,
            is_fresh,
            flood: Flood::measure(context, &server, &capacity, factor)?,
        });
    }
    Ok(measured)
}

fn start(contestant: &Contestant, context: &Context) -> anyhow::Result<Server> {
    let server = contestant.start(context)?;
    context.warm_up(&server)?;
    Ok(server)
}

fn is_quiet_in_time(server: SocketAddr) -> bool {
    let deadline = Instant::now() + QUIET_AFTER_MAX;
    let mut quick = 0;
    while quick < QUIET_REQUESTS {
        let begin = Instant::now();
        let response = http::get(server, HELLO);
        let is_quick = response.is_ok_and(|response| response.status == 200);
        let is_quick = is_quick && begin.elapsed() <= QUIET_WITHIN;
        quick = if is_quick { quick + 1 } else { 0 };
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(QUIET_PAUSE);
    }
    true
}

fn tables(rows: &[Row<Round>]) -> String {
    let mut parts = vec![format!("All loads:\n\n{}", rendered(rows))];
    for factor in FACTORS {
        let rows: Vec<_> = rows.iter().map(|row| of_factor(row, factor)).collect();
        parts.push(format!(
            "Offered {factor} x capacity:\n\n{}",
            rendered(&rows)
        ));
    }
    parts.join("\n\n")
}

fn of_factor(row: &Row<Round>, factor: f64) -> Row<Round> {
    let samples = row.samples.iter();
    let samples = samples.filter(|round| round.factor.total_cmp(&factor).is_eq());
    Row {
        name: row.name.clone(),
        samples: samples.copied().collect(),
    }
}

fn rendered(rows: &[Row<Round>]) -> String {
    let mut out = table([
        "server",
        "rounds",
        "fresh",
        "rounds not all answered",
        "answered %",
        "p50 ms",
        "p99 ms",
        "goodput",
        "corrected",
        "generator's cores",
    ]);
    for row in rows {
        let spread = |value: fn(&Flood) -> f64, digits| {
            cell(row.spread(|round| value(&round.flood)), digits)
        };
        let count = |is: fn(&&Round) -> bool| row.samples.iter().filter(is).count().to_string();
        out.add_row([
            row.name.clone(),
            row.samples.len().to_string(),
            count(|round| round.is_fresh),
            count(|round| round.flood.hello_answered_percent < RESPONSES_PERCENT),
            spread(|flood| flood.hello_answered_percent, 1),
            spread(|flood| flood.hello_p50_ms, 2),
            spread(|flood| flood.hello_p99_ms, 2),
            spread(|flood| flood.goodput, 2),
            spread(|flood| flood.goodput_corrected, 2),
            spread(|flood| flood.generator_cores, 2),
        ]);
    }
    out.to_string()
}

fn verdicts(row: &Row<Round>) -> Vec<Verdict> {
    let answered = row.spread(|round| round.flood.hello_answered_percent);
    let p99 = row.spread(|round| round.flood.hello_p99_ms);
    let mut verdicts = vec![
        Verdict::at_least(
            format!("{}: /hello answered in the worst round", row.name),
            answered.map(|spread| spread.min),
            RESPONSES_PERCENT,
            " %",
        ),
        p99_verdict(
            format!("{}: /hello p99", row.name),
            p99.map(|spread| spread.median),
        ),
    ];
    verdicts.extend(FACTORS.map(|factor| {
        let p99 = of_factor(row, factor).spread(|round| round.flood.hello_p99_ms);
        let what = format!("{}, {factor} x: /hello p99", row.name);
        p99_verdict(what, p99.map(|spread| spread.median))
    }));
    verdicts
}

fn p99_verdict(what: String, median_ms: Option<f64>) -> Verdict {
    Verdict::at_most(what, median_ms, P99_MS_MAX, " ms")
}
