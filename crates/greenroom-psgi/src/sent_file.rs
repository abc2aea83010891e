//! A response's body out of a file that a worker holds open.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use rustix::io::{ReadWriteFlags, preadv2};
use rustix::process::Pid;
use tokio::task::JoinHandle;

use crate::link::SentFile;

/// The bytes that are read at once, and so kept in memory for a client.
const READ_BYTES: usize = 65_536;

/// A body that reads a range of a file. What is in the page cache is read at once; a read from the
/// disk runs on a thread that may block, because a loop that waited for it would block all of its
/// requests.
#[derive(Debug)]
pub(crate) struct FileBody {
    file: Arc<File>,
    offset: u64,
    left: u64,
    reading: Option<JoinHandle<io::Result<Bytes>>>,
}

impl FileBody {
    /// Opens the file that the worker has open by this descriptor.
    pub(crate) fn open(worker: Pid, sent: &SentFile) -> io::Result<Self> {
        let path = format!("/proc/{}/fd/{}", worker.as_raw_nonzero(), sent.descriptor);
        let file = File::open(path)?;
        let there = file.metadata()?.len().saturating_sub(sent.offset);
        Ok(Self {
            file: Arc::new(file),
            offset: sent.offset,
            left: sent.length.min(there),
            reading: None,
        })
    }

    /// Returns the bytes still to come.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn poll_bytes(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let chunk = if let Some(reading) = &mut self.reading {
            let read = ready!(Pin::new(reading).poll(cx));
            self.reading = None;
            read.map_err(io::Error::other).flatten()
        } else if let Some(read) = self.read_cached() {
            read
        } else {
            self.reading = Some(self.read_elsewhere());
            return self.poll_bytes(cx);
        };
        Poll::Ready(Some(chunk.and_then(|bytes| self.take(bytes))))
    }

    fn take(&mut self, bytes: Bytes) -> io::Result<Bytes> {
        if bytes.is_empty() {
            let short = "the file became shorter while it was sent";
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, short));
        }
        self.offset += bytes.len() as u64;
        self.left -= bytes.len() as u64;
        Ok(bytes)
    }

    fn new_buffer(&self) -> BytesMut {
        let bytes = self.left.min(READ_BYTES as u64);
        BytesMut::zeroed(usize::try_from(bytes).unwrap_or(READ_BYTES))
    }

    /// Reads what the page cache holds; `None` if a read would wait for the disk, or the file
    /// system cannot tell.
    fn read_cached(&self) -> Option<io::Result<Bytes>> {
        let mut buffer = self.new_buffer();
        let mut slices = [io::IoSliceMut::new(&mut buffer)];
        match preadv2(&self.file, &mut slices, self.offset, ReadWriteFlags::NOWAIT) {
            Ok(read) => {
                buffer.truncate(read);
                Some(Ok(buffer.freeze()))
            }
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::OPNOTSUPP) => None,
            Err(error) => Some(Err(error.into())),
        }
    }

    fn read_elsewhere(&self) -> JoinHandle<io::Result<Bytes>> {
        let (file, offset, mut buffer) = (Arc::clone(&self.file), self.offset, self.new_buffer());
        tokio::task::spawn_blocking(move || {
            let read = file.read_at(&mut buffer, offset)?;
            buffer.truncate(read);
            Ok(buffer.freeze())
        })
    }
}
