//! Opens connections, sends each the same first message of a TLS handshake, and resets it when the
//! server's part has come: work for the server, and next to none for the client.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use http_bench_clients::{Flood, Offer, Target, client_hello};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

/// Time that a connection is waited for, from its begin.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at the schedule.
const TICK: Duration = Duration::from_millis(1);
const PART_BYTES_MAX: usize = 4 * 1024;
/// The content type of handshake messages (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;

#[derive(Debug, Parser)]
struct Options {
    /// <https://127.0.0.1:PORT/PATH>
    #[arg(long)]
    url: Target,
    /// Connections at once; in an open loop the most
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    clients: u32,
    /// Open loop at so many connections a second; else each client opens one after the other
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=200_000))]
    rate: Option<u32>,
    /// Seconds in which connections are opened
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
    /// Cipher suites and key exchange
    #[arg(long, value_enum, default_value_t = Offer::Aes128)]
    offer: Offer,
}

/// The common part of all connections.
struct All {
    target: Target,
    hello: Vec<u8>,
    flood: RefCell<Flood>,
}

enum Outcome {
    Responded,
    Refused,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let flood = LocalSet::new().block_on(&runtime, run(&options))?;
    serde_json::to_writer(io::stdout(), &flood).context("standard output")
}

async fn run(options: &Options) -> anyhow::Result<Flood> {
    let all = Rc::new(All {
        hello: client_hello(options.offer.config()?, &options.url)?,
        target: options.url.clone(),
        flood: RefCell::default(),
    });
    let begin = Instant::now();
    let until = begin + Duration::from_secs(options.seconds);
    match options.rate {
        None => all.closed_loop(options.clients, until).await,
        Some(rate) => {
            let most = usize::try_from(options.clients)?;
            all.open_loop(rate, most, begin, until).await;
        }
    }
    let flood = *all.flood.borrow();
    Ok(flood)
}

impl All {
    /// Has each client open its next connection when its last has ended.
    async fn closed_loop(self: &Rc<Self>, clients: u32, until: Instant) {
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for _ in 0..clients {
            let all = Rc::clone(self);
            tasks.spawn_local(async move {
                while Instant::now() < until {
                    all.connection().await;
                }
            });
        }
        tasks.join_all().await;
        self.flood.borrow_mut().seconds = begin.elapsed().as_secs_f64();
    }

    /// Opens connections by schedule; those that are due while `most` are there are left out.
    async fn open_loop(self: &Rc<Self>, rate: u32, most: usize, begin: Instant, until: Instant) {
        let mut tasks = JoinSet::new();
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < until {
            ticks.tick().await;
            while tasks.try_join_next().is_some() {}
            let due = due(rate, begin.elapsed());
            let new = due.saturating_sub(self.flood.borrow().due);
            self.flood.borrow_mut().due = due;
            for _ in 0..new {
                if tasks.len() == most {
                    break;
                }
                let all = Rc::clone(self);
                tasks.spawn_local(async move { all.connection().await });
            }
        }
        self.flood.borrow_mut().seconds = begin.elapsed().as_secs_f64();
        tasks.join_all().await;
    }

    async fn connection(&self) {
        self.flood.borrow_mut().opened += 1;
        let outcome = timeout(RESPONSE_TIMEOUT, self.exchange()).await;
        let mut flood = self.flood.borrow_mut();
        *match outcome {
            Ok(Ok(Outcome::Responded)) => &mut flood.answered,
            Ok(Ok(Outcome::Refused) | Err(_)) => &mut flood.refused,
            Err(_) => &mut flood.unanswered,
        } += 1;
    }

    async fn exchange(&self) -> io::Result<Outcome> {
        let mut stream = TcpStream::connect(self.target.address).await?;
        // No port is left waiting behind.
        stream.set_zero_linger()?;
        stream.write_all(&self.hello).await?;
        let mut part = [0; PART_BYTES_MAX];
        let read = stream.read(&mut part).await?;
        Ok(if part[..read].first() == Some(&HANDSHAKE) {
            Outcome::Responded
        } else {
            Outcome::Refused
        })
    }
}

/// Returns the connections that a schedule has had by this time.
fn due(rate: u32, elapsed: Duration) -> u64 {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
    u64::from(rate).saturating_mul(micros) / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_is_even() {
        assert_eq!(due(30_000, Duration::ZERO), 0);
        assert_eq!(due(30_000, Duration::from_micros(1_500)), 45);
        assert_eq!(due(1, Duration::from_millis(1_999)), 1);
    }
}
