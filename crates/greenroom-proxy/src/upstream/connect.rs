//! Connections to upstreams, by TCP and by Unix sockets.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use greenroom_server::BoxError;
use http::{Extensions, Uri};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tower_service::Service;

use crate::address::UpstreamAddress;

/// The time for which the addresses of a name are used again.
const RESOLVED_TIME: Duration = Duration::from_secs(10);

/// The time for which a name server is waited for where the last addresses are known.
const LOOKUP_TIME: Duration = Duration::from_secs(1);

type Boxed<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;

/// Connects to one upstream.
#[derive(Clone)]
pub(crate) struct Connector {
    target: Target,
    timeout: Duration,
}

#[derive(Clone)]
enum Target {
    Tcp(HttpConnector<Resolver>, Resolver),
    Unix(Arc<Path>),
}

impl Connector {
    pub(super) fn new(address: &UpstreamAddress, timeout: Duration) -> Self {
        let target = if let Some(path) = address.unix() {
            Target::Unix(path.into())
        } else {
            let resolver = Resolver::default();
            let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
            tcp.set_nodelay(true);
            // Divided among the addresses of a name, so that one that hangs leaves time for others.
            tcp.set_connect_timeout(Some(timeout));
            Target::Tcp(tcp, resolver)
        };
        Self { target, timeout }
    }

    pub(super) fn resolve_again(&self) {
        if let Target::Tcp(_, resolver) = &self.target {
            resolver.0.is_doubted.store(true, Ordering::Relaxed);
        }
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Boxed<Stream>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let (target, limit) = (self.target.clone(), self.timeout);
        let connected = async move {
            Ok(match target {
                Target::Tcp(mut tcp, _) => Stream::new(Io::Tcp(tcp.call(uri).await?)),
                Target::Unix(path) => {
                    let stream = UnixStream::connect(&*path).await?;
                    Stream::new(Io::Unix(TokioIo::new(stream)))
                }
            })
        };
        Box::pin(async move {
            match timeout(limit, connected).await {
                Ok(connected) => connected,
                Err(elapsed) => Err(io::Error::from(elapsed).into()),
            }
        })
    }
}

/// Resolves the name of one upstream, and keeps its addresses for a while.
#[derive(Clone, Default)]
struct Resolver(Arc<Resolved>);

#[derive(Default)]
struct Resolved {
    /// Locked while the name is resolved: connections that are made at once wait for one lookup.
    addresses: Mutex<Option<(Instant, Vec<SocketAddr>)>>,
    /// A connection to these addresses has failed.
    is_doubted: AtomicBool,
}

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = BoxError;
    type Future = Boxed<Self::Response>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let resolved = Arc::clone(&self.0);
        Box::pin(async move { Ok(resolved.addresses(&name).await?.into_iter()) })
    }
}

impl Resolved {
    async fn addresses(&self, name: &Name) -> io::Result<Vec<SocketAddr>> {
        let mut kept = self.addresses.lock().await;
        let is_doubted = self.is_doubted.swap(false, Ordering::Relaxed);
        if let Some((since, addresses)) = &*kept
            && since.elapsed() < RESOLVED_TIME
            && !is_doubted
        {
            return Ok(addresses.clone());
        }
        // Its last addresses are better than none while the name server is away, or is silent.
        let patience = kept.as_ref().map_or(Duration::MAX, |_| LOOKUP_TIME);
        let looked_up = timeout(patience, lookup_host((name.as_str(), 0))).await;
        let found = match (looked_up, kept.take()) {
            (Ok(Ok(found)), _) => found.collect(),
            (_, Some((_, addresses))) => addresses,
            (Ok(Err(error)), None) => return Err(error),
            (Err(elapsed), None) => return Err(elapsed.into()),
        };
        *kept = Some((Instant::now(), found.clone()));
        Ok(found)
    }
}

/// A mark of a connection: whether it has served a request, so that a failure may be due to its
/// age.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionUse(Arc<AtomicBool>);

impl ConnectionUse {
    /// Notes that the connection of a response has served.
    pub(crate) fn note(extensions: &Extensions) {
        if let Some(connection) = extensions.get::<Self>() {
            connection.0.store(true, Ordering::Relaxed);
        }
    }

    /// Returns `true` if a connection has served before.
    pub(crate) fn has_served(connected: Option<&Connected>) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connected) = connected {
            connected.get_extras(&mut extensions);
        }
        let connection = extensions.get::<Self>();
        connection.is_some_and(|connection| connection.0.load(Ordering::Relaxed))
    }
}

/// A connection to an upstream.
pub(crate) struct Stream {
    io: Io,
    used: ConnectionUse,
}

enum Io {
    Tcp(TokioIo<TcpStream>),
    Unix(TokioIo<UnixStream>),
}

impl Stream {
    fn new(io: Io) -> Self {
        let used = ConnectionUse::default();
        Self { io, used }
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.used.clone())
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_read(cx, buffer),
            Io::Unix(io) => Pin::new(io).poll_read(cx, buffer),
        }
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Unix(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_flush(cx),
            Io::Unix(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Io::Unix(io) => Pin::new(io).poll_shutdown(cx),
        }
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_write_vectored(cx, slices),
            Io::Unix(io) => Pin::new(io).poll_write_vectored(cx, slices),
        }
    }
}
