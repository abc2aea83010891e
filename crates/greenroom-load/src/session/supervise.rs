//! The life cycle of a thread.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::timeout;

use super::dispatcher::Dispatcher;
use super::engine::Engine;
use super::request::Messages;
use super::timer::Timer;
use crate::record::Recorder;
use crate::run::{Ending, Endpoint, Share};

/// The interval of checks of the stop flag.
const STOP_CHECK: Duration = Duration::from_millis(50);

/// Runs a thread's share: sends its measurements in each interval, and returns when all is done or
/// the run is stopped.
pub(super) async fn supervise(
    share: Share,
    endpoints: Vec<Endpoint>,
    messages: Messages,
    recorder: Recorder,
) -> Ending {
    let engine = Rc::new(Engine::new(share, endpoints, messages, recorder));
    begin(&engine);
    while !engine.is_settled() && !engine.gives_up() && !engine.share.stop.is_stopped() {
        let _ = timeout(wait(&engine), engine.settled.notified()).await;
        flush_if_due(&engine);
    }
    count_due(&engine);
    let now = engine.now();
    let was_cut = !engine.is_settled();
    let waiting = match &*engine.dispatcher.borrow() {
        Dispatcher::Closed(_) => 0,
        Dispatcher::Open(queue) => queue.waiting(now),
    };
    let mut outcomes = engine.outcomes.borrow_mut();
    outcomes.finish(now);
    Ending {
        last_ns: outcomes.last_ns(),
        in_flight_most: outcomes.in_flight_most(),
        unfinished: outcomes.in_flight() + waiting,
        was_cut,
        gave_up: outcomes.gives_up(),
    }
}

fn begin(engine: &Rc<Engine>) {
    if engine.share.plan.is_open_loop() {
        spawn_local(pace(Rc::clone(engine)));
    } else {
        engine.begin_all();
    }
}

/// Open loop: dispatches requests when they are due, until the schedule's end.
async fn pace(engine: Rc<Engine>) {
    let timer = Timer::new(engine.share.clock, engine.share.plan.spin);
    while let Some(next) = engine.dispatch() {
        timer.sleep_until(next).await;
    }
    engine.abandon();
}

fn wait(engine: &Engine) -> Duration {
    let flush = engine.outcomes.borrow().flush_due();
    STOP_CHECK.min(Duration::from_nanos(flush.saturating_sub(engine.now())))
}

fn flush_if_due(engine: &Engine) {
    let now = engine.now();
    if now >= engine.outcomes.borrow().flush_due() {
        count_due(engine);
        engine.outcomes.borrow_mut().flush(now);
    }
}

fn count_due(engine: &Engine) {
    if let Dispatcher::Open(queue) = &mut *engine.dispatcher.borrow_mut() {
        let due = queue.pacer.count_due(engine.now());
        engine.outcomes.borrow_mut().due(due);
    }
}
