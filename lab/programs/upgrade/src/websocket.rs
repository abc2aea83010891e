//! A client of a WebSocket that has its messages echoed.

use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use crate::failure::{Failed, Failure, within};
use crate::load::Client;
use crate::tcp::{Duplex, RESPONSE_MAX, Stream};

const PAUSE_MAX: Duration = Duration::from_millis(100);
/// The client ends a connection itself after this long and up to half as long again, so that an
/// old process may end that waits for its clients to leave.
const LIFE: Duration = Duration::from_secs(20);
const CLOSE_MAX: Duration = Duration::from_secs(5);

type Socket = WebSocketStream<Box<dyn Duplex>>;

/// Opens one WebSocket after the other until the load ends.
pub(crate) async fn run(client: &Client) {
    let once = async || {
        let stream = Stream::open(client.options.plain, None, None).await?;
        let url = format!("ws://{}/ws/echo", client.options.plain);
        let (mut socket, _) = within(RESPONSE_MAX, client_async(url, stream.bytes)).await?;
        talk(client, &mut socket).await;
        Ok(())
    };
    client.repeat(PAUSE_MAX, once).await;
}

/// Sends messages and awaits their echoes, until an end in order or a failure; counts them.
async fn talk(client: &Client, socket: &mut Socket) {
    let ends = Instant::now() + LIFE + LIFE.mul_f64(fastrand::f64() / 2.0);
    while client.goes_on() && Instant::now() < ends {
        match within(RESPONSE_MAX, echo(socket)).await {
            Ok(true) => client.count(Ok(())),
            Ok(false) => {
                client.add("reopened");
                break;
            }
            Err(failed) => return client.count(Err(failed)),
        }
        sleep(PAUSE_MAX.mul_f64(fastrand::f64())).await;
    }
    leave(socket).await;
}

/// Has a message echoed; returns false if a close frame with 1001 (going away) or 1012 (service
/// restart) came instead.
async fn echo(socket: &mut Socket) -> Result<bool, Failed> {
    let text = format!("message {}", fastrand::u64(..));
    // After an error the close frame may be there to be read.
    let sent = socket.send(Message::text(text.clone())).await;
    loop {
        match socket.next().await {
            Some(Ok(Message::Text(told))) if told.as_str() == text => return Ok(true),
            Some(Ok(Message::Close(Some(frame))))
                if matches!(frame.code, CloseCode::Away | CloseCode::Restart) =>
            {
                return Ok(false);
            }
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(other)) => return Err(Failure::Wrong.by(format!("{other:?}"))),
            Some(Err(error)) => return Err(sent.err().unwrap_or(error).into()),
            None => return Err(Failure::Ended.by("no close frame")),
        }
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

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        let failure = match error {
            Error::Io(error) => return error.into(),
            Error::ConnectionClosed | Error::AlreadyClosed | Error::Protocol(_) => Failure::Ended,
            _ => Failure::Wrong,
        };
        failure.by(error)
    }
}
