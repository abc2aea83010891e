//! `/ws/echo`: a WebSocket that sends back what it receives, through axum's own extractor.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use tokio::time::timeout;

/// A longer message, or frame, closes the connection.
const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// The library's default of 128 KiB for each would be most of what an idle connection costs.
const READ_BUFFER_BYTES: usize = 8 * 1024;
const WRITE_BUFFER_BYTES: usize = 8 * 1024;

/// One message and its header: an echo waits until it is written before the next is read.
const WRITE_BUFFER_BYTES_MAX: usize = MESSAGE_BYTES_MAX + WRITE_BUFFER_BYTES;

/// A peer that says nothing for so long, not even a ping, has left or might as well.
const SILENCE_MAX: Duration = Duration::from_mins(5);

/// How long a peer may take to read one echo.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn upgrade(upgrade: WebSocketUpgrade) -> Response {
    upgrade
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .max_write_buffer_size(WRITE_BUFFER_BYTES_MAX)
        .on_upgrade(echo)
}

/// Pings and the peer's close frame are answered by the library while it receives.
async fn echo(mut socket: WebSocket) {
    loop {
        match timeout(SILENCE_MAX, socket.recv()).await {
            Ok(Some(Ok(message @ (Message::Text(_) | Message::Binary(_))))) => {
                if !send(&mut socket, message).await {
                    return;
                }
            }
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(_)) | None) => return,
            Err(_) => {
                send(&mut socket, farewell()).await;
                return;
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

fn farewell() -> Message {
    Message::Close(Some(CloseFrame {
        code: close_code::AWAY,
        reason: "nothing was received for five minutes".into(),
    }))
}
