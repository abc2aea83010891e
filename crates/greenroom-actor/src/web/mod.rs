//! Connections as actors, for axum: `WebSocket`s and server-sent events. Works under `axum::serve`
//! and under `greenroom::serve`. Feature `web`.
//!
//! A handler hands the connection over, and the function that makes the actor gets an [`Outbox`]:
//!
//! ```no_run
//! use axum::extract::{State, WebSocketUpgrade};
//! use axum::response::Response;
//! use axum::{Router, routing::any};
//! use greenroom_actor::web::{Frame, Outbox, WebSocketSettings, websocket};
//! use greenroom_actor::{Actor, ActorSystem, Context, Handler};
//!
//! struct Echo(Outbox<Frame>);
//! impl Actor for Echo {}
//! impl Handler<Frame> for Echo {
//!     type Reply = ();
//!     fn handle(&mut self, frame: Frame, _: &mut Context<Self>) {
//!         let _ = self.0.tell(frame); // fails only when the connection is about to end
//!     }
//! }
//!
//! async fn echo(upgrade: WebSocketUpgrade, State(system): State<ActorSystem>) -> Response {
//!     websocket(upgrade, &system, &WebSocketSettings::default(), Echo)
//! }
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let app = Router::new().route("/echo", any(echo)).with_state(ActorSystem::new()?);
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:5000").await?;
//! axum::serve(listener, app).await?;
//! # Ok(())
//! # }
//! ```
//!
//! - The actor is at the top of the tree and runs on the dispatcher `loop`, if the system has one
//!   ([`Dispatcher::on_loop`](crate::Dispatcher::on_loop)): on the thread that serves its
//!   connection. Otherwise it runs on the default dispatcher, or on the one that the settings name.
//! - When the client leaves, the actor is stopped: it handles what is in its mailbox, and its
//!   [`stopped`](crate::Actor::stopped) runs. Its outbox takes nothing more.
//! - When the actor ends, what is in the outbox is sent, and the connection is closed: see
//!   [`websocket`] and [`sse`].
//! - When the actor fails and is restarted, the connection stays, and so does what is in the
//!   outbox: the new state gets the same [`Outbox`]. The client notices nothing but the pause.
//! - A client that reads slower than the actor writes fills the outbox; [`SlowReader`] says what
//!   happens then.
//! - To end the program: [`ActorSystem::shutdown`](crate::ActorSystem::shutdown) first, which
//!   closes the connections, then the server. A server that drains waits for its connections, and
//!   actors hold theirs as long as they live. A server that notifies its handlers of the drain ends
//!   streams of events by [`sse_until`].
//!
//! Metrics: `greenroom_actor_outbox_dropped_total` and `greenroom_actor_slow_readers_closed_total`,
//! both by `connection` (`websocket` or `sse`).

mod connection;
mod fault;
mod frame;
mod hearing;
mod outbox;
mod settings;
mod spawn;
mod sse;
mod websocket;

pub use connection::CLOSE_WAIT;
pub use fault::close_for;
pub use frame::{Frame, InvalidClose};
pub use outbox::{OUTBOX_DEFAULT, OUTBOX_MAX, Outbox, OutboxClosed, SlowReader};
pub use settings::{SseSettings, WebSocketSettings};
pub use sse::{sse, sse_until};
pub use websocket::websocket;
