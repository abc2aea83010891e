//! Loads of requests by greenroom-load.

use std::fmt::Write as _;
use std::net::SocketAddrV4;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use clap::Args;
use greenroom_load::plan::{End, Pace, Paths, Plan, Schedule, StreamPlan};
use greenroom_load::record::Times;
use greenroom_load::run::{Measurement, Stop, run};
use serde_json::{Value, json};

use crate::api::{Site, User};

const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct Likes {
    file: PathBuf,
    /// The first of its users who like, counted from 0
    #[arg(long)]
    first: usize,
    /// Number of those who like; each is a thread, as a stream of requests has one cookie
    #[arg(long, default_value_t = 4)]
    users: usize,
    /// Connections of each
    #[arg(long)]
    connections: u32,
    /// Likes a second of all; without it each connection goes on after each response
    #[arg(long)]
    rate: Option<f64>,
}

impl Likes {
    /// Makes the likes. Each user begins with another picture.
    pub(crate) fn run(&self, server: SocketAddrV4) -> anyhow::Result<Value> {
        let site = Site::read(&self.file)?;
        let users = site.likers.get(self.first..self.first + self.users);
        let users = users.context("the file has not so many users")?;
        let streams = users.iter().enumerate().map(|(number, user)| {
            let begin = number * site.pictures.len() / users.len();
            self.stream(server, &site.pictures, begin, user)
        });
        figures(&make(
            streams.collect::<anyhow::Result<_>>()?,
            &Stop::default(),
        )?)
    }

    #[expect(clippy::cast_precision_loss, reason = "a few thousand pictures")]
    fn stream(
        &self,
        server: SocketAddrV4,
        pictures: &[String],
        begin: usize,
        user: &User,
    ) -> anyhow::Result<StreamPlan> {
        let (before, behind) = pictures.split_at(begin);
        let mut urls = String::new();
        for id in behind.iter().chain(before) {
            writeln!(urls, "http://{server}/api/pictures/{id}/like")?;
        }
        let (target, paths) = Paths::read(urls.as_bytes())?;
        let mut stream = StreamPlan::new(target);
        stream.paths = Some(Arc::new(paths));
        "PUT".clone_into(&mut stream.request.method);
        stream.request.fields = user.fields().into();
        stream.keep_alive = true;
        stream.variable_length = true;
        stream.connections = self.connections;
        match self.rate.map(|rate| rate / self.users as f64) {
            None => {
                stream.end = End {
                    requests: Some(pictures.len() as u64),
                    duration: None,
                }
            }
            Some(rate) => {
                let lasting = Duration::from_secs_f64(pictures.len() as f64 / rate);
                stream.pace = Pace::Open(Schedule::constant(rate, lasting)?);
            }
        }
        Ok(stream)
    }
}

/// Makes load until it ends, or until it is stopped.
pub(crate) fn make(streams: Vec<StreamPlan>, stop: &Stop) -> anyhow::Result<Measurement> {
    let plan = Plan {
        streams,
        interval: INTERVAL,
    };
    Ok(run(&plan, None, stop, &mut |_| ())?)
}

/// Returns the figures of all streams together, named as those of the lab; of latencies the worst
/// stream's. What was under way when the load was stopped does not count.
#[expect(clippy::cast_precision_loss, reason = "counts of requests")]
pub(crate) fn figures(measurement: &Measurement) -> anyhow::Result<Value> {
    let streams = &measurement.streams;
    let tallies = || streams.iter().map(|stream| &stream.tally);
    let ok: u64 = tallies().map(|tally| tally.good.count()).sum();
    ensure!(ok > 0, "no request got a good response");
    let asked = tallies().map(|tally| tally.counts.due.max(tally.counts.sent));
    let unfinished: u64 = streams.iter().map(|stream| stream.unfinished).sum();
    let rejected: u64 = tallies().map(|tally| tally.bad.count()).sum();
    let worst = |value: &dyn Fn(&Times) -> Duration| {
        let all = tallies().map(|tally| value(&tally.good).as_secs_f64() * 1e3);
        all.fold(0.0, f64::max)
    };
    let late = tallies().map(|tally| tally.lag.quantile(0.99).as_secs_f64() * 1e3);
    let elapsed = streams.iter().map(|stream| stream.elapsed);
    let seconds = elapsed.max().unwrap_or_default().as_secs_f64();
    Ok(json!({
        "ok": ok,
        "ok_rate": ok as f64 / seconds.max(1e-9),
        "ok_p50_ms": worst(&|good| good.quantile(0.5)),
        "ok_p99_ms": worst(&|good| good.quantile(0.99)),
        "ok_max_ms": worst(&|good| good.max()),
        "late_p99_ms": late.fold(0.0, f64::max),
        "rejected": rejected,
        "failed": asked.sum::<u64>().saturating_sub(ok + rejected + unfinished),
    }))
}
