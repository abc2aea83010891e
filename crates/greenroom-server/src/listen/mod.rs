//! Listening sockets: one for each loop and address where the system can share a port, one for all
//! loops where it cannot.

mod accept;
mod acceptor;
mod defer_accept;
mod inherited;
mod refuse;
mod taken_over;
mod waited;

use std::io;
use std::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use socket2::{Domain, Protocol, SockAddr, Socket, Type};

pub(crate) use accept::{Accepted, AcceptedSocket, Fault};
pub(crate) use acceptor::AnyStream;
pub use acceptor::{AcceptedStream, Acceptor};
pub(crate) use defer_accept::DEFERRED;
pub use inherited::InheritedSocket;
pub(crate) use refuse::{BUSY, TOO_MANY, Unread};
pub(crate) use taken_over::{Borrowed, take_over};

use crate::upgrade::Handed;
use crate::{Address, Error};

/// Bytes that the system takes ahead of what a client's window allows. Without this bound
/// (`TCP_NOTSENT_LOWAT`, tcp(7)) each slow reader costs megabytes of the system's memory, and the
/// time to fill them.
const UNSENT_BYTES_MAX: u32 = 128 * 1_024;

/// The longest time in milliseconds that the system takes for `TCP_USER_TIMEOUT`.
const UNTAKEN_MAX_MS: u128 = i32::MAX as u128;

/// One listening socket.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) socket: ListenerSocket,
    pub(crate) address: Address,
    /// The file of a Unix socket, which goes with it unless the next version has it.
    file: Option<SocketFile>,
    /// There as long as the version before serves the socket, and may go on with it.
    pub(crate) borrowed: Option<Borrowed>,
    /// There if the socket goes over to the next version.
    pub(crate) handed: Option<Arc<Handed>>,
    /// The only one of its address, so that its loop passes connections on to the others.
    pub(crate) alone: bool,
    /// Each connection begins with a header of the PROXY protocol.
    pub(crate) is_proxied: bool,
    pub(crate) security: Security,
}

/// The security of a listener's connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Security {
    /// None, or the application's.
    None,
    /// A handshake of TLS comes first, behind the header of the PROXY protocol if there is one.
    #[cfg(feature = "tls")]
    Tls,
    /// None, and clients are sent on to where there is TLS.
    Redirected,
}

impl Listener {
    fn is_of_unix(&self) -> bool {
        matches!(self.socket, ListenerSocket::Unix(_))
    }

    /// Returns `true` if the next version serves its connections.
    pub(crate) fn is_taken(&self) -> bool {
        self.handed.as_ref().is_some_and(|handed| handed.is_taken())
    }

    /// Has the system end connections whose client takes nothing of what was sent for `time`, and
    /// those that were closed with something left to send, which it would else keep for minutes
    /// (tcp(7), `TCP_USER_TIMEOUT`). Accepted connections inherit it. One that is borrowed gets it
    /// when it becomes [this version's](Self::own).
    pub(crate) fn set_untaken_max(&self, time: Duration) {
        if self.borrowed.is_some() {
            return;
        }
        if let ListenerSocket::Tcp(listener) = &self.socket {
            // None that the system cannot count is none at all: a listener that was taken over may
            // have one already.
            let time = (time.as_millis() <= UNTAKEN_MAX_MS).then_some(time);
            // A system that does not know it has limits of its own.
            let _set = socket2::SockRef::from(listener).set_tcp_user_timeout(time);
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let handed = self.handed.take();
        if let Some(handed) = &handed {
            handed.close();
        }
        let is_taken = handed.is_some_and(|handed| handed.is_taken());
        if let Some(file) = self.file.take().filter(|_| !is_taken) {
            file.remove();
        }
    }
}

impl ListenerSocket {
    /// Its address; port 0 of no address if the system does not say.
    pub(crate) fn address(&self) -> Address {
        let none = Address::Tcp(SocketAddr::from(([0, 0, 0, 0], 0)));
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or(none, Address::Tcp),
            Self::Unix(listener) => listener.local_addr().map_or(none, |address| {
                Address::Unix(address.as_pathname().unwrap_or(Path::new("")).to_owned())
            }),
        }
    }
}

#[derive(Debug)]
pub(crate) enum ListenerSocket {
    Tcp(std::net::TcpListener),
    Unix(UnixListener),
}

/// A socket's file.
#[derive(Debug)]
pub(crate) struct SocketFile(PathBuf);

impl SocketFile {
    fn remove(self) {
        // Somebody may have removed it already; there is nobody to tell.
        let _gone = std::fs::remove_file(&self.0);
    }
}

