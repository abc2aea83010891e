//! Likes with the embedded storage, each of which is durable before its response.

use std::iter;
use std::path::Path;

use bench_kit::rounds::{Row, samples};
use bench_kit::tools::GreenroomReport;
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;
use tokio::task::JoinSet;

use super::{Alone, Context, Pictures};
use crate::load::{Load, Running};
use crate::site::{Client, User, cpu_seconds};

/// Load generators. Each has one user's cookie, so several make load at once.
const STREAMS: usize = 4;
const PICTURES: usize = 5_000;
/// Connections of all streams together.
const CONNECTIONS: usize = 64;
/// Likes a second of the open loop, and what the closed one must reach.
const RATE: usize = 5_000;
const P99_MS_MAX: f64 = 50.0;
/// Concurrent reads of counts.
const READERS: usize = 16;

/// The result of one round, in which each user has liked each picture once.
#[derive(Clone, Debug, Serialize)]
struct Sample {
    closed_per_second: f64,
    closed_p99_ms: f64,
    cpu_us: f64,
    open_per_second: f64,
    open_p50_ms: f64,
    open_p99_ms: f64,
    open_longest_ms: f64,
    late_by_generator_ms: f64,
    refused: f64,
    acknowledged: u64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let site = context.start_alone("")?;
    let pictures = context.add_pictures(&site.client, "owner", context.share_of(PICTURES))?;
    let mut row = Row {
        name: "SQLite".to_owned(),
        samples: Vec::new(),
    };
    for round in 0..context.rounds {
        eprintln!("likes, round {} of {}", round + 1, context.rounds);
        row.samples.push(measure(context, &site, &pictures, round)?);
    }
    let acknowledged: u64 = row.samples.iter().map(|sample| sample.acknowledged).sum();
    let counted = counted(context, &site.client, &pictures.ids)?;
    Ok(Report {
        case: "likes",
        title: "durable likes with the embedded storage".to_owned(),
        notes: notes(context, &site, &pictures, acknowledged, counted),
        table: render(&row),
        verdicts: verdicts(&row, acknowledged, counted).into(),
        samples: samples(&[row]),
    })
}

fn notes(
    context: &Context,
    site: &Alone,
    pictures: &Pictures,
    acknowledged: u64,
    counted: u64,
) -> Vec<String> {
    vec![
        format!(
            "medians of {} rounds (least–most); in each, {STREAMS} users like {} pictures in a \
             closed loop on {CONNECTIONS} connections, and {STREAMS} others at {RATE}/s, one load \
             generator a user; server and load on both cores",
            context.rounds,
            pictures.ids.len()
        ),
        "each like is new: a record, an event in the log of the picture's likes, one on the \
         owner's bell, and a task of the outbox, in one transaction; the response comes when \
         that is on the disk"
            .to_owned(),
        "latencies are those of responses with 200, and of several generators the worst is \
         reported; own delay: how late the generators were by themselves, p99"
            .to_owned(),
        format!(
            "{acknowledged} likes were acknowledged, and the pictures count {counted}; the \
            database has {:.0} MiB then, on {}",
            site.database_mib(),
            file_system(site.directory.path())
        ),
    ]
}

fn measure(
    context: &Context,
    site: &Alone,
    pictures: &Pictures,
    round: usize,
) -> anyhow::Result<Sample> {
    let users = context.runtime.block_on(sign_up(&site.client, round))?;
    let (first, others) = users.split_at(STREAMS);
    let before = cpu_seconds(site.social.pid())?;
    let closed = Summary::of(&make(context, site, pictures, first, closed)?);
    let used = cpu_seconds(site.social.pid())? - before;
    let open = Summary::of(&make(context, site, pictures, others, open)?);
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    let cpu_us = used * 1e6 / closed.good.max(1) as f64;
    Ok(Sample {
        closed_per_second: closed.per_second,
        closed_p99_ms: closed.p99_ms,
        cpu_us,
        open_per_second: open.per_second,
        open_p50_ms: open.p50_ms,
        open_p99_ms: open.p99_ms,
        open_longest_ms: open.longest_ms,
        late_by_generator_ms: open.lag_ms,
        refused: closed.bad + open.bad,
        acknowledged: closed.good + open.good,
    })
}

async fn sign_up(client: &Client, round: usize) -> anyhow::Result<Vec<User>> {
    let mut users = Vec::new();
    for number in 0..2 * STREAMS {
        users.push(client.sign_up(&format!("liker-{round}-{number}")).await?);
    }
    Ok(users)
}

/// Makes the likes. Each user likes all pictures, beginning with another one.
fn make(
    context: &Context,
    site: &Alone,
    pictures: &Pictures,
    users: &[User],
    pace: fn(Load, usize) -> Load,
) -> anyhow::Result<Vec<GreenroomReport>> {
    let count = pictures.ids.len();
    let mut running = Vec::new();
    for (number, user) in users.iter().enumerate() {
        let (before, behind) = pictures.ids.split_at(number * count / users.len());
        let order = behind.iter().chain(before);
        let urls = order.map(|id| site.social.url(&format!("/api/pictures/{id}/like")));
        let load = pace(context.load()?, count)
            .flags(["-m", "PUT", "-C", &user.cookie, "-H"])
            .flags(iter::once(format!("x-csrf-token: {}", user.csrf)))
            .urls(urls)?;
        running.push(load.start()?);
    }
    running.into_iter().map(Running::finish).collect()
}

