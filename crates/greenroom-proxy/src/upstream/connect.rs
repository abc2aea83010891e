//! Connections to upstreams, by TCP, with TLS or without, and by Unix sockets.

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
use tokio::task::{JoinHandle, spawn};
use tokio::time::{Instant, sleep, timeout};
use tower_service::Service;

use crate::address::UpstreamAddress;
use crate::tls::{Secured, TlsIo};

/// The time for which the addresses of a name are used again.
const RESOLVED_TIME: Duration = Duration::from_secs(10);

/// The same for addresses to which a connection has failed, and for a lookup that has found none. A
/// name server is asked once in that time at most, however many connections fail.
const DOUBTED_TIME: Duration = Duration::from_secs(1);

/// The pause before a Unix socket that has no room for another connection is tried again.
const FULL_PAUSE: Duration = Duration::from_millis(10);

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
    Tcp(HttpConnector<Resolver>, Resolver, Option<Secured>),
    Unix(Arc<Path>),
}

impl Connector {
    pub(super) fn new(
        address: &UpstreamAddress,
        secured: Option<Secured>,
        timeout: Duration,
    ) -> Self {
        let target = if let Some(path) = address.unix() {
            Target::Unix(path.into())
        } else {
            let resolver = Resolver::default();
            let mut tcp = HttpConnector::new_with_resolver(resolver.clone());
            tcp.set_nodelay(true);
            // It knows the port of `https`; TLS is ours. Without it, such a URL is an error.
            tcp.enforce_http(secured.is_none());
            // Divided among the addresses of a name, so that one that hangs leaves time for others.
            tcp.set_connect_timeout(Some(timeout));
            Target::Tcp(tcp, resolver, secured)
        };
        Self { target, timeout }
    }

