//! The messages between a process and its next version, over a pair of sockets.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::cmsg_space;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// Descriptors of a message. The system takes 253 (unix(7)); so few keep each message short enough
/// for all of them to wait in the socket, unread.
pub(super) const DESCRIPTORS_MAX: usize = 32;
/// The longest message: a line for each descriptor, of which the longest names a Unix socket.
const MESSAGE_BYTES_MAX: usize = 16 * 1_024;

/// One end of the pair. A message arrives whole, or not at all.
#[derive(Debug)]
pub(super) struct Channel(OwnedFd);

#[derive(Debug)]
pub(super) struct Message {
    pub(super) text: String,
    pub(super) descriptors: Vec<OwnedFd>,
}

impl Channel {
    /// Returns both ends; neither is inherited by itself.
    pub(super) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (ours, theirs) = socketpair(AddressFamily::UNIX, kind, flags, None)?;
        Ok((Self(ours), theirs))
    }

    pub(super) fn new(socket: OwnedFd) -> Self {
        Self(socket)
    }

    /// Sends a message; an error if it does not fit into the socket's buffer at once.
    pub(super) fn send(&self, text: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let text = &text[..text.floor_char_boundary(MESSAGE_BYTES_MAX)];
        send(&self.0, text, descriptors, SendFlags::DONTWAIT)
    }

    /// Waits for a message until `deadline`; `None` if none came by then. The end of the other
    /// process is an error of kind `UnexpectedEof`.
    pub(super) fn receive(&self, deadline: Instant) -> io::Result<Option<Message>> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let timeout = timespec(left);
            let mut polled = [PollFd::new(&self.0, PollFlags::IN)];
            match poll(&mut polled, Some(&timeout)) {
                Ok(0) if left.is_zero() => return Ok(None),
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return self.received().map(Some),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    fn received(&self) -> io::Result<Message> {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut bytes = vec![0; MESSAGE_BYTES_MAX];
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(&self.0, &mut parts, &mut control, flags)?;
        let descriptors: Vec<OwnedFd> = control
            .drain()
            .filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
                _ => None,
            })
            .flatten()
            .collect();
        if received.bytes == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        bytes.truncate(received.bytes);
        let text = String::from_utf8(bytes).map_err(io::Error::other)?;
        Ok(Message { text, descriptors })
    }
}

/// Sends a message over a connected socket.
pub(super) fn send(
    socket: impl AsFd,
    text: &str,
    descriptors: &[BorrowedFd<'_>],
    flags: SendFlags,
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors for a message"));
    }
    let parts = [IoSlice::new(text.as_bytes())];
    sendmsg(socket, &parts, &mut control, flags | SendFlags::NOSIGNAL)?;
    Ok(())
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec {
        tv_sec: i64::MAX,
        tv_nsec: 0,
    })
}
