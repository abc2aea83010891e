//! Uploads and downloads that take long.

use std::io::{self, ErrorKind};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval, timeout};

use super::Load;
use super::connection::Stream;
use super::exchange::{RESPONSE_MAX, late, read_head, respond};
use crate::counts::{Counts, Failed, Failure};

const TICK: Duration = Duration::from_millis(250);
/// An upload is 64 kB a second: of 30 s, just below the 2 MiB that Greenroom takes by default.
const UPLOADED_A_TICK: usize = 16_000;
/// A download is 1 MB a second: of 30 s, far more than the system's buffers hold.
pub(super) const DOWNLOADED_A_TICK: usize = 250_000;
const RECEIVE_BYTES: u32 = 64 * 1024;
/// A transfer may take this much longer than planned.
pub(super) const GRACE: Duration = Duration::from_secs(30);
const LINE: &[u8] = b"abcdefghijklmnopqrstuvwxyz\n";

#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Down,
    Up,
}

/// Begins one transfer after the other until the load ends; the last one goes on to its end. They
/// begin at different times.
pub(crate) async fn run(load: Load, direction: Direction, delay: f64) -> Counts {
    let mut counts = Counts::default();
    load.wait(load.transfer.mul_f64(delay)).await;
    while load.goes_on() {
        let whole = async {
            match direction {
                Direction::Down => download(&load).await,
                Direction::Up => upload(&load).await,
            }
        };
        let outcome = match timeout(load.transfer + GRACE, whole).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failed(Failure::Late, format!("over {GRACE:?} late"))),
        };
        let has_failed = outcome.is_err();
        counts.count(outcome, load.seconds());
        load.pause(TICK, has_failed).await;
    }
    counts
}

pub(super) fn ticks(load: &Load) -> usize {
    usize::try_from(load.transfer.as_millis() / TICK.as_millis()).unwrap_or(1)
}

/// The pace of a download.
pub(super) struct Pace {
    tick: Interval,
    number: usize,
    last: usize,
}

impl Pace {
    pub(super) fn new(load: &Load) -> Self {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Burst);
        Self {
            tick,
            number: 0,
            last: ticks(load),
        }
    }

    /// Waits for the next tick: as many bytes are read until then; `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<usize> {
        if self.number == self.last {
            return None;
        }
        self.tick.tick().await;
        self.number += 1;
        Some(self.number * DOWNLOADED_A_TICK)
    }
}

async fn upload(load: &Load) -> Result<(), Failed> {
    let length = ticks(load) * UPLOADED_A_TICK;
    let mut stream = Stream::open(load.target.plain, None, None).await?;
    let head = format!(
        "POST /upload HTTP/1.1\r\nHost: {}\r\nContent-Type: text/plain\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n",
        load.target.plain
    );
    let begin = Instant::now();
    let failed = |error: &io::Error| {
        Failed::of(
            error,
            &format!("uploading for {:.1} s", begin.elapsed().as_secs_f64()),
        )
    };
    stream
        .write_all(head.as_bytes())
        .await
        .map_err(|error| failed(&error))?;
    let mut tick = interval(TICK);
    let piece = vec![b'a'; UPLOADED_A_TICK];
    for _ in 0..ticks(load) {
        tick.tick().await;
        stream
            .write_all(&piece)
            .await
            .map_err(|error| failed(&error))?;
    }
    respond(&mut stream, &format!("\"bytes\":{length}")).await?;
    Ok(())
}

async fn download(load: &Load) -> Result<(), Failed> {
    let length = ticks(load) * DOWNLOADED_A_TICK;
    let mut stream = Stream::open(load.target.plain, None, Some(RECEIVE_BYTES)).await?;
    let head = format!(
        "GET /bytes/{length} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        load.target.plain
    );
    let sent = stream.write_all(head.as_bytes()).await;
    sent.map_err(|error| Failed::of(&error, "sending"))?;
    let head = match timeout(RESPONSE_MAX, read_head(&mut stream)).await {
        Ok(head) => head.map_err(|error| Failed::of(&error, "reading the head"))?,
        Err(_) => return Err(late("no head")),
    };
    if head.status != 200 {
        return Err(Failed(Failure::Wrong, format!("status {}", head.status)));
    }
    let begin = Instant::now();
    let mut read = 0;
    check(&head.rest, &mut read).map_err(|error| Failed::of(&error, "reading"))?;
    let mut pace = Pace::new(load);
    while let Some(until) = pace.next().await {
        let outcome = read_up_to(&mut stream, until, &mut read).await;
        outcome.map_err(|error| {
            let seconds = begin.elapsed().as_secs_f64();
            Failed::of(
                &error,
                &format!("{read} of {length} bytes in {seconds:.1} s"),
            )
        })?;
    }
    Ok(())
}

async fn read_up_to(stream: &mut Stream, length: usize, read: &mut usize) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    while *read < length {
        let room = buffer.len().min(length - *read);
        let count = stream.read(&mut buffer[..room]).await?;
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        check(&buffer[..count], read)?;
    }
    Ok(())
}

/// Compares bytes with those that belong there: the alphabet, again and again from the start of
/// each 64 KiB.
pub(super) fn check(bytes: &[u8], read: &mut usize) -> io::Result<()> {
    for byte in bytes {
        if *byte != LINE[*read % super::CHUNK_BYTES % LINE.len()] {
            let text = format!("another byte than expected at {read}");
            return Err(io::Error::new(ErrorKind::InvalidData, text));
        }
        *read += 1;
    }
    Ok(())
}
