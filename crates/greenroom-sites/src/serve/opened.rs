//! A file that is read without waiting as far as its pages are in memory.

use std::fs::{self, Metadata};
use std::future::{Ready, ready};
use std::io::{self, IoSliceMut, SeekFrom};
use std::mem;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready as poll_ready};

use greenroom::FileRest;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::io::{AsyncRead, AsyncSeek, ReadBuf};
use tokio::task::{JoinHandle, spawn_blocking};
use tower_http::services::fs::File;

/// The bytes that a thread reads from a disk at a time.
const DISK_READ_BYTES: usize = 128 << 10;

/// The bytes that are read first where somebody may take the rest as a file; if it is not longer
/// than [`REST_BYTES_MIN`], all is read at once.
const FIRST_BYTES: usize = 16 << 10;

/// The rest that is worth an offer.
const REST_BYTES_MIN: usize = 64 << 10;

/// A file that is open. What the system has in memory is read on the spot (`RWF_NOWAIT`,
/// preadv2(2), Linux 4.14); the rest is read from the disk by a thread that may wait.
#[derive(Debug)]
pub(super) struct Opened {
    file: Arc<fs::File>,
    metadata: Metadata,
    position: u64,
    /// Nothing was read since it was opened, or sought.
    is_fresh: bool,
    reading: Option<JoinHandle<io::Result<Vec<u8>>>>,
    /// Bytes that came from the disk and were not taken, which begin at the position.
    read: Vec<u8>,
    taken: usize,
}

impl Opened {
    pub(super) fn new(file: fs::File, metadata: Metadata) -> Self {
        Self {
            file: Arc::new(file),
            metadata,
            position: 0,
            is_fresh: true,
            reading: None,
            read: Vec::new(),
            taken: 0,
        }
    }

    /// Returns the metadata of the time at which it was opened.
    pub(super) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// Bytes that are left to the end that the metadata told: a file that grew is read no further,
    /// as its response has said how long it is.
    fn left(&self) -> usize {
        let left = self.metadata.len().saturating_sub(self.position);
        usize::try_from(left).unwrap_or(usize::MAX)
    }

    /// Reads what is in memory; `None` if nothing of it is.
    fn read_cached(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<Option<()>> {
        let mut length = self.left().min(buffer.remaining());
        let is_offered = self.left() > FIRST_BYTES + REST_BYTES_MIN && FileRest::is_heard();
        if is_offered && mem::take(&mut self.is_fresh) {
            length = length.min(FIRST_BYTES);
        }
        let room = &mut [IoSliceMut::new(buffer.initialize_unfilled_to(length))];
        match preadv2(&self.file, room, self.position, ReadWriteFlags::NOWAIT) {
            Ok(length) => {
                buffer.advance(length);
                self.position += length as u64;
                if is_offered {
                    let file = Arc::clone(&self.file);
                    FileRest::new(file, self.position, self.left() as u64).offer(buffer.filled());
                }
                Ok(Some(()))
            }
            // It is on a disk, or its file system cannot tell.
            Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn start_reading(&self) -> JoinHandle<io::Result<Vec<u8>>> {
        let (file, position) = (Arc::clone(&self.file), self.position);
        let length = self.left().min(DISK_READ_BYTES);
        spawn_blocking(move || {
            let mut bytes = vec![0; length];
            let length = file.read_at(&mut bytes, position)?;
            bytes.truncate(length);
            Ok(bytes)
        })
    }

    fn take_read(&mut self, buffer: &mut ReadBuf<'_>) {
        let left = &self.read[self.taken..];
        let length = left.len().min(buffer.remaining());
        buffer.put_slice(&left[..length]);
        self.taken += length;
        self.position += length as u64;
        if self.taken == self.read.len() {
            (self.read, self.taken) = (Vec::new(), 0);
        }
    }
}

impl File for Opened {
    type Metadata = Metadata;
    type MetadataFuture<'a> = Ready<io::Result<Metadata>>;

    fn metadata(&self) -> Self::MetadataFuture<'_> {
        ready(Ok(self.metadata.clone()))
    }
}

impl AsyncRead for Opened {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 || self.left() == 0 {
            return Poll::Ready(Ok(()));
        }
        if self.reading.is_none() && self.read.is_empty() {
            if self.read_cached(buffer)?.is_some() {
                return Poll::Ready(Ok(()));
            }
            self.reading = Some(self.start_reading());
        }
        if let Some(reading) = &mut self.reading {
            let read = poll_ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            self.read = read??;
        }
        self.take_read(buffer);
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for Opened {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        let sought = match position {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.metadata.len().checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = sought.ok_or(io::ErrorKind::InvalidInput)?;
        self.is_fresh = true;
        self.reading = None;
        (self.read, self.taken) = (Vec::new(), 0);
        Ok(())
    }

    fn poll_complete(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        Poll::Ready(Ok(self.position))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncSeekExt};

    use super::*;

    fn bytes() -> Vec<u8> {
        (0..=250).cycle().take(500_000).collect()
    }

    fn opened() -> io::Result<(tempfile::TempDir, Opened)> {
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("file");
        fs::write(&path, bytes())?;
        let file = fs::File::open(path)?;
        let metadata = file.metadata()?;
        Ok((directory, Opened::new(file, metadata)))
    }

    #[tokio::test]
    async fn a_file_is_read_from_any_place_to_its_end() -> io::Result<()> {
        let (_directory, mut file) = opened()?;
        for start in [0, 1, 499_999, 500_000, 131_072] {
            assert_eq!(file.seek(SeekFrom::Start(start)).await?, start);
            let mut read = Vec::new();
            file.read_to_end(&mut read).await?;
            assert!(read == bytes()[usize::try_from(start).unwrap_or_default()..]);
        }
        assert_eq!(file.seek(SeekFrom::End(-9)).await?, 499_991);
        assert!(file.seek(SeekFrom::End(-500_001)).await.is_err());
        Ok(())
    }

    #[tokio::test]
    async fn a_file_that_grows_is_read_to_the_end_that_was_told() -> io::Result<()> {
        let (directory, mut file) = opened()?;
        let path = directory.path().join("file");
        let mut grown = bytes();
        grown.extend([b'x'; 1_000]);
        fs::write(path, grown)?;
        let mut read = Vec::new();
        file.read_to_end(&mut read).await?;
        assert!(read == bytes());
        Ok(())
    }

    #[tokio::test]
    async fn what_is_not_in_memory_is_read_by_a_thread() -> io::Result<()> {
        let (_directory, mut file) = opened()?;
        // As if the system had said that it would have to wait.
        let mut read = Vec::new();
        while read.len() < bytes().len() {
            file.reading = Some(file.start_reading());
            let mut some = [0; 1_000];
            loop {
                let length = file.read(&mut some).await?;
                read.extend_from_slice(&some[..length]);
                if file.read.is_empty() {
                    break;
                }
            }
        }
        assert!(read == bytes());
        Ok(())
    }
}
