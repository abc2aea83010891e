use thiserror::Error;

/// Limits on the children, timers and watchers of an actor. The defaults are far above what actors
/// need: what reaches them leaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub(crate) children: u32,
    pub(crate) timers: u32,
    pub(crate) watchers: u32,
}

/// A limit that an actor exceeded when it set a timer, watched or linked: it fails for this reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum LimitReached {
    /// [`Limits::timers`] of the actor that set one more.
    #[error("it has {0} timers, and may have no more (`Limits::timers`)")]
    Timers(u32),
    /// [`Limits::watchers`] of the actor that was to be watched or linked.
    #[error(
        "an actor that it was to watch or link has {0} watchers, and may have no more \
         (`Limits::watchers`)"
    )]
    Watchers(u32),
}

impl Limits {
    /// The default of [`children`](Self::children).
    pub const CHILDREN_DEFAULT: u32 = 1 << 20;
    /// The default of [`timers`](Self::timers).
    pub const TIMERS_DEFAULT: u32 = 1 << 16;
    /// The default of [`watchers`](Self::watchers).
    pub const WATCHERS_DEFAULT: u32 = 1 << 16;
    /// The largest of each, and the default for actors at the top of a system.
    pub const MAX: u32 = 1 << 24;

    /// Sets the number of children at a time, from 1 to [`MAX`](Self::MAX). Other numbers mean the
    /// nearest allowed. One more is not spawned:
    /// [`SpawnError::TooManyChildren`](crate::SpawnError). Default:
    /// [`CHILDREN_DEFAULT`](Self::CHILDREN_DEFAULT).
    #[must_use]
    pub fn children(self, children: u32) -> Self {
        Self {
            children: children.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the number of timers that have not ended, from 1 to [`MAX`](Self::MAX). Other numbers
    /// mean the nearest allowed. With one more the actor fails: [`LimitReached::Timers`]. Default:
    /// [`TIMERS_DEFAULT`](Self::TIMERS_DEFAULT).
    #[must_use]
    pub fn timers(self, timers: u32) -> Self {
        Self {
            timers: timers.clamp(1, Self::MAX),
            ..self
        }
    }

    /// Sets the number of actors that watch this one, or are linked to it, from 1 to
    /// [`MAX`](Self::MAX). Other numbers mean the nearest allowed. One more fails:
    /// [`LimitReached::Watchers`]. Default: [`WATCHERS_DEFAULT`](Self::WATCHERS_DEFAULT).
    #[must_use]
    pub fn watchers(self, watchers: u32) -> Self {
        Self {
            watchers: watchers.clamp(1, Self::MAX),
            ..self
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            children: Self::CHILDREN_DEFAULT,
            timers: Self::TIMERS_DEFAULT,
            watchers: Self::WATCHERS_DEFAULT,
        }
    }
}
