use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::ws::Utf8Bytes;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::future::Fuse;
use futures_util::{FutureExt, Stream};
use thiserror::Error;

use super::outbox::{End, Next, Outbox};
use super::settings::SseSettings;
use super::spawn::{GOING_AWAY, NORMAL, error_response, spawn};
use crate::actor::Actor;
use crate::system::ActorSystem;

/// Responds with a stream of server-sent events that an actor writes. `make` makes its state, and
/// makes it again for each restart; the outbox takes axum's `Event`s.
///
/// The actor is stopped when the client leaves, and when the response is dropped unsent. A server
/// notices that a client left when it reads the end of the connection, or when it cannot write: at
/// the latest at the next [keep-alive](SseSettings::keep_alive) comments that stay without
/// acknowledgement.
///
/// When the actor stops, the response ends as it should; when it fails for good or is killed, or
/// when the client [reads too slowly](super::SlowReader::Close), the response is aborted. Browsers
/// connect again in all these cases. A client that reads nothing at all keeps its socket until the
/// server gives it up; the actor is stopped at once.
///
/// If there is no dispatcher of the name that the settings say, the response is 500, and the reason
/// is logged by `tracing` (target `greenroom::actor::web`, level ERROR).
///
/// ```
/// use axum::extract::State;
/// use axum::response::{Response, sse::Event};
/// use greenroom_actor::web::{Outbox, SseSettings, sse};
/// use greenroom_actor::{Actor, ActorSystem, BoxError, Context, Handler};
///
/// #[derive(Clone)]
/// struct Liked(u64);
///
/// struct Likes(Outbox<Event>);
/// impl Actor for Likes {
///     async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
///         let me = context.myself().recipient();
///         context.system().events().subscribe::<Liked>(me);
///         Ok(())
///     }
/// }
/// impl Handler<Liked> for Likes {
///     type Reply = ();
///     fn handle(&mut self, Liked(picture): Liked, _: &mut Context<Self>) {
///         let _ = self.0.tell(Event::default().event("like").data(picture.to_string()));
///     }
/// }
///
/// async fn likes(State(system): State<ActorSystem>) -> Response {
///     sse(&system, &SseSettings::default(), Likes)
/// }
/// ```
pub fn sse<A: Actor>(
    system: &ActorSystem,
    settings: &SseSettings,
    make: impl Fn(Outbox<Event>) -> A + Send + 'static,
) -> Response {
    sse_until(system, settings, std::future::pending(), make)
}

/// Like [`sse`]; but the actor is stopped when `end` completes. It handles what is in its mailbox,
/// may write last events when it has [stopped](Actor::stopped), and the response ends as it should.
/// With the notice that the server drains, a stream does not hold up the drain:
///
/// ```
/// use axum::response::{Response, sse::Event};
/// use greenroom_actor::web::{Outbox, SseSettings, sse_until};
/// use greenroom_actor::{Actor, ActorSystem, Context};
///
/// struct Likes(Outbox<Event>);
/// impl Actor for Likes {
///     async fn stopped(&mut self, _: &mut Context<Self>) {
///         let _ = self.0.tell(Event::default().event("restart").data(""));
///     }
/// }
///
/// /// Under Greenroom, `greenroom::Draining` is an extractor of such a future.
/// fn likes(
///     system: &ActorSystem,
///     draining: impl Future<Output = ()> + Send + 'static,
/// ) -> Response {
///     sse_until(system, &SseSettings::default(), draining, Likes)
/// }
/// ```
pub fn sse_until<A: Actor>(
    system: &ActorSystem,
    settings: &SseSettings,
    end: impl Future<Output = ()> + Send + 'static,
    make: impl Fn(Outbox<Event>) -> A + Send + 'static,
) -> Response {
    let common = &settings.common;
    let outbox = Outbox::new(common.outbox, common.slow_reader, "sse");
    match spawn(system, common, &outbox, make) {
        Ok(_) => {
            let keep_alive = KeepAlive::new().interval(settings.keep_alive);
            let end: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(end);
            Sse::new(Events {
                outbox,
                end: end.fuse(),
            })
            .keep_alive(keep_alive)
            .into_response()
        }
        Err(error) => error_response(&error),
    }
}

/// The body of the response.
struct Events {
    outbox: Outbox<Event>,
    /// Stops the actor.
    end: Fuse<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

/// An error that aborts the response.
#[derive(Debug, Error)]
#[error("the stream of events ended: {0}")]
struct BrokenOff(Utf8Bytes);

impl Stream for Events {
    type Item = Result<Event, BrokenOff>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.end.poll_unpin(cx).is_ready() {
            self.outbox.stop_actor();
        }
        self.outbox.poll_next(cx).map(|next| match next {
            Next::Send(event) => Some(Ok(event)),
            Next::End(End::Left) => None,
            Next::End(End::Close(frame)) => match frame.code {
                NORMAL | GOING_AWAY => None,
                _ => Some(Err(BrokenOff(frame.reason))),
            },
        })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.outbox.leave();
    }
}
