use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::listen;

use super::{InheritedSocket, Listener, SocketFile};
use crate::Address;

/// The changes to a socket of the version before that wait until this version serves: one that
/// fails before that leaves the socket as it was, and its file.
#[derive(Debug, Default)]
pub(crate) struct Borrowed {
    /// The file that goes with the socket from then on.
    file: Option<SocketFile>,
    /// The length of its queue; `None` leaves it to whoever passed the socket on.
    backlog: Option<u16>,
}

impl Listener {
    /// Makes a borrowed socket this version's own, which may serve from now on.
    pub(crate) fn own(&mut self, untaken_max: Duration) {
        let Some(borrowed) = self.borrowed.take() else {
            return;
        };
        self.file = borrowed.file;
        self.set_untaken_max(untaken_max);
        // It listens already; this sets the length of its queue.
        if let Some(backlog) = borrowed.backlog
            && let Err(error) = listen(&*self, backlog.into())
        {
            let address = &self.address;
            tracing::warn!(%error, %address, "the length of a socket's queue cannot be changed");
        }
    }
}

/// Returns the listeners of sockets that the version before bound to `address`, as it was named.
/// They are borrowed from it.
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
        listener.alone = alone || listener.is_of_unix();
        let file = match address {
            Address::Unix(path) => Some(SocketFile(path.clone())),
            Address::Tcp(_) => None,
        };
        listener.borrowed = Some(Borrowed {
            file,
            backlog: Some(backlog),
        });
        Ok(listener)
    });
    listeners.collect()
}
