//! The choice between the server's own listeners and an [`Acceptor`] around the application's.

use std::any::Any;
use std::fmt;
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::pin::Pin;

use axum::serve::Listener;
use greenroom_server::{AcceptedStream, Acceptor, Address, ConnectionInfo, Error, ServerBuilder};
use tokio::net::{TcpListener, UnixListener, unix};

use crate::application::Introduction;

/// Has the server listen on `listener`: with its own loops if it is tokio's for TCP or Unix sockets
/// and no `Connected` type looks at its streams, and by an acceptor otherwise.
///
/// `TcpListener` and `UnixListener` are `Listener`s as any other, and no trait can tell them from
/// the others, so they are recognised by their type, here and nowhere else.
pub(crate) fn listen<L: Listener>(
    builder: ServerBuilder,
    listener: L,
    introduction: Option<Introduction<L>>,
) -> Result<ServerBuilder, Error> {
    let address = listener.local_addr();
    let address = address.map_or(UNKNOWN, |address| address_of(&address));
    let failed = |source| Error::Bind {
        address: address.clone(),
        source,
    };
    let mut listener = Some(listener);
    if introduction.is_none() {
        let any: &mut dyn Any = &mut listener;
        if let Some(tcp) = taken::<TcpListener>(any) {
            return Ok(builder.listener(tcp.into_std().map_err(failed)?));
        }
        if let Some(unix) = taken::<UnixListener>(any) {
            return Ok(builder.unix_listener(unix.into_std().map_err(failed)?));
        }
    }
    let listener = listener.expect("it is neither, so nobody took it");
    Ok(builder.acceptor(Accepting {
        listener,
        address,
        introduction,
    }))
}

fn taken<T: 'static>(any: &mut dyn Any) -> Option<T> {
    any.downcast_mut::<Option<T>>()?.take()
}

/// A Unix socket without a path.
const UNKNOWN: Address = Address::Unix(std::path::PathBuf::new());

fn address_of(address: &dyn Any) -> Address {
    if let Some(tcp) = address.downcast_ref::<SocketAddr>() {
        return Address::Tcp(*tcp);
    }
    let unix = address.downcast_ref::<unix::SocketAddr>();
    let path = unix.and_then(unix::SocketAddr::as_pathname);
    Address::Unix(path.unwrap_or(Path::new("")).to_owned())
}

/// A listener of the application's, as an acceptor of the server.
struct Accepting<L: Listener> {
    listener: L,
    address: Address,
    introduction: Option<Introduction<L>>,
}

impl<L: Listener> Acceptor for Accepting<L> {
    fn accept(&mut self) -> Pin<Box<dyn Future<Output = AcceptedStream> + Send + '_>> {
        Box::pin(async move {
            loop {
                let (io, remote_addr) = self.listener.accept().await;
                if let Some(incoming) = self.receive(io, remote_addr) {
                    return incoming;
                }
            }
        })
    }

    fn local_address(&self) -> Address {
        self.address.clone()
    }
}

impl<L: Listener> Accepting<L> {
    /// Receives a connection. One whose look at it panics is closed, and no other.
    fn receive(&mut self, io: L::Io, remote_addr: L::Addr) -> Option<AcceptedStream> {
        let peer = (&remote_addr as &dyn Any).downcast_ref().copied();
        let attached = match &mut self.introduction {
            None => None,
            Some(introduction) => {
                let introduced = AssertUnwindSafe(|| introduction.of(&io, remote_addr));
                // The panic's message is printed by the hook.
                let introduced = catch_unwind(introduced).inspect_err(|_| {
                    tracing::error!(?peer, "`connect_info` panicked; closing its connection");
                });
                Some(introduced.ok()?)
            }
        };
        let mut info = ConnectionInfo::new(peer, self.address.clone());
        info.attached = attached;
        AcceptedStream::new(io, info)
            .inspect_err(|error| tracing::warn!(%error, ?peer, "cannot take in a connection"))
            .ok()
    }
}

impl<L: Listener> fmt::Debug for Accepting<L> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Accepting")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
