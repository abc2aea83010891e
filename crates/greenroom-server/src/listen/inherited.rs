use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketType, sockopt};

use super::{Listener, ListenerSocket, Security, defer_accept, set_inherited};
use crate::Address;

/// A listening socket that other processes have too: those that passed it on, as Perl's
/// `start_server` and systemd do, and those that served before or will serve after this one.
///
/// ```
/// use std::net::TcpListener;
/// use std::os::fd::OwnedFd;
///
/// use greenroom_server::{InheritedSocket, Server};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let passed_on = OwnedFd::from(TcpListener::bind("127.0.0.1:0")?);
/// let server = Server::builder()
///     .inherited(InheritedSocket::try_from(passed_on)?)
///     .bind()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct InheritedSocket(pub(super) ListenerSocket);

impl InheritedSocket {
    /// Returns the address that it listens on.
    #[must_use]
    pub fn address(&self) -> Address {
        self.0.address()
    }

    /// Has the socket serve all loops. No listener of another loop joins its port: the system would
    /// give that one connections of its own, and reset those that wait there when this process
    /// ends, although another one goes on with the inherited socket.
    pub(crate) fn listen(self) -> io::Result<Listener> {
        let address = self.address();
        match &self.0 {
            ListenerSocket::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                set_inherited(&socket2::SockRef::from(listener))?;
                defer_accept::set(listener)?;
            }
            ListenerSocket::Unix(listener) => listener.set_nonblocking(true)?,
        }
        Ok(Listener {
            socket: self.0,
            address,
            file: None,
            borrowed: None,
            handed: None,
            alone: true,
            is_proxied: false,
            security: Security::None,
        })
    }
}

impl TryFrom<OwnedFd> for InheritedSocket {
    type Error = io::Error;

    /// Fails for what is no socket, and for a socket that does not listen, or not for streams over
    /// TCP or on a path.
    fn try_from(socket: OwnedFd) -> io::Result<Self> {
        let invalid = |what| io::Error::new(io::ErrorKind::InvalidInput, what);
        let kind = sockopt::socket_type(&socket).map_err(|errno| match errno {
            Errno::NOTSOCK => invalid("it is not a socket"),
            other => other.into(),
        })?;
        if kind != SocketType::STREAM || !sockopt::socket_acceptconn(&socket)? {
            return Err(invalid("it is not a stream socket that listens"));
        }
        match sockopt::socket_domain(socket.as_fd())? {
            AddressFamily::INET | AddressFamily::INET6 => {
                Ok(Self(ListenerSocket::Tcp(socket.into())))
            }
            AddressFamily::UNIX => Ok(Self(ListenerSocket::Unix(socket.into()))),
            _ => Err(invalid("it is neither a TCP nor a Unix socket")),
        }
    }
}
