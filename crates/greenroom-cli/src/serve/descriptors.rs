//! Descriptors that this process was started with, known by their numbers.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use nix::errno::Errno;
use nix::sys::socket::{ControlMessage, MsgFlags, SockaddrStorage, getsockname, sendmsg};
use nix::unistd::close;
use rustix::cmsg_space;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};

/// Standard input, output and error stay open.
const STANDARD_MAX: RawFd = 2;

/// Fails unless the number is that of an open socket. To be called for all numbers before anything
/// is opened, which could get the number of one that is closed.
pub(super) fn check(number: RawFd) -> io::Result<()> {
    match getsockname::<SockaddrStorage>(number) {
        Err(Errno::EBADF) => Err(io::Error::other("the descriptor is not open")),
        Err(Errno::ENOTSOCK) => Err(io::Error::other("it is not a socket")),
        // Any other fault shows when it is used.
        _ => Ok(()),
    }
}

/// Takes over the descriptor with this number, so that no program that is started from here has it.
///
/// To own a number is unsafe in Rust, since other code may own it. So the descriptor is sent in a
/// message (`SCM_RIGHTS`, unix(7)), from which a new one is received, and the old one is closed.
pub(super) fn take(number: RawFd) -> io::Result<OwnedFd> {
    let (sender, receiver) = UnixStream::pair()?;
    let rights = [ControlMessage::ScmRights(&[number])];
    let byte = [IoSlice::new(&[0])];
    sendmsg::<()>(sender.as_raw_fd(), &byte, &rights, MsgFlags::empty(), None)?;
    let taken = from_message(&receiver)?;
    if number > STANDARD_MAX {
        close(number)?;
    }
    Ok(taken)
}

fn from_message(socket: &UnixStream) -> io::Result<OwnedFd> {
    let (mut byte, mut space) = ([0], [MaybeUninit::uninit(); cmsg_space!(ScmRights(1))]);
    let mut byte = [IoSliceMut::new(&mut byte)];
    let mut received = RecvAncillaryBuffer::new(&mut space);
    recvmsg(socket, &mut byte, &mut received, RecvFlags::CMSG_CLOEXEC)?;
    let taken = received.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    taken.ok_or_else(|| io::Error::other("too many descriptors are open"))
}
