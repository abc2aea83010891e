//! A flood of handshakes: each connection sends the same first message of TLS, and is reset when
//! the server's part has come. That is work for the server, and next to none for the client.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use rustls::ClientConnection;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::Target;
use crate::tls::{Offer, server_name};

/// Time that a connection is waited for, from its begin.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Time between two looks at the schedule.
const TICK: Duration = Duration::from_millis(1);
const PART_BYTES_MAX: usize = 4 * 1024;
/// The content type of handshake messages (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
const RATE_MAX: f64 = 200_000.0;

#[derive(Debug, Parser)]
pub(crate) struct Options {
    #[command(flatten)]
    target: Target,
    /// Connections at once; in an open loop the most
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=15_000))]
    clients: u32,
    /// Open loop at so many connections a second; else each client opens one after the other
    #[arg(long)]
    rate: Option<f64>,
    /// Factor of the rate; 0 is no flood at all
    #[arg(long, default_value_t = 1.0)]
    times: f64,
    /// Milliseconds before the first
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u64).range(..=10_000))]
    calm: u64,
    /// Seconds in which connections are opened
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=30))]
    seconds: u64,
}

struct All {
    target: Target,
    hello: Vec<u8>,
    counts: RefCell<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    opened: u32,
    answered: u32,
    /// Ended by the server instead.
    refused: u32,
    /// Nothing came in time.
    unanswered: u32,
}

pub(crate) async fn run(options: &Options) -> anyhow::Result<Value> {
    let all = Rc::new(All {
        hello: first_message(&options.target)?,
        target: options.target.clone(),
        counts: RefCell::default(),
    });
    sleep(Duration::from_millis(options.calm)).await;
    let begin = Instant::now();
    let until = begin + Duration::from_secs(options.seconds);
    let mut tasks = JoinSet::new();
    match options.rate.map(|rate| rate * options.times) {
        None => {
            for _ in 0..options.clients {
                tasks.spawn_local(Rc::clone(&all).closed_loop(until));
            }
        }
        Some(rate) if rate > 0.0 => {
            let most = usize::try_from(options.clients)?;
            let rate = rate.min(RATE_MAX);
            all.open_loop(rate, most, until, &mut tasks).await;
        }
        Some(_) => sleep(until - Instant::now()).await,
    }
    let open_seconds = begin.elapsed().as_secs_f64();
    tasks.join_all().await;
    let seconds = options
        .rate
        .map_or(begin.elapsed().as_secs_f64(), |_| open_seconds);
    let counts = *all.counts.borrow();
    Ok(json!({
        "opened": counts.opened,
        "opened_rate": f64::from(counts.opened) / seconds,
        "answered_rate": f64::from(counts.answered) / seconds,
        "refused": counts.refused,
        "unanswered": counts.unanswered,
    }))
}

fn first_message(target: &Target) -> anyhow::Result<Vec<u8>> {
    let mut hello = Vec::new();
    let config = Arc::new(Offer::Aes128.config()?);
    let mut connection = ClientConnection::new(config, server_name(target.address))?;
    while connection.wants_write() {
        connection.write_tls(&mut hello)?;
    }
    Ok(hello)
}

impl All {
    async fn closed_loop(self: Rc<Self>, until: Instant) {
        while Instant::now() < until {
            self.connection().await;
        }
    }

    /// Opens connections by schedule; those that are due while `most` are there are left out.
    async fn open_loop(
        self: &Rc<Self>,
        rate: f64,
        most: usize,
        until: Instant,
        tasks: &mut JoinSet<()>,
    ) {
        let (begin, mut done) = (Instant::now(), 0.0);
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < until {
            ticks.tick().await;
            while tasks.try_join_next().is_some() {}
            let due = (rate * begin.elapsed().as_secs_f64()).floor();
            while done < due {
                done += 1.0;
                if tasks.len() < most {
                    let all = Rc::clone(self);
                    tasks.spawn_local(async move { all.connection().await });
                }
            }
        }
    }

    async fn connection(&self) {
        self.counts.borrow_mut().opened += 1;
        let outcome = timeout(RESPONSE_TIMEOUT, self.exchange()).await;
        let mut counts = self.counts.borrow_mut();
        *match outcome {
            Ok(Ok(true)) => &mut counts.answered,
            Ok(Ok(false) | Err(_)) => &mut counts.refused,
            Err(_) => &mut counts.unanswered,
        } += 1;
    }

    /// Returns true if the server's part came.
    async fn exchange(&self) -> io::Result<bool> {
        let mut stream = TcpStream::connect(self.target.address).await?;
        // No port is left waiting behind.
        stream.set_zero_linger()?;
        stream.write_all(&self.hello).await?;
        let mut part = [0; PART_BYTES_MAX];
        let read = stream.read(&mut part).await?;
        Ok(part[..read].first() == Some(&HANDSHAKE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_message_is_one_record() {
        let target = Target {
            address: "127.0.0.1:443".parse().expect("an address"),
            path: "/".into(),
        };
        let hello = first_message(&target).expect("a first message");
        let client_hello = 1;
        assert_eq!((hello[0], hello[5]), (HANDSHAKE, client_hello));
        let length = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
        assert_eq!(hello.len(), 5 + length);
    }
}
