//! A polite client beside a crowd that comes back whenever it is refused.

use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Spread, Verdict, cell, table};
use serde::Serialize;
use tokio::time::Instant;

use super::calibrate::Heavy;
use super::{Context, FIB};
use crate::client::{self, Counts, Crowd, Polite, Summary, addresses};
use crate::contestant::{Contestant, OURS, all_servers, ours};

const ROUNDS_MAX: usize = 2;
/// The length of a measurement, in seconds of other cases: there are 20 polite requests in one.
const SECONDS_FACTOR: u32 = 3;

const CROWD: u8 = 200;
const CROWD_ADDRESS: Ipv4Addr = Ipv4Addr::LOCALHOST;
const RETRY_AFTER: Duration = Duration::from_millis(10);
const TIMEOUT: Duration = Duration::from_secs(2);
/// About what [`FIB`] takes; for whom it is too much.
const HEAVY_MS: f64 = 10.0;

const POLITE_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const OTHER_ROUTE: &str = "/block/20";
const OTHER_PERIOD: Duration = Duration::from_millis(50);
const SAME_PERIOD: Duration = Duration::from_millis(500);

const RESPONSES_PERCENT: f64 = 100.0;
const P99_MAX_OF_UNLOADED: f64 = 3.0;
const P99_MS_BEYOND: f64 = 10.0;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    /// The other route, alone.
    unloaded: Summary,
    /// The other route, beside a crowd from one address.
    other: Beside,
    /// The same, beside a crowd from 200 addresses.
    other_of_many: Beside,
    /// The crowd's own route, beside a crowd from one address.
    same: Beside,
}

/// The outcomes of the crowd and of the polite client.
#[derive(Clone, Copy, Debug, Serialize)]
struct Beside {
    polite: Summary,
    crowd: Counts,
    seconds: f64,
}

/// A measurement beside a crowd.
struct Part {
    name: &'static str,
    of: fn(&Sample) -> Beside,
    /// The other route's: of the crowd's own, alone says nothing.
    has_unloaded: bool,
}

const PARTS: [Part; 3] = [
    Part {
        name: "another route, crowd of one address",
        of: |sample| sample.other,
        has_unloaded: true,
    },
    Part {
        name: "another route, crowd of 200 addresses",
        of: |sample| sample.other_of_many,
        has_unloaded: true,
    },
    Part {
        name: "the crowd's route, crowd of one address",
        of: |sample| sample.same,
        has_unloaded: false,
    },
];

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let (contestants, left_out) = all_servers(context, ours())?;
    let rounds = context.rounds.min(ROUNDS_MAX);
    let rows = interleave("fairness", rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    let mut notes = vec![
        format!(
            "medians of {rounds} rounds (least–most) of {} s for each part, each against a fresh \
                server; {CROWD} keep-alive clients in closed loops on {FIB}, each trying again {} \
                ms after a rejection or failure",
            seconds(context),
            RETRY_AFTER.as_millis()
        ),
        format!(
            "the polite client is another address and waits for each response: {OTHER_ROUTE} each \
                {} ms, the crowd's route each {} ms; its latencies are of responses with 200, from \
                the time at which a request was due",
            OTHER_PERIOD.as_millis(),
            SAME_PERIOD.as_millis()
        ),
        format!(
            "whoever waits for {} s has gone, and failed; all clients are threads of this program, \
                at the usual priority, on the cores that the server has",
            TIMEOUT.as_secs()
        ),
        format!(
            "Starman, which adds big integers in Perl, is asked for a number that takes it about \
                {HEAVY_MS} ms"
        ),
        "responses are judged by the worst round, p99 by the medians".to_owned(),
    ];
    notes.extend(left_out);
    Ok(Report {
        case: "fairness",
        title: format!(
            "a polite client beside {CROWD} on {FIB} that come back {} ms after each 503",
            RETRY_AFTER.as_millis()
        ),
        notes,
        table: tables(&rows),
        verdicts: find(&rows, OURS).map(verdicts).unwrap_or_default(),
        samples: samples(&rows),
    })
}

fn seconds(context: &Context) -> u32 {
    context.seconds * SECONDS_FACTOR
}

fn measure(contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
    let heavy = heavy_path(contestant, context)?;
    let from_one = crowd(&heavy, vec![CROWD_ADDRESS; CROWD.into()]);
    let from_many = crowd(&heavy, addresses(1, CROWD));
    let other = polite(OTHER_ROUTE, OTHER_PERIOD);
    let same = polite(&heavy, SAME_PERIOD);
    let beside = |polite: &Polite, crowd: &Crowd| {
        // What is left of one crowd must not weigh on the next.
        let server = contestant.start(context)?;
        beside(context, server.address(), polite, Some(crowd))
    };
    let unloaded = contestant.start(context)?;
    Ok(Sample {
        unloaded: self::beside(context, unloaded.address(), &other, None)?.polite,
        other: beside(&other, &from_one)?,
        other_of_many: beside(&other, &from_many)?,
        same: beside(&same, &from_one)?,
    })
}

