use std::io;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};

use super::file_sender::FileSender;
use super::socket::Socket;

/// Bytes that are sent at once, if the client takes them; then the loop's other work goes first.
const SENT_BYTES_MAX: usize = 256 * 1_024;

/// The longest file that is sent right behind what goes before it, and not in turns.
const FILE_BYTES_AT_ONCE: u64 = 128 * 1_024;

/// Output that a client did not take yet: bytes that were copied, then a chunk of a body that was
/// not, and what ends the chunk, or the rest of a file. Empty, and without memory of its own,
/// unless the client reads too slowly.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    /// There while something is left, here or in a stream that keeps what was written to it.
    kept: Option<Box<Kept>>,
    /// Bytes that were given to the socket, since the connection began.
    given: u64,
    /// Bytes that the system took of them.
    taken: u64,
}

#[derive(Debug)]
struct Kept {
    bytes: Vec<u8>,
    sent: usize,
    rest: Uncopied,
}

/// A chunk of a body that is sent from where it is, and what stands behind it.
#[derive(Debug, Default)]
pub(super) struct Uncopied {
    pub(super) part: Bytes,
    pub(super) end: &'static [u8],
    /// The rest of the body, behind both.
    pub(super) file: Option<Box<FileSender>>,
}

impl Uncopied {
    /// Returns `true` if nothing is left but of a file.
    fn is_empty(&self) -> bool {
        self.part.is_empty() && self.end.is_empty()
    }

    fn left_of_file(&self) -> u64 {
        self.file.as_ref().map_or(0, |file| file.left())
    }

    fn left(&self) -> u64 {
        (self.part.len() + self.end.len()) as u64 + self.left_of_file()
    }

    /// Returns the first bytes of the chunk, at most so many, and what stands behind it if that is
    /// all of it.
    fn first(&self, bytes: usize) -> (&[u8], &'static [u8]) {
        match self.part.get(..bytes) {
            Some(first) => (first, &[]),
            None => (&self.part, self.end),
        }
    }

    fn advance(&mut self, sent: usize) {
        let of_part = sent.min(self.part.len());
        self.part.advance(of_part);
        self.end = &self.end[sent - of_part..];
    }
}

impl Outbox {
    pub(super) fn is_empty(&self) -> bool {
        self.kept.is_none()
    }

    /// Sends `bytes` and then `rest`, and keeps what the client does not take at once, and what is
    /// beyond [`SENT_BYTES_MAX`], or a longer file's than [`FILE_BYTES_AT_ONCE`]. Pending means
    /// that something was kept. The outbox must be empty, and `bytes` is afterwards.
    pub(super) fn poll_send(
        &mut self,
        bytes: &mut Vec<u8>,
        rest: Uncopied,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        debug_assert!(self.is_empty(), "what is kept goes first");
        self.poll_send_from(0, bytes, rest, socket, cx)
    }

    /// Sends `bytes` as [`poll_send`](Self::poll_send) does, with nothing behind them. A socket
    /// nearly always takes them at once.
    pub(super) fn poll_send_bytes(
        &mut self,
        bytes: &mut Vec<u8>,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        debug_assert!(self.is_empty(), "what is kept goes first");
        let at_once = bytes.len() <= SENT_BYTES_MAX && !socket.is_tls();
        // After an error they are sent again, which tells it once more.
        let sent = match at_once.then(|| socket.try_write(bytes)) {
            Some(Ok(sent)) => sent,
            Some(Err(_)) | None => 0,
        };
        self.count(sent as u64, socket);
        if sent == bytes.len() {
            bytes.clear();
            return Poll::Ready(Ok(()));
        }
        self.poll_send_from(sent, bytes, Uncopied::default(), socket, cx)
    }

