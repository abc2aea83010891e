//! The engine for HTTP/2 and WebSocket: one thread, one event loop, one task for each connection.
//!
//! An [`engine::Engine`] is the state that the tasks of a thread share. Its
//! [`dispatcher::Dispatcher`] decides which request is sent when and on which connection, its
//! [`outcomes::Outcomes`] records the results. In a closed loop each connection polls the
//! dispatcher for its next request as soon as one ends. In an open loop the pacing task dispatches
//! requests when they are due, to a connection with a free stream or to a new one; a request that
//! finds neither waits in order.

mod connect;
mod connection;
mod dispatcher;
mod engine;
mod exchange;
mod http2;
mod outcomes;
mod request;
mod supervise;
#[cfg(test)]
mod tests;
mod timer;
mod websocket;

use std::io;

use tokio::runtime::{Builder, LocalOptions, LocalRuntime};

use crate::plan::StreamPlan;
use crate::record::{FailureKind, Recorder};
use crate::run::{Ending, Endpoint, RunError, Share};

use request::Messages;

/// Tasks that run before the event loop polls for events again. A task is some ten microseconds of
/// reading and writing, so a request that is due waits at most about 0.1 ms while other tasks run.
const TASKS_BETWEEN_EVENTS: u32 = 8;

/// Makes a thread's share of the load; returns when its last request ended, or when it is to stop.
///
/// `endpoints` are the targets of the plan in their order, at least one.
pub(crate) fn work(share: Share, endpoints: Vec<Endpoint>, mut recorder: Recorder) -> Ending {
    let targets = endpoints.iter().map(|endpoint| &endpoint.target);
    let made = Messages::new(&share.plan, targets).map_err(io::Error::other);
    match made.and_then(|messages| Ok((messages, runtime()?))) {
        Ok((messages, runtime)) => {
            runtime.block_on(supervise::supervise(share, endpoints, messages, recorder))
        }
        Err(error) => {
            let now = share.clock.now();
            recorder.failed(FailureKind::of_connect(&error), (now, now), || {
                error.to_string()
            });
            recorder.finish(now);
            Ending {
                last_ns: now,
                in_flight_most: 0,
                unfinished: 0,
                was_cut: true,
                gave_up: true,
            }
        }
    }
}

/// Checks that the plan's requests can be written in the plan's protocol.
///
/// # Errors
/// [`RunError::Plan`] with the method, field or URL that cannot.
pub(crate) fn check(plan: &StreamPlan) -> Result<(), RunError> {
    Messages::new(plan, &plan.targets)
        .map(|_| ())
        .map_err(RunError::Plan)
}

fn runtime() -> io::Result<LocalRuntime> {
    Builder::new_current_thread()
        .enable_all()
        .event_interval(TASKS_BETWEEN_EVENTS)
        .build_local(LocalOptions::default())
}
