use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use greenroom_timing::FileRest;
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use tokio::task::{JoinHandle, spawn_blocking};

use super::socket::Socket;

/// Bytes of a file that are looked for in memory, or read by a thread, before they are sent.
const STEP_BYTES: u64 = 128 * 1_024;

/// Bytes that are sent at a look whether the client takes any.
const LOOK_BYTES: u64 = 16 * 1_024;

/// No page of memory is shorter.
const PAGE_BYTES: u64 = 4_096;

/// A part of a file that is sent from where it is in memory. `sendfile(2)` would wait for the disk,
/// and all of the loop with it: so it sends what was found in memory just before, and a thread that
/// may wait reads what is not there.
#[derive(Debug)]
pub(super) struct FileSender {
    file: Arc<File>,
    offset: u64,
    left: u64,
    /// A thread reads from the offset on.
    reading: Option<JoinHandle<io::Result<u64>>>,
}

impl FileSender {
    pub(super) fn new(rest: FileRest) -> Self {
        let (file, offset, left) = rest.into_parts();
        Self {
            file,
            offset,
            left,
            reading: None,
        }
    }

    /// Returns the bytes that are still to be sent.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Returns `true` if the disk is waited for, and not the client.
    pub(super) fn is_reading(&self) -> bool {
        self.reading.is_some()
    }

    /// Sends at most so many bytes, and returns how many: fewer if the socket takes no more.
    pub(super) fn poll_send(
        &mut self,
        most: u64,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<u64>> {
        let there = ready!(self.poll_in_memory(most.min(STEP_BYTES), cx)).map_err(unreadable)?;
        let length = there.min(most).min(self.left);
        let sent = ready!(socket.poll_send_file(&self.file, self.offset, length, cx))?;
        self.advance(sent)?;
        Poll::Ready(Ok(sent))
    }

    /// Sends what the socket takes at this moment of what is in memory, whether or not the system
    /// has said that there is room.
    pub(super) fn look(&mut self, socket: &mut Socket) -> io::Result<u64> {
        if self.is_reading() {
            return Ok(0);
        }
        let length = in_memory(&self.file, self.offset, LOOK_BYTES.min(self.left))?;
        if length == 0 {
            return Ok(0);
        }
        let sent = socket.try_send_file(&self.file, self.offset, length)?;
        self.advance(sent)?;
        Ok(sent)
    }

    /// Returns how many of the next bytes are in memory, once there are some.
    fn poll_in_memory(&mut self, most: u64, cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        if !self.is_reading() {
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
            0 => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
            bytes => Poll::Ready(Ok(bytes)),
        }
    }

    fn advance(&mut self, sent: u64) -> io::Result<()> {
        if sent == 0 {
            return Err(unreadable(io::ErrorKind::UnexpectedEof.into()));
        }
        self.offset += sent;
        self.left -= sent;
        Ok(())
    }
}

/// Tells of a file that cannot be read to the end that its response promised.
fn unreadable(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::UnexpectedEof {
        tracing::warn!("a file became shorter while it was sent; its response is cut short");
    } else {
        tracing::warn!(%error, "a file cannot be read on; its response is cut short");
    }
    error
}

/// Has a thread read the next bytes, which are in memory then; returns how many.
fn read(file: Arc<File>, offset: u64, left: u64) -> JoinHandle<io::Result<u64>> {
    spawn_blocking(move || {
        let length = left.min(STEP_BYTES);
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
            // It is not there, or its file system cannot tell.
            Ok(_) | Err(Errno::AGAIN | Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(known.min(end) - offset)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;
    use crate::listen::AcceptedSocket;

    const FILE_BYTES: usize = 200_000;

    fn bytes() -> Vec<u8> {
        (0..=250).cycle().take(FILE_BYTES).collect()
    }

    /// A file, of which some bytes are to be sent.
    fn sender(offset: usize, left: usize) -> io::Result<FileSender> {
        let mut file = tempfile::tempfile()?;
        file.write_all(&bytes())?;
        let rest = FileRest::new(Arc::new(file), offset as u64, left as u64);
        Ok(FileSender::new(rest))
    }

    fn sockets() -> io::Result<(Socket, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        Ok((AcceptedSocket::Unix(ours).into(), theirs))
    }

    /// Sends all that is left, in steps, and returns what comes.
    async fn sent(mut sender: FileSender, most: u64) -> io::Result<Vec<u8>> {
        let (mut socket, mut client) = sockets()?;
        let length = usize::try_from(sender.left()).unwrap_or_default();
        let reader = std::thread::spawn(move || {
            let mut read = Vec::new();
            client.read_to_end(&mut read).map(|_| read)
        });
        socket.register()?;
        while sender.left() > 0 {
            let step = std::future::poll_fn(|cx| sender.poll_send(most, &mut socket, cx));
            assert!((1..=most).contains(&step.await?));
        }
        drop(socket);
        let read = reader.join().expect("it reads")?;
        assert_eq!(read.len(), length);
        Ok(read)
    }

    #[test]
    fn what_was_just_written_is_in_memory_to_the_end_of_the_file() -> io::Result<()> {
        let (file, length) = (sender(0, 0)?.file, FILE_BYTES as u64);
        for (offset, most, expected) in [
            (0, 1, 1),
            (0, length, length),
            (1, 100_000, 100_000),
            (4_095, 4_097, 4_097),
            (199_999, 1, 1),
            (length, 9, 0),
        ] {
            let there = in_memory(&file, offset, most)?;
            // A file system that cannot tell says that nothing is.
            assert!(there == expected || there == 0, "{there} from {offset} on");
        }
        file.set_len(6_000)?;
        assert!(in_memory(&file, 0, length)? <= 8_192);
        assert_eq!(in_memory(&file, 6_000, 1)?, 0);
        Ok(())
    }

    #[tokio::test]
    async fn a_part_is_sent_and_nothing_behind_it() -> io::Result<()> {
        for (offset, length, most) in [(0, 200_000, 300_000), (777, 150_001, 10_000), (9, 1, 1)] {
            let read = sent(sender(offset, length)?, most).await?;
            assert!(read == bytes()[offset..offset + length]);
        }
        Ok(())
    }

    #[tokio::test]
    async fn what_a_thread_has_read_is_sent() -> io::Result<()> {
        let mut sender = sender(5, 50_000)?;
        // As if nothing had been in memory.
        sender.reading = Some(read(Arc::clone(&sender.file), sender.offset, sender.left));
        assert!(sender.is_reading());
        assert!(sent(sender, 300_000).await? == bytes()[5..50_005]);
        Ok(())
    }

    #[tokio::test]
    async fn a_look_leaves_alone_what_a_thread_reads() -> io::Result<()> {
        let (mut socket, _client) = sockets()?;
        let mut sender = sender(0, 50_000)?;
        sender.reading = Some(read(Arc::clone(&sender.file), 0, 50_000));
        assert_eq!(sender.look(&mut socket)?, 0);
        assert_eq!(sender.left(), 50_000);
        Ok(())
    }

    #[tokio::test]
    async fn a_file_that_became_shorter_is_an_error() -> io::Result<()> {
        let sender = sender(0, FILE_BYTES)?;
        sender.file.set_len(0)?;
        let (mut sender, (mut socket, _client)) = (sender, sockets()?);
        let step = std::future::poll_fn(|cx| sender.poll_send(9, &mut socket, cx)).await;
        let kind = step.expect_err("there is nothing to send").kind();
        assert_eq!(kind, io::ErrorKind::UnexpectedEof);
        Ok(())
    }
}
