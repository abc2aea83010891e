//! WebSocket (RFC 6455): a request is a message, its response the next message with data.

use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::time::{timeout, timeout_at};
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::connect::{Duplex, Failure, Transport};
use super::dispatcher::Ticket;
use super::engine::{Engine, Slot};
use super::exchange::{Exchange, Received};
use super::request::with_key;
use crate::record::{FailureKind, FirstResponse};

/// Largest message that is accepted: 16 MiB.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// Bytes read at once from a connection; there may be thousands of connections.
const READ_BYTES: usize = 16 * 1024;
/// The time that the server has to reply to a close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The status of a message, which counts as a response that is well.
const STATUS: u16 = 200;

/// A connection that speaks WebSocket.
pub(super) struct Line {
    socket: WebSocketStream<Box<dyn Duplex>>,
    tls: Option<String>,
}

/// Opens a WebSocket on a connection.
pub(super) async fn open(
    engine: &Engine,
    transport: Transport,
    endpoint: usize,
) -> Result<Line, Failure> {
    let request = with_key(&engine.messages.request(endpoint))
        .map_err(|error| Failure::new(FailureKind::Handshake, error))?;
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
        .read_buffer_size(READ_BYTES);
    let (socket, _) = client_async_with_config(request, transport.stream, Some(config))
        .await
        .map_err(|error| Failure::new(kind_of_opening(&error), error))?;
    engine.outcomes.borrow_mut().proven();
    Ok(Line {
        socket,
        tls: transport.tls.and_then(|agreed| agreed.description),
    })
}

/// Sends messages one after the other until there are no more, or the connection ends.
pub(super) async fn serve(engine: &Rc<Engine>, mut line: Line, first: Exchange) {
    let keep_alive = engine.share.plan.keep_alive;
    let slot = keep_alive.then(|| Slot::enter(engine, first.endpoint));
    let mut exchange = first;
    loop {
        if !round_trip(engine, &mut line, &exchange).await {
            return;
        }
        let next = match &slot {
            Some(slot) => next(engine, slot, &mut line).await,
            None => Next::End,
        };
        match next {
            Next::Send(ticket) => exchange = engine.begin(&ticket),
            Next::End => break,
            Next::Broken => return,
        }
    }
    drop(slot);
    let _ = timeout(CLOSE_TIMEOUT, close(&mut line)).await;
}

/// The next step of a connection between two messages.
enum Next {
    Send(Ticket),
    /// There are no more messages.
    End,
    /// The server closed the connection, or it broke.
    Broken,
}

async fn next(engine: &Engine, slot: &Slot, line: &mut Line) -> Next {
    loop {
        tokio::select! {
            biased;
            ticket = poll_fn(|context| slot.poll_ticket(context, 1)) => {
                return ticket.map_or(Next::End, Next::Send);
            }
            message = line.socket.next() => match message {
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Next::Broken,
                // An unasked message is no response.
                Some(Ok(message)) => engine.outcomes.borrow_mut().received_bytes(message.len()),
            }
        }
    }
}

/// Sends a message and waits for its response; true if the connection may be used again.
async fn round_trip(engine: &Engine, line: &mut Line, exchange: &Exchange) -> bool {
    let reply = timeout_at(exchange.deadline, reply(engine, line)).await;
    match reply {
        Ok(Ok((received, first))) => {
            engine.responded(exchange, &received, first);
            true
        }
        Ok(Err(error)) => {
            engine.failed(exchange, Failure::new(kind(&error), error));
            false
        }
        Err(_) => {
            let detail = format!("no message within {:?}", engine.share.plan.timeout);
            engine.failed(exchange, Failure::new(FailureKind::Timeout, detail));
            false
        }
    }
}

async fn reply(
    engine: &Engine,
    line: &mut Line,
) -> Result<(Received, Option<FirstResponse>), Error> {
    let message = engine.messages.message.clone();
    let length = message.len();
    let sent = engine.now();
    line.socket.send(message).await?;
    engine.outcomes.borrow_mut().sent_bytes(length);
    let message = receive(line).await?;
    let done = engine.now();
    engine.outcomes.borrow_mut().received_bytes(message.len());
    let first = engine.sample(Vec::new, line.tls.as_deref());
    let first = first.map(|mut sample| {
        sample.push(&message.clone().into_data());
        sample.finish()
    });
    let received = Received {
        status: STATUS,
        sent,
        first_byte: done,
        done,
        body_bytes: message.len() as u64,
    };
    Ok((received, first))
}

async fn receive(line: &mut Line) -> Result<Message, Error> {
    loop {
        match line.socket.next().await {
            None | Some(Ok(Message::Close(_))) => return Err(Error::ConnectionClosed),
            Some(Ok(message)) if message.is_text() || message.is_binary() => return Ok(message),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error),
        }
    }
}

/// Sends a close frame, and waits for the server to close first: then `TIME_WAIT` is on its side.
async fn close(line: &mut Line) -> Result<(), Error> {
    line.socket.close(None).await?;
    while line.socket.next().await.transpose()?.is_some() {}
    Ok(())
}

fn kind_of_opening(error: &Error) -> FailureKind {
    match error {
        Error::Io(error) => FailureKind::of_transfer(error),
        _ => FailureKind::Handshake,
    }
}

fn kind(error: &Error) -> FailureKind {
    match error {
        Error::Io(error) => FailureKind::of_transfer(error),
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => FailureKind::ClosedEarly,
        _ => FailureKind::Malformed,
    }
}
