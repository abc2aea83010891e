//! Many requests that wait at once in one worker, for a timer of two seconds.

use bench_kit::measure::FamilyReading;
use bench_kit::rounds::{Row, find, interleave, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;

use super::{Context, add_missing};
use crate::contestant::{Contestant, LineUp, Placement};
use crate::peer::Peer;

const APPLICATION: &str = "echo_async.psgi";
const PATH: &str = "/?field=hello";
const WARM_UP_REQUESTS: u32 = 16;
/// The seconds after which a client gives up.
const TIMEOUT_SECONDS: &str = "30";

const PEERS: [Peer; 4] = [
    Peer::Greenroom,
    Peer::Twiggy,
    Peer::Feersum,
    Peer::FeersumKeepAlive,
];

pub(super) const TUTORIAL: Spec = Spec {
    case: "echo200",
    requests: 200,
    longest_ms_max: 2_020.0,
};

pub(super) const CROWD: Spec = Spec {
    case: "echo2000",
    requests: 2_000,
    longest_ms_max: 2_200.0,
};

/// One row of the table of goals.
pub(super) struct Spec {
    case: &'static str,
    requests: u32,
    longest_ms_max: f64,
}

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    unanswered: f64,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    cpu_us: f64,
}

impl Spec {
    pub(super) fn run(&self, context: &Context) -> anyhow::Result<Report> {
        let contestant = |peer| Contestant::new(peer, APPLICATION).placed(Placement::Free);
        let line_up = LineUp::of(PEERS.map(contestant), context);
        let rows = interleave(self.case, context.rounds, &line_up.present, |contestant| {
            self.measure(contestant, context)
        })?;
        let mut notes = vec![
            format!(
                "medians of {} rounds (least–most); each request timed from the moment before its \
                 connect; server and load on both cores",
                context.rounds
            ),
            "CPU: of all processes of the server, over the requests".to_owned(),
        ];
        notes.extend(line_up.notes.iter().cloned());
        Ok(Report {
            case: self.case,
            title: format!(
                "{} requests at once, each answered after 2 s, one worker",
                self.requests
            ),
            notes,
            table: render(&rows, &line_up),
            verdicts: self.verdicts(find(&rows, Peer::Greenroom.name())).into(),
            samples: samples(&rows),
        })
    }

    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn measure(&self, contestant: &Contestant, context: &Context) -> anyhow::Result<Sample> {
        let server = contestant.start(context)?;
        let url = server.url(PATH);
        let bench = contestant.bench(context)?.flags(["-s", TIMEOUT_SECONDS]);
        let burst = |requests: u32| bench.clone().connections(requests.into(), requests);
        burst(WARM_UP_REQUESTS).run_well(&url)?;
        let before = FamilyReading::now(server.pid())?;
        let report = burst(self.requests).run(&url)?;
        let used = before.until(&FamilyReading::now(server.pid())?)?;
        let latency = report.latency();
        Ok(Sample {
            unanswered: f64::from(self.requests) - report.good() as f64,
            p50_ms: latency.p50_ms,
            p99_ms: latency.p99_ms,
            longest_ms: latency.max_ms,
            cpu_us: used.total().as_secs_f64() * 1e6 / f64::from(self.requests),
        })
    }

    fn verdicts(&self, ours: Option<&Row<Sample>>) -> [Verdict; 2] {
        let most = |value: fn(&Sample) -> f64| Some(ours?.spread(value)?.max);
        [
            Verdict::at_most(
                "Greenroom, unanswered in any round",
                most(|sample| sample.unanswered),
                0.0,
                "",
            ),
            Verdict::at_most(
                "Greenroom, longest in any round",
                most(|sample| sample.longest_ms),
                self.longest_ms_max,
                " ms",
            ),
        ]
    }
}

fn render(rows: &[Row<Sample>], line_up: &LineUp) -> String {
    let mut out = table([
        "server",
        "longest ms",
        "p99 ms",
        "p50 ms",
        "unanswered",
        "CPU us/request",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64| cell(row.spread(value), 0);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.longest_ms),
            spread(|sample| sample.p99_ms),
            spread(|sample| sample.p50_ms),
            spread(|sample| sample.unanswered),
            spread(|sample| sample.cpu_us),
        ]);
    }
    add_missing(&mut out, line_up);
    out.to_string()
}
