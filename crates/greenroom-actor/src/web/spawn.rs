//! The spawning of a connection's actor, and the link of the ends of both.

use axum::extract::ws::CloseFrame;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::outbox::Outbox;
use super::settings::Common;
use crate::actor::Actor;
use crate::cell::Ending;
use crate::reference::ActorRef;
use crate::system::{ActorSystem, SpawnError};

/// The dispatcher for connections, if the system has it.
const LOOP: &str = "loop";

/// The close codes "normal closure", "going away" and "internal error" (RFC 6455, 7.4.1).
pub(super) const NORMAL: u16 = 1000;
pub(super) const GOING_AWAY: u16 = 1001;
const INTERNAL_ERROR: u16 = 1011;

/// Spawns the actor of a connection. The end of one is the end of the other.
pub(super) fn spawn<A: Actor, T: Send + 'static>(
    system: &ActorSystem,
    settings: &Common,
    outbox: &Outbox<T>,
    make: impl Fn(Outbox<T>) -> A + Send + 'static,
) -> Result<ActorRef<A>, SpawnError> {
    let theirs = outbox.clone();
    let (ended, of) = (outbox.clone(), system.clone());
    let mut spawn = system
        .build(move || make(theirs.clone()))
        .watched_by(move |terminated| {
            ended.finish(close_frame_at_end(
                &terminated.ending,
                of.is_shutting_down(),
            ));
        });
    if let Some(dispatcher) = dispatcher(system, settings) {
        spawn = spawn.dispatcher(dispatcher);
    }
    let actor = spawn.spawn()?;
    let weak = actor.downgrade();
    outbox.at_end(move || {
        if let Some(actor) = weak.upgrade() {
            actor.stop();
        }
    });
    Ok(actor)
}

/// Checks that the dispatcher that the settings name exists.
pub(super) fn check(system: &ActorSystem, settings: &Common) -> Result<(), SpawnError> {
    match &settings.dispatcher {
        Some(name) => Ok(system.shared().registered(name).map(drop)?),
        None => Ok(()),
    }
}

/// Returns the response when there is no actor for the connection: 500.
pub(super) fn error_response(error: &SpawnError) -> Response {
    tracing::error!(target: "greenroom::actor::web", %error, "no actor for a connection");
    StatusCode::INTERNAL_SERVER_ERROR.into_response()
}

/// Returns the close frame after a failure of the actor.
pub(super) fn failed() -> CloseFrame {
    CloseFrame {
        code: INTERNAL_ERROR,
        reason: "internal error".into(),
    }
}

fn close_frame_at_end(ending: &Ending, is_shutting_down: bool) -> CloseFrame {
    match ending {
        Ending::Failed(_) => failed(),
        _ if is_shutting_down => CloseFrame {
            code: GOING_AWAY,
            reason: "the server is shutting down".into(),
        },
        Ending::Killed | Ending::Unknown => failed(),
        Ending::Stopped => CloseFrame {
            code: NORMAL,
            reason: "".into(),
        },
    }
}

fn dispatcher<'a>(system: &ActorSystem, settings: &'a Common) -> Option<&'a str> {
    let is_there = |name: &&str| system.shared().registered(name).is_ok();
    settings
        .dispatcher
        .as_deref()
        .or_else(|| Some(LOOP).filter(is_there))
}
