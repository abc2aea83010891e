use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use rustix::io::Errno;
use rustix::net::{SocketFlags, accept_with, acceptfrom_with};

use super::{AnyStream, Listener, ListenerSocket, Security};
use crate::event_loop::Permit;
#[cfg(feature = "tls")]
use crate::tls::TlsStream;
use crate::{Address, ConnectionInfo};

/// A connection as it was accepted, not yet registered with any runtime.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) socket: AcceptedSocket,
    pub(crate) info: ConnectionInfo,
    /// If it says nothing, it has been doing so for [`super::DEFERRED`].
    pub(crate) deferred: bool,
    /// A header of the PROXY protocol comes first, and was not read.
    pub(crate) is_proxied: bool,
    pub(crate) security: Security,
    /// Input that was read already.
    pub(crate) input: Vec<u8>,
    /// Its place in the count, if it has been counted already.
    pub(crate) permit: Option<Permit>,
}

#[derive(Debug)]
pub(crate) enum AcceptedSocket {
    Tcp(std::net::TcpStream),
    Unix(std::os::unix::net::UnixStream),
    /// From an [`Acceptor`](crate::Acceptor).
    Any(AnyStream),
    /// One of the others, past its handshake.
    #[cfg(feature = "tls")]
    Tls(Box<TlsStream>),
}

/// A failed accept, by what is to be done.
#[derive(Debug)]
pub(crate) enum Fault {
    /// None waits: wait for the next.
    WouldBlock,
    /// The connection ended, or the network failed it, before it was accepted: go on with the
    /// next (accept(2): these are pending errors of the new socket).
    OfTheConnection,
    /// Descriptors or memory are used up, or something unknown is amiss: back off, make room.
    Exhausted(io::Error),
    /// The listener itself is broken.
    OfTheListener(io::Error),
}

impl Listener {
    /// Accepts one connection, non-blocking from the start.
    pub(crate) fn accept(&self) -> Result<Accepted, Fault> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let (socket, peer) = match &self.socket {
            ListenerSocket::Tcp(listener) => {
                let (descriptor, peer) = acceptfrom_with(listener, flags).map_err(fault)?;
                let peer = peer.and_then(|any| SocketAddr::try_from(any).ok());
                (AcceptedSocket::Tcp(descriptor.into()), peer)
            }
            ListenerSocket::Unix(listener) => {
                let descriptor = accept_with(listener, flags).map_err(fault)?;
                (AcceptedSocket::Unix(descriptor.into()), None)
            }
        };
        Ok(Accepted {
            socket,
            info: ConnectionInfo::new(peer, self.address.clone()),
            deferred: matches!(self.address, Address::Tcp(_)),
            is_proxied: self.is_proxied,
            security: self.security,
            input: Vec::new(),
            permit: None,
        })
    }
}

fn fault(errno: Errno) -> Fault {
    match errno {
        Errno::AGAIN => Fault::WouldBlock,
        // PERM is a firewall's (accept(2)): it concerns this connection, not the listener.
        Errno::INTR
        | Errno::CONNABORTED
        | Errno::CONNRESET
        | Errno::NETDOWN
        | Errno::PROTO
        | Errno::NOPROTOOPT
        | Errno::HOSTDOWN
        | Errno::HOSTUNREACH
        | Errno::OPNOTSUPP
        | Errno::NETUNREACH
        | Errno::NONET
        | Errno::TIMEDOUT
        | Errno::PERM => Fault::OfTheConnection,
        Errno::BADF | Errno::INVAL | Errno::NOTSOCK => Fault::OfTheListener(errno.into()),
        // EMFILE, ENFILE, ENOBUFS, ENOMEM; and whatever a later system may say.
        other => Fault::Exhausted(other.into()),
    }
}

impl AsRawFd for Listener {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => listener.as_fd(),
            ListenerSocket::Unix(listener) => listener.as_fd(),
        }
    }
}

impl AcceptedSocket {
    /// Its descriptor; an error for a stream of which none is known.
    pub(crate) fn descriptor(&self) -> io::Result<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Ok(stream.as_fd()),
            Self::Unix(stream) => Ok(stream.as_fd()),
            Self::Any(_) => Err(io::ErrorKind::Unsupported.into()),
            #[cfg(feature = "tls")]
            Self::Tls(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}
