//! `/ws/echo`: a WebSocket that sends back what it receives, through axum's own extractor.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use greenroom::Draining;
use greenroom::actor::web::close_for;
use tokio::time::timeout;

/// The longest message, or frame. A longer one closes the connection.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The library's default of 128 KiB for each buffer would be most of an idle connection's memory.
const READ_BUFFER_BYTES: usize = 8 * 1024;
const WRITE_BUFFER_BYTES: usize = 8 * 1024;

/// One message and its header: an echo waits until it is written before the next is read.
const WRITE_BUFFER_BYTES_MAX: usize = MESSAGE_BYTES_MAX + WRITE_BUFFER_BYTES;

/// The longest wait for the end of a peer's next message, pings included, before it counts as gone.
const MESSAGE_TIMEOUT: Duration = Duration::from_mins(5);

/// The longest wait for a peer to read one echo.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest wait for a peer's close frame.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

pub(super) async fn upgrade(upgrade: WebSocketUpgrade, draining: Draining) -> Response {
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .on_upgrade(|socket| serve(socket, draining))
}

async fn serve(mut socket: WebSocket, draining: Draining) {
    let Some(frame) = echo(&mut socket, draining).await else {
        return;
    };
    if send(&mut socket, Message::Close(Some(frame))).await {
        let closed = async { while let Some(Ok(_)) = socket.recv().await {} };
        let _late = timeout(CLOSE_TIMEOUT, closed).await;
    }
}

/// Echoes until the peer has left, or the connection is to be closed with a reason. The library
/// responds to pings and to the peer's close frame while it receives.
async fn echo(socket: &mut WebSocket, mut draining: Draining) -> Option<CloseFrame> {
    loop {
        let received = tokio::select! {
            received = timeout(MESSAGE_TIMEOUT, socket.recv()) => received,
            () = &mut draining => {
                return Some(close(close_code::RESTART, "the server restarts or ends"));
            }
        };
        match received {
            Ok(Some(Ok(message @ (Message::Text(_) | Message::Binary(_))))) => {
                if !send(socket, message).await {
                    return None;
                }
            }
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return close_for(error),
            Ok(None) => return None,
            Err(_) => {
                let reason = "no message was received for five minutes";
                return Some(close(close_code::AWAY, reason));
            }
        }
    }
}

async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(
        timeout(SEND_TIMEOUT, socket.send(message)).await,
        Ok(Ok(()))
    )
}

fn close(code: u16, reason: &'static str) -> CloseFrame {
    CloseFrame {
        code,
        reason: reason.into(),
    }
}
