use crate::rejection::Rejections;
use crate::{Limits, TrustedProxies};

/// What all loops of a server know.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) access_log: bool,
    pub(crate) half_close: bool,
    pub(crate) shutdown_on_signals: bool,
    pub(crate) trusted_proxies: TrustedProxies,
    pub(crate) rejections: Rejections,
}
