//! Connections that others serve: HTTP/2 and requests to upgrade by hyper, HTTP/3 by h3.
//!
//! They keep our limits, count as connections of their loop, and take part in its drain.

mod body;
mod http2;
#[cfg(feature = "http3")]
pub(crate) mod http3;
mod in_flight;
mod io;
mod length;
mod requests;
mod spelling;
mod tunnel;
mod websocket;

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};

pub(crate) use in_flight::InFlight;

use crate::app::App;
use crate::connection::Socket;
use crate::event_loop::{Loop, Permit, Tick, tasks};
use crate::memory::Held;
use crate::request_handle::Line;
use io::{Pace, Rewound};
use requests::Requests;
use spelling::Spelling;
use tunnel::{Opened, Tunnel, close_at_drain};

/// Bytes of a request to upgrade that hyper reads ahead, and of a response to one that it holds
/// before it asks for more, unless a head may be longer.
const HYPER_BUFFER_BYTES: usize = 64 * 1_024;

/// A connection that hyper takes over.
pub(crate) struct Handed<A: App> {
    pub(crate) socket: Socket,
    /// Responses to earlier requests that were not sent yet.
    pub(crate) unsent: Vec<u8>,
    /// Input that was read and not consumed.
    pub(crate) input: Bytes,
    pub(crate) protocol: Protocol,
    pub(crate) service: A::Service,
    pub(crate) peer: Option<SocketAddr>,
    /// The tick since which its first request has been waited for, if it has had none.
    pub(crate) since: Tick,
    pub(crate) permit: Permit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http2,
    Upgrade,
}

/// Serves a connection that was handed over, to its end.
pub(crate) async fn serve<A: App>(home: Rc<Loop<A>>, handed: Handed<A>) {
    let (peer, since) = (handed.peer, handed.since);
    let is_tls = handed.socket.is_tls();
    let requests = Requests::new(&home, handed.service, peer, is_tls);
    let limits = &home.settings.limits;
    let pace = Pace {
        write_timeout: limits.write_timeout,
        rate_min: limits.response_rate_min,
    };
    let io = Rewound::new(handed.socket, handed.unsent, handed.input, pace);
    let serving = async {
        match handed.protocol {
            Protocol::Http2 => {
                let takes_websockets = home.settings.takes_websockets_over_http2(is_tls);
                let permit = handed.permit;
                // Boxed, so that the task of a request to upgrade has not the size of this future:
                // it ends when its tunnel begins, and leaves its room between tunnels, which last.
                Box::pin(http2::serve(
                    &home,
                    io,
                    requests,
                    since,
                    takes_websockets,
                    permit,
                ))
                .await
            }
            Protocol::Upgrade => serve_upgrade(&home, io, requests, handed.permit).await,
        }
    };
    let served = tokio::select! {
        biased;
        () = home.ended() => return,
        served = home.within_connection(serving) => served,
    };
    if let Err(error) = served {
        tracing::debug!(%error, ?peer, "a connection broke");
    }
}

/// Serves one request, which may turn the connection into a tunnel. It is not kept otherwise: a
/// second request would be read by another parser than ours.
async fn serve_upgrade<A: App>(
    home: &Rc<Loop<A>>,
    io: Rewound,
    requests: Requests<A>,
    permit: Permit,
) -> hyper::Result<()> {
    let entry = home
        .in_flight
        .enter("an upgraded connection".to_owned(), requests.peer());
    let entry = Arc::new(entry);
    let line = Line::new(&home.lent, false);
    let guard = (permit, Arc::clone(&entry));
    let names = Arc::default();
    let spelling = Spelling::new(Arc::clone(&names));
    let opened = Opened::default();
    let limited = (Arc::clone(&opened), Held::new(Arc::clone(&home.memory)));
    let tunnel = Tunnel::new(io, Arc::clone(&line), spelling, limited, guard);
    if entry.may_become(tunnel.state()) {
        let in_flight = Arc::downgrade(&home.in_flight);
        tasks::spawn(close_at_drain(in_flight, home.told.clone()));
    }
    let limits = &home.settings.limits;
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .max_headers(limits.fields_max)
        .max_buf_size(HYPER_BUFFER_BYTES.max(limits.head_bytes_max))
        .half_close(home.settings.half_close);
    let requests = requests.of_tunnel(entry, line, names);
    builder
        .serve_connection(TokioIo::new(tunnel), requests)
        .with_upgrades()
        .await?;
    // If it has ended instead, there is nobody to see that.
    opened.store(true, Ordering::Relaxed);
    Ok(())
}
