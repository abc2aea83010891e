//! The cryptography of TLS.

/// Makes ring the cryptography provider of rustls in this process, if it has none yet. To be called
/// before a client is built: without a provider that panics.
pub(crate) fn provide() {
    // An error means that a provider is there already, which does as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
}
