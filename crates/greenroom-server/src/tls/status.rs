use rustls::pki_types::CertificateDer;
use serde::Serialize;
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;

/// A certificate that clients get.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CertificateStatus {
    /// The names that it is for, in lower case.
    pub names: Vec<String>,
    /// Its last second, counted from 1970 in UTC; `None` if there is no certificate yet, or it
    /// cannot be read.
    pub expires_unix_seconds: Option<i64>,
    /// A remark on it, such as why its renewal has failed.
    pub note: Option<String>,
}

impl CertificateStatus {
    pub(super) fn of(names: Vec<String>, certificate: Option<&CertificateDer<'_>>) -> Self {
        let parsed = certificate.and_then(|der| X509Certificate::from_der(der).ok());
        Self {
            names,
            expires_unix_seconds: parsed
                .map(|(_, certificate)| certificate.validity().not_after.timestamp()),
            note: None,
        }
    }
}
