//! The timeline while large pictures are uploaded.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context as _;
use bench_kit::rounds::{AGAIN, Row, samples};
use bench_kit::tools::GreenroomReport;
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;
use tokio::task::JoinSet;

use super::{Alone, Context, Pictures};
use crate::load::Load;
use crate::site::large_jpeg;

const UPLOADS: usize = 50;
/// Reads of the timeline a second.
const RATE: &str = "200";
const P99_MS_MAX: f64 = 25.0;
/// Longest load: longer than the uploads take; the load ends with them.
const LOAD_MAX: &str = "10m";
/// Time of reading the timeline before the uploads begin.
const HEAD_START: Duration = Duration::from_millis(500);
/// The status of a rejection by an overloaded server.
const REJECTED: u16 = 503;
/// Pictures that are there already.
const PICTURES: usize = 60;

#[derive(Clone, Copy, Debug, Serialize)]
struct Sample {
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    own_delay_ms: f64,
    /// Responses with 503; they count as failed too.
    refused: f64,
    failed: f64,
    /// Time until the response to the last picture; 0 without uploads.
    upload_seconds: f64,
    refused_uploads: f64,
}

pub(super) fn run(context: &Context) -> anyhow::Result<Report> {
    let jpeg: Arc<[u8]> = large_jpeg()?.into();
    let row = |name: String| Row {
        name,
        samples: Vec::new(),
    };
    let mut rows = [
        row("no uploads".to_owned()),
        row(format!("{} uploads", context.share_of(UPLOADS))),
        row(format!("no uploads{AGAIN}")),
    ];
    let rounds = context.long_rounds();
    for round in 0..rounds {
        eprintln!("uploads, round {} of {rounds}", round + 1);
        let site = context.start_alone("")?;
        let pictures = context.add_pictures(&site.client, "owner", PICTURES)?;
        rows[0].samples.push(without(context, &site)?);
        rows[1]
            .samples
            .push(with(context, &site, &pictures, &jpeg)?);
        rows[2].samples.push(without(context, &site)?);
    }
    Ok(Report {
        case: "uploads",
        title: format!(
            "the timeline while {} pictures of 12 megapixels are uploaded at once",
            context.share_of(UPLOADS)
        ),
        notes: vec![
            format!(
                "medians of {rounds} rounds (least–most), each with a server of its own; GET \
                /api/timeline {RATE} times a second in an open loop, from {HEAD_START:?} before \
                the uploads to their end; server and load on both cores, all of the same priority"
            ),
            format!(
                "a JPEG of 4000 x 3000 pixels and {:.1} MB, once in each of {} requests that \
                are sent at once; the server makes three smaller pictures of each",
                megabytes(jpeg.len()),
                context.share_of(UPLOADS)
            ),
            "latencies are those of responses with 200; failed: other responses, and none"
                .to_owned(),
            "own delay: how late the load generator was by itself, p99: the uploads take both \
             cores from it too"
                .to_owned(),
        ],
        table: render(&rows),
        verdicts: verdicts(&rows[1]).into(),
        samples: samples(&rows),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a few megabytes")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn timeline(context: &Context, site: &Alone) -> anyhow::Result<Load> {
    let load = context.load()?.flags(["-k", "-l", "--rate", RATE]);
    Ok(load.flags([site.social.url("/api/timeline")]))
}

fn without(context: &Context, site: &Alone) -> anyhow::Result<Sample> {
    let seconds = context.seconds.to_string();
    let report = timeline(context, site)?.flags(["-t", &seconds]).run()?;
    Ok(Sample::of(&report))
}

fn with(
    context: &Context,
    site: &Alone,
    pictures: &Pictures,
    jpeg: &Arc<[u8]>,
) -> anyhow::Result<Sample> {
    let load = timeline(context, site)?.flags(["-t", LOAD_MAX]).start()?;
    thread::sleep(HEAD_START);
    let begin = Instant::now();
    let refused = context
        .runtime
        .block_on(upload(pictures, jpeg, context.share_of(UPLOADS)))?;
    let upload_seconds = begin.elapsed().as_secs_f64();
    let report = load.interrupt()?;
    Ok(Sample {
        upload_seconds,
        refused_uploads: refused,
        ..Sample::of(&report)
    })
}

/// Uploads pictures; returns the number that failed.
async fn upload(pictures: &Pictures, jpeg: &Arc<[u8]>, count: usize) -> anyhow::Result<f64> {
    let mut uploads = JoinSet::new();
    for _ in 0..count {
        let (owner, album, jpeg) = (
            pictures.owner.clone(),
            pictures.album.clone(),
            Arc::clone(jpeg),
        );
        uploads.spawn(async move { owner.add_large(&album, &jpeg).await });
    }
    let mut failed = 0.0;
    while let Some(ended) = uploads.join_next().await {
        if let Err(error) = ended.context("a task")? {
            eprintln!("{error:#}");
            failed += 1.0;
        }
    }
    Ok(failed)
}

impl Sample {
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^52")]
    fn of(report: &GreenroomReport) -> Self {
        let stream = &report.streams()[0];
        let latency = stream.good_latency();
        Self {
            p50_ms: latency.p50_ms,
            p99_ms: latency.p99_ms,
            longest_ms: latency.max_ms,
            own_delay_ms: report.lag().p99_ms,
            refused: stream.with_status(REJECTED) as f64,
            failed: report.requests().answered.saturating_sub(report.good()) as f64
                + stream.failed(&["timeout", "reset", "closed-early", "refused"]) as f64,
            upload_seconds: 0.0,
            refused_uploads: 0.0,
        }
    }
}

fn verdicts(row: &Row<Sample>) -> [Verdict; 2] {
    let median = |value: fn(&Sample) -> f64| Some(row.spread(value)?.median);
    let failed = row.spread(|sample| sample.failed + sample.refused_uploads);
    [
        Verdict::at_most(
            "p99 of the timeline during the uploads",
            median(|sample| sample.p99_ms),
            P99_MS_MAX,
            " ms",
        ),
        Verdict::at_most(
            "reads and uploads that failed in any round",
            failed.map(|failed| failed.max),
            0.0,
            "",
        ),
    ]
}

fn render(rows: &[Row<Sample>]) -> String {
    let mut out = table([
        "meanwhile",
        "p50 ms",
        "p99 ms",
        "longest ms",
        "own delay ms",
        "failed",
        "of which 503",
        "uploads took s",
        "uploads refused",
    ]);
    for row in rows {
        let spread = |value: fn(&Sample) -> f64, digits| cell(row.spread(value), digits);
        out.add_row([
            row.name.clone(),
            spread(|sample| sample.p50_ms, 2),
            spread(|sample| sample.p99_ms, 2),
            spread(|sample| sample.longest_ms, 2),
            spread(|sample| sample.own_delay_ms, 2),
            spread(|sample| sample.failed, 0),
            spread(|sample| sample.refused, 0),
            spread(|sample| sample.upload_seconds, 1),
            spread(|sample| sample.refused_uploads, 0),
        ]);
    }
    out.to_string()
}
