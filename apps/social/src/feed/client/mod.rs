//! The actor of one WebSocket: a cursor for each topic that it watches.

mod cursor;
mod rate;
mod watching;

use std::sync::Arc;
use std::time::Duration;

use greenroom::actor::web::{Frame, Outbox};
use greenroom::actor::{Actor, AsyncHandler, BoxError, Context, Failure, Handler, Mailbox};
use jiff::Timestamp;

use super::Shared;
use super::command::Command;
use super::feeder::{Unwatch, Watch};
use super::frame::{Events, Notices};
use super::page::{self, Found, Page};
use super::sessions::{self, ConnectionGuard, Watcher};
use super::waker::Waker;
use cursor::Cursor;
use rate::Rate;

/// The most frames that wait for a client: one of each kind. The next ones are written when these
/// are sent.
pub(super) const OUTBOX_FRAMES: usize = 4;
/// The messages of a client that may wait; the next one is not read before.
const MAILBOX_MESSAGES: u32 = 16;
/// The time after which the storage is asked again if it has failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// "Unsupported data", "invalid payload data", "policy violation", "internal error" (RFC 6455,
/// 7.4.1) and "service restart" (the registry of close codes).
const UNSUPPORTED: u16 = 1003;
const NOT_UNDERSTOOD: u16 = 1007;
const POLICY: u16 = 1008;
const INTERNAL_ERROR: u16 = 1011;
const RESTART: u16 = 1012;
/// "Try again later" (the registry of close codes).
const TRY_AGAIN: u16 = 1013;
/// The longest reason of a close frame, in bytes (RFC 6455, 5.5).
const REASON_BYTES_MAX: usize = 123;

/// An actor that serves the connection of a client.
#[derive(Debug)]
pub(super) struct Client {
    outbox: Outbox<Frame>,
    notices: Notices,
    watching: watching::Watching,
    /// The cursor that the next frame begins with, so that a busy topic does not crowd out the
    /// others.
    turn: usize,
    page: Option<Page>,
    is_reading: bool,
    awaits_drain: bool,
    rate: Rate,
    /// The entry of a known user's connection.
    entry: Option<ConnectionGuard>,
    /// The session was looked up again after the connection was listed.
    is_confirmed: bool,
    shared: Arc<Shared>,
}

/// There are new events to read.
pub(super) struct Wake;

/// The outbox has been drained.
struct Drained;

/// The storage may be asked again.
struct Retry;

/// The session has expired.
struct Expired;

/// A page was read from the storage.
struct Looked {
    topic: Arc<str>,
    position: u64,
    found: crate::store::Result<Found>,
}

impl Client {
    pub(super) fn new(
        shared: Arc<Shared>,
        watcher: Option<Watcher>,
        outbox: Outbox<Frame>,
    ) -> Self {
        shared.meters.clients.increment(1);
        let viewer = watcher.as_ref().map(|watcher| watcher.user);
        let enter = |watcher| shared.connections.enter(watcher, outbox.clone());
        Self {
            entry: watcher.map(enter),
            is_confirmed: false,
            outbox,
            notices: Notices::default(),
            watching: watching::Watching::new(viewer, shared.settings.topics_max),
            turn: 0,
            page: None,
            is_reading: false,
            awaits_drain: false,
            rate: Rate::default(),
            shared,
        }
    }

    /// Writes new events, if the connection has taken the frames before.
    fn advance(&mut self, context: &mut Context<Self>) {
        if self.awaits_drain {
            return;
        }
        if self.outbox.waiting() > 0 {
            self.wait_for_drain(context);
            return;
        }
        let mut events = Events::default();
        let older = self.gather(&mut events);
        let is_more = events.is_full();
        self.write(events);
        if let Some((topic, position)) = older.filter(|_| !self.is_reading) {
            self.look_up(topic, position, context);
        }
        if is_more {
            self.wait_for_drain(context);
        }
    }

    /// Adds new events to the frame. Returns the first position that only the storage can continue
    /// from.
    fn gather(&mut self, events: &mut Events) -> Option<(Arc<str>, u64)> {
        let mut older = None;
        let count = self.watching.cursors.len();
        let first = self.turn;
        for index in (0..count).map(|offset| (first + offset) % count) {
            if events.is_full() {
                self.turn = index;
                break;
            }
            let cursor = &mut self.watching.cursors[index];
            if !cursor.advance(&mut self.page, events, &mut self.notices) && older.is_none() {
                older = Some((Arc::clone(cursor.topic()), cursor.position()));
            }
        }
        older
    }

    fn write(&mut self, events: Events) {
        let meters = &self.shared.meters;
        meters.events.increment(events.count());
        for frame in self.notices.take().chain(events.finish()) {
            meters.frames.increment(1);
            // This fails only if the connection is about to end.
            let _ = self.outbox.tell(frame);
        }
    }

    fn wait_for_drain(&mut self, context: &mut Context<Self>) {
        let outbox = self.outbox.clone();
        let drained = async move { outbox.drained().await };
        // There are two futures at most: this one and that of `look_up`.
        self.awaits_drain = context.pipe(drained, |()| Drained).is_ok();
    }

    fn look_up(&mut self, topic: Arc<str>, position: u64, context: &mut Context<Self>) {
        let shared = Arc::clone(&self.shared);
        let look = async move {
            let found = page::find(&shared, &topic, position).await;
            Looked {
                topic,
                position,
                found,
            }
        };
        self.is_reading = context.pipe(look, |looked| looked).is_ok();
    }