    pub(super) fn resolve_again(&self) {
        if let Target::Tcp(_, resolver, _) = &self.target {
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
                Target::Tcp(mut tcp, _, secured) => {
                    let stream = tcp.call(uri).await?;
                    match secured {
                        Some(secured) => Stream::new(Io::Tls(secured.handshake(stream).await?)),
                        None => Stream::new(Io::Tcp(stream)),
                    }
                }
                Target::Unix(path) => {
                    let stream = connect_unix(&path).await?;
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

/// Connects to a Unix socket. If as many connections as may wait there already do, the system does
/// not wait, as it does for TCP, but fails at once (`EAGAIN`, connect(2)).
async fn connect_unix(path: &Path) -> io::Result<UnixStream> {
    loop {
        match UnixStream::connect(path).await {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => sleep(FULL_PAUSE).await,
            connected => return connected,
        }
    }
}

/// The addresses that a lookup has found, or its failure.
type Found = io::Result<Vec<SocketAddr>>;

/// The addresses of a name, as far as they are known.
#[derive(Default)]
struct Known {
    /// The last ones, or the failure as long as there were none, and the time from which on they
    /// are used.
    last: Option<(Instant, Found)>,
    /// A lookup that is under way; its result may come after whoever waited for it.
    lookup: Option<JoinHandle<Found>>,
}

/// Resolves the name of one upstream, and keeps its addresses for a while.
#[derive(Clone, Default)]
struct Resolver(Arc<Resolved>);

#[derive(Default)]
struct Resolved {
    /// Locked while the name is resolved: connections that are made at once wait for one lookup.
    known: Mutex<Known>,
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
        let look_up = async move {
            let found = lookup_host((name.as_str(), 0)).await?;
            Ok(found.collect())
        };
        Box::pin(async move { Ok(resolved.addresses(look_up).await?.into_iter()) })
    }
}

impl Resolved {
    /// Returns what is kept, or what `look_up` finds.
    async fn addresses(&self, look_up: impl Future<Output = Found> + Send + 'static) -> Found {
        let mut known = self.known.lock().await;
        let has_come = known.lookup.as_ref().is_some_and(JoinHandle::is_finished);
        if let Some((since, found)) = &known.last
            && since.elapsed() < self.reuse_time(found)
            && !has_come
        {
            return again(found);
        }
        self.is_doubted.store(false, Ordering::Relaxed);
        // The last addresses are better than none while the name server is away, or is silent.
        let has_addresses = matches!(known.last, Some((_, Ok(_))));
        let patience = if has_addresses {
            LOOKUP_TIME
        } else {
            Duration::MAX
        };
        let under_way = known.lookup.get_or_insert_with(|| spawn(look_up));
        let found = timeout(patience, under_way).await;
        if found.is_ok() {
            known.lookup = None;
        }
        let found = found.map_or_else(|elapsed| Err(elapsed.into()), |found| found?);
        let found = match (found, known.last.take()) {
            (Err(_), Some((_, Ok(last)))) => Ok(last),
            (found, _) => found,
        };
        known.last = Some((Instant::now(), again(&found)));
        found
    }

    /// Returns the time for which what was found last is used again.
    fn reuse_time(&self, found: &Found) -> Duration {
        // A doubt that comes too early to count stays until it does.
        if found.is_err() || self.is_doubted.load(Ordering::Relaxed) {
            DOUBTED_TIME
        } else {
            RESOLVED_TIME
        }
    }
}

/// Returns the same once more, with the number by which the system names its error.
fn again(found: &Found) -> Found {
    match found {
        Ok(addresses) => Ok(addresses.clone()),
        Err(error) => Err(match error.raw_os_error() {
            Some(number) => io::Error::from_raw_os_error(number),
            None => io::Error::new(error.kind(), error.to_string()),
        }),
    }
}

/// A mark of a connection: its age, and whether it has served a request, so that a failure may be
/// due to its age.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionUse {
    since: Instant,
    has_served: Arc<AtomicBool>,
}

impl ConnectionUse {
    fn begin() -> Self {
        Self {
            since: Instant::now(),
            has_served: Arc::default(),
        }
    }

    /// Notes that the connection of a response has served, and returns its age.
    pub(crate) fn note(extensions: &Extensions) -> Duration {
        let connection = extensions.get::<Self>();
        connection.map_or(Duration::ZERO, |connection| {
            connection.has_served.store(true, Ordering::Relaxed);
            connection.since.elapsed()
        })
    }

    /// Returns `true` if a connection has served before.
    pub(crate) fn has_served(connected: Option<&Connected>) -> bool {
        let mut extensions = Extensions::new();
        if let Some(connected) = connected {
            connected.get_extras(&mut extensions);
        }
        let connection = extensions.get::<Self>();
        connection.is_some_and(|connection| connection.has_served.load(Ordering::Relaxed))
    }
}

/// A connection to an upstream.
pub(crate) struct Stream {
    io: Io,
    used: ConnectionUse,
}

enum Io {
    Tcp(TokioIo<TcpStream>),
    Tls(TlsIo),
    Unix(TokioIo<UnixStream>),
}

impl Stream {
    fn new(io: Io) -> Self {
        let used = ConnectionUse::begin();
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
            Io::Tls(io) => Pin::new(io).poll_read(cx, buffer),
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
            Io::Tls(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Unix(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_flush(cx),
            Io::Tls(io) => Pin::new(io).poll_flush(cx),
            Io::Unix(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.io {
            Io::Tcp(io) => Pin::new(io).poll_shutdown(cx),
            Io::Tls(io) => Pin::new(io).poll_shutdown(cx),
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
            Io::Tls(io) => Pin::new(io).poll_write_vectored(cx, slices),
            Io::Unix(io) => Pin::new(io).poll_write_vectored(cx, slices),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, sleep};

    use super::*;

    /// Looks the address with this last number up, for so many seconds.
    async fn found(number: u8, seconds: u64) -> Found {
        sleep(Duration::from_secs(seconds)).await;
        Ok(vec![SocketAddr::from(([127, 0, 0, number], 80))])
    }

    #[tokio::test(start_paused = true)]
    async fn addresses_that_come_late_are_used_when_they_have_come() {
        let resolved = Resolved::default();
        let of = async |lookup| {
            let begin = Instant::now();
            let addresses = resolved.addresses(lookup).await.expect("there are some");
            (addresses[0].to_string(), begin.elapsed().as_secs())
        };
        // Without any the first is waited for, and kept for a while.
        assert_eq!(of(found(1, 3)).await, ("127.0.0.1:80".to_owned(), 3));
        assert_eq!(of(found(9, 0)).await, ("127.0.0.1:80".to_owned(), 0));
        advance(RESOLVED_TIME).await;
        assert_eq!(of(found(2, 4)).await, ("127.0.0.1:80".to_owned(), 1));
        assert_eq!(of(found(9, 0)).await, ("127.0.0.1:80".to_owned(), 0));
        sleep(Duration::from_secs(4)).await;
        assert_eq!(of(found(9, 0)).await, ("127.0.0.2:80".to_owned(), 0));
    }

    #[tokio::test(start_paused = true)]
    async fn many_connections_that_fail_make_one_lookup() {
        let resolved = Resolved::default();
        let fail_to_connect = async |number| {
            let addresses = resolved.addresses(found(number, 0)).await;
            resolved.is_doubted.store(true, Ordering::Relaxed);
            addresses.expect("there are some")[0].to_string()
        };
        assert_eq!(fail_to_connect(1).await, "127.0.0.1:80");
        assert_eq!(fail_to_connect(9).await, "127.0.0.1:80");
        advance(DOUBTED_TIME).await;
        for number in 2..102 {
            assert_eq!(fail_to_connect(number).await, "127.0.0.2:80");
            advance(Duration::from_millis(1)).await;
        }
        // The last doubt counts once it is time.
        advance(DOUBTED_TIME).await;
        assert_eq!(fail_to_connect(102).await, "127.0.0.102:80");
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_that_has_no_address_is_looked_up_once_a_second() {
        let resolved = Resolved::default();
        let failure = async |lookup: u32| {
            let unknown = async move { Err(io::Error::other(format!("lookup {lookup} failed"))) };
            let error = resolved.addresses(unknown).await;
            error.expect_err("there is no address").to_string()
        };
        for lookup in 1..=100 {
            assert_eq!(failure(lookup).await, "lookup 1 failed");
            advance(Duration::from_millis(1)).await;
        }
        advance(DOUBTED_TIME).await;
        assert_eq!(failure(101).await, "lookup 101 failed");
        advance(DOUBTED_TIME).await;
        let addresses = resolved.addresses(found(1, 0)).await;
        assert_eq!(addresses.expect("it has one now").len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_is_kept_is_still_this_machine_s() {
        let resolved = Resolved::default();
        for _ in 0..2 {
            let number = rustix::io::Errno::MFILE.raw_os_error();
            let full = async move { Err(io::Error::from_raw_os_error(number)) };
            let error = resolved.addresses(full).await.expect_err("no file is left");
            assert_eq!(error.raw_os_error(), Some(number));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_name_server_leaves_the_last_addresses() {
        let resolved = Resolved::default();
        let known = resolved.addresses(found(1, 0)).await.expect("it responds");
        for _ in 0..3 {
            advance(RESOLVED_TIME).await;
            let begin = Instant::now();
            let silent = std::future::pending();
            let last = resolved.addresses(silent).await.expect("they are known");
            assert_eq!((last, begin.elapsed()), (known.clone(), LOOKUP_TIME));
        }
        let failed = async { Err(io::Error::other("no such name")) };
        let error = Resolved::default().addresses(failed).await;
        assert!(error.is_err(), "there are no last ones");
    }
}
