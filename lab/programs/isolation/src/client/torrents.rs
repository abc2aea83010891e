//! Clients that send or take a body as fast as the server does.

use std::net::SocketAddrV4;
use std::time::Duration;

use anyhow::{Context, ensure};
use clap::Args;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

const PART_BYTES: usize = 64 * 1_024;
/// The body of an upload, such as a picture.
const BODY_BYTES: usize = 8 * 1_024 * 1_024;

#[derive(Debug, Args)]
pub(crate) struct Torrents {
    #[arg(long)]
    uploads: u8,
    #[arg(long)]
    downloads: u8,
    #[arg(long)]
    seconds: f64,
}

impl Torrents {
    /// Sends to `/take` and takes from `/give`, until the time is over.
    pub(crate) async fn run(&self, server: SocketAddrV4) -> anyhow::Result<Value> {
        let until = Instant::now() + Duration::from_secs_f64(self.seconds);
        let (mut up, mut down) = (JoinSet::new(), JoinSet::new());
        for _ in 0..self.uploads {
            up.spawn(upload(server, until));
        }
        for _ in 0..self.downloads {
            down.spawn(download(server, until));
        }
        let megabytes_a_second = |moved: Vec<anyhow::Result<u64>>| {
            let bytes = moved.into_iter().sum::<anyhow::Result<u64>>()?;
            let kilobytes = u32::try_from(bytes / 1_000).context("a run moves less than 4 TB")?;
            anyhow::Ok(f64::from(kilobytes) / 1e3 / self.seconds)
        };
        Ok(json!({
            "up_mb_s": megabytes_a_second(up.join_all().await)?,
            "down_mb_s": megabytes_a_second(down.join_all().await)?,
        }))
    }
}

/// Sends one body after the other over a connection. Returns the bytes that were sent.
async fn upload(server: SocketAddrV4, until: Instant) -> anyhow::Result<u64> {
    let mut stream = TcpStream::connect(server).await?;
    let head =
        format!("POST /take HTTP/1.1\r\nHost: {server}\r\nContent-Length: {BODY_BYTES}\r\n\r\n");
    let part = vec![0; PART_BYTES];
    let mut moved = 0;
    while Instant::now() < until {
        stream.write_all(head.as_bytes()).await?;
        for _ in 0..BODY_BYTES / PART_BYTES {
            match timeout_at(until, stream.write_all(&part)).await {
                Ok(sent) => sent.context("an upload was ended")?,
                Err(_) => return Ok(moved),
            }
            moved += PART_BYTES as u64;
        }
        match timeout_at(until, confirmed(&mut stream)).await {
            Ok(confirmed) => confirmed?,
            Err(_) => break,
        }
    }
    Ok(moved)
}

/// Waits for the response, whose body is the number of bytes and the end of a line.
async fn confirmed(stream: &mut TcpStream) -> anyhow::Result<()> {
    let (mut response, end) = (Vec::new(), format!("\r\n\r\n{BODY_BYTES}\n"));
    while !response.ends_with(end.as_bytes()) {
        let read = stream.read_buf(&mut response).await?;
        ensure!(
            read > 0 && response.len() < PART_BYTES,
            "no response to an upload"
        );
    }
    Ok(())
}

/// Returns the bytes that came, in as many responses as there was time for.
async fn download(server: SocketAddrV4, until: Instant) -> anyhow::Result<u64> {
    let mut moved = 0;
    let mut part = vec![0; PART_BYTES];
    while Instant::now() < until {
        let mut stream = TcpStream::connect(server).await?;
        let head = format!("GET /give HTTP/1.1\r\nHost: {server}\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await?;
        while let Ok(read) = timeout_at(until, stream.read(&mut part)).await {
            let read = read.context("a download was ended")?;
            if read == 0 {
                break;
            }
            moved += read as u64;
        }
    }
    Ok(moved)
}
