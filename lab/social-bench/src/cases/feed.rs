//! The live feed with 5,000 clients, on one replica and on two.

use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use bench_kit::measure::rss_kb;
use bench_kit::rounds::{Row, samples};
use bench_kit::{Report, Verdict, cell, table};
use serde::Serialize;
use tempfile::TempDir;

use super::{Alone, Context, NANOS_PER_MILLI, PERCENT};
use crate::feed::{Board, Crowd, Likers, Received, likes_topic, rate_max};
use crate::site::{Client, Social, Stores, cpu_seconds};

const CLIENTS: usize = 5_000;
/// Step of the clients that read: one of so many of a node; the others only count frames.
const READING_STEP: usize = 25;
/// Likes a second, of all pictures.
const RATE: f64 = 100.0;
/// Seconds of likes, for each of those of the command line.
const SECONDS_FACTOR: u32 = 4;
/// Longest silence before missing events count as lost: the ends of topics are polled every five
/// seconds.
const QUIET_MAX: Duration = Duration::from_secs(7);
/// Time for the server's memory to settle.
const SETTLING: Duration = Duration::from_secs(1);
/// Most of the server's memory for a client, in kB (1,024 bytes).
const CLIENT_KB_MAX: f64 = 12.0;
/// Time during which likes are made as fast as possible, to measure the database.
const TRIAL: Duration = Duration::from_secs(3);
/// Fraction of the trial's rate that is requested from a database that cannot do enough.
const TRIAL_PART: f64 = 0.5;

/// One replica, all of whose clients watch the same pictures.
pub(super) const SAME: Spec = Spec {
    case: "feed",
    pictures: 10,
    watched: 10,
    replicas: 1,
    p99_ms_max: 100.0,
};

/// One replica, each of whose clients watches one picture.
pub(super) const SPREAD: Spec = Spec {
    case: "feed-spread",
    pictures: 100,
    watched: 1,
    ..SAME
};

/// Two replicas: likes are made on one, and delivered by both.
pub(super) const REPLICAS: Spec = Spec {
    case: "feed-replicas",
    replicas: 2,
    p99_ms_max: 150.0,
    ..SAME
};

/// A reading of the goal.
pub(super) struct Spec {
    case: &'static str,
    pictures: usize,
    /// Pictures that a client watches: all of them, or one.
    watched: usize,
    replicas: usize,
    p99_ms_max: f64,
}

/// The servers under test; all end with this value.
enum Site {
    Alone(Alone),
    Replicas {
        replicas: Vec<Social>,
        _stores: Stores,
        _directory: TempDir,
    },
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sample {
    rate: f64,
    made_per_second: f64,
    /// The database's rate in the trial; 0 without one.
    rate_max: f64,
    p50_ms: f64,
    p99_ms: f64,
    longest_ms: f64,
    /// The same p99 on the replica on which the likes are made.
    near_p99_ms: f64,
    events_read: f64,
    missing: f64,
    lost: f64,
    frames_per_second: f64,
    megabytes_per_second: f64,
    idle_kb: f64,
    busy_kb: f64,
    server_cpu_percent: f64,
    driver_cpu_percent: f64,
}

impl Spec {
    pub(super) fn run(&self, context: &Context) -> anyhow::Result<Report> {
        let mut row = Row {
            name: self.name(),
            samples: Vec::new(),
        };
        let rounds = context.long_rounds();
        for round in 0..rounds {
            eprintln!("{}, round {} of {rounds}", self.case, round + 1);
            row.samples.push(self.measure(context)?);
        }
        Ok(Report {
            case: self.case,
            title: format!(
                "{} clients of the feed, {}",
                context.share_of(CLIENTS),
                self.name()
            ),
            notes: self.notes(context, rounds),
            table: render(&row),
            verdicts: self.verdicts(&row),
            samples: samples(&[row]),
        })
    }

    fn name(&self) -> String {
        match (self.replicas, self.watched) {
            (1, 1) => format!("each of one of {} pictures", self.pictures),
            (1, _) => format!("all of the same {} pictures", self.pictures),
            (replicas, _) => format!("half on each of {replicas} replicas"),
        }
    }

    fn notes(&self, context: &Context, rounds: usize) -> Vec<String> {
        let clients = context.share_of(CLIENTS);
        let mut notes = vec![
            format!(
                "medians of {rounds} rounds (least–most), each with servers of its own; {clients} \
                 WebSocket clients in one thread, server and clients on both cores; likes for {} \
                 s, evenly spread over the pictures",
                seconds(context)
            ),
            format!(
                "delivery: from the time at which a like was due to the arrival of its event, \
                in every {READING_STEP}th client, which reads all that it gets; the others count \
                frames. Missing: events that did not come to those, or not in their place"
            ),
            "memory: of the server with the clients, less that without, by the number of clients, \
             in kB of 1,024 bytes; idle: all watch and nothing happens; busy: after the likes"
                .to_owned(),
            "CPU: of one core; the driver's is that of the clients and of those who like"
                .to_owned(),
        ];
        if self.replicas > 1 {
            notes.push(
                "the storage is FerretDB, which stands for MongoDB and is no database to \
                be measured: where it cannot do 100 likes a second, half of what it does in a \
                trial is asked. Likes are made on the first replica; delivery is that of the \
                second, `near` of the first"
                    .to_owned(),
            );
        }
        notes
    }

