//! Uploads and downloads that take long.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::interval;

use crate::CHUNK_BYTES;
use crate::failure::{Failed, Failure, within};
use crate::http1::{Response, respond, uploaded};
use crate::load::Client;
use crate::tcp::{RESPONSE_MAX, Stream};

const TICK: Duration = Duration::from_millis(250);
/// An upload is 64 kB a second: of 30 s, just below the 2 MiB that Greenroom takes by default.
const UPLOADED_A_TICK: usize = 16_000;
/// A download is 1 MB a second: of 30 s, far more than the system's buffers hold.
const DOWNLOADED_A_TICK: usize = 250_000;
const RECEIVE_BYTES: u32 = 64 * 1024;
const LINE: &[u8] = b"abcdefghijklmnopqrstuvwxyz\n";

pub(crate) async fn upload(client: &Client) -> Result<(), Failed> {
    let (ticks, address) = (ticks(client), client.options.plain);
    let length = ticks * UPLOADED_A_TICK;
    let mut stream = Stream::open(address, None, None).await?;
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: {address}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream.bytes.write_all(head.as_bytes()).await?;
    let piece = vec![b'a'; UPLOADED_A_TICK];
    let mut tick = interval(TICK);
    for _ in 0..ticks {
        tick.tick().await;
        stream.bytes.write_all(&piece).await?;
    }
    respond(&mut stream, &uploaded(length)).await?;
    Ok(())
}

pub(crate) async fn download(client: &Client) -> Result<(), Failed> {
    let address = client.options.plain;
    let mut stream = Stream::open(address, None, Some(RECEIVE_BYTES)).await?;
    let path = download_path(client);
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.send(head.as_bytes(), false).await?;
    let mut response = within(RESPONSE_MAX, Response::begin(&mut stream)).await?;
    let mut buffer = vec![0; CHUNK_BYTES];
    let next = async |room: usize| {
        let mut piece = std::mem::take(&mut response.body);
        if piece.is_empty() {
            let room = room.min(buffer.len());
            let count = stream.bytes.read(&mut buffer[..room]).await?;
            piece.extend_from_slice(&buffer[..count]);
        }
        Ok((!piece.is_empty()).then(|| piece.into()))
    };
    read(client, next).await
}

pub(crate) fn download_path(client: &Client) -> String {
    format!("/bytes/{}", ticks(client) * DOWNLOADED_A_TICK)
}

/// Reads a download at its pace, in pieces; `next` is told how many bytes belong to this tick.
pub(crate) async fn read(
    client: &Client,
    mut next: impl AsyncFnMut(usize) -> Result<Option<Bytes>, Failed>,
) -> Result<(), Failed> {
    let ticks = ticks(client);
    let mut read = 0;
    let mut tick = interval(TICK);
    for number in 1..=ticks {
        tick.tick().await;
        let until = number * DOWNLOADED_A_TICK;
        while read < until {
            let piece = next(until - read).await;
            let told = |why: &str| format!("{read} bytes in tick {number} of {ticks}: {why}");
            let piece = piece.map_err(|Failed(failure, why)| failure.by(told(&why)))?;
            let piece = piece.ok_or_else(|| Failure::Ended.by(told("no more")))?;
            if !piece
                .iter()
                .zip(read..)
                .all(|(byte, at)| *byte == expected(at))
            {
                return Err(Failure::Wrong.by(told("then another byte than expected")));
            }
            read += piece.len();
        }
    }
    Ok(())
}

/// Returns a byte of a download: the alphabet, again and again from the start of each chunk.
fn expected(at: usize) -> u8 {
    LINE[at % CHUNK_BYTES % LINE.len()]
}

fn ticks(client: &Client) -> usize {
    usize::try_from(client.transfer().as_millis() / TICK.as_millis()).unwrap_or(1)
}
