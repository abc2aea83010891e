//! A certificate with its key, as it is served and as it is kept on disk.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use instant_acme::CertificateIdentifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// The reason for which a file or a response holds no certificate that can be served.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CertificateError {
    #[error("{0}")]
    Pem(#[from] pem::Error),
    #[error("there is no certificate in it")]
    Missing,
    #[error("its certificate cannot be read: {0}")]
    X509(String),
    #[error("its key cannot be used: {0}")]
    Key(#[from] rustls::Error),
}

/// A certificate, its chain and its key.
pub(crate) struct Certificate {
    pub(crate) key: Arc<CertifiedKey>,
    /// The names of hosts that it is for, in lower case.
    pub(crate) names: Vec<String>,
    pub(crate) not_before: SystemTime,
    pub(crate) not_after: SystemTime,
    /// The serial number, in hexadecimal digits.
    pub(crate) serial: String,
    /// Its name in questions about its renewal (RFC 9773, 4.1).
    pub(crate) id: Option<CertificateIdentifier<'static>>,
}

impl Certificate {
    /// Parses a private key and the chain that begins with its certificate.
    pub(crate) fn from_pem(
        text: &[u8],
        provider: &CryptoProvider,
    ) -> Result<Self, CertificateError> {
        let key = PrivateKeyDer::from_pem_slice(text)?;
        let chain = CertificateDer::pem_slice_iter(text).collect::<Result<Vec<_>, _>>()?;
        let leaf = chain.first().ok_or(CertificateError::Missing)?.clone();
        let key = CertifiedKey::from_der(chain, key, provider)?;
        let (_, parsed) = X509Certificate::from_der(&leaf)
            .map_err(|error| CertificateError::X509(error.to_string()))?;
        let id = CertificateIdentifier::try_from(&leaf);
        Ok(Self {
            key: Arc::new(key),
            names: names(&parsed),
            not_before: time(parsed.validity().not_before.timestamp()),
            not_after: time(parsed.validity().not_after.timestamp()),
            serial: parsed.raw_serial_as_string().replace(':', ""),
            id: id.ok().map(CertificateIdentifier::into_owned),
        })
    }

    pub(crate) fn covers(&self, names: &[String]) -> bool {
        names.iter().all(|name| self.names.contains(name))
    }

    /// Returns what is greater the better it serves the names: for all of them first, then longer.
    pub(crate) fn rank(&self, names: &[String]) -> (bool, SystemTime) {
        (self.covers(names), self.not_after)
    }
}

fn names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    let names = names.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase()),
        _ => None,
    });
    names.collect()
}

/// Seconds since 1970 as a time; those before it as 1970.
fn time(seconds: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::KeyPair;

    fn signed(key: &KeyPair) -> String {
        let names = vec!["b.example".to_owned(), "A.example".to_owned()];
        let mut params = rcgen::CertificateParams::new(names).expect("names");
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2026, 4, 1);
        params.self_signed(key).expect("it signs itself").pem()
    }

    fn parse(text: &str) -> Result<Certificate, CertificateError> {
        Certificate::from_pem(text.as_bytes(), &rustls::crypto::ring::default_provider())
    }

    #[test]
    fn names_and_times_are_read() {
        let key = KeyPair::generate().expect("a key");
        let certificate = parse(&(key.serialize_pem() + &signed(&key))).expect("a certificate");
        assert_eq!(certificate.names, ["b.example", "a.example"]);
        let life = certificate.not_after.duration_since(certificate.not_before);
        assert_eq!(life.expect("in order"), Duration::from_hours(90 * 24));
        assert!(certificate.covers(&["a.example".to_owned()]));
        assert!(!certificate.covers(&["a.example".to_owned(), "c.example".to_owned()]));
    }

    #[test]
    fn what_cannot_be_served_is_an_error() {
        let (key, other) = (KeyPair::generate(), KeyPair::generate());
        let (key, other) = (key.expect("a key"), other.expect("a key"));
        let certificate = signed(&key);
        for text in [
            String::new(),
            certificate.clone(),
            key.serialize_pem(),
            other.serialize_pem() + &certificate,
            key.serialize_pem() + &certificate[..certificate.len() / 2],
            key.serialize_pem() + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        ] {
            assert!(parse(&text).is_err(), "{text}");
        }
    }
}
