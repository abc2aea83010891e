//! A stream socket that never blocks.

use std::io::{self, IoSlice, Read, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvFlags, SendAncillaryBuffer, SendFlags, SocketAddrUnix, connect, getpeername, recv, send,
    sendmsg, sockopt,
};

use crate::run::{Address, socket};

/// A socket that is connected, or about to be.
#[derive(Debug)]
pub(super) struct Socket(OwnedFd);

impl Socket {
    /// Begins to connect.
    pub(super) fn connect(
        address: &Address,
        source: Option<IpAddr>,
        window_bytes: Option<usize>,
    ) -> io::Result<Self> {
        let socket = Self(socket(address, source, window_bytes)?);
        let begun = match address {
            Address::Tcp(address) => connect(&socket.0, address),
            Address::Unix(path) => connect(&socket.0, &SocketAddrUnix::new(path)?),
        };
        match begun {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends small segments at once, where a request takes more than one write.
    pub(super) fn set_no_delay(&self) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(&self.0, true)?)
    }

    /// Returns true if the connection is established, as on this machine it is right after its
    /// begin.
    pub(super) fn is_connected(&self) -> bool {
        getpeername(&self.0).is_ok()
    }

    pub(super) fn receive(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let (length, _) = recv(&self.0, buffer, RecvFlags::empty())?;
        Ok(length)
    }

    pub(super) fn send(&self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        let sent = match slices {
            [slice] => send(&self.0, slice, SendFlags::NOSIGNAL),
            _ => sendmsg(
                &self.0,
                slices,
                &mut SendAncillaryBuffer::default(),
                SendFlags::NOSIGNAL,
            ),
        };
        Ok(sent?)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.receive(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.send(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
