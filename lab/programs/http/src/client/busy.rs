//! The least latency that a client can see: one connection, never asleep, one request after the
//! other by schedule. The clock is read right before each write and right after the read that has
//! the response.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use clap::Parser;
use serde_json::{Value, json};

use crate::Target;

/// The longest wait; after a longer one the server has died.
const WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Parser)]
pub(crate) struct Options {
    /// A server that writes each response at once, and all of the same length
    #[command(flatten)]
    target: Target,
    /// Requests per second
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=99_999))]
    rate: u32,
    /// Seconds of load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<Value> {
    let mut stream = TcpStream::connect(options.target.address).context("cannot connect")?;
    stream.set_nodelay(true)?;
    stream.set_nonblocking(true)?;
    let request = options.target.request("GET", "", "");
    let (_, expected) = exchange(&mut stream, &request)?;
    let mut latencies = Vec::new();
    let begun = Instant::now();
    for index in 0..options.rate * options.seconds {
        let due = begun + Duration::from_secs(1) * index / options.rate;
        while Instant::now() < due {}
        let (latency, bytes) = exchange(&mut stream, &request)?;
        ensure!(
            bytes == expected,
            "a response of {bytes} bytes in one read, after one of {expected}"
        );
        latencies.push(latency);
    }
    latencies.sort_unstable();
    let quantile = |per_cent| {
        let latency: Duration = latencies[(latencies.len() - 1) * per_cent / 100];
        latency.as_secs_f64() * 1e6
    };
    Ok(json!({
        "complete": latencies.len(),
        "p50_us": quantile(50),
        "p99_us": quantile(99),
        "max_us": quantile(100),
    }))
}

/// Sends one request; returns its latency, and the bytes of its response.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> anyhow::Result<(Duration, usize)> {
    let sent = Instant::now();
    stream.write_all(request).context("write")?;
    let mut response = [0; 4096];
    loop {
        match stream.read(&mut response) {
            Ok(bytes) => {
                let latency = sent.elapsed();
                ensure!(bytes > 0, "the server closed the connection");
                return Ok((latency, bytes));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                ensure!(sent.elapsed() < WAIT_MAX, "no response in {WAIT_MAX:?}");
            }
            Err(error) => return Err(error).context("read"),
        }
    }
}
