use std::time::Duration;

use super::outbox::{OUTBOX_DEFAULT, OUTBOX_MAX, SlowReader};

/// The default interval at which a quiet connection is written to.
const INTERVAL_DEFAULT: Duration = Duration::from_secs(30);
const INTERVAL_MIN: Duration = Duration::from_millis(10);
const INTERVAL_MAX: Duration = Duration::from_hours(24);
const SILENCE_DEFAULT: Duration = Duration::from_mins(1);
const FRAME_BYTES_DEFAULT: usize = 64 * 1024;

/// Settings of a WebSocket whose connection is an actor.
#[derive(Clone, Debug)]
pub struct WebSocketSettings {
    pub(super) common: Common,
    pub(super) ping_interval: Duration,
    pub(super) silence_max: Duration,
    pub(super) frame_bytes_max: usize,
}

/// Settings of a stream of server-sent events that is an actor.
#[derive(Clone, Debug)]
pub struct SseSettings {
    pub(super) common: Common,
    pub(super) keep_alive: Duration,
}

#[derive(Clone, Debug)]
pub(super) struct Common {
    pub(super) outbox: usize,
    pub(super) slow_reader: SlowReader,
    pub(super) dispatcher: Option<String>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            outbox: OUTBOX_DEFAULT,
            slow_reader: SlowReader::default(),
            dispatcher: None,
        }
    }
}

impl Default for WebSocketSettings {
    fn default() -> Self {
        Self {
            common: Common::default(),
            ping_interval: INTERVAL_DEFAULT,
            silence_max: SILENCE_DEFAULT,
            frame_bytes_max: FRAME_BYTES_DEFAULT,
        }
    }
}

impl Default for SseSettings {
    fn default() -> Self {
        Self {
            common: Common::default(),
            keep_alive: INTERVAL_DEFAULT,
        }
    }
}

/// The settings that both kinds of connection have.
macro_rules! common_settings {
    () => {
        /// Sets the number of messages that may wait for the client, from 1 to
        /// [`OUTBOX_MAX`](super::OUTBOX_MAX); other numbers mean the nearest allowed. Default:
        /// [`OUTBOX_DEFAULT`](super::OUTBOX_DEFAULT).
        #[must_use]
        pub fn outbox(mut self, messages: usize) -> Self {
            self.common.outbox = messages.clamp(1, OUTBOX_MAX);
            self
        }

        /// Sets the policy for a full outbox. Default: [`SlowReader::Close`].
        #[must_use]
        pub fn slow_reader(mut self, slow_reader: SlowReader) -> Self {
            self.common.slow_reader = slow_reader;
            self
        }

        /// Sets the dispatcher that runs the actor, by its name. Default: `loop` if the system has
        /// a dispatcher of that name, the system's default dispatcher otherwise.
        #[must_use]
        pub fn dispatcher(mut self, name: impl Into<String>) -> Self {
            self.common.dispatcher = Some(name.into());
            self
        }
    };
}

impl WebSocketSettings {
    common_settings!();

    /// Sets the interval of pings, to which the client replies of itself: from 10 ms to 24 hours;
    /// other intervals mean the nearest allowed. Default: 30 s.
    #[must_use]
    pub fn ping_interval(self, interval: Duration) -> Self {
        Self {
            ping_interval: interval.clamp(INTERVAL_MIN, INTERVAL_MAX),
            ..self
        }
    }

    /// Sets the silence after which a client counts as gone: nothing was heard of it, not even the
    /// reply to a ping. Each byte counts, also of a message that takes longer. Time in which the
    /// actor's mailbox is full does not count as silence, for then nothing is read. Should be
    /// longer than two intervals of pings: a shorter one closes clients that have nothing to say.
    /// Default: 60 s.
    ///
    /// So a client that vanished without a word, with the defaults, is noticed within 60 s, and the
    /// actor is stopped.
    #[must_use]
    pub fn silence_max(self, silence: Duration) -> Self {
        Self {
            silence_max: silence,
            ..self
        }
    }

    /// Sets the longest message of a client, in bytes, be it in one frame or in several. A longer
    /// one closes the connection with 1009. Default: 65,536.
    ///
    /// A client can have as many messages waiting as the mailbox of the actor holds: with 1,024 of
    /// 64 KiB it makes the server hold 64 MiB. Give actors that take large messages a small
    /// [`mailbox`](crate::Actor::mailbox).
    #[must_use]
    pub fn frame_bytes_max(self, bytes: usize) -> Self {
        Self {
            frame_bytes_max: bytes,
            ..self
        }
    }
}

impl SseSettings {
    common_settings!();

    /// Sets the interval at which a client that gets no events is sent a comment, so that neither
    /// it nor a proxy takes the connection for dead, and so that a client that is gone is noticed:
    /// from 10 ms to 24 hours; other intervals mean the nearest allowed. Default: 30 s.
    #[must_use]
    pub fn keep_alive(self, interval: Duration) -> Self {
        Self {
            keep_alive: interval.clamp(INTERVAL_MIN, INTERVAL_MAX),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_means_the_nearest_allowed() {
        let settings = WebSocketSettings::default();
        assert_eq!(settings.clone().outbox(0).common.outbox, 1);
        assert_eq!(
            settings.clone().outbox(usize::MAX).common.outbox,
            OUTBOX_MAX
        );
        let ping = |interval| settings.clone().ping_interval(interval).ping_interval;
        assert_eq!(ping(Duration::ZERO), INTERVAL_MIN);
        assert_eq!(ping(Duration::MAX), INTERVAL_MAX);
        let keep_alive = |interval| SseSettings::default().keep_alive(interval).keep_alive;
        assert_eq!(keep_alive(Duration::ZERO), INTERVAL_MIN);
        assert_eq!(keep_alive(Duration::MAX), INTERVAL_MAX);
    }
}