/// Binds the listeners of one address, one for each loop: all of them for TCP, the first one only
/// for a Unix socket.
pub(crate) fn bind(address: &Address, loops: usize, backlog: u16) -> Result<Vec<Listener>, Error> {
    let bound = match address {
        Address::Tcp(address) => bind_tcp(*address, loops, backlog),
        Address::Unix(path) => bind_unix(path, backlog).map(|listener| vec![listener]),
    };
    bound.map_err(|source| Error::Bind {
        address: address.clone(),
        source,
    })
}

fn bind_tcp(address: SocketAddr, loops: usize, backlog: u16) -> io::Result<Vec<Listener>> {
    // Two servers that share a port by accident would each get half of the connections: the
    // first socket is bound without sharing, which fails if anybody else has the port.
    let first = tcp_socket(address)?;
    first.bind(&address.into())?;
    first.set_reuse_port(loops > 1)?;
    let first = listen(first, backlog)?;
    let local = first.local_addr()?;
    Ok(join(first, local, loops, backlog))
}

/// The listeners of a socket that the caller bound.
pub(crate) fn adopt(
    listener: ListenerSocket,
    loops: usize,
    backlog: u16,
) -> io::Result<Vec<Listener>> {
    match listener {
        ListenerSocket::Tcp(listener) => adopt_tcp(listener, loops, backlog),
        ListenerSocket::Unix(listener) => adopt_unix(listener).map(|listener| vec![listener]),
    }
}

/// The file of the socket stays with who made it.
fn adopt_unix(listener: UnixListener) -> io::Result<Listener> {
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    Ok(Listener {
        address: Address::Unix(address.as_pathname().unwrap_or(Path::new("")).to_owned()),
        socket: ListenerSocket::Unix(listener),
        file: None,
        borrowed: None,
        handed: None,
        alone: true,
        is_proxied: false,
        security: Security::None,
    })
}

fn adopt_tcp(
    listener: std::net::TcpListener,
    loops: usize,
    backlog: u16,
) -> io::Result<Vec<Listener>> {
    listener.set_nonblocking(true)?;
    let socket = socket2::SockRef::from(&listener);
    socket.set_reuse_port(loops > 1)?;
    set_inherited(&socket)?;
    defer_accept::set(&listener)?;
    let local = listener.local_addr()?;
    Ok(join(listener, local, loops, backlog))
}

/// Adds a listener on the same port for each further loop. Where the system does not let them
/// join, the first serves alone.
fn join(
    first: std::net::TcpListener,
    local: SocketAddr,
    loops: usize,
    backlog: u16,
) -> Vec<Listener> {
    let joined: io::Result<Vec<_>> = (1..loops)
        .map(|_| {
            let socket = tcp_socket(local)?;
            socket.set_reuse_port(true)?;
            socket.bind(&local.into())?;
            listen(socket, backlog)
        })
        .collect();
    let others = joined.unwrap_or_else(|error| {
        tracing::debug!(%error, address = %local, "one listener serves all loops");
        Vec::new()
    });
    let alone = others.len() + 1 < loops;
    let listeners = std::iter::once(first).chain(others);
    listeners
        .map(|listener| Listener {
            socket: ListenerSocket::Tcp(listener),
            file: None,
            borrowed: None,
            handed: None,
            address: Address::Tcp(local),
            alone,
            is_proxied: false,
            security: Security::None,
        })
        .collect()
}

fn tcp_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM.nonblocking(),
        Some(Protocol::TCP),
    )?;
    socket.set_reuse_address(true)?;
    set_inherited(&socket2::SockRef::from(&socket))?;
    Ok(socket)
}

/// Sets the options that accepted connections inherit, which saves a system call for each.
fn set_inherited(socket: &socket2::SockRef<'_>) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    socket.set_tcp_notsent_lowat(UNSENT_BYTES_MAX)
}

fn listen(socket: Socket, backlog: u16) -> io::Result<std::net::TcpListener> {
    defer_accept::set(&socket)?;
    socket.listen(backlog.into())?;
    Ok(socket.into())
}

fn bind_unix(path: &Path, backlog: u16) -> io::Result<Listener> {
    remove_stale(path)?;
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(backlog.into())?;
    let address = Address::Unix(path.to_owned());
    Ok(Listener {
        socket: ListenerSocket::Unix(socket.into()),
        file: Some(SocketFile(path.to_owned())),
        borrowed: None,
        handed: None,
        address,
        alone: true,
        is_proxied: false,
        security: Security::None,
    })
}

/// Removes a socket file that a server left behind; one that somebody listens on stays, and so
/// does anything that is not a socket: binding will fail and say so.
fn remove_stale(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|meta| meta.file_type().is_socket());
    if !is_socket {
        return Ok(());
    }
    // One that waits would wait for room in the queue of whoever listens there, without end;
    // this one is told that there is none (connect(2), `EAGAIN`).
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            std::fs::remove_file(path)
        }
        _ => Ok(()),
    }
}
