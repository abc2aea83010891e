//! Requests that leave HTTP (RFC 9110, 7.8; RFC 8441), and the tunnels that they become.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use hyper::ext::Protocol;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, copy_bidirectional};
use tokio::time::{Instant, sleep_until};

use crate::headers::{has_token, tokens};
use crate::upstream::Permit;

/// The time without a byte after which a tunnel is closed once one of its sides has ended.
const HALF_CLOSED_TIMEOUT: Duration = Duration::from_secs(10);

/// A client's wish to leave HTTP.
pub(crate) struct Wish {
    client: OnUpgrade,
    /// It came by HTTP/2, where it has another form (RFC 8441).
    is_extended_connect: bool,
}

/// Takes the wish out of a request that has one, which has then the form of HTTP/1.1.
pub(crate) fn wish(parts: &mut Parts) -> Option<Wish> {
    if let Some(protocol) = parts.extensions.remove::<Protocol>() {
        return extended_connect(parts, &protocol);
    }
    let headers = &parts.headers;
    if !headers.contains_key(UPGRADE) || !has_token(headers, &CONNECTION, "upgrade") {
        return None;
    }
    // In a tunnel of HTTP a client would ask for what no proxy has looked at.
    if tokens(headers, &UPGRADE).any(is_http) {
        return None;
    }
    Some(Wish {
        client: parts.extensions.remove()?,
        is_extended_connect: false,
    })
}

/// Returns `true` for a protocol by which HTTP goes on (RFC 9110, 7.8).
fn is_http(protocol: &str) -> bool {
    let protocol = protocol.to_ascii_lowercase();
    protocol == "h2c" || protocol.starts_with("http/") || protocol.starts_with("tls/")
}

fn extended_connect(parts: &mut Parts, protocol: &Protocol) -> Option<Wish> {
    if protocol
        .as_str()
        .split(',')
        .any(|token| is_http(token.trim()))
    {
        return None;
    }
    let client = parts.extensions.remove::<OnUpgrade>()?;
    let protocol = HeaderValue::from_str(protocol.as_str()).ok()?;
    parts.method = Method::GET;
    parts.headers.insert(UPGRADE, protocol);
    let nonce = fastrand::u128(..).to_be_bytes();
    let key = HeaderValue::try_from(BASE64_STANDARD.encode(nonce)).ok()?;
    parts.headers.insert(SEC_WEBSOCKET_KEY, key);
    Some(Wish {
        client,
        is_extended_connect: true,
    })
}

impl Wish {
    /// Returns `true` if any successful response is the beginning of the tunnel to its client.
    pub(crate) fn is_extended_connect(&self) -> bool {
        self.is_extended_connect
    }

    /// Begins the tunnel, and returns the status of the client's response.
    pub(crate) fn grant(
        self,
        upstream: OnUpgrade,
        headers: &mut HeaderMap,
        protocol: Option<HeaderValue>,
        idle_timeout: Duration,
        permit: Permit,
    ) -> StatusCode {
        tokio::spawn(relay(self.client, upstream, idle_timeout, permit));
        if self.is_extended_connect {
            headers.remove(SEC_WEBSOCKET_ACCEPT);
            return StatusCode::OK;
        }
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        if let Some(protocol) = protocol {
            headers.insert(UPGRADE, protocol);
        }
        StatusCode::SWITCHING_PROTOCOLS
    }
}

async fn relay(client: OnUpgrade, upstream: OnUpgrade, idle_timeout: Duration, permit: Permit) {
    let relayed = async {
        let (client, upstream) = tokio::try_join!(client, upstream).map_err(io::Error::other)?;
        let activity = Arc::new(Activity::new());
        let mut client = Side::new(client, &activity);
        let mut upstream = Side::new(upstream, &activity);
        tokio::select! {
            copied = copy_bidirectional(&mut client, &mut upstream) => copied.map(|_| ()),
            () = activity.idle(idle_timeout) => Err(io::ErrorKind::TimedOut.into()),
        }
    };
    if let Err(error) = relayed.await {
        tracing::debug!(target: "proxy", %error, "a tunnel broke");
    }
    drop(permit);
}

/// The traffic of a tunnel.
struct Activity(Mutex<Last>);

struct Last {
    read: Instant,
    /// One side has ended.
    is_half_closed: bool,
}

impl Activity {
    fn new() -> Self {
        Self(Mutex::new(Last {
            read: Instant::now(),
            is_half_closed: false,
        }))
    }

    fn note(&self, bytes: usize) {
        let mut last = self.0.lock();
        last.read = Instant::now();
        last.is_half_closed |= bytes == 0;
    }

    /// Waits until no byte has come for too long.
    async fn idle(&self, timeout: Duration) {
        loop {
            let due = {
                let last = self.0.lock();
                let half_closed = last.is_half_closed.then_some(HALF_CLOSED_TIMEOUT);
                last.read + half_closed.unwrap_or(timeout).min(timeout)
            };
            let now = Instant::now();
            if due <= now {
                return;
            }
            // It looks again soon enough to see that a side has ended.
            sleep_until(due.min(now + HALF_CLOSED_TIMEOUT)).await;
        }
    }
}

/// One side of a tunnel.
struct Side {
    io: TokioIo<Upgraded>,
    activity: Arc<Activity>,
}

impl Side {
    fn new(upgraded: Upgraded, activity: &Arc<Activity>) -> Self {
        Self {
            io: TokioIo::new(upgraded),
            activity: Arc::clone(activity),
        }
    }
}

impl AsyncRead for Side {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.io).poll_read(cx, buffer))?;
        self.activity.note(buffer.filled().len() - before);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Side {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
