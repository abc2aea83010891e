use std::time::Duration;

use crate::{Limits, TrustedProxies};

/// What all loops of a server know.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) drain_deadline: Duration,
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
            drain_grace: Duration::from_millis(500),
            access_log: false,
            half_close: false,
            trusted_proxies: TrustedProxies::default(),
        }
    }
}
