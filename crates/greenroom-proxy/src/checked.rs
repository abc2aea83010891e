use std::sync::Arc;

use greenroom_server::rustls::ClientConfig;

use crate::settings::{Settings, SettingsError};

/// Settings whose values are allowed, with what their files held as they were checked: a
/// [`Proxy`](crate::Proxy) that is made of them reads none.
#[derive(Clone, Debug)]
pub struct CheckedSettings {
    pub(crate) settings: Settings,
    /// There if an upstream has TLS.
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl CheckedSettings {
    /// Checks all values, and reads the files of `tls_ca`, `tls_certificate` and `tls_key`.
    ///
    /// # Errors
    ///
    /// The first setting whose value is not allowed, with what is.
    pub fn new(settings: Settings) -> Result<Self, SettingsError> {
        let tls = settings.checked()?;
        Ok(Self { settings, tls })
    }

    /// Returns the settings.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }
}
