use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::{JoinHandle, spawn_blocking};

use super::socket::Socket;
use crate::file_rest::FileRest;

/// Bytes that a thread reads from the disk at a time, so that they are in memory.
const DISK_READ_BYTES: u64 = 128 * 1_024;

/// Bytes that are sent at a look whether the client takes any.
const LOOK_BYTES: u64 = 16 * 1_024;

/// No page of memory is shorter.
const PAGE_BYTES: u64 = 4_096;

/// A part of a file that is sent from where it is in memory. `sendfile(2)` would wait for the disk,
/// and all of the loop with it: so it sends what is known to be in memory, and a thread that may
/// wait reads what is not.
#[derive(Debug)]
pub(super) struct FileSender {
    file: Arc<File>,
    offset: u64,
    left: u64,
    /// Bytes from the offset on that were in memory when it was looked.
    in_memory: u64,
    reading: Option<JoinHandle<io::Result<u64>>>,
}

impl FileSender {
    pub(super) fn new(rest: FileRest) -> Self {
        let (file, offset, left) = rest.into_parts();
        Self {
            file,
            offset,
            left,
            in_memory: 0,
            reading: None,
        }
    }

    /// Returns the bytes that are still to be sent.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Sends at most so many bytes, and returns how many: fewer if the socket takes no more.
    pub(super) fn poll_send(
        &mut self,
        most: u64,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>> {
        if self.in_memory == 0 {
            self.in_memory = ready!(self.poll_in_memory(most, cx))?;
        }
        let length = self.in_memory.min(most);
        let sent = ready!(socket.poll_send_file(&self.file, self.offset, length, cx))?;
        self.advance(sent)?;
        Poll::Ready(Ok(sent))
    }

    /// Sends what the socket takes at this moment of what is in memory, whether or not the system
    /// has said that there is room.
    pub(super) fn look(&mut self, socket: &mut Socket) -> io::Result<u64> {
        if self.in_memory == 0 {
            self.in_memory = in_memory(&self.file, self.offset, LOOK_BYTES.min(self.left))?;
        }
        if self.in_memory == 0 {
            return Ok(0);
        }
        let length = self.in_memory.min(LOOK_BYTES);
        let sent = socket.try_send_file(&self.file, self.offset, length)?;
        self.advance(sent)?;
        Ok(sent)
    }

    /// Returns how many of the next bytes are in memory, once there are some.
    fn poll_in_memory(&mut self, most: u64, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if self.reading.is_none() {
            let there = in_memory(&self.file, self.offset, most.min(self.left))?;
            if there > 0 {
                return Poll::Ready(Ok(there));
            }
        }
        let reading = self
            .reading
            .get_or_insert_with(|| read(Arc::clone(&self.file), self.offset, self.left));
        let read = ready!(Pin::new(reading).poll(cx));
        self.reading = None;
        // It is in memory now, and hardly gone before it is sent: to look again might never end.
        match read?? {
            0 => Poll::Ready(Err(shorter())),
            bytes => Poll::Ready(Ok(bytes)),
        }
    }

    fn advance(&mut self, sent: u64) -> io::Result<()> {
        if sent == 0 {
            return Err(shorter());
        }
        self.offset += sent;
        self.left -= sent;
        self.in_memory -= sent;
        Ok(())
    }
}

fn shorter() -> io::Error {
    let why = "the file became shorter while it was sent";
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

/// Has a thread read the next bytes, which are in memory then; returns how many.
fn read(file: Arc<File>, offset: u64, left: u64) -> JoinHandle<io::Result<u64>> {
    spawn_blocking(move || {
        let length = left.min(DISK_READ_BYTES);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        file.read_at(&mut bytes, offset).map(|read| read as u64)
    })
}

/// Returns how many of the bytes from `offset` on are in memory, without waiting: at most so many,
/// and no more than the first that are. At each second page it reads the two bytes around its
/// beginning, which tell of both pages.
fn in_memory(file: &File, offset: u64, most: u64) -> io::Result<u64> {
    let end = offset.saturating_add(most);
    let mut known = offset;
    while known < end {
        let page_end = (known / PAGE_BYTES + 1) * PAGE_BYTES;
        let mut around = [0; 2];
        let mut room = [IoSliceMut::new(&mut around)];
        match preadv2(
            file,
            &mut room,
            page_end.min(end) - 1,
            ReadWriteFlags::NOWAIT,
        ) {
            Ok(2) => known = page_end + PAGE_BYTES,
            Ok(1) => {
                known = page_end;
                break;
            }
            Ok(_) | Err(Errno::AGAIN) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(known.min(end) - offset)
}
