use std::fmt;
use std::io;
use std::task::{Context, Poll, ready};

use super::buffers::{Buffers, INPUT_BYTES_MAX, with_buffers};
use super::error::Broken;
use super::hello::{Hello, RECORD_HEAD_BYTES};
use super::session::{PLAIN_BYTES_MAX, RECORD_BYTES_MAX, RECORD_PLAIN_BYTES_MAX, Session, Step};
use super::{Tls, TlsInfo};
use crate::connection::Socket;

/// Most bytes of a handshake that has not come to its end: a client's certificates are the longest
/// part of it.
const HANDSHAKE_BYTES_MAX: usize = 32 * 1_024;
/// Records that a socket has to take at once before it is given several again. Else a client that
/// takes little at a time would have four of them kept for it, again and again.
const ONE_BY_ONE: u8 = 16;
/// Most bytes that go before content in one go; rustls never has as many to send.
const CONTROL_BYTES_MAX: usize = 8 * 1_024;
/// Bytes of records without content, one behind the other, for which a client is given up: each
/// costs as much to decrypt as one with content, and takes nobody's turn.
const EMPTY_BYTES_MAX: usize = 4 * 1_024;
/// Records that are decrypted before the reader has what there is of their content.
const RECORDS_MAX: usize = 128;

/// A client's socket with TLS on it.
///
/// It reads and writes through the buffers of the thread that polls it. Its own are input that is
/// no whole record yet, content for which its reader had no room, and output that the socket did
/// not take: all of them empty, and without memory, while it is idle.
pub(crate) struct TlsStream {
    socket: Socket,
    session: Session,
    /// Ciphertext that was read and not worked off.
    input: Vec<u8>,
    /// Bytes of the input, while the handshake lasts, that are records which the session has seen:
    /// it keeps them there until their message is whole, and changes them.
    seen: usize,
    /// Bytes of records that came without content since the last that had some.
    empty: usize,
    /// Content that was read and not taken, and how much of it was taken since.
    content: Vec<u8>,
    content_taken: usize,
    /// Ciphertext that was not sent, and how much of it was sent since.
    unsent: Vec<u8>,
    unsent_taken: usize,
    /// The socket did not take all that it was given.
    is_blocked: bool,
    /// Records that go out one by one, since the socket did not take all that it was given.
    one_by_one: u8,
    /// The client has ended its side, or the socket has.
    has_ended: bool,
    /// We have ended ours, or broken the session off.
    is_ended: bool,
}

