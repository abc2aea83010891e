//! Uploads on their way to a file.

use std::fs::File;
use std::io::{self, Write as _};
use std::mem;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};
use tokio::sync::{mpsc, oneshot};

use super::leftovers::UnderWay;

/// The bytes written to a file at once: each write costs a switch to another thread.
const WRITE_BYTES: usize = 256 * 1024;
/// The longest that a write waits for its turn.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(20);
/// The niceness of the thread that writes, above that of the process: a write of 256 KiB keeps a
/// core for longer than most requests need it, which go first if all cores are busy.
const WRITER_NICENESS: i32 = 10;

/// The thread of a process that writes uploads to their files, one write after the other; cheap to
/// clone.
///
/// It has a lower priority than the rest, and ends with the last clone.
#[derive(Clone, Debug)]
pub(super) struct Writer {
    writes: mpsc::Sender<Write>,
}

#[derive(Debug)]
struct Write {
    file: Arc<File>,
    bytes: Vec<u8>,
    written: oneshot::Sender<io::Result<Vec<u8>>>,
}

impl Writer {
    /// Starts the thread.
    ///
    /// # Errors
    /// Fails if the system has no thread left.
    pub(super) fn start() -> io::Result<Self> {
        let (writes, asked) = mpsc::channel(1);
        thread::Builder::new()
            .name("uploads".to_owned())
            .spawn(move || write_all(asked))?;
        Ok(Self { writes })
    }

    /// Appends bytes to a file, and returns their buffer, emptied.
    async fn write(&self, file: Arc<File>, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let turn = tokio::time::timeout(WRITE_WAIT_MAX, self.writes.reserve()).await?;
        let (written, outcome) = oneshot::channel();
        turn.map_err(io::Error::other)?.send(Write {
            file,
            bytes,
            written,
        });
        outcome.await.map_err(io::Error::other)?
    }
}

fn write_all(mut asked: mpsc::Receiver<Write>) {
    if let Err(error) = rustix::process::nice(WRITER_NICENESS) {
        tracing::warn!(%error, "uploads are written at the usual priority");
    }
    while let Some(mut write) = asked.blocking_recv() {
        let outcome = (&*write.file).write_all(&write.bytes);
        write.bytes.clear();
        let outcome = outcome.map(|()| write.bytes);
        // Whoever does not wait for it has given the upload up.
        let _ = write.written.send(outcome);
    }
}

/// A temporary file that is written as its bytes arrive.
///
/// While a write waits for its turn its caller reads nothing more, so the client is slowed down.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: Arc<File>,
    path: Arc<TempPath>,
    buffer: Vec<u8>,
    writer: Writer,
}

impl Incoming {
    /// Starts an empty file, which is deleted when this is dropped.
    pub(super) fn new(file: NamedTempFile, under_way: &UnderWay, writer: &Writer) -> Self {
        let (file, path) = file.into_parts();
        Self {
            file: Arc::new(file),
            path: under_way.add(path),
            buffer: Vec::with_capacity(WRITE_BYTES),
            writer: writer.clone(),
        }
    }

    /// Appends bytes.
    ///
    /// # Errors
    /// Fails if the file cannot be written, with [`io::ErrorKind::TimedOut`] if it was not its turn
    /// within 20 s.
    pub(crate) async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = WRITE_BYTES - self.buffer.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.buffer.extend_from_slice(now);
            bytes = later;
            if self.buffer.len() == WRITE_BYTES {
                self.flush().await?;
            }
        }
        Ok(())
    }

    /// Writes the rest and returns the path of the file, which is deleted when that is dropped.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub(crate) async fn finish(mut self) -> io::Result<Arc<TempPath>> {
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        Ok(self.path)
    }

    async fn flush(&mut self) -> io::Result<()> {
        let bytes = mem::take(&mut self.buffer);
        self.buffer = self.writer.write(Arc::clone(&self.file), bytes).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn start(writer: &Writer) -> Incoming {
        let file = NamedTempFile::new().expect("there is room for a file");
        Incoming::new(file, &UnderWay::default(), writer)
    }

    #[tokio::test]
    async fn what_is_written_is_in_the_file() {
        let writer = Writer::start().expect("there is a thread");
        let mut incoming = start(&writer);
        let bytes: Vec<u8> = (0..=250).cycle().take(2 * WRITE_BYTES + 1).collect();
        for chunk in bytes.chunks(100_000) {
            incoming.write(chunk).await.expect("it is written");
        }
        let path = incoming.finish().await.expect("the rest is written");
        assert_eq!(fs::read(&*path).expect("the file is there"), bytes);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_its_turn_but_not_for_ever() {
        let (sender, asked) = mpsc::channel(1);
        let writer = Writer { writes: sender };
        let turn = writer.writes.reserve().await.expect("it is open");
        let bytes = vec![0; WRITE_BYTES];
        let error = start(&writer).write(&bytes).await;
        let error = error.expect_err("another write goes on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(turn);
        thread::spawn(|| write_all(asked));
        start(&writer).write(&bytes).await.expect("it is written");
    }
}
