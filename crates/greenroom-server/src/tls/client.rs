use std::path::Path;
use std::sync::Arc;

use rustls::{ClientConfig, RootCertStore};

use super::TlsError;
use super::certificates::key_fault;
use super::config::default_provider;
use super::pem::{self, Part, fault_of, roots};

/// Returns the settings of connections to other servers, such as a proxy's upstreams, by TLS 1.2
/// and 1.3, without ALPN. A server's certificate must go back to one of the roots in the file
/// `authorities`, in PEM, or else to one that this system trusts. `certificate` names the files, in
/// PEM, of the chain and the private key by which servers know this client.
///
/// # Errors
///
/// If a file cannot be read or is not what it should be, which is told with its line, if the system
/// has no roots, and if no feature brings a provider of cryptography.
pub fn client_tls(
    authorities: Option<&Path>,
    certificate: Option<(&Path, &Path)>,
) -> Result<ClientConfig, TlsError> {
    let provider = default_provider().ok_or(TlsError::NoProvider)?;
    let roots = authorities.map_or_else(system_roots, roots)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(Arc::new(roots));
    let Some((chain_file, key_file)) = certificate else {
        return Ok(config.with_no_client_auth());
    };
    let chain = pem::certificates(chain_file)?;
    let chain = chain.into_iter().map(Part::certificate).collect();
    let (key, line) = pem::private_key(key_file)?;
    let config = config.with_client_auth_cert(chain, key);
    config.map_err(|error| fault_of(key_file, line, key_fault(&error, chain_file)))
}

/// Returns the certificates of authorities that this system trusts.
fn system_roots() -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let error = loaded.errors.first().map(ToString::to_string);
        return Err(TlsError::NoAuthorities(error.unwrap_or_default()));
    }
    Ok(roots)
}