/// Reads from the socket: [`Socket::poll_read`] or [`Socket::look`].
type Read = fn(&mut Socket, &mut [u8], &mut Context<'_>) -> Poll<io::Result<usize>>;

impl TlsStream {
    /// Begins a handshake; `input` was read of the socket already.
    pub(crate) fn new(tls: &Tls, socket: Socket, input: Vec<u8>) -> io::Result<Self> {
        Ok(Self {
            socket,
            session: Session::new(tls.config())?,
            input,
            seen: 0,
            empty: 0,
            content: Vec::new(),
            content_taken: 0,
            unsent: Vec::new(),
            unsent_taken: 0,
            is_blocked: false,
            one_by_one: 0,
            has_ended: false,
            is_ended: false,
        })
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    pub(crate) fn socket_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }

    /// Bytes that it holds while it waits.
    pub(crate) fn held(&self) -> usize {
        self.input.len() + self.content.len() + self.unsent.len()
    }

    /// Bytes that were written and that the socket has not taken.
    pub(crate) fn behind(&self) -> usize {
        self.unsent.len() - self.unsent_taken
    }

    pub(crate) fn info(&mut self) -> TlsInfo {
        self.session.info()
    }

    /// Reads until there is a first message, or what is none.
    pub(crate) fn poll_hello(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Hello>> {
        loop {
            match Hello::of(&self.input) {
                Hello::Partial => ready!(self.poll_more_of_handshake(cx))?,
                come => return Poll::Ready(Ok(come)),
            }
        }
    }

    /// Reads more of the client's part of a handshake.
    fn poll_more_of_handshake(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.input.len() >= HANDSHAKE_BYTES_MAX {
            let fault = format!("a handshake of more than {HANDSHAKE_BYTES_MAX} bytes");
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, fault)));
        }
        let room_max = HANDSHAKE_BYTES_MAX - self.input.len();
        let (socket, input) = (&mut self.socket, &mut self.input);
        let length = ready!(with_buffers(|buffers| {
            let read = ready!(socket.poll_read(&mut buffers.input[..room_max], cx))?;
            input.extend_from_slice(&buffers.input[..read]);
            Poll::Ready(io::Result::Ok(read))
        }))?;
        if length == 0 {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        Poll::Ready(Ok(()))
    }

    /// Reads until there is a whole record of a handshake which the session has not seen.
    pub(crate) fn poll_record(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while record_length(&self.input[self.seen..]).is_none() {
            ready!(self.poll_more_of_handshake(cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// Ciphertext that was read and not worked off.
    pub(crate) fn input(&self) -> &[u8] {
        &self.input
    }

    /// Goes on with the handshake by what was read: `true` if it is over. What is to be sent is
    /// sent by [`poll_flush`](Self::poll_flush).
    pub(crate) fn shake(&mut self) -> io::Result<bool> {
        while let Some(length) = record_length(&self.input[self.seen..]) {
            self.seen += length;
        }
        loop {
            match self.step_on_own_input()? {
                Step::Handshaking => return Ok(false),
                Step::Ended => return Err(io::ErrorKind::UnexpectedEof.into()),
                Step::Open => return Ok(true),
                Step::Again if !self.session.is_handshaking() => return Ok(true),
                Step::Again => {}
            }
        }
    }

    /// Takes a step with the input that is its own.
    fn step_on_own_input(&mut self) -> Result<Step, Broken> {
        let content = &mut self.content;
        let mut keep = |more: &[u8]| content.extend_from_slice(more);
        let (input, unsent) = (&mut self.input, &mut self.unsent);
        let (used, step) = self.session.step(input, &mut keep, unsent);
        input.drain(..used);
        self.seen = self.seen.saturating_sub(used);
        if step.is_err() {
            self.session.alert(input, unsent);
            self.is_ended = true;
        }
        if input.is_empty() {
            *input = Vec::new();
        }
        step
    }

    /// Works off the input that is its own, so that nothing but content is to be sent.
    fn settle(&mut self) -> io::Result<()> {
        loop {
            match self.step_on_own_input()? {
                Step::Again => {}
                // It says so again and again once both sides have ended.
                Step::Ended if !self.has_ended => self.has_ended = true,
                Step::Open => return Ok(()),
                Step::Ended | Step::Handshaking => {
                    return Err(io::ErrorKind::NotConnected.into());
                }
            }
        }
    }

    /// Reads content into `room`: how many bytes, 0 at the end of the stream.
    pub(crate) fn poll_read(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_by(Socket::poll_read, room, cx)
    }

    /// Reads what has come by now, whether or not the runtime knows of it yet.
    pub(crate) fn look(
        &mut self,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        self.poll_read_by(Socket::look, room, cx)
    }

    fn poll_read_by(
        &mut self,
        read: Read,
        room: &mut [u8],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.content_taken < self.content.len() {
            return Poll::Ready(Ok(self.take_content(room)));
        }
        if self.has_ended {
            return Poll::Ready(Ok(0));
        }
        let done = with_buffers(|buffers| self.poll_decrypted(read, room, buffers, cx));
        if !matches!(done, Poll::Ready(Ok(1..))) {
            // Nobody may write soon, or ever. If the socket takes no more, whoever writes next sees
            // it.
            let _sent = self.try_write(&[]);
        }
        done
    }

    fn take_content(&mut self, room: &mut [u8]) -> usize {
        let left = &self.content[self.content_taken..];
        let length = left.len().min(room.len());
        room[..length].copy_from_slice(&left[..length]);
        self.content_taken += length;
        if self.content_taken == self.content.len() {
            self.content = Vec::new();
            self.content_taken = 0;
        }
        length
    }

    /// Reads records and decrypts them into `room`, as many as have come and fit.
    fn poll_decrypted(
        &mut self,
        read: Read,
        room: &mut [u8],
        buffers: &mut Buffers,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut start = 0;
        let mut end = self.input.len();
        buffers.input[..end].copy_from_slice(&self.input);
        self.input = Vec::new();
        let done = loop {
            let input = &mut buffers.input[start..end];
            let (used, decrypted) = self.decrypt(input, room);
            start += used;
            match decrypted {
                Err(error) => {
                    let rest = &mut buffers.input[start..end];
                    self.session.alert(rest, &mut self.unsent);
                    self.is_ended = true;
                    break Poll::Ready(Err(error.into()));
                }
                Ok(length) if length > 0 || self.has_ended => break Poll::Ready(Ok(length)),
                Ok(_) => {}
            }
            buffers.input.copy_within(start..end, 0);
            end -= start;
            start = 0;
            if end == INPUT_BYTES_MAX {
                break Poll::Ready(Err(Broken::Unexpected.into()));
            }
            match read(&mut self.socket, &mut buffers.input[end..], cx) {
                Poll::Ready(Ok(0)) => {
                    // Without the notice of an end it may have been truncated by anybody; requests
                    // tell their own end.
                    self.has_ended = true;
                    break Poll::Ready(Ok(0));
                }
                Poll::Ready(Ok(length)) => end += length,
                other => break other,
            }
        };
        if start < end {
            self.input = buffers.input[start..end].to_vec();
        }
        done
    }

    /// Decrypts into `room` what fits of whole records: how many bytes of `input` are used up, and
    /// how many bytes of content there are. What does not fit of a record is kept.
    fn decrypt(&mut self, input: &mut [u8], room: &mut [u8]) -> (usize, Result<usize, Broken>) {
        let (mut used, mut filled) = (0, 0);
        let (mut taken, mut records) = (self.content.len(), 0);
        loop {
            records += 1;
            let content = &mut self.content;
            let mut take = |more: &[u8]| {
                let fitting = more.len().min(room.len() - filled);
                room[filled..filled + fitting].copy_from_slice(&more[..fitting]);
                filled += fitting;
                content.extend_from_slice(&more[fitting..]);
            };
            let unsent = &mut self.unsent;
            let (more, step) = self.session.step(&mut input[used..], &mut take, unsent);
            used += more;
            let taken_before = std::mem::replace(&mut taken, filled + self.content.len());
            self.empty = if taken > taken_before {
                0
            } else {
                self.empty + more
            };
            if self.empty > EMPTY_BYTES_MAX {
                return (used, Err(Broken::Empty));
            }
            match step {
                Ok(Step::Again) if filled > 0 && records >= RECORDS_MAX => {
                    return (used, Ok(filled));
                }
                Ok(Step::Again) if filled == 0 || fits(&input[used..], room.len() - filled) => {}
                Ok(Step::Again | Step::Open | Step::Handshaking) => return (used, Ok(filled)),
                Ok(Step::Ended) => {
                    self.has_ended = true;
                    return (used, Ok(filled));
                }
                Err(error) => return (used, Err(error)),
            }
        }
    }

    /// Writes some of the parts, in their order: how many bytes of them. They are encrypted and
    /// given to the socket in one go; what it does not take is kept, and sent before anything more
    /// is encrypted.
    pub(crate) fn poll_write(
        &mut self,
        parts: [&[u8]; 3],
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        if self.is_blocked || self.behind() > CONTROL_BYTES_MAX {
            ready!(self.poll_unsent(cx))?;
        }
        self.settle()?;
        let length_max = match self.one_by_one {
            0 => PLAIN_BYTES_MAX,
            _ => RECORD_PLAIN_BYTES_MAX,
        };
        with_buffers(|buffers| {
            let (written, length) = self.encrypt(parts, length_max, buffers)?;
            let output = &buffers.output[..length];
            let sent = match self.socket.poll_write(output, &[], &[], cx) {
                Poll::Ready(sent) => sent?,
                Poll::Pending => 0,
            };
            self.keep(&output[sent..]);
            Poll::Ready(Ok(written))
        })
    }

    /// Writes what the system takes by now, whether or not the runtime knows that it would: how
    /// many bytes of `bytes`, which may be none although the system took some of what was written
    /// before.
    pub(crate) fn try_write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.behind() > 0 {
            self.unsent_taken += self.socket.try_write(&self.unsent[self.unsent_taken..])?;
            if self.behind() > 0 {
                return Ok(0);
            }
            self.all_is_sent();
        }
        let mut written = 0;
        while written < bytes.len() && !self.is_blocked {
            written += self.try_write_record(&bytes[written..])?;
        }
        Ok(written)
    }

    fn try_write_record(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.settle()?;
        with_buffers(|buffers| {
            let parts = [bytes, &[], &[]];
            let (written, length) = self.encrypt(parts, RECORD_PLAIN_BYTES_MAX, buffers)?;
            let output = &buffers.output[..length];
            let sent = match self.socket.try_write(output) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => 0,
                sent => sent?,
            };
            self.keep(&output[sent..]);
            Ok(written)
        })
    }

    /// Encrypts up to `length_max` bytes of the parts behind what is unsent: how many, and how many
    /// bytes are to be sent then.
    fn encrypt(
        &mut self,
        parts: [&[u8]; 3],
        length_max: usize,
        buffers: &mut Buffers,
    ) -> io::Result<(usize, usize)> {
        let before = &self.unsent[self.unsent_taken..];
        let (lead, room) = buffers.output.split_at_mut(before.len());
        lead.copy_from_slice(before);
        let plain = match parts {
            [first, [], []] => &first[..first.len().min(length_max)],
            parts => gather(parts, length_max, &mut buffers.gathered),
        };
        let encrypted = self.session.encrypt(&mut self.input, plain, room)?;
        Ok((plain.len(), lead.len() + encrypted))
    }

    /// Keeps the rest of what was to be sent.
    fn keep(&mut self, rest: &[u8]) {
        self.unsent = rest.to_vec();
        self.unsent_taken = 0;
        self.is_blocked = !rest.is_empty();
        self.one_by_one = match rest {
            [] => self.one_by_one.saturating_sub(1),
            _ => ONE_BY_ONE,
        };
    }

    fn all_is_sent(&mut self) {
        self.keep(&[]);
    }

    /// Sends what the socket has not taken so far.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_unsent(cx)
    }

    fn poll_unsent(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while self.behind() > 0 {
            self.is_blocked = true;
            let left = &self.unsent[self.unsent_taken..];
            let sent = ready!(self.socket.poll_write(left, &[], &[], cx))?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.unsent_taken += sent;
        }
        self.all_is_sent();
        Poll::Ready(Ok(()))
    }

    /// Tells the client that nothing more is sent, as far as the system takes that by now.
    pub(crate) fn end(&mut self) {
        if !self.is_ended {
            self.is_ended = true;
            if self.settle().is_ok() {
                self.session.end(&mut self.input, &mut self.unsent);
            }
        }
        let _sent = self.try_write(&[]);
    }

    /// The same, and waits until the system has it.
    pub(crate) fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.end();
        self.poll_unsent(cx).map(|_sent| ())
    }

    /// The same, and ends our side of the socket.
    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_close(cx));
        self.socket.poll_shutdown(cx)
    }
}

/// Returns the length of the first record with its header, if it is there as a whole. What is too
/// long for one counts as if it were there: it need not come to be no record.
fn record_length(input: &[u8]) -> Option<usize> {
    let (head, content) = input.split_at_checked(RECORD_HEAD_BYTES)?;
    let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
    if length > RECORD_BYTES_MAX {
        return Some(input.len());
    }
    (content.len() >= length).then_some(RECORD_HEAD_BYTES + length)
}

/// Returns `true` if the next record, by its header, has no more content than fits.
fn fits(input: &[u8], room_bytes: usize) -> bool {
    let length = match input {
        [_, _, _, high, low, ..] => usize::from(u16::from_be_bytes([*high, *low])),
        _ => 0,
    };
    length <= room_bytes
}

/// Copies up to `length_max` bytes of the parts into one place.
fn gather<'a>(parts: [&[u8]; 3], length_max: usize, into: &'a mut Vec<u8>) -> &'a [u8] {
    into.clear();
    for part in parts {
        let length = part.len().min(length_max - into.len());
        into.extend_from_slice(&part[..length]);
    }
    into
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TlsStream")
            .field("socket", &self.socket)
            .finish_non_exhaustive()
    }
}