fn heavy_path(contestant: &Contestant, context: &Context) -> anyhow::Result<String> {
    if !contestant.is_slow() {
        return Ok(FIB.to_owned());
    }
    let server = contestant.start(context)?;
    Ok(Heavy::of(context, &server, HEAVY_MS)?.fib())
}

fn crowd(path: &str, sources: Vec<Ipv4Addr>) -> Crowd {
    Crowd {
        sources,
        path: path.to_owned(),
        timeout: TIMEOUT,
    }
}

fn polite(path: &str, period: Duration) -> Polite {
    Polite {
        sources: vec![POLITE_ADDRESS],
        path: path.to_owned(),
        period,
    }
}

/// Runs both, each on a thread of its own, as if each had a machine: the crowd's responses do not
/// delay the polite client.
fn beside(
    context: &Context,
    server: SocketAddr,
    polite: &Polite,
    crowd: Option<&Crowd>,
) -> anyhow::Result<Beside> {
    let seconds = seconds(context);
    let until = Instant::now() + Duration::from_secs(seconds.into());
    let (summary, counts) = thread::scope(|scope| {
        let crowd = crowd
            .map(|crowd| scope.spawn(move || client::run(crowd.flood(server, RETRY_AFTER, until))));
        let summary = client::run(polite.ask(server, until));
        let counts = crowd.map(|crowd| crowd.join().expect("clients do not panic"));
        (summary, counts)
    });
    Ok(Beside {
        polite: summary?,
        crowd: counts.transpose()?.unwrap_or_default(),
        seconds: seconds.into(),
    })
}

impl Beside {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn crowd_per_second(&self, count: fn(Counts) -> u64) -> f64 {
        count(self.crowd) as f64 / self.seconds
    }
}

fn tables(rows: &[Row<Sample>]) -> String {
    let parts = PARTS.iter().map(|part| rendered(rows, part));
    parts.collect::<Vec<_>>().join("\n\n")
}

fn rendered(rows: &[Row<Sample>], part: &Part) -> String {
    let mut out = table([
        "server",
        "answered %",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "unloaded p99 ms",
        "crowd answered/s",
        "refused/s",
        "failed/s",
    ]);
    for row in rows {
        let spread = |value: &dyn Fn(&Beside) -> f64, digits| {
            cell(row.spread(|sample| value(&(part.of)(sample))), digits)
        };
        out.add_row([
            row.name.clone(),
            spread(&|beside| beside.polite.answered_percent, 1),
            spread(&|beside| beside.polite.p50_ms, 1),
            spread(&|beside| beside.polite.p99_ms, 1),
            spread(&|beside| beside.polite.longest_ms, 1),
            cell(unloaded_p99_ms(row).filter(|_| part.has_unloaded), 1),
            spread(&|beside| beside.crowd_per_second(|crowd| crowd.answered), 0),
            spread(&|beside| beside.crowd_per_second(|crowd| crowd.refused), 0),
            spread(&|beside| beside.crowd_per_second(|crowd| crowd.failed), 0),
        ]);
    }
    format!("A polite client of {}:\n\n{out}", part.name)
}

fn unloaded_p99_ms(row: &Row<Sample>) -> Option<Spread> {
    row.spread(|sample| sample.unloaded.p99_ms)
}

fn verdicts(row: &Row<Sample>) -> Vec<Verdict> {
    PARTS.iter().flat_map(|part| of_part(row, part)).collect()
}

fn of_part(row: &Row<Sample>, part: &Part) -> Vec<Verdict> {
    let answered = row.spread(|sample| (part.of)(sample).polite.answered_percent);
    let mut verdicts = vec![Verdict::at_least(
        format!("{}: {}: answered", row.name, part.name),
        answered.map(|spread| spread.min),
        RESPONSES_PERCENT,
        " %",
    )];
    if part.has_unloaded {
        let unloaded_ms = unloaded_p99_ms(row).map_or(f64::NAN, |spread| spread.median);
        let p99 = row.spread(|sample| (part.of)(sample).polite.p99_ms);
        verdicts.push(Verdict::at_most(
            format!("{}: {}: p99", row.name, part.name),
            p99.map(|spread| spread.median),
            (P99_MAX_OF_UNLOADED * unloaded_ms + P99_MS_BEYOND).round(),
            " ms",
        ));
    }
    verdicts
}
