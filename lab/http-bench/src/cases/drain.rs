//! Servers that are stopped while 1,500 clients post to them.

use std::path::PathBuf;

use anyhow::Context as _;
use bench_kit::process::{LOAD_CORE, pinned};
use bench_kit::rounds::{self, Row, interleave, samples};
use bench_kit::tools::{is_installed, run as run_program};
use bench_kit::{Report, Verdict, cell, lab_directory, table};
use http_bench_clients::Outcomes;
use tempfile::TempDir;

use super::Context;
use super::contestant::{Contestant, present};

/// The server in Go, as it is built.
pub(crate) const GO_PROGRAM: &str = "drain-go";
const CONNECTIONS: u32 = 1_500;
const SECONDS_AFTER: u32 = 5;
const PATH: &str = "/upload";
const OURS: &str = "Greenroom";
const NGINX: &str = "nginx";

/// The loads of posting clients.
const LOADS: [Load; 3] = [
    Load {
        name: "no pause",
        pause_millis: 0,
    },
    Load {
        name: "pauses to 0.2 s",
        pause_millis: 200,
    },
    Load {
        name: "pauses to 2 s",
        pause_millis: 2_000,
    },
];

#[derive(Clone, Copy, Debug)]
struct Load {
    name: &'static str,
    /// Longest time from a response to the next request.
    pause_millis: u32,
}

/// A server under one load.
struct Drained {
    name: String,
    server: Contestant,
    load: Load,
    is_ours: bool,
}

impl rounds::Contestant for Drained {
    fn name(&self) -> &str {
        &self.name
    }
}

pub(crate) fn run(context: &Context) -> anyhow::Result<Report> {
    let directory = tempfile::tempdir().context("a directory for nginx")?;
    let mut notes = notes(context);
    let servers = present(servers(context, &directory, &mut notes), context);
    let contestants: Vec<Drained> = LOADS
        .iter()
        .flat_map(|load| servers.iter().map(|server| Drained::new(server, *load)))
        .collect();
    let rows = interleave("drain", context.rounds, &contestants, |contestant| {
        measure(contestant, context)
    })?;
    Ok(Report {
        case: "drain",
        title: format!(
            "{CONNECTIONS} keep-alive clients post, and the server is told to end after {} s",
            context.seconds
        ),
        notes,
        table: render(&rows),
        verdicts: LOADS
            .iter()
            .flat_map(|load| verdicts(*load, &contestants, &rows))
            .collect(),
        samples: samples(&rows),
    })
}

fn notes(context: &Context) -> Vec<String> {
    [
        format!(
            "each cell: median (least–most) of {} rounds, of requests or clients a round",
            context.rounds
        ),
        "answered: responses from the signal on; told: clients whose last response said \
         Connection: close; idle: clients that found their connection ended before they sent, and \
         lost nothing"
            .to_owned(),
        "lost: requests sent in whole without a response, by a reset (RST) and by an end in order \
         (FIN); unsent: broken while being sent; a client asks the system whether its connection \
         has ended before it sends, and sends nothing twice"
            .to_owned(),
        format!(
            "still served: clients that the server served on until the load ended \
             {SECONDS_AFTER} s after the signal; ended: from the signal to the end of the process, \
             of the rounds in which it ended before that"
        ),
    ]
    .into()
}

fn servers(context: &Context, directory: &TempDir, notes: &mut Vec<String>) -> Vec<Contestant> {
    let mut servers = vec![
        Contestant::new("greenroom-drain", PATH).named(OURS),
        Contestant::new("axum-drain", PATH).named("axum::serve"),
    ];
    let mut take = |is_here, server: Contestant| {
        if is_here {
            servers.push(server);
        } else {
            notes.push(format!("LEFT OUT, as it is not here: {}", server.name));
        }
    };
    take(
        context.binaries.path(GO_PROGRAM).is_ok(),
        Contestant::new(GO_PROGRAM, PATH).named("Go net/http"),
    );
    let script = stand_in("drain.js").display().to_string();
    take(
        is_installed("node"),
        Contestant::at("node", PATH)
            .arguments([script])
            .named("Node"),
    );
    let nginx = Contestant::at(stand_in("nginx.sh"), PATH)
        .arguments([directory.path().display().to_string()])
        .listening_by("--listen");
    take(is_installed("nginx"), nginx.named(NGINX));
    servers
}