    fn measure(&self, context: &Context) -> anyhow::Result<Sample> {
        let site = Site::start(context, self.replicas)?;
        let near = Client::new(format!("http://{}", site.replicas()[0].address()))?;
        let pictures = context.add_pictures(&near, "owner", self.pictures)?.ids;
        let user = context.runtime.block_on(near.sign_up("liker"))?;
        let rate_max = match site {
            Site::Alone(_) => 0.0,
            Site::Replicas { .. } => {
                let trial = rate_max(&user, &pictures, TRIAL);
                context.runtime.block_on(trial)?
            }
        };
        let rate = if rate_max > 0.0 {
            RATE.min(rate_max * TRIAL_PART)
        } else {
            RATE
        };
        let before_kb = site.memory_kb()?;
        let clients = context.share_of(CLIENTS);
        let crowd = self.gather(&site, clients, &pictures)?;
        thread::sleep(SETTLING);
        let idle_kb = site.memory_kb()? - before_kb;
        let likes_each = likes_each(rate, seconds(context), self.pictures);
        let board = Arc::new(Board::new(&columns(&crowd, &pictures)?, likes_each));
        let likers = Likers {
            user,
            pictures,
            rate,
            likes_each,
            begins_liked: false,
        };
        let clocks = Clocks::read(&site)?;
        let listening = crowd.listen(Arc::clone(&board), QUIET_MAX);
        let begin = Instant::now();
        let made = context.runtime.block_on(likers.run(&board));
        let lasted = begin.elapsed().as_secs_f64();
        let (crowd, received) = listening.end()?;
        let liked = made?;
        let busy = Clocks::read(&site)?.busy_since(clocks, lasted);
        let busy_kb = site.memory_kb()? - before_kb;
        drop(crowd);
        let measured = received.iter().all(|node| !node.latency.is_empty());
        ensure!(
            measured,
            "no event of a like arrived in a client that reads"
        );
        Ok(Sample::of(
            &received,
            lasted,
            Sample {
                rate,
                made_per_second: count(liked) / lasted,
                rate_max,
                idle_kb: per(idle_kb, clients),
                busy_kb: per(busy_kb, clients),
                server_cpu_percent: busy.servers,
                driver_cpu_percent: busy.driver,
                ..Sample::default()
            },
        ))
    }

    fn gather(&self, site: &Site, clients: usize, pictures: &[String]) -> anyhow::Result<Crowd> {
        let replicas = site.replicas();
        let addresses: Vec<_> = replicas.iter().map(Social::address).collect();
        Crowd::gather(&addresses, clients, READING_STEP, |number| {
            // Shifted once in a round, so that those that read are spread over the pictures too.
            let first = (number + number / pictures.len()) % pictures.len();
            let turns = pictures.iter().cycle().skip(first);
            turns.take(self.watched).map(|id| likes_topic(id)).collect()
        })
    }

    fn verdicts(&self, row: &Row<Sample>) -> Vec<Verdict> {
        let median = |value: fn(&Sample) -> f64| Some(row.spread(value)?.median);
        let most = |value: fn(&Sample) -> f64| Some(row.spread(value)?.max);
        let name = self.name();
        vec![
            Verdict::at_most(
                format!("p99 of delivery, {name}"),
                median(|sample| sample.p99_ms),
                self.p99_ms_max,
                " ms",
            ),
            Verdict::at_most(
                format!("events missing or connections lost in any round, {name}"),
                most(|sample| sample.missing + sample.lost),
                0.0,
                "",
            ),
            Verdict::at_most(
                format!("memory of a client, idle, {name}"),
                median(|sample| sample.idle_kb),
                CLIENT_KB_MAX,
                " kB",
            ),
            Verdict::at_most(
                format!("memory of a client, busy, {name}"),
                median(|sample| sample.busy_kb),
                CLIENT_KB_MAX,
                " kB",
            ),
        ]
    }
}

impl Site {
    fn start(context: &Context, replicas: usize) -> anyhow::Result<Self> {
        if replicas == 1 {
            return context.start_alone("").map(Self::Alone);
        }
        let directory = TempDir::new().context("a directory")?;
        let stores = Stores::start(&context.ferretdb, directory.path())?;
        let started = (0..replicas).map(|number| {
            let name = format!("social-{number}");
            let program = context.social()?;
            Social::start(program, &name, directory.path(), stores.storage(), "")
        });
        Ok(Self::Replicas {
            replicas: started.collect::<anyhow::Result<_>>()?,
            _stores: stores,
            _directory: directory,
        })
    }

