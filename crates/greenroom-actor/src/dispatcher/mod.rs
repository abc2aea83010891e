//! Dispatchers: the workers that run actors.

mod alarm;
mod builder;
mod core;
mod deadline;
mod error;
mod local;
mod pace;
mod settings;
mod sleep;
mod status;
mod sync;
mod timetable;
mod waits;
mod watchdog;
mod wheel;
mod worker;

use std::time::Duration;

use tokio::time::Instant;

pub(crate) use builder::start;
#[cfg(test)]
pub(crate) use builder::unstarted;
pub(crate) use core::Core;
pub(crate) use deadline::Deadline;
pub use error::DispatcherError;
pub(crate) use local::{call_here, keep_running_actor};
pub(crate) use pace::Pace;
pub use settings::{Dispatcher, THROUGHPUT_DEFAULT};
pub use status::DispatcherStatus;
pub(crate) use wheel::AlarmKey;

use crate::raw::Turn;

/// Schedules an actor: on the worker that the caller runs on, if that is of the actor's dispatcher,
/// so that actors which talk stay together; otherwise on the worker that ran it last.
pub(crate) fn schedule(turn: Turn, dispatcher: &Core, home: u16) {
    if let Some(turn) = local::schedule_here(turn, dispatcher) {
        dispatcher.inject(turn, home);
    }
}

/// Returns the moment after this time, at most 30 years away.
pub(crate) fn moment_after(time: Duration) -> Instant {
    moment(Instant::now(), time)
}

/// Returns the moment this time after another.
fn moment(now: Instant, time: Duration) -> Instant {
    now.checked_add(time.min(FAR)).unwrap_or(now)
}

const FAR: Duration = Duration::from_hours(30 * 365 * 24);

/// Calls a function on a worker of the dispatcher after this time, to the millisecond.
pub(crate) fn after(dispatcher: &Core, time: Duration, call: impl FnOnce() + Send + 'static) {
    let worker = dispatcher.next_home();
    dispatcher.call_at(worker, moment_after(time), Box::new(call));
}
