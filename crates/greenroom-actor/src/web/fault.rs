use axum::extract::ws::CloseFrame;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::error::ProtocolError;

use super::frame::close_frame;

/// The close codes "protocol error", "invalid payload data" and "message too big" (RFC 6455,
/// 7.4.1).
const PROTOCOL_ERROR: u16 = 1002;
const NOT_UTF8: u16 = 1007;
const TOO_BIG: u16 = 1009;

/// Returns the close frame that tells a client what it broke, for an error of receiving from axum's
/// `WebSocket`; `None` if there is no client to tell.
///
/// | code | the client |
/// |---|---|
/// | 1002 | broke the protocol |
/// | 1007 | sent text that is not UTF-8 |
/// | 1009 | sent a message, or a frame, that is too long |
///
/// ```
/// use axum::extract::ws::{Message, WebSocket};
/// use greenroom_actor::web::close_for;
///
/// async fn echo(mut socket: WebSocket) {
///     while let Some(received) = socket.recv().await {
///         let reply = match received {
///             Ok(message @ (Message::Text(_) | Message::Binary(_))) => message,
///             Ok(_) => continue, // a ping, a pong or a close frame
///             Err(error) => match close_for(error) {
///                 Some(frame) => Message::Close(Some(frame)),
///                 None => return,
///             },
///         };
///         if socket.send(reply).await.is_err() {
///             return;
///         }
///     }
/// }
/// ```
#[must_use]
pub fn close_for(error: axum::Error) -> Option<CloseFrame> {
    let error = error.into_inner().downcast::<Error>().ok()?;
    let code = match &*error {
        Error::Capacity(_) => TOO_BIG,
        Error::Utf8(_) => NOT_UTF8,
        Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => return None,
        Error::Protocol(_) => PROTOCOL_ERROR,
        _ => return None,
    };
    let without_reason = || CloseFrame {
        code,
        reason: "".into(),
    };
    Some(close_frame(code, &error.to_string()).unwrap_or_else(|_| without_reason()))
}
