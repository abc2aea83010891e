//! The least latency that a client can see: one connection, never asleep, one request after the
//! other by schedule.
//!
//! The clock is read right before each write and right after the read that has the response.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use serde_json::json;

const RESPONSE_BYTES_MAX: usize = 4096;
/// The longest wait; after a longer one the server has died.
const WAIT_MAX: Duration = Duration::from_secs(5);

#[derive(Debug, Parser)]
struct Options {
    /// Address and port of a server that writes each response at once, and all of the same length
    #[arg(long)]
    server: SocketAddr,
    /// Path of the requests
    #[arg(long, default_value = "/hello")]
    path: String,
    /// Requests per second
    #[arg(
        long,
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    rate: u32,
    /// Seconds of load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=60))]
    seconds: u32,
}

fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let mut client = Client::connect(&options)?;
    let response_bytes = client.exchange()?.1;
    let mut latencies = Vec::new();
    let begun = Instant::now();
    for index in 0..options.rate * options.seconds {
        let due = begun + Duration::from_secs(1) * index / options.rate;
        while Instant::now() < due {}
        let (latency, bytes) = client.exchange()?;
        ensure!(
            bytes == response_bytes,
            "a response of {bytes} bytes in one read, after one of {response_bytes}"
        );
        latencies.push(latency);
    }
    latencies.sort_unstable();
    let quantile = |per_cent| micros(latencies[(latencies.len() - 1) * per_cent / 100]);
    let report = json!({
        "requests": latencies.len(),
        "p50_us": quantile(50),
        "p99_us": quantile(99),
        "max_us": quantile(100),
    });
    writeln!(io::stdout(), "{report}")?;
    Ok(())
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

struct Client {
    stream: TcpStream,
    request: Vec<u8>,
    response: [u8; RESPONSE_BYTES_MAX],
}

impl Client {
    fn connect(options: &Options) -> anyhow::Result<Self> {
        let Options { server, path, .. } = options;
        let stream = TcpStream::connect(server).context("cannot connect")?;
        stream.set_nodelay(true)?;
        stream.set_nonblocking(true)?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: {server}\r\n\r\n").into_bytes();
        let response = [0; RESPONSE_BYTES_MAX];
        Ok(Self {
            stream,
            request,
            response,
        })
    }

    /// Sends one request; returns its latency, and the bytes of its response.
    fn exchange(&mut self) -> anyhow::Result<(Duration, usize)> {
        let sent = Instant::now();
        self.stream.write_all(&self.request).context("write")?;
        loop {
            match self.stream.read(&mut self.response) {
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
}
