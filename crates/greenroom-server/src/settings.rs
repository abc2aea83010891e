use std::time::Duration;

use crate::listen::BACKLOG;
use crate::{Limits, TrustedProxies};

/// What all loops of a server know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) drain_deadline: Duration,
    /// Connections that wait to be accepted, of each listener.
    pub(crate) backlog: u16,
    pub(crate) drain_grace: Duration,
    pub(crate) access_log: bool,
    pub(crate) half_close: bool,
    pub(crate) trusted_proxies: TrustedProxies,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            drain_deadline: Duration::from_secs(30),
            backlog: BACKLOG,
            drain_grace: Duration::from_millis(500),
            access_log: false,
            half_close: false,
            trusted_proxies: TrustedProxies::default(),
        }
    }
}