fn stand_in(file: &str) -> PathBuf {
    lab_directory().join("http-bench/standins").join(file)
}

impl Drained {
    fn new(server: &Contestant, load: Load) -> Self {
        Self {
            name: format!("{}, {}", server.name, load.name),
            is_ours: server.name == OURS,
            server: server.clone(),
            load,
        }
    }

    /// nginx ends at once on SIGTERM, and in order on SIGQUIT.
    fn signal(&self) -> &'static str {
        if self.server.name == NGINX {
            "quit"
        } else {
            "term"
        }
    }
}

fn measure(contestant: &Drained, context: &Context) -> anyhow::Result<Outcomes> {
    let server = contestant.server.launch(context)?.start()?;
    let mut posters = pinned(LOAD_CORE, context.binaries.path("posters")?);
    let numbers = [
        ("--connections", CONNECTIONS),
        ("--pause-millis", contestant.load.pause_millis),
        ("--seconds", context.seconds),
        ("--seconds-after", SECONDS_AFTER),
        ("--process", server.pid()),
    ];
    for (flag, number) in numbers {
        posters.args([flag, &number.to_string()]);
    }
    posters.args(["--url", &server.url(contestant.server.path)]);
    posters.args(["--signal", contestant.signal()]);
    let finished = run_program(&mut posters)?;
    serde_json::from_str(&finished.stdout).context("what posters tells")
}

fn render(rows: &[Row<Outcomes>]) -> String {
    let mut out = table([
        "server, load",
        "answered",
        "lost by RST",
        "lost by FIN",
        "unsent",
        "told",
        "idle",
        "other status",
        "still served",
        "ended ms",
    ]);
    for row in rows {
        let spread =
            |value: fn(&Outcomes) -> u64| cell(row.spread(|outcomes| count(value(outcomes))), 0);
        out.add_row([
            row.name.clone(),
            spread(|outcomes| outcomes.answered_after),
            spread(|outcomes| outcomes.lost_by_reset),
            spread(|outcomes| outcomes.lost_by_end + outcomes.unanswered),
            spread(|outcomes| outcomes.unsent),
            spread(|outcomes| outcomes.announced),
            spread(|outcomes| outcomes.ended_idle),
            spread(|outcomes| outcomes.refused),
            spread(|outcomes| outcomes.still_served),
            ended(row),
        ]);
    }
    out.to_string()
}

fn ended(row: &Row<Outcomes>) -> String {
    let ended = row.samples.iter().filter_map(|outcomes| outcomes.ended_ms);
    let count = ended.clone().count();
    let spread = cell(bench_kit::Spread::of(ended), 0);
    if count == row.samples.len() {
        spread
    } else {
        format!("{count} of {}: {spread}", row.samples.len())
    }
}

/// Under one load: nothing lost by a reset, and less in all than by any peer, over all rounds.
fn verdicts(load: Load, contestants: &[Drained], rows: &[Row<Outcomes>]) -> Vec<Verdict> {
    let of_load = || {
        let both = contestants.iter().zip(rows);
        both.filter(|(contestant, _)| contestant.load.name == load.name)
    };
    let sum = |row: &Row<Outcomes>, value: fn(&Outcomes) -> u64| {
        count(row.samples.iter().map(value).sum())
    };
    let ours = of_load().find(|(contestant, _)| contestant.is_ours);
    let ours = ours.map(|(_, row)| row);
    let peers = of_load().filter(|(contestant, _)| !contestant.is_ours);
    let least = peers
        .map(|(_, row)| sum(row, Outcomes::lost))
        .reduce(f64::min);
    let mut verdicts = vec![Verdict::at_most(
        format!("{OURS}, {}: lost by RST in all rounds", load.name),
        ours.map(|row| sum(row, |outcomes| outcomes.lost_by_reset)),
        0.0,
        "",
    )];
    verdicts.extend(least.map(|least| {
        Verdict::at_most(
            format!(
                "{OURS}, {}: lost in all rounds, beside the best peer",
                load.name
            ),
            ours.map(|row| sum(row, Outcomes::lost)),
            least,
            "",
        )
    }));
    verdicts
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn count(number: u64) -> f64 {
    number as f64
}
