//! The life cycle of a thread.

use std::rc::Rc;
use std::time::Duration;

use tokio::task::spawn_local;
use tokio::time::timeout;

use super::desk::Desk;
use super::pacer::Pacer;
use super::request::Messages;
use super::room::Room;
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
    let room = Rc::new(Room::new(share, endpoints, messages, recorder));
    begin(&room);
    while !room.is_settled() && !room.gives_up() && !room.share.stop.is_stopped() {
        let _ = timeout(wait(&room), room.settled.notified()).await;
        flush_if_due(&room);
    }
    count_due(&room);
    let now = room.now();
    let waiting = match &*room.desk.borrow() {
        Desk::Closed(_) => 0,
        Desk::Open(queue) => queue.waiting(now),
    };
    let mut ledger = room.ledger.borrow_mut();
    ledger.finish(now);
    Ending {
        last_ns: ledger.last_ns(),
        unfinished: ledger.under_way() + waiting,
        gave_up: ledger.gives_up(),
    }
}

fn begin(room: &Rc<Room>) {
    if room.share.plan.is_open_loop() {
        spawn_local(pace(Rc::clone(room)));
    } else {
        room.begin_all();
    }
}

/// Open loop: dispatches requests when they are due.
async fn pace(room: Rc<Room>) {
    let pacer = Pacer::new(room.share.clock, room.share.plan.spin);
    let end = room.share.sending_ends();
    loop {
        room.dispatch();
        if room.now() >= end {
            return room.abandon(end);
        }
        pacer
            .sleep_until(next_due(&room).unwrap_or(end).min(end))
            .await;
    }
}

fn next_due(room: &Room) -> Option<u64> {
    match &mut *room.desk.borrow_mut() {
        Desk::Closed(_) => None,
        Desk::Open(queue) => queue.next_due(),
    }
}

fn wait(room: &Room) -> Duration {
    let flush = room.ledger.borrow().flush_due();
    STOP_CHECK.min(Duration::from_nanos(flush.saturating_sub(room.now())))
}

fn flush_if_due(room: &Room) {
    let now = room.now();
    if now >= room.ledger.borrow().flush_due() {
        count_due(room);
        room.ledger.borrow_mut().flush(now);
    }
}

fn count_due(room: &Room) {
    if let Desk::Open(queue) = &mut *room.desk.borrow_mut() {
        room.ledger.borrow_mut().due(queue.count_due(room.now()));
    }
}
