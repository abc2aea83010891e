use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::entity::Storage;

const PASSIVATE_AFTER_MAX: Duration = Duration::from_hours(365 * 24);

/// The settings of a host of entities.
#[derive(Clone)]
pub struct HostSettings {
    pub(super) active_max: usize,
    pub(super) activating_max: usize,
    pub(super) in_flight_max: usize,
    pub(super) queue_max: usize,
    pub(super) passivate_after: Duration,
    pub(super) activation_timeout: Duration,
    pub(super) handling_timeout: Duration,
    pub(super) state_bytes_max: usize,
    pub(super) applied_max: usize,
    pub(in crate::entity) durable_in_flight_max: usize,
    pub(super) storage: Option<Arc<dyn Storage>>,
    pub(super) dispatcher: Option<String>,
}

impl HostSettings {
    /// The default of [`active_max`](Self::active_max).
    pub const ACTIVE_MAX_DEFAULT: usize = 100_000;
    /// The default of [`activating_max`](Self::activating_max).
    pub const ACTIVATING_MAX_DEFAULT: usize = 256;
    /// The default of [`in_flight_max`](Self::in_flight_max).
    pub const IN_FLIGHT_MAX_DEFAULT: usize = 10_000;
    /// The default of [`queue_max`](Self::queue_max).
    pub const QUEUE_MAX_DEFAULT: usize = 256;
    /// The default of [`passivate_after`](Self::passivate_after).
    pub const PASSIVATE_AFTER_DEFAULT: Duration = Duration::from_mins(2);
    /// The default of [`activation_timeout`](Self::activation_timeout).
    pub const ACTIVATION_TIMEOUT_DEFAULT: Duration = Duration::from_secs(10);
    /// The default of [`handling_timeout`](Self::handling_timeout).
    pub const HANDLING_TIMEOUT_DEFAULT: Duration = Duration::from_mins(1);
    /// The default of [`state_bytes_max`](Self::state_bytes_max).
    pub const STATE_BYTES_MAX_DEFAULT: usize = 512 * 1_024;
    /// The default of [`applied_max`](Self::applied_max).
    pub const APPLIED_MAX_DEFAULT: usize = 4_096;
    /// The default of [`durable_in_flight_max`](Self::durable_in_flight_max).
    pub const DURABLE_IN_FLIGHT_MAX_DEFAULT: usize = 32;
    /// The largest of each number of entities, messages and ids.
    pub const MAX: usize = 1 << 24;

