//! Servers of one byte, most of them idle.

use std::cell::Cell;
use std::future::poll_fn;
use std::io::{self, Write};
use std::os::unix::net::UnixStream as Writer;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::select;
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, sleep};

use crate::micros_each;
use crate::timeouts::Timeout;

const HOUR: Duration = Duration::from_hours(1);

pub(crate) struct Load {
    pub(crate) pairs: usize,
    /// Bytes under way at any time.
    pub(crate) active: usize,
    pub(crate) time: Duration,
}

/// The ends that are written to.
#[derive(Default)]
struct All {
    writers: Vec<Writer>,
    handled: Cell<usize>,
}

impl All {
    fn write_to_any(&self) -> io::Result<()> {
        let mut writer = &self.writers[fastrand::usize(..self.writers.len())];
        writer.write_all(b"x")
    }
}

/// Measures servers whose timeouts of an hour are made by `hour`.
pub(crate) async fn measure<T: Timeout>(
    load: &Load,
    hour: impl Fn(Duration) -> T,
) -> Result<Value> {
    let begun = Instant::now();
    let mut all = All::default();
    let mut readers = Vec::with_capacity(load.pairs);
    for _ in 0..load.pairs {
        let (reader, writer) = Writer::pair().context("too few descriptors")?;
        reader.set_nonblocking(true)?;
        writer.set_nonblocking(true)?;
        readers.push((UnixStream::from_std(reader)?, hour(HOUR)));
        all.writers.push(writer);
    }
    let all = Rc::new(all);
    let mut tasks = JoinSet::new();
    for (reader, timeout) in readers {
        tasks.spawn_local(serve(reader, timeout, Rc::clone(&all)));
    }
    // Each begins to wait.
    yield_now().await;
    let create = micros_each(begun, load.pairs);

    for _ in 0..load.active {
        all.write_to_any()?;
    }
    let begun = Instant::now();
    select! {
        () = sleep(load.time) => {}
        Some(ended) = tasks.join_next() => bail!("a server ended: {ended:?}"),
    }
    let request = micros_each(begun, all.handled.get());
    Ok(json!({
        "sockets": 2 * load.pairs,
        "create_us": create,
        "request_us": request,
    }))
}

/// Reads what comes, writes as many bytes to other servers, and begins an hour anew.
async fn serve<T: Timeout>(mut reader: UnixStream, mut timeout: T, all: Rc<All>) -> io::Result<()> {
    let mut room = [0; 64];
    loop {
        let read = poll_fn(|cx| {
            let mut buffer = ReadBuf::new(&mut room);
            if Pin::new(&mut reader).poll_read(cx, &mut buffer)?.is_ready() {
                return Poll::Ready(Ok(buffer.filled().len()));
            }
            ready!(timeout.poll_passed(cx));
            Poll::Ready(Err(io::Error::from(io::ErrorKind::TimedOut)))
        });
        for _byte in 0..read.await? {
            all.handled.set(all.handled.get() + 1);
            all.write_to_any()?;
        }
        timeout.renew(HOUR);
    }
}
