//! Supervises a worker from the moment it takes requests to its end.

use std::convert::Infallible;
use std::io;
use std::ops::Not as _;
use std::sync::Arc;

use tokio::io::AsyncWriteExt as _;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use super::channel::{Message, frame};
use super::control::{Control, ReadyWorker};
use super::held::Held;
use super::log;
use super::member::{END_WAIT, Member, Reason};
use super::order::Order;
use super::shared::Shared;
use crate::pool::Ending;
use crate::status::WorkerState;

struct Tended {
    shared: Arc<Shared>,
    held: Held,
    control: Control,
}

/// Supervises the worker until it is gone. It is killed when `orders` ends.
pub(super) async fn tend(
    ready: ReadyWorker,
    shared: Arc<Shared>,
    orders: watch::Receiver<Order>,
    _alive: mpsc::Sender<Infallible>,
) {
    let mut tended = Tended {
        shared,
        held: ready.held,
        control: ready.control,
    };
    let mut abandoned = orders.clone();
    tokio::select! {
        () = tended.live(orders) => {}
        () = async { while abandoned.changed().await.is_ok() {} } => {}
    }
}

impl Tended {
    async fn live(&mut self, orders: watch::Receiver<Order>) {
        let member = Arc::clone(&self.held.member);
        let is_gone = tokio::select! {
            () = self.lost() => true,
            () = member.reached(WorkerState::Draining) => false,
            () = Order::drain(orders) => false,
        };
        if !is_gone {
            self.drain(&member).await;
        }
        self.clean_up(&member).await;
    }

    /// Returns when the worker is gone, or closes its control connection.
    async fn lost(&mut self) {
        let member = Arc::clone(&self.held.member);
        loop {
            tokio::select! {
                () = member.ended() => return,
                message = self.control.frames.next() => match message {
                    Ok(Some(message)) => if let Err(error) = self.handle(&member, &message) {
                        tracing::error!("{member} sent {error}, and is killed");
                        return member.kill();
                    },
                    Ok(None) => return,
                    Err(error) => {
                        tracing::error!(
                            "{member} is killed, as its control connection failed: {error}"
                        );
                        return member.kill();
                    }
                },
            }
        }
    }

    fn handle(&self, member: &Member, message: &Message) -> io::Result<()> {
        match message.kind {
            b'H' => self.shared.retire(member, Reason::Asked),
            b'E' => log::tell_error(&self.shared.settings.name(), member, message)?,
            _ => return Err(message.unexpected()),
        }
        Ok(())
    }

    async fn drain(&mut self, member: &Member) {
        member.advance(WorkerState::Draining);
        self.shared.pool.drain(member.key);
        let allowed = self.shared.settings.limits.drain_deadline;
        let done = timeout(allowed, self.finish(member)).await;
        if done.is_err() {
            tracing::warn!(
                "{member} was not done within {allowed:?} (drain_deadline), and is killed"
            );
            self.shared.pool.note_ending(member.key, Ending::Retired);
            member.advance(WorkerState::Ending);
            member.kill_late();
            member.ended().await;
        }
    }

    async fn finish(&mut self, member: &Member) {
        let shared = Arc::clone(&self.shared);
        tokio::select! {
            () = idle(&shared, member) => {}
            () = self.lost() => return,
        }
        member.advance(WorkerState::Ending);
        // If it fails, the worker has ended by itself.
        self.control.output.write_all(&frame(b'Q', None)).await.ok();
        // Its last frames are read, because it would wait for a reader.
        self.lost().await;
        member.ended().await;
    }

    async fn clean_up(&mut self, member: &Member) {
        let was_asked = member.advance(WorkerState::Ending).not();
        self.shared.pool.remove(member.key);
        // One that closed its control connection is about to end, with a status of its own.
        let is_gone = timeout(END_WAIT, member.ended()).await.is_ok();
        self.held.remove();
        if !is_gone {
            tracing::warn!("{member} talked to us no more for {END_WAIT:?}, and is killed");
        } else if was_asked {
            tracing::debug!("{member} ended");
        } else {
            let status = self.held.status().await;
            let application = self.shared.settings.name();
            tracing::warn!(application, "{member} ended unasked ({status})");
        }
    }
}

/// Returns when no request is under way in a worker that gets no new ones.
async fn idle(shared: &Shared, member: &Member) {
    loop {
        let loads = shared.pool.loads();
        let load = loads.iter().find(|load| load.key == member.key);
        if load.is_none_or(|load| load.running == 0 && load.waiting == 0) {
            return;
        }
        member.may_be_idle.notified().await;
    }
}