fn closed(load: Load, count: usize) -> Load {
    let connections = (CONNECTIONS / STREAMS).to_string();
    load.flags(["-k", "-c", &connections, "-n", &count.to_string()])
}

fn open(load: Load, count: usize) -> Load {
    let rate = RATE / STREAMS;
    let millis = count * 1_000 / rate;
    let connections = CONNECTIONS.to_string();
    load.flags(["-k", "-c", &connections, "--rate", &rate.to_string()])
        .flags(["-t", &format!("{millis}ms")])
}

/// The reports of several generators, summed up.
struct Summary {
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    lag_ms: f64,
    good: u64,
    bad: f64,
}

impl Summary {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(reports: &[GreenroomReport]) -> Self {
        let most =
            |value: fn(&GreenroomReport) -> f64| reports.iter().map(value).fold(0.0, f64::max);
        let good: u64 = reports.iter().map(GreenroomReport::good).sum();
        let asked = |report: &GreenroomReport| report.requests().due.max(report.requests().sent);
        let asked: u64 = reports.iter().map(asked).sum();
        Self {
            per_second: good as f64 / most(|report| report.elapsed_seconds).max(f64::MIN_POSITIVE),
            p50_ms: most(|report| report.streams()[0].good_latency().p50_ms),
            p99_ms: most(|report| report.streams()[0].good_latency().p99_ms),
            longest_ms: most(|report| report.streams()[0].good_latency().max_ms),
            lag_ms: most(|report| report.lag().p99_ms),
            good,
            bad: asked.saturating_sub(good) as f64,
        }
    }
}

/// Returns the likes of all pictures together.
fn counted(context: &Context, client: &Client, pictures: &[String]) -> anyhow::Result<u64> {
    context.runtime.block_on(async {
        let mut readers = JoinSet::new();
        for part in pictures.chunks(pictures.len().div_ceil(READERS).max(1)) {
            let (client, part) = (client.clone(), part.to_vec());
            readers.spawn(async move { sum(&client, &part).await });
        }
        let mut all = 0;
        while let Some(read) = readers.join_next().await {
            all += read??;
        }
        Ok(all)
    })
}

async fn sum(client: &Client, pictures: &[String]) -> anyhow::Result<u64> {
    let mut sum = 0;
    for picture in pictures {
        sum += client.likes(picture).await?;
    }
    Ok(sum)
}

fn file_system(directory: &Path) -> String {
    rustix::fs::statfs(directory).map_or_else(
        |_| "an unknown file system".to_owned(),
        |status| match status.f_type {
            0xef53 => "ext4".to_owned(),
            0x0102_1994 => "tmpfs: NOT durable".to_owned(),
            other => format!("a file system of type {other:#x}"),
        },
    )
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
fn verdicts(row: &Row<Sample>, acknowledged: u64, counted: u64) -> [Verdict; 5] {
    let median = |value: fn(&Sample) -> f64| Some(row.spread(value)?.median);
    let most = |value: fn(&Sample) -> f64| Some(row.spread(value)?.max);
    let difference = acknowledged.abs_diff(counted) as f64;
    [
        Verdict::at_least(
            "likes, closed loop",
            median(|sample| sample.closed_per_second),
            RATE as f64,
            "/s",
        ),
        Verdict::at_most(
            "p99 of likes, closed loop",
            median(|sample| sample.closed_p99_ms),
            P99_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            "p99 of likes at 5,000/s",
            median(|sample| sample.open_p99_ms),
            P99_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            "likes refused, failed or never sent in any round",
            most(|sample| sample.refused),
            0.0,
            "",
        ),
        Verdict::at_most(
            "likes acknowledged and not counted, or counted twice",
            Some(difference),
            0.0,
            "",
        ),
    ]
}

fn render(row: &Row<Sample>) -> String {
    let mut out = table([
        "storage",
        "closed, likes/s",
        "p99 ms",
        "CPU us/like",
        "at 5,000/s: likes/s",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "own delay ms",
        "not acknowledged",
    ]);
    let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
    out.add_row([
        row.name.clone(),
        spread(|sample| sample.closed_per_second, 0),
        spread(|sample| sample.closed_p99_ms, 1),
        spread(|sample| sample.cpu_us, 0),
        spread(|sample| sample.open_per_second, 0),
        spread(|sample| sample.open_p50_ms, 1),
        spread(|sample| sample.open_p99_ms, 1),
        spread(|sample| sample.open_longest_ms, 1),
        spread(|sample| sample.late_by_generator_ms, 2),
        spread(|sample| sample.refused, 0),
    ]);
    out.to_string()
}
