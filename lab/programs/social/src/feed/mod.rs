//! Clients of the live feed: thousands of cheap ones, or a few that reconnect.

mod crowd;
mod frames;
mod likers;
mod returning;
mod topics;

use std::net::SocketAddrV4;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Args;
use serde_json::{Value, json};
use tokio::time::sleep;

use self::crowd::{Crowd, Received};
use self::likers::{Board, Likers};
pub(crate) use self::returning::{Returned, Returning, ends};
pub(crate) use self::topics::likes_topic;
use crate::api::{Client, Site};
use crate::replicas::{Replicas, own_cpu_seconds};

/// Step of the clients that read: one of so many of a replica; the others only count frames.
const READING_STEP: usize = 25;
/// Time for the server's memory to settle.
const SETTLING: Duration = Duration::from_secs(1);
/// Time during which likes are made as fast as possible, to measure the database.
const TRIAL: Duration = Duration::from_secs(3);
/// Fraction of the trial's rate that is requested from a database that cannot do enough.
const TRIAL_PART: f64 = 0.5;

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The site's process
    #[arg(long)]
    pid: i32,
    #[arg(long)]
    pictures: usize,
    #[arg(long)]
    clients: usize,
    /// Pictures that each client watches; all by default
    #[arg(long)]
    watched: Option<usize>,
    /// Another replica, which every second client uses; the rate is then what the database can do
    #[arg(long)]
    second: Option<SocketAddrV4>,
    #[arg(long)]
    seconds: f64,
    /// Likes a second, of all pictures
    #[arg(long, default_value_t = 100.0)]
    rate: f64,
}

impl Options {
    /// Measures from the time at which each like was due to the arrival of its event; of the
    /// replica whose clients are told by the other one, if there are two.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "numbers far below 2^52, none below 0"
    )]
    pub(crate) async fn run(&self, server: SocketAddrV4) -> anyhow::Result<Value> {
        let replicas = Replicas::of(self.pid)?;
        let client = Client::new(server)?;
        let pictures = Site::fill(&client, self.pictures).await?.pictures;
        let mut likers = Likers {
            user: client.sign_up("liker").await?,
            client,
            pictures,
            rate: self.rate,
        };
        let mut trial = 0.0;
        if self.second.is_some() {
            trial = likers.rate_max(TRIAL).await?;
            likers.rate = self.rate.min(trial * TRIAL_PART);
        }
        let rate = likers.rate;
        let before = replicas.usage()?;
        let mut crowd = self.gather(server, &likers.pictures)?;
        sleep(SETTLING).await;
        let idle = replicas.usage()?;
        let driver = own_cpu_seconds()?;
        let likes_each = (rate * self.seconds / self.pictures as f64).max(1.0);
        let board = Arc::new(Board::new(&crowd.ends, likes_each as u64));
        let likes_are_over = Arc::new(AtomicBool::new(false));
        let listening = thread::spawn({
            let (board, likes_are_over) = (Arc::clone(&board), Arc::clone(&likes_are_over));
            move || {
                let received = crowd.listen(&board, &likes_are_over);
                (crowd, received)
            }
        });
        let begin = Instant::now();
        let made = likers.run(&board).await;
        let lasted = begin.elapsed().as_secs_f64();
        likes_are_over.store(true, Ordering::Release);
        // The clients stay until their memory is measured.
        let (_crowd, received) = listening.join().map_err(|_| anyhow::anyhow!("a panic"))?;
        let made = made? as f64 / lasted;
        let busy = replicas.usage()?;
        let each = |kb: f64| (kb - before.memory_kb) / self.clients as f64;
        let percent = |seconds: f64| 100.0 * seconds / lasted;
        let mut figures = figures(&received?, lasted)?;
        for (name, value) in [
            ("rate", rate),
            ("made_rate", made),
            ("trial_rate", trial),
            ("idle_kb", each(idle.memory_kb)),
            ("busy_kb", each(busy.memory_kb)),
            (
                "server_percent",
                percent(busy.cpu_seconds - idle.cpu_seconds),
            ),
            ("driver_percent", percent(own_cpu_seconds()? - driver)),
        ] {
            figures[name] = json!(value);
        }
        Ok(figures)
    }

    fn gather(&self, server: SocketAddrV4, pictures: &[String]) -> anyhow::Result<Crowd> {
        let addresses = [Some(server), self.second].into_iter().flatten();
        let addresses: Vec<_> = addresses.collect();
        Crowd::gather(&addresses, self.clients, READING_STEP, |number| {
            // Shifted once in a round, so that those that read are spread over the pictures too.
            let first = (number + number / pictures.len()) % pictures.len();
            let turns = pictures.iter().cycle().skip(first);
            let watched = self.watched.unwrap_or(pictures.len());
            turns.take(watched).map(|id| likes_topic(id)).collect()
        })
    }
}

/// Returns what the clients got, replica by replica.
#[expect(clippy::cast_precision_loss, reason = "numbers far below 2^52")]
fn figures(received: &[Received], lasted: f64) -> anyhow::Result<Value> {
    let (near, far) = received
        .first()
        .zip(received.last())
        .context("no clients")?;
    ensure!(
        received.iter().all(|node| !node.latency.is_empty()),
        "no event of a like arrived in a client that reads"
    );
    let sum = |value: fn(&Received) -> u64| received.iter().map(value).sum::<u64>() as f64;
    let millis = |node: &Received, part| node.latency.quantile(part).as_secs_f64() * 1e3;
    Ok(json!({
        "p50_ms": millis(far, 0.5),
        "p99_ms": millis(far, 0.99),
        "max_ms": millis(far, 1.0),
        "near_p99_ms": millis(near, 0.99),
        "events": sum(|node| node.events),
        "missing": sum(|node| node.missing),
        "lost": sum(|node| node.lost),
        "frames_rate": sum(|node| node.frames) / lasted,
        "mb_rate": sum(|node| node.bytes) / 1e6 / lasted,
    }))
}
