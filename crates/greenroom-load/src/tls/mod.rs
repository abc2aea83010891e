//! TLS: the check of certificates, and the outcome of a handshake.

mod insecure;

use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WantsClientCert};
use rustls::crypto::ring;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, CommonState, ConfigBuilder, RootCertStore};

use crate::plan::{Target, TlsOptions};
use crate::run::RunError;

use insecure::AnyCertificate;

/// Creates the TLS settings of all connections of a stream; `alpn` are the protocols that are
/// offered, the preferred first.
///
/// # Errors
/// [`RunError::Tls`] when a PEM file cannot be read or used, or when no authority is trusted at
/// all.
pub(crate) fn client_config(
    options: &TlsOptions,
    alpn: &[&[u8]],
) -> Result<Arc<ClientConfig>, RunError> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| RunError::Tls(error.to_string()))?;
    let builder = if options.insecure {
        let verifier = Arc::new(AnyCertificate::new(&provider));
        builder
            .dangerous()
            .with_custom_certificate_verifier(verifier)
    } else {
        builder.with_root_certificates(trusted(options.authorities.as_deref())?)
    };
    let mut config = with_identity(builder, options.identity.as_deref())?;
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    config.enable_sni = !options.without_sni;
    // The connections stand for as many clients, each of which connects for the first time.
    config.resumption = Resumption::disabled();
    Ok(Arc::new(config))
}

/// Returns the name that the certificate of a target must bear.
///
/// # Errors
/// [`RunError::Tls`] when its host is neither a DNS name nor an address.
pub(crate) fn server_name(target: &Target) -> Result<ServerName<'static>, RunError> {
    ServerName::try_from(target.host().to_owned()).map_err(|_| {
        let host = target.host();
        RunError::Tls(format!(
            "{host:?} is no name for a certificate; use a DNS name or an IP address"
        ))
    })
}

/// Describes a handshake's outcome in the form of ab's report: `TLSv1.3,TLS_AES_256_GCM_SHA384`.
pub(crate) fn describe(connection: &CommonState) -> Option<String> {
    let version = format!("{:?}", connection.protocol_version()?);
    let suite = format!("{:?}", connection.negotiated_cipher_suite()?.suite());
    Some(format!(
        "{},{}",
        version.replace("TLSv1_", "TLSv1."),
        suite.replace("TLS13_", "TLS_")
    ))
}

fn trusted(authorities: Option<&Path>) -> Result<RootCertStore, RunError> {
    let system = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = authorities {
        for certificate in certificates(path)? {
            roots
                .add(certificate)
                .map_err(|error| unusable(path, &error))?;
        }
    }
    if roots.is_empty() {
        return Err(RunError::Tls(
            "this system has no trusted certificates; name a PEM file of authorities, or accept \
            any certificate"
                .to_owned(),
        ));
    }
    Ok(roots)
}

fn with_identity(
    builder: ConfigBuilder<ClientConfig, WantsClientCert>,
    identity: Option<&Path>,
) -> Result<ClientConfig, RunError> {
    let Some(path) = identity else {
        return Ok(builder.with_no_client_auth());
    };
    let key = PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => unusable(path, &"it contains no private key"),
        error => unusable(path, &error),
    })?;
    builder
        .with_client_auth_cert(certificates(path)?, key)
        .map_err(|error| unusable(path, &error))
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, RunError> {
    let certificates = CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| unusable(path, &error))?;
    if certificates.is_empty() {
        return Err(unusable(path, &"it contains no certificate"));
    }
    Ok(certificates)
}

fn unusable(path: &Path, error: &dyn std::fmt::Display) -> RunError {
    RunError::Tls(format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests;
