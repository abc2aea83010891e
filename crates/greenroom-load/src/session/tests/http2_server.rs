//! A server that speaks HTTP/2.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::spawn_local;

use super::server::Server;

/// The behaviour of a server, and the number of requests that it saw.
#[derive(Clone)]
pub(super) struct Http2 {
    pub(super) manner: Manner,
    /// Streams that it allows.
    pub(super) streams_max: u32,
    /// Requests that it saw.
    pub(super) seen: Arc<AtomicUsize>,
}

#[derive(Clone, Copy)]
pub(super) enum Manner {
    /// Responds with as many bytes as the path says, after the request's body came in full.
    Bytes,
    /// Responds when so many requests wait on a connection.
    Groups(usize),
    /// Responds to one request and sends `GOAWAY`.
    GoAway,
    /// Resets each stream.
    Reset,
    /// Never responds.
    Silent,
    /// Announces one byte more than it sends.
    TooShort,
}

impl Http2 {
    pub(super) fn new(manner: Manner) -> Self {
        Self {
            manner,
            streams_max: 100,
            seen: Arc::default(),
        }
    }

    pub(super) fn start(&self) -> Server {
        let this = self.clone();
        Server::start(move |stream| this.clone().serve(stream))
    }

    pub(super) fn count(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }

    pub(super) async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let group = Rc::new(Group::default());
        let mut connection = Builder::new()
            .max_concurrent_streams(self.streams_max)
            .handshake::<_, Bytes>(stream)
            .await
            .expect("HTTP/2");
        while let Some(Ok((request, respond))) = connection.accept().await {
            self.seen.fetch_add(1, Ordering::SeqCst);
            if matches!(self.manner, Manner::GoAway) {
                connection.graceful_shutdown();
            }
            let group = Rc::clone(&group);
            spawn_local(serve(self.manner, request, respond, group));
        }
    }
}

/// Requests of a connection that wait for each other.
#[derive(Default)]
struct Group {
    waiting: Cell<usize>,
    complete: Notify,
}

impl Group {
    async fn wait_for(&self, count: usize) {
        self.waiting.update(|waiting| waiting + 1);
        if self.waiting.get() == count {
            self.waiting.set(0);
            self.complete.notify_waiters();
        } else {
            self.complete.notified().await;
        }
    }
}

async fn serve(
    manner: Manner,
    request: Request<RecvStream>,
    mut respond: SendResponse<Bytes>,
    group: Rc<Group>,
) {
    let path = request.uri().path().to_owned();
    let sent = drain(request.into_body()).await;
    let bytes = path[1..].parse().unwrap_or(sent);
    let body = Bytes::from(vec![b'a'; bytes]);
    match manner {
        Manner::Bytes | Manner::GoAway => respond_with(&mut respond, body, bytes),
        Manner::Groups(count) => {
            group.wait_for(count).await;
            respond_with(&mut respond, body, bytes);
        }
        Manner::Reset => respond.send_reset(Reason::ENHANCE_YOUR_CALM),
        Manner::Silent => std::future::pending().await,
        Manner::TooShort => respond_with(&mut respond, body, bytes + 1),
    }
}

async fn drain(mut body: RecvStream) -> usize {
    let mut bytes = 0;
    while let Some(Ok(part)) = body.data().await {
        bytes += part.len();
        let _ = body.flow_control().release_capacity(part.len());
    }
    bytes
}

fn respond_with(respond: &mut SendResponse<Bytes>, body: Bytes, length: usize) {
    let head = Response::builder()
        .header("content-length", length)
        .header("server", "test")
        .body(())
        .expect("a head");
    if let Ok(mut stream) = respond.send_response(head, false) {
        let _ = stream.send_data(body, true);
    }
}
