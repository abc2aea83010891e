use crate::{Limits, TrustedProxies};

/// Settings that all loops of a server share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) access_log: bool,
    pub(crate) half_close: bool,
    pub(crate) shutdown_on_signals: bool,
    pub(crate) trusted_proxies: TrustedProxies,
}
