//! A client of a WebSocket that has its messages echoed.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::Load;
use super::connection::Stream;
use super::exchange::{RESPONSE_MAX, late};
use crate::counts::{Counts, Failed, Failure};

const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The client ends a connection itself after this long and up to half as long again, so that an
/// old process may end that waits for its clients to leave.
const LIFE: Duration = Duration::from_secs(20);
const CLOSE_MAX: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<TcpStream>;

enum Told {
    Text(String),
    /// A close frame with 1001 (going away) or 1012 (service restart).
    Closed,
}

/// Opens one WebSocket after the other until the load ends.
pub(crate) async fn run(load: Load) -> Counts {
    let mut counts = Counts::default();
    while load.goes_on() {
        let opened = open(&load).await;
        let outcome = opened.as_ref().map(|_| ()).map_err(Clone::clone);
        counts.count(outcome, load.seconds());
        match opened {
            Ok(mut socket) => talk(&load, &mut socket, &mut counts).await,
            Err(_) => load.pause(PAUSE_MAX, true).await,
        }
    }
    counts
}

async fn open(load: &Load) -> Result<Socket, Failed> {
    let Stream::Plain(stream) = Stream::open(load.target.plain, None, None).await? else {
        return Err(Failed(Failure::Wrong, "TLS was not asked for".to_owned()));
    };
    let url = format!("ws://{}/ws/echo", load.target.plain);
    match timeout(RESPONSE_MAX, client_async(url, stream)).await {
        Ok(Ok((socket, _))) => Ok(socket),
        Ok(Err(error)) => Err(failed(error, "handshake")),
        Err(_) => Err(late("no handshake")),
    }
}

/// Sends messages and awaits their echoes, until an end in order or a failure.
async fn talk(load: &Load, socket: &mut Socket, counts: &mut Counts) {
    let ends = Instant::now() + LIFE + LIFE.mul_f64(fastrand::f64() / 2.0);
    for number in 0_u64.. {
        if !load.goes_on() || Instant::now() > ends {
            return leave(socket).await;
        }
        let told = match timeout(PAUSE_MAX.mul_f64(fastrand::f64()), receive(socket)).await {
            Err(_) => echo(socket, format!("message {number}")).await,
            Ok(told) => told,
        };
        match told {
            Ok(Told::Closed) => {
                counts.reopened += 1;
                return leave(socket).await;
            }
            Ok(Told::Text(_)) => counts.count(Ok(()), load.seconds()),
            Err(failed) => return counts.count(Err(failed), load.seconds()),
        }
    }
}

async fn echo(socket: &mut Socket, text: String) -> Result<Told, Failed> {
    // After an error the close frame may be there to be read.
    let sent = socket.send(Message::text(text.clone())).await;
    match timeout(RESPONSE_MAX, receive(socket)).await {
        Err(_) => Err(late("no echo")),
        Ok(Ok(Told::Text(told))) if told != text => {
            let text = format!("{told:?} instead of {text:?}");
            Err(Failed(Failure::Wrong, text))
        }
        Ok(Err(failed_to_read)) => match sent {
            Err(error) => Err(failed(error, "sending a message")),
            Ok(()) => Err(failed_to_read),
        },
        Ok(told) => told,
    }
}

async fn receive(socket: &mut Socket) -> Result<Told, Failed> {
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => return Ok(Told::Text(text.to_string())),
            Some(Ok(Message::Close(frame))) => return closed(frame.as_ref()),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(failed(error, "receiving")),
            None => return Err(Failed(Failure::Ended, "no close frame".to_owned())),
        }
    }
}

fn closed(frame: Option<&CloseFrame>) -> Result<Told, Failed> {
    match frame.map(|frame| frame.code) {
        Some(CloseCode::Away | CloseCode::Restart) => Ok(Told::Closed),
        other => Err(Failed(Failure::Wrong, format!("closed with {other:?}"))),
    }
}

/// Closes in order, and reads until the server has ended the connection.
async fn leave(socket: &mut Socket) {
    let close = async {
        let frame = CloseFrame {
            code: CloseCode::Normal,
            reason: "".into(),
        };
        let _may_be_closed = socket.close(Some(frame)).await;
        while let Some(Ok(_)) = socket.next().await {}
    };
    let _late = timeout(CLOSE_MAX, close).await;
}

fn failed(error: Error, doing: &str) -> Failed {
    let failure = match error {
        Error::Io(error) => return Failed::of(&error, doing),
        Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_) => Failure::Ended,
        _ => Failure::Wrong,
    };
    Failed(failure, format!("{doing}: {error}"))
}
