use std::io;
use std::os::fd::OwnedFd;

use rustix::net::listen;

use super::{InheritedSocket, Listener, ListenerSocket, SocketFile};
use crate::Address;

/// Returns the listeners of sockets that the version before bound to `address`, as it was named.
///
/// No further one joins them where there are more loops than before, and none is given up where
/// there are fewer: the system has shared out the connections that wait, and those at a socket that
/// is closed are reset. So unless there is one for each loop, loops pass connections on.
pub(crate) fn take_over(
    address: &Address,
    sockets: Vec<OwnedFd>,
    loops: usize,
    backlog: u16,
) -> io::Result<Vec<Listener>> {
    let alone = sockets.len() != loops;
    let listeners = sockets.into_iter().map(|socket| {
        let mut listener = InheritedSocket::try_from(socket)?.listen()?;
        // It listens already; this sets the length of its queue.
        match &listener.socket {
            ListenerSocket::Tcp(socket) => listen(socket, backlog.into())?,
            ListenerSocket::Unix(socket) => listen(socket, backlog.into())?,
        }
        listener.alone = alone || listener.is_of_unix();
        if let Address::Unix(path) = address {
            listener.file = Some(SocketFile(path.clone()));
        }
        Ok(listener)
    });
    listeners.collect()
}
