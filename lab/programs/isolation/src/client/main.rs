//! Clients that the lab's own loads are not: who come again when they are rejected, who come in
//! waves, and who look into a server. Each prints one JSON object.

mod http;
mod torrents;

use std::net::{Ipv4Addr, SocketAddrV4};
use std::time::Duration;

use anyhow::Context;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::http::Client;

/// Requests, one after the other, of which the shortest counts: other programs do not shorten it.
const CALIBRATION_REQUESTS: usize = 15;
/// Each begins with the number that the one before found.
const CALIBRATION_STEPS: usize = 4;
/// The least and the largest number that every server accepts.
const N: (f64, f64) = (10.0, 100_000.0);

/// The flood has filled the queue by then.
const PROBE_AFTER: Duration = Duration::from_millis(1_200);
const PROBE_PAUSE: Duration = Duration::from_millis(200);
/// Few, for each that is let in takes another's place.
const PROBES: usize = 4;

/// A server is quiet when so many single requests in a row get their responses within this time.
const QUIET_REQUESTS: usize = 5;
const QUIET_WITHIN: Duration = Duration::from_millis(20);
const QUIET_PAUSE: Duration = Duration::from_millis(50);
const QUIET_AFTER_MAX: Duration = Duration::from_secs(10);

#[derive(Debug, Parser)]
struct Options {
    server: SocketAddrV4,
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Finds the /fib/N that computes for so long on the idle server, and the /page/N
    Calibrate { millis: f64, page_millis: f64 },
    /// Clients in closed loops, each again 10 ms after a rejection
    Flood(Crowd),
    /// Clients who ask all at once, and again when all have their responses; 0 s is one wave
    Waves(Crowd),
    /// Asks in the midst of a flood, and looks whether a rejection tells when to come again
    Probe { path: String },
    /// Waits until /hello responds quickly again
    Quiet,
    /// Long bodies of clients that are as fast as the server
    Torrents(torrents::Torrents),
    /// Reads /greenroom/status
    Status { route: String },
}

#[derive(Debug, Parser)]
struct Crowd {
    path: String,
    #[arg(long)]
    clients: u8,
    /// Addresses that they come from, in turn
    #[arg(long)]
    addresses: u8,
    #[arg(long)]
    seconds: f64,
    /// Seconds after which a client gives up
    #[arg(long, default_value_t = 2.0)]
    patience: f64,
    #[arg(long, default_value_t = 10)]
    again_after_millis: u64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let Options { server, what } = Options::parse();
    let figures = match what {
        What::Calibrate {
            millis,
            page_millis,
        } => calibrate(server, millis, page_millis).await?,
        What::Flood(crowd) => crowd.flood(server).await,
        What::Waves(crowd) => crowd.waves(server).await,
        What::Probe { path } => probe(server, &path).await,
        What::Quiet => json!({ "quiet": u8::from(is_quiet_in_time(server).await) }),
        What::Torrents(torrents) => torrents.run(server).await?,
        What::Status { route } => status(server, &route).await,
    };
    println!("{figures}");
    Ok(())
}

async fn calibrate(server: SocketAddrV4, millis: f64, page_millis: f64) -> anyhow::Result<Value> {
    let (mut n, mut alone) = (10_000.0, f64::NAN);
    for step in 0..CALIBRATION_STEPS {
        if step > 0 {
            n = n_for(n, alone, millis);
        }
        alone = f64::INFINITY;
        for _ in 0..CALIBRATION_REQUESTS {
            // On a kept connection the kernel's delayed acknowledgment would count, too.
            let mut client = Client::new(Ipv4Addr::LOCALHOST, server, Duration::from_secs(30));
            let begin = Instant::now();
            client.ask(&format!("/fib/{n}")).await.context("/fib")?;
            alone = alone.min(begin.elapsed().as_secs_f64() * 1e3);
        }
    }
    Ok(json!({ "n": n, "alone_ms": alone, "page_n": n_for(n, alone, page_millis) }))
}

/// As many additions of numbers with as many digits: the time grows with the square.
fn n_for(n: f64, alone: f64, millis: f64) -> f64 {
    (n * (millis / alone).sqrt()).clamp(N.0, N.1).round()
}

#[derive(Debug, Default)]
struct Counts {
    ok: u32,
    rejected: u32,
    failed: u32,
}

impl Counts {
    /// Counts the outcome of a request; returns true if it was a good one.
    async fn ask(&mut self, client: &mut Client, path: &str) -> bool {
        let status = client.ask(path).await.map(|response| response.status);
        match status {
            Ok(200) => self.ok += 1,
            Ok(503) => self.rejected += 1,
            Ok(_) | Err(_) => self.failed += 1,
        }
        matches!(status, Ok(200))
    }

    fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        all.into_iter().fold(Self::default(), |sum, one| Self {
            ok: sum.ok + one.ok,
            rejected: sum.rejected + one.rejected,
            failed: sum.failed + one.failed,
        })
    }
}