    /// Sets the number of entities that are active at a time, from 1 to [`MAX`](Self::MAX). For one
    /// more the entity that was idle longest is passivated; if none is idle, its message is
    /// rejected as busy. Default: [`ACTIVE_MAX_DEFAULT`](Self::ACTIVE_MAX_DEFAULT).
    #[must_use]
    pub fn active_max(self, active_max: usize) -> Self {
        Self {
            active_max: active_max.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the number of entities that are activated at a time, and that of those that are
    /// passivated, from 1 to [`MAX`](Self::MAX). Further ones wait. Default:
    /// [`ACTIVATING_MAX_DEFAULT`](Self::ACTIVATING_MAX_DEFAULT).
    #[must_use]
    pub fn activating_max(self, activating_max: usize) -> Self {
        Self {
            activating_max: activating_max.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the number of messages that wait or are handled at a time, from 1 to
    /// [`MAX`](Self::MAX). One more is rejected as busy. Default:
    /// [`IN_FLIGHT_MAX_DEFAULT`](Self::IN_FLIGHT_MAX_DEFAULT).
    #[must_use]
    pub fn in_flight_max(self, in_flight_max: usize) -> Self {
        Self {
            in_flight_max: in_flight_max.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the number of messages that wait for one entity, from 1 to [`MAX`](Self::MAX), also
    /// while it is activated. One more is rejected as busy. Default:
    /// [`QUEUE_MAX_DEFAULT`](Self::QUEUE_MAX_DEFAULT).
    #[must_use]
    pub fn queue_max(self, queue_max: usize) -> Self {
        Self {
            queue_max: queue_max.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the time without a message after which an entity is passivated, from 1 ms to a year.
    /// Default: [`PASSIVATE_AFTER_DEFAULT`](Self::PASSIVATE_AFTER_DEFAULT).
    #[must_use]
    pub fn passivate_after(self, passivate_after: Duration) -> Self {
        Self {
            passivate_after: passivate_after.clamp(Duration::from_millis(1), PASSIVATE_AFTER_MAX),
            ..self
        }
    }

    /// Sets the time within which an entity is activated: its lease is claimed and its state
    /// loaded. Later its messages are rejected. At least 1 ms. Default:
    /// [`ACTIVATION_TIMEOUT_DEFAULT`](Self::ACTIVATION_TIMEOUT_DEFAULT).
    #[must_use]
    pub fn activation_timeout(self, activation_timeout: Duration) -> Self {
        Self {
            activation_timeout: activation_timeout.max(Duration::from_millis(1)),
            ..self
        }
    }

    /// Sets the time within which an entity handles one message, or ends, and that for the save of
    /// what a durable one changed. Its asker may wait for less. At least 1 ms. Default:
    /// [`HANDLING_TIMEOUT_DEFAULT`](Self::HANDLING_TIMEOUT_DEFAULT).
    #[must_use]
    pub fn handling_timeout(self, handling_timeout: Duration) -> Self {
        Self {
            handling_timeout: handling_timeout.max(Duration::from_millis(1)),
            ..self
        }
    }

    /// Sets the size of an entity's state, encoded, in bytes: at least 1 KiB. A larger one is not
    /// saved: [`StateError::TooLarge`](crate::StateError::TooLarge). The ids that are stored with
    /// it take up to 256 KiB more. Default:
    /// [`STATE_BYTES_MAX_DEFAULT`](Self::STATE_BYTES_MAX_DEFAULT).
    #[must_use]
    pub fn state_bytes_max(self, state_bytes_max: usize) -> Self {
        Self {
            state_bytes_max: state_bytes_max.max(1_024),
            ..self
        }
    }

    /// Sets the number of durable messages whose ids an entity keeps in order to apply none twice,
    /// from 128 to [`MAX`](Self::MAX). The last 128 are kept for ever, the others for 4 minutes
    /// (longer with a longer [`redeliver_after`](crate::ClusterSettings::redeliver_after)): an
    /// entity that is sent more than this number in 4 minutes rejects the rest as busy, and they
    /// come again. Default: [`APPLIED_MAX_DEFAULT`](Self::APPLIED_MAX_DEFAULT), 17 a second; each
    /// takes some 30 bytes of its record, all together 256 KiB at most. An entity with more than
    /// 128 is passivated only when the others are old.
    #[must_use]
    pub fn applied_max(self, applied_max: usize) -> Self {
        Self {
            applied_max: applied_max.clamp(128, Self::MAX),
            ..self
        }
    }

    /// Sets the number of durable messages that the node passes on to entities at a time, from 1 to
    /// [`MAX`](Self::MAX); the others wait at the servers. Default:
    /// [`DURABLE_IN_FLIGHT_MAX_DEFAULT`](Self::DURABLE_IN_FLIGHT_MAX_DEFAULT).
    #[must_use]
    pub fn durable_in_flight_max(self, messages: usize) -> Self {
        Self {
            durable_in_flight_max: messages.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the storage of states. Default: that of the cluster.
    #[must_use]
    pub fn storage(self, storage: impl Storage) -> Self {
        Self {
            storage: Some(Arc::new(storage)),
            ..self
        }
    }

    /// Sets the dispatcher that runs the entities, by its name. Default: the default dispatcher of
    /// the actor system.
    #[must_use]
    pub fn dispatcher(self, name: impl Into<String>) -> Self {
        Self {
            dispatcher: Some(name.into()),
            ..self
        }
    }
}

impl Default for HostSettings {
    fn default() -> Self {
        Self {
            active_max: Self::ACTIVE_MAX_DEFAULT,
            activating_max: Self::ACTIVATING_MAX_DEFAULT,
            in_flight_max: Self::IN_FLIGHT_MAX_DEFAULT,
            queue_max: Self::QUEUE_MAX_DEFAULT,
            passivate_after: Self::PASSIVATE_AFTER_DEFAULT,
            activation_timeout: Self::ACTIVATION_TIMEOUT_DEFAULT,
            handling_timeout: Self::HANDLING_TIMEOUT_DEFAULT,
            state_bytes_max: Self::STATE_BYTES_MAX_DEFAULT,
            applied_max: Self::APPLIED_MAX_DEFAULT,
            durable_in_flight_max: Self::DURABLE_IN_FLIGHT_MAX_DEFAULT,
            storage: None,
            dispatcher: None,
        }
    }
}

impl fmt::Debug for HostSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostSettings")
            .field("active_max", &self.active_max)
            .field("activating_max", &self.activating_max)
            .field("in_flight_max", &self.in_flight_max)
            .field("queue_max", &self.queue_max)
            .field("passivate_after", &self.passivate_after)
            .field("activation_timeout", &self.activation_timeout)
            .field("handling_timeout", &self.handling_timeout)
            .field("state_bytes_max", &self.state_bytes_max)
            .field("applied_max", &self.applied_max)
            .field("durable_in_flight_max", &self.durable_in_flight_max)
            .field("dispatcher", &self.dispatcher)
            .finish_non_exhaustive()
    }
}
