//! The UDP socket of an endpoint, which versions of a server share while they exchange.
//!
//! The version that serves reads it, and sends on what is for versions that drain; those read what
//! they are sent. All of them send by it.

use std::fmt;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use atomic_waker::AtomicWaker;
use parking_lot::Mutex;
use quinn::udp::{RecvMeta, Transmit, UdpSocketState};
use quinn::{AsyncUdpSocket, UdpPoller};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::{RecvAncillaryBuffer, RecvFlags, ReturnFlags, recvmsg};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::message::{self, HEAD_BYTES};
use super::routes::Routes;

/// The socket of an endpoint.
#[derive(Debug)]
pub(super) struct Socket {
    /// For sending only: a version that drains is not woken by what it does not read.
    udp: AsyncFd<UdpSocket>,
    options: UdpSocketState,
    reading: Mutex<Reading>,
    /// Whoever reads, to be woken when it is read elsewhere.
    reader: AtomicWaker,
}

#[derive(Debug)]
struct Reading {
    source: Source,
    routes: Routes,
}

/// The origin of datagrams.
#[derive(Debug)]
enum Source {
    /// The network.
    Udp(AsyncFd<UdpSocket>),
    /// The next version.
    Next(AsyncFd<OwnedFd>),
}

impl Source {
    fn udp(socket: &UdpSocket) -> io::Result<Self> {
        let socket = socket.try_clone()?;
        Ok(Self::Udp(watched(socket, Interest::READABLE)?))
    }
}

impl Socket {
    /// # Errors
    ///
    /// If too many descriptors are open, or the system is one without what QUIC needs.
    pub(super) fn new(udp: UdpSocket, routes: Routes) -> io::Result<Self> {
        let reading = Reading {
            source: Source::udp(&udp)?,
            routes,
        };
        Ok(Self {
            options: UdpSocketState::new((&udp).into())?,
            udp: watched(udp, Interest::WRITABLE)?,
            reading: Mutex::new(reading),
            reader: AtomicWaker::new(),
        })
    }

    /// Leaves the reading to the next version, which sends what is ours over `pair`. If that ends
    /// before this one, this one reads again.
    pub(super) fn leave(&self, pair: OwnedFd) -> io::Result<()> {
        let pair = watched(pair, Interest::READABLE)?;
        self.reading.lock().source = Source::Next(pair);
        self.reader.wake();
        Ok(())
    }
}

impl AsyncUdpSocket for Socket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        Box::pin(Writable {
            socket: self,
            waiting: None,
        })
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        self.udp.try_io(Interest::WRITABLE, |udp| {
            self.options.send(udp.into(), transmit)
        })
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        metas: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.reader.register(cx.waker());
        let mut reading = self.reading.lock();
        let Reading { source, routes } = &mut *reading;
        if let Source::Next(pair) = source {
            let received = ready!(poll_next(pair, cx, buffers, metas))?;
            if received > 0 {
                return Poll::Ready(Ok(received));
            }
            tracing::warn!("the next version has ended; datagrams are read here again");
            *source = Source::udp(self.udp.get_ref())?;
        }
        let Source::Udp(udp) = source else {
            return Poll::Pending;
        };
        let received = ready!(poll_udp(udp, &self.options, cx, buffers, metas))?;
        for (buffer, meta) in buffers.iter_mut().zip(metas).take(received) {
            routes.sort(buffer, meta);
        }
        Poll::Ready(Ok(received))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.udp.get_ref().local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.options.max_gso_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.options.gro_segments()
    }

    fn may_fragment(&self) -> bool {
        self.options.may_fragment()
    }
}

#[expect(
    deprecated,
    reason = "its successor is unsafe for the sake of types whose descriptor changes; ours is fixed"
)]
fn watched<S: AsRawFd>(socket: S, interest: Interest) -> io::Result<AsyncFd<S>> {
    AsyncFd::with_interest(socket, interest)
}

fn poll_udp(
    udp: &AsyncFd<UdpSocket>,
    options: &UdpSocketState,
    cx: &mut Context<'_>,
    buffers: &mut [IoSliceMut<'_>],
    metas: &mut [RecvMeta],
) -> Poll<io::Result<usize>> {
    loop {
        let mut readiness = ready!(udp.poll_read_ready(cx))?;
        let received = readiness.try_io(|udp| options.recv(udp.into(), buffers, metas));
        // What the system says of a datagram that was sent is no fault of the socket.
        if let Ok(Ok(received)) = received {
            return Poll::Ready(Ok(received));
        }
    }
}

/// Receives what the next version sends; nothing if it has ended.
fn poll_next(
    pair: &AsyncFd<OwnedFd>,
    cx: &mut Context<'_>,
    buffers: &mut [IoSliceMut<'_>],
    metas: &mut [RecvMeta],
) -> Poll<io::Result<usize>> {
    loop {
        let mut readiness = ready!(pair.poll_read_ready(cx))?;
        let received = readiness.try_io(|pair| receive(pair.get_ref(), buffers, metas));
        if let Ok(received) = received {
            return Poll::Ready(received);
        }
    }
}

/// Receives as many messages as there are, and buffers for them.
pub(super) fn receive(
    pair: &OwnedFd,
    buffers: &mut [IoSliceMut<'_>],
    metas: &mut [RecvMeta],
) -> io::Result<usize> {
    let mut received = 0;
    for (buffer, meta) in buffers.iter_mut().zip(metas) {
        match receive_one(pair, buffer) {
            Ok(Some(one)) => *meta = one,
            Ok(None) => break,
            Err(Errno::AGAIN) if received > 0 => break,
            Err(errno) => return Err(errno.into()),
        }
        received += 1;
    }
    Ok(received)
}

/// Receives a message; `None` at the end. One that nobody understands has no datagrams.
fn receive_one(pair: &OwnedFd, buffer: &mut [u8]) -> Result<Option<RecvMeta>, Errno> {
    let mut head = [0; HEAD_BYTES];
    let mut parts = [IoSliceMut::new(&mut head), IoSliceMut::new(buffer)];
    let message = retry_on_intr(|| {
        let control = &mut RecvAncillaryBuffer::default();
        recvmsg(pair, &mut parts, control, RecvFlags::DONTWAIT)
    })?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let is_whole = !message.flags.contains(ReturnFlags::TRUNC);
    let length = message.bytes.checked_sub(HEAD_BYTES);
    let meta = length
        .filter(|_| is_whole)
        .and_then(|length| message::parse(&head, length));
    Ok(Some(meta.unwrap_or_default()))
}

type Waiting = Pin<Box<dyn Future<Output = io::Result<()>> + Send + Sync>>;

/// A task that waits until the socket can be written to.
struct Writable {
    socket: Arc<Socket>,
    waiting: Option<Waiting>,
}

impl UdpPoller for Writable {
    fn poll_writable(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let socket = Arc::clone(&self.socket);
        let waiting = self.waiting.get_or_insert_with(|| {
            Box::pin(async move { socket.udp.writable().await.map(|_readiness| ()) })
        });
        let writable = ready!(waiting.as_mut().poll(cx));
        self.waiting = None;
        Poll::Ready(writable)
    }
}

impl fmt::Debug for Writable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Writable").finish_non_exhaustive()
    }
}