    fn replicas(&self) -> &[Social] {
        match self {
            Self::Alone(alone) => std::slice::from_ref(&alone.social),
            Self::Replicas { replicas, .. } => replicas,
        }
    }

    /// Returns the memory of all replicas.
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52 kB")]
    fn memory_kb(&self) -> anyhow::Result<f64> {
        let replicas = self.replicas().iter();
        let all: Vec<u64> = replicas
            .map(|replica| rss_kb(replica.pid()))
            .collect::<anyhow::Result<_>>()?;
        Ok(all.iter().sum::<u64>() as f64)
    }
}

/// CPU time of the servers and of this process, in seconds.
#[derive(Clone, Copy)]
struct Clocks {
    servers: f64,
    driver: f64,
}

impl Clocks {
    fn read(site: &Site) -> anyhow::Result<Self> {
        let servers = site.replicas().iter();
        let each: Vec<f64> = servers
            .map(|server| cpu_seconds(server.pid()))
            .collect::<anyhow::Result<_>>()?;
        Ok(Self {
            servers: each.iter().sum(),
            driver: cpu_seconds(std::process::id())?,
        })
    }

    /// Returns the use since `before`, in per cent of a core.
    fn busy_since(self, before: Self, lasted: f64) -> Self {
        Self {
            servers: (self.servers - before.servers) / lasted * PERCENT,
            driver: (self.driver - before.driver) / lasted * PERCENT,
        }
    }
}

impl Sample {
    /// Adds what the clients got to the values known already.
    #[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
    fn of(received: &[Received], lasted: f64, known: Self) -> Self {
        let sum = |value: fn(&Received) -> u64| received.iter().map(value).sum::<u64>() as f64;
        let millis = |node: &Received, quantile| {
            node.latency.value_at_quantile(quantile) as f64 / NANOS_PER_MILLI
        };
        let far = |quantile| received.last().map_or(0.0, |node| millis(node, quantile));
        Self {
            p50_ms: far(0.5),
            p99_ms: far(0.99),
            longest_ms: far(1.0),
            near_p99_ms: received.first().map_or(0.0, |node| millis(node, 0.99)),
            events_read: sum(|node| node.events),
            missing: sum(|node| node.missing),
            lost: sum(|node| node.lost),
            frames_per_second: sum(|node| node.frames) / lasted,
            megabytes_per_second: sum(|node| node.bytes) / 1e6 / lasted,
            ..known
        }
    }
}

fn seconds(context: &Context) -> u32 {
    context.seconds * SECONDS_FACTOR
}

/// Returns the likes of each picture, at least one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a rate is positive, and its likes are a few thousand"
)]
fn likes_each(rate: f64, seconds: u32, pictures: usize) -> usize {
    let each = rate * f64::from(seconds) / pictures as f64;
    (each as usize).max(1)
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand likes")]
fn count(likes: u64) -> f64 {
    likes as f64
}

#[expect(clippy::cast_precision_loss, reason = "a few thousand clients")]
fn per(kb: f64, clients: usize) -> f64 {
    kb / clients as f64
}

/// Returns the pictures' topics, and the end of each.
fn columns(crowd: &Crowd, pictures: &[String]) -> anyhow::Result<Vec<(String, u64)>> {
    let column = |picture: &String| {
        let topic = likes_topic(picture);
        let end = *crowd.ends.get(&topic).context("a topic without end")?;
        Ok((topic, end))
    };
    pictures.iter().map(column).collect()
}

fn render(row: &Row<Sample>) -> String {
    let mut out = table(["", &row.name]);
    let mut line = |name: &str, value: fn(&Sample) -> f64, digits| {
        out.add_row([name.to_owned(), cell(row.spread(value), digits)]);
    };
    line("likes/s asked", |sample| sample.rate, 0);
    line("likes/s made", |sample| sample.made_per_second, 1);
    line("likes/s in the trial", |sample| sample.rate_max, 0);
    line("delivery p50 ms", |sample| sample.p50_ms, 1);
    line("delivery p99 ms", |sample| sample.p99_ms, 1);
    line("delivery longest ms", |sample| sample.longest_ms, 1);
    line("near delivery p99 ms", |sample| sample.near_p99_ms, 1);
    line("events read", |sample| sample.events_read, 0);
    line("events missing", |sample| sample.missing, 0);
    line("connections lost", |sample| sample.lost, 0);
    line(
        "frames/s of all clients",
        |sample| sample.frames_per_second,
        0,
    );
    line(
        "MB/s of all clients",
        |sample| sample.megabytes_per_second,
        1,
    );
    line("kB a client, idle", |sample| sample.idle_kb, 1);
    line("kB a client, busy", |sample| sample.busy_kb, 1);
    line("CPU of the server %", |sample| sample.server_cpu_percent, 0);
    line("CPU of the driver %", |sample| sample.driver_cpu_percent, 0);
    out.to_string()
}
