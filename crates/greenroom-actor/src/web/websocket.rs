use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::future::Either;
use greenroom_timing::Span;

use super::connection::Connection;
use super::frame::Frame;
use super::outbox::Outbox;
use super::settings::WebSocketSettings;
use super::spawn::{check, error_response, failed, spawn};
use crate::receive::Receive;
use crate::system::ActorSystem;

/// The most bytes that a read from the socket takes; a connection whose messages are short keeps up
/// to twice as many. Most clients write less than they read. A longer message takes several reads,
/// one of 64 KiB twice as many as with 1,024 bytes, and its room stays.
const READ_BYTES: usize = 512;
/// The size of the buffer of writes, in bytes.
const WRITE_BYTES: usize = 16 * 1024;

/// Turns a connection into an actor. `make` makes its state, and makes it again for each restart;
/// the outbox is the way to the client. The actor is spawned when the connection has become a
/// WebSocket.
///
/// The client's messages are the actor's: [`Frame`]s, in order. While its mailbox is full nothing
/// is read, and the client has to wait: back-pressure. (A mailbox that [drops or
/// refuses](crate::Overflow) makes dead letters instead.)
///
/// The connection is closed with the code
///
/// | code | when |
/// |---|---|
/// | what the actor says | by [`Outbox::close`] |
/// | 1000 | the actor stopped |
/// | 1001 | the system is [shut down](ActorSystem::shutdown), which waits for the close frames |
/// | 1002, 1007 | the client broke the protocol, or sent text that is not UTF-8 |
/// | 1008 | the client [reads too slowly](super::SlowReader::Close), or was [silent][silence] |
/// | 1009 | a message was [too long](WebSocketSettings::frame_bytes_max) |
/// | 1011 | the actor was killed, or failed for good: a restart closes nothing |
///
/// [silence]: WebSocketSettings::silence_max
///
/// Either side may close; the other has [`CLOSE_WAIT`](super::CLOSE_WAIT) to reply. In every case
/// the actor is stopped.
///
/// If the request that opens it is sampled (traces), each message of the client begins a trace of
/// its own, which is linked to the request's.
///
/// Of what `upgrade` was set to, the protocols stay; sizes are as the settings say.
///
/// If there is no dispatcher of the name that the settings say, the response is 500, and the reason
/// is logged by `tracing` (target `greenroom::actor::web`, level ERROR).
pub fn websocket<A, K>(
    upgrade: WebSocketUpgrade,
    system: &ActorSystem,
    settings: &WebSocketSettings,
    make: impl Fn(Outbox<Frame>) -> A + Send + 'static,
) -> Response
where
    A: Receive<Frame, K>,
    K: 'static,
{
    if let Err(error) = check(system, &settings.common) {
        return error_response(&error);
    }
    let (system, settings) = (system.clone(), settings.clone());
    let opened = Span::current();
    upgrade
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES)
        .max_message_size(settings.frame_bytes_max)
        .max_frame_size(settings.frame_bytes_max)
        .on_upgrade(move |socket| serve(socket, opened, (system, settings), make))
}

/// Serves a connection. Not an `async fn`: that would keep room for its arguments beside the future
/// of the connection, for as long as that lives.
fn serve<A, K>(
    socket: WebSocket,
    opened: Option<Span>,
    (system, settings): (ActorSystem, WebSocketSettings),
    make: impl Fn(Outbox<Frame>) -> A + Send + 'static,
) -> impl Future<Output = ()> + Send
where
    A: Receive<Frame, K>,
    K: 'static,
{
    let common = &settings.common;
    let outbox = Outbox::new(common.outbox, common.slow_reader, "websocket");
    match spawn(&system, common, &outbox, make) {
        Ok(actor) => {
            let connection = Connection {
                actor,
                outbox,
                settings,
                system,
                opened,
            };
            Either::Left(connection.run(socket))
        }
        Err(error) => {
            tracing::error!(target: "greenroom::actor::web", %error, "no actor for a connection");
            Either::Right(refuse(socket))
        }
    }
}

async fn refuse(mut socket: WebSocket) {
    // Whether it hears it or not, the connection ends.
    let _ = socket.send(Message::Close(Some(failed()))).await;
}
