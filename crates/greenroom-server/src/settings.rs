use std::any::Any;
use std::sync::Arc;

use crate::rejection::Rejections;
use crate::{Limits, TrustedProxies};

/// Settings that all loops of a server share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) access_log: bool,
    pub(crate) half_close: bool,
    pub(crate) shutdown_on_signals: bool,
    pub(crate) trusted_proxies: TrustedProxies,
    /// A value that the server's owner attached, for its handlers to find.
    pub(crate) attached: Option<Arc<dyn Any + Send + Sync>>,
    pub(crate) rejections: Rejections,
    #[cfg(feature = "tls")]
    pub(crate) tls: Option<crate::Tls>,
}
