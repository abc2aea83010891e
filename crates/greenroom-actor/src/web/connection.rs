//! The task of a WebSocket: it reads for the actor, writes for it, and sees to the end of both.

use std::pin::pin;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::SplitSink;
use futures_util::{SinkExt, StreamExt};
use greenroom_timing::{Span, SpanKind};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::fault::close_for;
use super::frame::Frame;
use super::hearing::{Hearing, Silent};
use super::outbox::{End, Next, Outbox};
use super::settings::WebSocketSettings;
use crate::actor::Actor;
use crate::error::SendError;
use crate::reason::Reason;
use crate::receive::{Receive, TellMessage};
use crate::reference::ActorRef;
use crate::system::ActorSystem;

/// The time that the end of a connection may take: messages that wait in the outbox, the close
/// frame, and the client's reply to it. A connection that is not done by then is aborted.
pub const CLOSE_WAIT: Duration = Duration::from_secs(10);

pub(super) struct Connection<A: Actor> {
    pub(super) actor: ActorRef<A>,
    pub(super) outbox: Outbox<Frame>,
    pub(super) settings: WebSocketSettings,
    pub(super) system: ActorSystem,
    /// The span of the request that opened it, if its trace is sampled.
    pub(super) opened: Option<Span>,
}

/// Runs also when the task is dropped, with its runtime: the actor may be elsewhere.
impl<A: Actor> Drop for Connection<A> {
    fn drop(&mut self) {
        self.outbox.leave();
    }
}

/// The reason for which nothing more is read.
enum Left {
    /// The client is gone, or has closed.
    Gone,
    /// The client gets a close frame with the reason.
    Fault(CloseFrame),
}

impl<A: Actor> Connection<A> {
    /// Runs until the connection ends. The actor has been stopped then.
    pub(super) async fn run<K>(self, socket: WebSocket)
    where
        A: Receive<Frame, K>,
        K: 'static,
    {
        let open = Open::new(&self.system);
        let (sink, stream) = socket.split();
        let mut reader = pin!(self.read(Hearing::new(stream)));
        let mut writer = pin!(self.write(sink));
        let too_late = async {
            self.outbox.closing().await;
            sleep(CLOSE_WAIT).await;
        };
        tokio::select! {
            left = &mut reader => {
                match left {
                    Left::Gone => self.outbox.leave(),
                    Left::Fault(frame) => self.outbox.finish(frame),
                }
                let _ = timeout(CLOSE_WAIT, writer).await;
            }
            written = &mut writer => {
                drop(open);
                if written.is_ok() {
                    let _ = timeout(CLOSE_WAIT, reader).await;
                }
            }
            () = too_late => {}
        }
    }

    async fn read<K>(&self, mut client: Hearing) -> Left
    where
        A: Receive<Frame, K>,
        K: 'static,
    {
        loop {
            let message = match client.next(self.settings.silence_max).await {
                Ok(Some(Ok(message))) => message,
                Ok(Some(Err(error))) => return close_for(error).map_or(Left::Gone, Left::Fault),
                Ok(None) => return Left::Gone,
                Err(Silent) => return Left::Fault(silent()),
            };
            match message {
                Message::Text(text) => self.hand_over(Frame::Text(text)).await,
                Message::Binary(bytes) => self.hand_over(Frame::Binary(bytes)).await,
                // Replied to already; after a close the stream ends.
                Message::Ping(_) | Message::Pong(_) | Message::Close(_) => {}
            }
        }
    }

    async fn hand_over<K>(&self, frame: Frame)
    where
        A: Receive<Frame, K>,
        K: 'static,
    {
        let Some(opened) = &self.opened else {
            return self.send(frame).await;
        };
        // A connection may last for days, its request's trace should not.
        let mut span = opened.begin_linked(SpanKind::Internal, "websocket message");
        let (kind, bytes) = match &frame {
            Frame::Text(text) => ("text", text.len()),
            Frame::Binary(bytes) => ("binary", bytes.len()),
        };
        span.attribute("network.protocol.name", "websocket");
        span.attribute("greenroom.websocket.message.type", kind);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        span.attribute("greenroom.websocket.message.size", bytes);
        let carried = span.span().clone().carry(self.send(frame));
        // On the heap, as few connections are traced, and each would keep room for it.
        Box::pin(carried).await;
    }

    /// Sends a message to the actor, and waits while its mailbox is full.
    async fn send<K>(&self, frame: Frame)
    where
        A: Receive<Frame, K>,
        K: 'static,
    {
        match self.actor.send::<Frame, K>(frame).await {
            // An actor that has ended takes nothing: the close frame is on its way to the client.
            Ok(()) | Err(SendError::Closed(_)) => {}
            Err(SendError::Full(frame)) => {
                let actor = &self.actor.0;
                let frame = actor.envelop(TellMessage::<Frame, K>::new(frame));
                actor.dead_letter(frame, Reason::MailboxFull.into());
            }
        }
    }

    /// Writes until the close frame is written, or an error of the socket makes that vain.
    async fn write(&self, mut sink: SplitSink<WebSocket, Message>) -> Result<(), axum::Error> {
        let mut ping_at = Instant::now() + self.settings.ping_interval;
        loop {
            let next = std::future::poll_fn(|cx| self.outbox.poll_next(cx));
            let message = match timeout_at(ping_at, next).await {
                Ok(Next::Send(frame)) => Some(frame.into()),
                Ok(Next::End(End::Close(frame))) => {
                    return sink.send(Message::Close(Some(frame))).await;
                }
                Ok(Next::End(End::Left)) => return Ok(()),
                Err(_) => None,
            };
            if let Some(message) = message {
                sink.feed(message).await?;
            }
            // Also when there is always something to send: a client that only reads is heard of by
            // its pongs alone.
            if Instant::now() >= ping_at {
                sink.feed(Message::Ping(Bytes::new())).await?;
                ping_at = Instant::now() + self.settings.ping_interval;
            }
            if self.outbox.waiting() == 0 {
                sink.flush().await?;
            }
        }
    }
}

/// The close code "policy violation" (RFC 6455, 7.4.1).
const POLICY: u16 = 1008;

fn silent() -> CloseFrame {
    CloseFrame {
        code: POLICY,
        reason: "nothing was heard of the client".into(),
    }
}

/// A connection whose close frame a shutdown waits for.
struct Open<'a>(&'a ActorSystem);

impl<'a> Open<'a> {
    fn new(system: &'a ActorSystem) -> Self {
        let connections = &system.shared().connections;
        connections.send_modify(|open| *open += 1);
        Self(system)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let connections = &self.0.shared().connections;
        connections.send_modify(|open| *open -= 1);
    }
}
