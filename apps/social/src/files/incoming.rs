//! Uploads on their way to a file.

use std::fs::File;
use std::io::{self, Write};
use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tempfile::{NamedTempFile, TempPath};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The bytes written to a file at once: each write costs a switch to another thread.
const WRITE_BYTES: usize = 256 * 1024;
/// The writes of a process that go on at a time, a thread each: many uploads at once must not make
/// as many threads that compete with the loops for the cores.
pub(super) const WRITES_MAX: usize = 2;
/// The longest that a write waits for its turn.
const WRITE_WAIT_MAX: Duration = Duration::from_secs(20);

/// A temporary file that is written as its bytes arrive.
///
/// While a write waits for its turn its caller reads nothing more, so the client is slowed down.
#[derive(Debug)]
pub(crate) struct Incoming {
    file: Arc<File>,
    path: TempPath,
    buffer: Vec<u8>,
    writes: Arc<Semaphore>,
}

impl Incoming {
    /// Starts an empty file, which is deleted when this is dropped; `writes` has a permit for each
    /// write at a time.
    pub(super) fn new(file: NamedTempFile, writes: &Arc<Semaphore>) -> Self {
        let (file, path) = file.into_parts();
        Self {
            file: Arc::new(file),
            path,
            buffer: Vec::with_capacity(WRITE_BYTES),
            writes: Arc::clone(writes),
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
    pub(crate) async fn finish(mut self) -> io::Result<TempPath> {
        if !self.buffer.is_empty() {
            self.flush().await?;
        }
        Ok(self.path)
    }

    async fn flush(&mut self) -> io::Result<()> {
        let turn = Arc::clone(&self.writes).acquire_owned();
        let turn = tokio::time::timeout(WRITE_WAIT_MAX, turn).await?;
        let turn = turn.map_err(io::Error::other)?;
        let file = Arc::clone(&self.file);
        let mut buffer = mem::take(&mut self.buffer);
        let written = spawn_blocking(move || {
            let _turn = turn;
            (&*file).write_all(&buffer)?;
            buffer.clear();
            io::Result::Ok(buffer)
        });
        self.buffer = written.await.map_err(io::Error::other)??;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn start(writes: &Arc<Semaphore>) -> Incoming {
        let file = NamedTempFile::new().expect("there is room for a file");
        Incoming::new(file, writes)
    }

    #[tokio::test]
    async fn what_is_written_is_in_the_file() {
        let writes = Arc::new(Semaphore::new(1));
        let mut incoming = start(&writes);
        let bytes: Vec<u8> = (0..=250).cycle().take(2 * WRITE_BYTES + 1).collect();
        for chunk in bytes.chunks(100_000) {
            incoming.write(chunk).await.expect("it is written");
        }
        let path = incoming.finish().await.expect("the rest is written");
        assert_eq!(fs::read(&path).expect("the file is there"), bytes);
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_its_turn_but_not_for_ever() {
        let writes = Arc::new(Semaphore::new(1));
        let turn = writes.acquire().await.expect("it is open");
        let mut late = start(&writes);
        let bytes = vec![0; WRITE_BYTES];
        let error = late.write(&bytes).await;
        let error = error.expect_err("another write goes on");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        drop(turn);
        let mut next = start(&writes);
        next.write(&bytes).await.expect("it is written");
    }
}
