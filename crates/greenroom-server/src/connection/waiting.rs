use std::time::Duration;

use super::Connection;
use crate::app::App;
use crate::body::allowance;
use crate::event_loop::{NEVER, TICK, Tick, tick_after};
use crate::listen::DEFERRED;

/// Time for a client to take leave once it was told that the connection ends.
pub(crate) const LINGER: Duration = Duration::from_secs(2);

/// Time for the response to a client that ended its side within the same time of its request. One
/// that has only finished writing gets what takes no longer, wherever it is computed; for one that
/// has left no more is done.
pub(super) const HALF_CLOSED: Duration = TICK;

/// The time after which it is looked whether a client has left of which nothing can be read.
const WATCHED_EVERY: Duration = Duration::from_secs(1);

/// The kinds of waits of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The rest of a head; on a new connection, all of it.
    Head,
    /// The next request.
    Idle,
    /// The next request, which may be on its way, while the server drains.
    Grace,
    /// More of a body that the application wants.
    Body,
    /// More of a body that nobody wants.
    Discard,
    /// The application.
    Handler,
    /// The application, and to look whether the client has left: nothing of it is read for now.
    Watch,
    /// The application's response, for a client that ended its side and may have left.
    HalfClosed,
    /// The client, to take what is sent.
    Write,
    /// The client, to end its side.
    Linger,
}

/// The wait of a connection, and its beginning.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) wait: Wait,
    pub(super) since: Tick,
    /// The system has held the client back for [`DEFERRED`] already, because it said nothing.
    deferred: bool,
    /// The client had ended its side when it was last looked whether it has left.
    had_ended: bool,
}

impl Waiting {
    pub(super) fn for_first_head(now: Tick, deferred: bool) -> Self {
        Self {
            wait: Wait::Head,
            since: now,
            deferred,
            had_ended: false,
        }
    }

    /// The client said something: it was not held back.
    pub(super) fn heard(&mut self) {
        self.deferred = false;
    }

    /// Begins anew: there was progress.
    pub(super) fn restart(&mut self, now: Tick) {
        self.since = now;
        self.had_ended = false;
    }

    /// Begins anew, as nothing was read since it was last looked whether the client has left;
    /// returns `true` if it had ended its side by then.
    pub(super) fn look_again(&mut self, now: Tick, has_ended: bool) -> bool {
        self.since = now;
        std::mem::replace(&mut self.had_ended, has_ended)
    }

    /// The request has come; what follows are other waits.
    pub(super) fn over(&mut self, now: Tick) {
        *self = Self {
            wait: Wait::Handler,
            since: now,
            deferred: false,
            had_ended: false,
        };
    }
}

impl<A: App> Connection<A> {
    /// Notes what is waited for, and has the loop see to it that it does not take for ever.
    pub(super) fn note_wait(&mut self, wait: Wait) {
        let now = self.home.now();
        if self.waiting.wait != wait {
            if wait == Wait::Write {
                self.count_taken_before();
            }
            self.waiting.wait = wait;
            self.waiting.restart(now);
        }
        if let Some(key) = self.key {
            let deadline = self.deadline();
            let idle_since = (wait == Wait::Idle).then_some(now);
            self.home.registry().wait(key, deadline, idle_since, now);
        }
    }

    fn deadline(&self) -> Tick {
        let limits = &self.home.settings.limits;
        let time = match self.waiting.wait {
            Wait::Handler => return NEVER,
            Wait::HalfClosed => HALF_CLOSED,
            Wait::Watch => WATCHED_EVERY,
            Wait::Head if self.waiting.deferred => limits.head_timeout.saturating_sub(DEFERRED),
            Wait::Head => limits.head_timeout,
            Wait::Idle => limits.keep_alive_timeout,
            Wait::Grace => self.home.settings.limits.drain_grace,
            Wait::Body => self.body_time(),
            Wait::Discard => limits.body_grace,
            Wait::Write => return self.next_look(),
            Wait::Linger => LINGER,
        };
        tick_after(self.waiting.since, time)
    }

    fn body_time(&self) -> Duration {
        let limits = &self.home.settings.limits;
        let Some(exchange) = &self.exchange else {
            return limits.body_grace;
        };
        if self.takes_any_pace() {
            return Duration::MAX;
        }
        let received = exchange.feeder.as_ref().map_or(0, |feeder| feeder.received);
        let allowed = allowance(limits.body_grace, limits.body_rate_min, received);
        allowed.saturating_sub(TICK * exchange.body_waited)
    }

    /// Returns `true` if the body that is waited for may take any time.
    pub(super) fn takes_any_pace(&self) -> bool {
        let exchange = self.exchange.as_ref();
        let feeder = exchange.and_then(|exchange| exchange.feeder.as_ref());
        feeder.is_some_and(|feeder| feeder.pace.is_lifted())
    }

    /// Counts the time that some of the body took as the client's.
    pub(super) fn body_came(&mut self) {
        if self.waiting.wait != Wait::Body {
            return;
        }
        let now = self.home.now();
        if let Some(exchange) = &mut self.exchange {
            *exchange.as_mut().body_waited() += now - self.waiting.since;
        }
        self.waiting.since = now;
    }
}