impl Crowd {
    async fn flood(self, server: SocketAddrV4) -> Value {
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        let pause = Duration::from_millis(self.again_after_millis);
        let mut clients = JoinSet::new();
        for (mut client, path) in self.clients(server) {
            clients.spawn(async move {
                let mut counts = Counts::default();
                while Instant::now() < until {
                    // What is under way at the end is given up, and not counted.
                    match timeout_at(until, counts.ask(&mut client, &path)).await {
                        Ok(true) => {}
                        Ok(false) => sleep(pause).await,
                        Err(_) => break,
                    }
                }
                counts
            });
        }
        let counts = Counts::sum(clients.join_all().await);
        let rate = |count: u32| f64::from(count) / self.seconds;
        json!({
            "ok_rate": rate(counts.ok),
            "rejected_rate": rate(counts.rejected),
            "failed_rate": rate(counts.failed),
        })
    }

    async fn waves(self, server: SocketAddrV4) -> Value {
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        let (mut waves, mut longest_ms, mut all) = (0, 0.0_f64, Vec::new());
        while waves == 0 || Instant::now() < until {
            let begin = Instant::now();
            let mut clients = JoinSet::new();
            for (mut client, path) in self.clients(server) {
                clients.spawn(async move {
                    let mut counts = Counts::default();
                    counts.ask(&mut client, &path).await;
                    counts
                });
            }
            all.extend(clients.join_all().await);
            longest_ms = longest_ms.max(begin.elapsed().as_secs_f64() * 1e3);
            waves += 1;
        }
        let Counts {
            ok,
            rejected,
            failed,
        } = Counts::sum(all);
        let turned_away = f64::from(rejected + failed) / f64::from(ok + rejected + failed);
        json!({
            "waves": waves, "ok": ok, "rejected": rejected, "failed": failed,
            "turned_away": rejected + failed, "turned_away_percent": 100.0 * turned_away,
            "longest_ms": longest_ms,
        })
    }

    /// Returns the clients, each with its path; of 127.0.1.0, where no other load comes from.
    fn clients(&self, server: SocketAddrV4) -> impl Iterator<Item = (Client, String)> {
        let patience = Duration::from_secs_f64(self.patience);
        let client = move |number| {
            let source = Ipv4Addr::new(127, 0, 1, 1 + number % self.addresses.max(1));
            (Client::new(source, server, patience), self.path.clone())
        };
        (0..self.clients).map(client)
    }
}

async fn probe(server: SocketAddrV4, path: &str) -> Value {
    let (mut rejected, mut told) = (0, 0);
    sleep(PROBE_AFTER).await;
    for _ in 0..PROBES {
        let mut client = Client::new(Ipv4Addr::LOCALHOST, server, Duration::from_secs(5));
        if let Ok(response) = client.ask(path).await
            && response.status == 503
        {
            rejected += 1;
            let seconds = response.field("retry-after").map(str::parse::<u64>);
            told += u32::from(matches!(seconds, Some(Ok(1..))));
        }
        sleep(PROBE_PAUSE).await;
    }
    match rejected {
        0 => json!({ "rejected": 0 }),
        _ => json!({ "rejected": rejected, "told_percent": f64::from(told * 100 / rejected) }),
    }
}

async fn is_quiet_in_time(server: SocketAddrV4) -> bool {
    let deadline = Instant::now() + QUIET_AFTER_MAX;
    let mut quick = 0;
    while quick < QUIET_REQUESTS {
        let begin = Instant::now();
        let mut client = Client::new(Ipv4Addr::LOCALHOST, server, QUIET_AFTER_MAX);
        let is_ok = client
            .ask("/hello")
            .await
            .is_ok_and(|response| response.status == 200);
        let is_quick = begin.elapsed() <= QUIET_WITHIN && is_ok;
        quick = if is_quick { quick + 1 } else { 0 };
        if Instant::now() > deadline {
            return false;
        }
        sleep(QUIET_PAUSE).await;
    }
    true
}

/// Returns what a server with stages says of itself; nothing of another.
async fn status(server: SocketAddrV4, route: &str) -> Value {
    let mut client = Client::new(Ipv4Addr::LOCALHOST, server, Duration::from_secs(5));
    let response = client.ask("/greenroom/status").await;
    let body = response.map(|response| response.body).unwrap_or_default();
    let status: Value = serde_json::from_slice(&body).unwrap_or_default();
    let stages = status["stages"].as_array().cloned().unwrap_or_default();
    let routes = status["routes"].as_array().cloned().unwrap_or_default();
    let mut figures = json!({});
    if !stages.is_empty() {
        let late = stages
            .iter()
            .filter_map(|stage| stage["sheds"]["late"].as_u64());
        figures["late"] = late.sum::<u64>().into();
    }
    if let Some(route) = routes.iter().find(|one| {
        one["method"] == "GET"
            && one["path"]
                .as_str()
                .is_some_and(|path| path.starts_with(route))
    }) {
        figures["moves"] = route["moves"].clone();
        figures["stalls"] = route["stalls"].clone();
        figures["inline"] = u8::from(route["placed"] == "auto_inline").into();
        figures["staged"] = u8::from(route["placed"] == "auto_staged").into();
    }
    figures
}