    fn poll_send_from(
        &mut self,
        mut sent: usize,
        bytes: &mut Vec<u8>,
        mut rest: Uncopied,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let before = (bytes.len() - sent) as u64 + rest.left();
        let mut done = poll_send_all(bytes, &mut sent, &mut rest, socket, cx);
        if let (Poll::Ready(Ok(())), Some(file)) = (&done, &mut rest.file) {
            done = poll_begin_file(file, socket, cx);
        }
        let left = (bytes.len() - sent) as u64 + rest.left();
        self.count(before - left, socket);
        // What is left is counted after an error, too.
        if !matches!(done, Poll::Ready(Ok(()))) {
            self.kept = Some(Box::new(Kept {
                bytes: bytes.split_off(sent),
                sent: 0,
                rest,
            }));
        }
        bytes.clear();
        done
    }

    /// Sends what was kept.
    pub(super) fn poll_flush(
        &mut self,
        socket: &mut Socket,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        let Some(kept) = &mut self.kept else {
            return Poll::Ready(Ok(()));
        };
        let before = kept.left();
        let done = kept.poll_send(socket, cx);
        let given = before - kept.left();
        self.count(given, socket);
        ready!(done)?;
        self.kept = None;
        Poll::Ready(Ok(()))
    }

    /// Sends what the socket takes at this moment, whether or not the system has said that it
    /// would: it says so only once there is room for much more than a byte.
    pub(super) fn look(&mut self, socket: &mut Socket) -> io::Result<()> {
        let Some(kept) = &mut self.kept else {
            // A stream with TLS may still keep its last record.
            let taken = socket.try_write(&[])?;
            self.count(taken as u64, socket);
            return Ok(());
        };
        if let Some(file) = kept.next_file() {
            let sent = file.look(socket)?;
            self.count(sent, socket);
            return Ok(());
        }
        let bytes = &kept.bytes[kept.sent..];
        let first = [bytes, &kept.rest.part, kept.rest.end]
            .into_iter()
            .find(|part| !part.is_empty())
            .unwrap_or_default();
        let taken = socket.try_write(first)?;
        let of_bytes = taken.min(bytes.len());
        kept.sent += of_bytes;
        kept.rest.advance(taken - of_bytes);
        self.count(taken as u64, socket);
        Ok(())
    }

    /// Counts what was given to the socket. Of that a stream with TLS may keep some, in records
    /// that are longer than their content: so the sum never goes back.
    fn count(&mut self, given: u64, socket: &Socket) {
        self.given += given;
        let taken = self.given.saturating_sub(socket.behind() as u64);
        self.taken = self.taken.max(taken);
    }

    /// Bytes that were given to the socket in all.
    pub(super) fn given(&self) -> u64 {
        self.given
    }

    /// Bytes that the system took in all: while this grows, the client reads.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Bytes that are kept here. What is sent from where it is belongs to the application, which
    /// may send it to many.
    pub(super) fn kept(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.bytes.len())
    }

    /// Returns `true` if the disk is waited for, and not the client.
    pub(super) fn is_reading(&self) -> bool {
        let file = self.kept.as_ref().and_then(|kept| kept.rest.file.as_ref());
        file.is_some_and(|file| file.is_reading())
    }

    /// Bytes of a file that are still to be sent.
    pub(super) fn left_of_file(&self) -> u64 {
        self.kept
            .as_ref()
            .map_or(0, |kept| kept.rest.left_of_file())
    }
}

impl Kept {
    fn left(&self) -> u64 {
        (self.bytes.len() - self.sent) as u64 + self.rest.left()
    }

    /// Returns the file, if all that goes before it was sent.
    fn next_file(&mut self) -> Option<&mut FileSender> {
        let is_next = self.sent == self.bytes.len() && self.rest.is_empty();
        self.rest.file.as_deref_mut().filter(|_| is_next)
    }

    fn poll_send(&mut self, socket: &mut Socket, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.next_file().is_none() {
            let Self { bytes, sent, rest } = self;
            ready!(poll_send_all(bytes, sent, rest, socket, cx))?;
        }
        match self.next_file() {
            Some(file) => poll_send_file(file, socket, cx),
            None => Poll::Ready(Ok(())),
        }
    }
}

