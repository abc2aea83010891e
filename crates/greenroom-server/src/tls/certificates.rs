use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use super::TlsError;
use super::pem::{self, Part, fault_of};
use super::status::CertificateStatus;

/// A certificate with its chain and its key, by the files that hold them.
#[derive(Clone, Debug)]
pub(super) struct CertificateFiles {
    pub(super) chain: PathBuf,
    pub(super) key: PathBuf,
}

/// The certificates of a server, by the names that they are for.
pub(super) struct Certificates {
    by_name: HashMap<String, Arc<CertifiedKey>>,
    /// Those that were added, in this order.
    shown: Vec<CertificateStatus>,
    /// For names that none is for, and clients that ask for none.
    first: Option<Arc<CertifiedKey>>,
    /// Asked before the first is taken.
    others: Option<Arc<dyn ResolvesServerCert>>,
}

impl Certificates {
    pub(super) fn new(others: Option<Arc<dyn ResolvesServerCert>>) -> Self {
        Self {
            by_name: HashMap::new(),
            shown: Vec::new(),
            first: None,
            others,
        }
    }

    /// Adds a certificate that is in files. Of two for the same name the one that was added first
    /// is used.
    pub(super) fn read(
        &mut self,
        files: &CertificateFiles,
        provider: &CryptoProvider,
    ) -> Result<(), TlsError> {
        let chain = pem::certificates(&files.chain)?;
        let names = names_of(&files.chain, &chain)?;
        let (key, line) = pem::private_key(&files.key)?;
        let chain = chain.into_iter().map(Part::certificate).collect();
        let certified = CertifiedKey::from_der(chain, key, provider)
            .map_err(|error| fault_of(&files.key, line, key_fault(&error, &files.chain)))?;
        self.add(names, certified);
        Ok(())
    }

    /// Adds a certificate that is in memory.
    pub(super) fn take(
        &mut self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
        provider: &CryptoProvider,
    ) -> Result<(), TlsError> {
        let names = chain.first().map(names).transpose();
        let names = names.map_err(|error| rustls::Error::General(error.to_string()))?;
        let certified = CertifiedKey::from_der(chain, key, provider)?;
        self.add(names.unwrap_or_default(), certified);
        Ok(())
    }

    fn add(&mut self, names: Vec<String>, certified: CertifiedKey) {
        let shown = CertificateStatus::of(names.clone(), certified.cert.first());
        self.shown.push(shown);
        let certified = Arc::new(certified);
        for name in names {
            self.by_name
                .entry(name)
                .or_insert_with(|| Arc::clone(&certified));
        }
        self.first.get_or_insert(certified);
    }

    pub(super) fn shown(&self) -> &[CertificateStatus] {
        &self.shown
    }

    pub(super) fn is_empty(&self) -> bool {
        self.first.is_none() && self.others.is_none()
    }

    pub(super) fn of_name(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_ascii_lowercase();
        self.by_name.get(&name).or_else(|| {
            // A wildcard stands for one label (RFC 9525, 6.3).
            let (_, parent) = name.split_once('.')?;
            self.by_name.get(&format!("*.{parent}"))
        })
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let named = hello.server_name().and_then(|name| self.of_name(name));
        if let (Some(named), false) = (named, is_challenge(&hello)) {
            return Some(Arc::clone(named));
        }
        let other = self
            .others
            .as_ref()
            .and_then(|others| others.resolve(hello));
        other.or_else(|| self.first.clone())
    }
}

/// Returns `true` if a CA asks whether the name is ours (RFC 8737): that is for whoever obtains
/// certificates.
fn is_challenge(hello: &ClientHello<'_>) -> bool {
    let mut protocols = hello.alpn().into_iter().flatten();
    protocols.any(|protocol| protocol == super::ACME_PROTOCOL)
}

fn names_of(file: &Path, chain: &[Part]) -> Result<Vec<String>, TlsError> {
    let mut all = Vec::new();
    for (index, part) in chain.iter().enumerate() {
        let certificate = CertificateDer::from(part.der());
        let names = names(&certificate);
        let names = names.map_err(|error| {
            let fault = format!("this is no certificate that can be used: {error}");
            fault_of(file, part.line, fault)
        })?;
        // The others are those of the CAs.
        if index == 0 {
            all = names;
        }
    }
    Ok(all)
}

fn names(certificate: &CertificateDer<'_>) -> Result<Vec<String>, webpki::Error> {
    let parsed = webpki::EndEntityCert::try_from(certificate)?;
    let names = parsed.valid_dns_names();
    Ok(names.map(str::to_ascii_lowercase).collect())
}

pub(super) fn key_fault(error: &rustls::Error, chain: &Path) -> String {
    match error {
        rustls::Error::InconsistentKeys(_) => {
            format!(
                "the key is not that of the certificate in {}",
                chain.display()
            )
        }
        error => format!("this is no key that can be used: {error}"),
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Certificates")
            .field("names", &self.by_name.keys())
            .finish_non_exhaustive()
    }
}