    /// Returns `true` if the session or the key is still live, which is checked once: it may have
    /// ended after the request was authenticated and before the connection was listed.
    ///
    /// If it has ended, or if that is not known, the connection is closed.
    async fn confirm_session(&mut self) -> bool {
        let Some(entry) = self.entry.as_ref().filter(|_| !self.is_confirmed) else {
            return true;
        };
        // The semaphore is never closed, and if it were, reading would still be right.
        let _permit = self.shared.reads.acquire().await;
        match sessions::is_live(&*self.shared.store, &entry.watcher.credential).await {
            Ok(true) => self.is_confirmed = true,
            Ok(false) => self.close(sessions::UNAUTHORIZED, sessions::REASON),
            Err(_) => self.close(TRY_AGAIN, "the storage is away: connect again"),
        }
        self.is_confirmed
    }

    async fn execute(&mut self, command: Command, context: &mut Context<Self>) {
        let left = self.watching.unwatch(command.unwatch, &mut self.notices);
        let Ok(asked) = self.watching.watch(command.watch, &mut self.notices) else {
            self.close(POLICY, "too many topics that cannot be watched");
            return;
        };
        if self
            .page
            .as_ref()
            .is_some_and(|page| left.iter().any(|topic| page.is_of(topic)))
        {
            self.page = None;
        }
        let waker = self.watching.waker(context);
        let feeder = &self.shared.feeder;
        // These fail only if the feed is about to end, and the connection with it.
        if !left.is_empty() {
            let _ = feeder
                .send(Unwatch {
                    waker: Arc::clone(&waker),
                    topics: left,
                })
                .await;
        }
        if !asked.is_empty() {
            let _ = feeder
                .send(Watch {
                    waker,
                    topics: asked,
                })
                .await;
        }
    }

    fn close(&self, code: u16, reason: &str) {
        let mut end = REASON_BYTES_MAX.min(reason.len());
        while !reason.is_char_boundary(end) {
            end -= 1;
        }
        if let Err(error) = self.outbox.close(code, &reason[..end]) {
            tracing::error!(%error, "a connection could not be closed");
        }
    }
}

impl Actor for Client {
    fn mailbox() -> Mailbox {
        Mailbox::bounded(MAILBOX_MESSAGES)
    }

    async fn started(&mut self, context: &mut Context<Self>) -> Result<(), BoxError> {
        let watcher = self.entry.as_ref().map(|entry| &entry.watcher);
        if let Some(expires_at) = watcher.and_then(|watcher| watcher.expires_at) {
            let rest = expires_at.duration_since(Timestamp::now());
            context.once(Duration::try_from(rest).unwrap_or_default(), Expired);
        }
        Ok(())
    }

    /// Closes the connection: the positions are gone with the old state, and only the client knows
    /// them.
    async fn restarted(&mut self, _: &Failure, _: &mut Context<Self>) -> Result<(), BoxError> {
        self.close(INTERNAL_ERROR, "internal error: connect again");
        Ok(())
    }
}

impl AsyncHandler<Frame> for Client {
    type Reply = ();

    async fn handle(&mut self, frame: Frame, context: &mut Context<Self>) {
        let Some(text) = frame.as_text() else {
            self.close(UNSUPPORTED, "messages are text");
            return;
        };
        if !self.confirm_session().await {
            return;
        }
        match Command::parse(text) {
            Ok(command) if !self.rate.admits(command.watch.len()) => {
                self.close(POLICY, "too many messages, or topics in them");
                return;
            }
            Ok(command) => self.execute(command, context).await,
            Err(error) => self.close(NOT_UNDERSTOOD, &error.to_string()),
        }
        self.advance(context);
    }
}

impl Handler<Wake> for Client {
    type Reply = ();

    fn handle(&mut self, _: Wake, context: &mut Context<Self>) {
        let waker: Arc<Waker> = self.watching.waker(context);
        let opened = waker.take_opened();
        if waker.is_lost() {
            self.close(RESTART, "the feed begins anew: connect again");
            return;
        }
        self.watching.open(opened);
        self.advance(context);
    }
}

impl Handler<Drained> for Client {
    type Reply = ();

    fn handle(&mut self, _: Drained, context: &mut Context<Self>) {
        self.awaits_drain = false;
        self.advance(context);
    }
}

impl Handler<Retry> for Client {
    type Reply = ();

    fn handle(&mut self, _: Retry, context: &mut Context<Self>) {
        self.is_reading = false;
        self.advance(context);
    }
}

impl Handler<Expired> for Client {
    type Reply = ();

    fn handle(&mut self, _: Expired, _: &mut Context<Self>) {
        self.close(sessions::UNAUTHORIZED, sessions::REASON);
    }
}

impl Handler<Looked> for Client {
    type Reply = ();

    fn handle(&mut self, looked: Looked, context: &mut Context<Self>) {
        let found = match looked.found {
            Ok(found) => found,
            Err(error) => {
                tracing::debug!(topic = &*looked.topic, %error, "a client cannot be caught up yet");
                context.once(RETRY_AFTER, Retry);
                return;
            }
        };
        self.is_reading = false;
        if let Some(cursor) = self.watching.cursor_at(&looked.topic, looked.position) {
            match found {
                Found::Page(page) => self.page = Some(page),
                Found::End => cursor.is_at_end(&mut self.notices),
                Found::Nowhere(end) => {
                    self.shared.meters.resets.increment(1);
                    cursor.reset(end, &mut self.notices);
                }
            }
        }
        self.advance(context);
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.shared.meters.clients.decrement(1);
        self.watching.leave();
    }
}