/// Sends a file, or has it sent in the next turn.
fn poll_begin_file(
    file: &mut FileSender,
    socket: &mut Socket,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    if file.left() > FILE_BYTES_AT_ONCE {
        cx.waker().wake_by_ref();
        return Poll::Pending;
    }
    poll_send_file(file, socket, cx)
}

fn poll_send_file(
    file: &mut FileSender,
    socket: &mut Socket,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut room = SENT_BYTES_MAX as u64;
    while file.left() > 0 {
        if room == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        room -= ready!(file.poll_send(room, socket, cx))?;
    }
    Poll::Ready(Ok(()))
}

fn poll_send_all(
    bytes: &[u8],
    sent: &mut usize,
    rest: &mut Uncopied,
    socket: &mut Socket,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    let mut room = SENT_BYTES_MAX;
    while *sent < bytes.len() || !rest.is_empty() {
        if room == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        let left = &bytes[*sent..bytes.len().min(*sent + room)];
        let is_ahead = rest.is_empty() && rest.left_of_file() > 0;
        let (part, end) = rest.first(room - left.len());
        let taken = ready!(if is_ahead {
            socket.poll_write_ahead(left, cx)
        } else if left.is_empty() {
            socket.poll_write(part, end, &[], cx)
        } else {
            socket.poll_write(left, part, end, cx)
        })?;
        room = room.saturating_sub(taken);
        // A stream that takes nothing and is not pending would be asked without end.
        if taken == 0 {
            return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
        }
        let of_bytes = taken.min(left.len());
        *sent += of_bytes;
        rest.advance(taken - of_bytes);
    }
    socket.poll_flush(cx)
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use rustix::net::sockopt::set_socket_send_buffer_size;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixStream;

    use super::*;

    async fn send(
        outbox: &mut Outbox,
        bytes: &mut Vec<u8>,
        socket: &mut Socket,
    ) -> Poll<io::Result<()>> {
        poll_fn(|cx| Poll::Ready(outbox.poll_send_bytes(bytes, socket, cx))).await
    }

    #[tokio::test]
    async fn what_a_socket_does_not_take_at_once_is_kept_and_sent_later() -> io::Result<()> {
        let (ours, mut theirs) = UnixStream::pair()?;
        set_socket_send_buffer_size(&ours, 8 * 1_024)?;
        let (mut socket, mut outbox) = (Socket::Unix(ours), Outbox::default());
        let sent: Vec<u8> = (0..100_000_u32).flat_map(u32::to_le_bytes).collect();
        let sent = &sent[..SENT_BYTES_MAX];
        let mut bytes = sent.to_vec();
        assert!(
            send(&mut outbox, &mut bytes, &mut socket)
                .await
                .is_pending()
        );
        assert!(bytes.is_empty() && outbox.given() > 0 && outbox.kept() > 0);
        assert_eq!(outbox.taken(), outbox.given());

        let mut read = vec![0; sent.len()];
        let flush = poll_fn(|cx| outbox.poll_flush(&mut socket, cx));
        let (flushed, reading) = tokio::join!(flush, theirs.read_exact(&mut read));
        flushed.and(reading)?;
        assert!(read == sent && outbox.is_empty());
        assert_eq!(outbox.given(), sent.len() as u64);
        Ok(())
    }

    #[tokio::test]
    async fn what_nobody_takes_is_an_error_and_not_counted() -> io::Result<()> {
        let (ours, theirs) = UnixStream::pair()?;
        drop(theirs);
        let (mut socket, mut outbox) = (Socket::Unix(ours), Outbox::default());
        let sent = send(&mut outbox, &mut vec![1; 9], &mut socket).await;
        assert!(matches!(sent, Poll::Ready(Err(_))), "{sent:?}");
        assert_eq!((outbox.given(), outbox.taken()), (0, 0));
        Ok(())
    }
}
