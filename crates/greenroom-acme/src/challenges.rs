//! The challenges that the authority may ask for now.

use std::collections::HashMap;
use std::sync::Arc;

use instant_acme::{ChallengeType, KeyAuthorization};
use parking_lot::RwLock;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::sign::CertifiedKey;
use serde::Serialize;

/// A way to prove to the authority that a name is ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
pub enum ChallengeKind {
    /// A file by plain HTTP on port 80 (RFC 8555, 8.3).
    #[serde(rename = "http-01")]
    Http01,
    /// A certificate by TLS on port 443 (RFC 8737).
    #[serde(rename = "tls-alpn-01")]
    TlsAlpn01,
}

impl ChallengeKind {
    /// Its name in the protocol.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        }
    }
}

impl From<ChallengeKind> for ChallengeType {
    fn from(kind: ChallengeKind) -> Self {
        match kind {
            ChallengeKind::Http01 => Self::Http01,
            ChallengeKind::TlsAlpn01 => Self::TlsAlpn01,
        }
    }
}

/// The responses to challenges under way. There are at most as many as names in orders.
#[derive(Default)]
pub(crate) struct Challenges {
    by_token: RwLock<HashMap<String, FileChallenge>>,
    by_name: RwLock<HashMap<String, Arc<CertifiedKey>>>,
}

struct FileChallenge {
    name: String,
    key_authorization: String,
}

impl Challenges {
    /// Returns the certificate for the authority's handshake with this name.
    pub(crate) fn certificate(&self, name: &str) -> Option<Arc<CertifiedKey>> {
        self.by_name.read().get(name).cloned()
    }

    /// Returns the content of the file with this token, if it is asked for at that name: no other
    /// host that points here gets it.
    pub(crate) fn key_authorization(&self, name: &str, token: &str) -> Option<String> {
        let by_token = self.by_token.read();
        let challenge = by_token.get(token)?;
        let is_asked = challenge.name.eq_ignore_ascii_case(name);
        is_asked.then(|| challenge.key_authorization.clone())
    }

    pub(crate) fn insert_file(&self, name: &str, token: &str, key_authorization: String) {
        let challenge = FileChallenge {
            name: name.to_owned(),
            key_authorization,
        };
        self.by_token.write().insert(token.to_owned(), challenge);
    }

    /// Responds to the challenge until what it returns is dropped.
    pub(crate) fn provide(
        self: &Arc<Self>,
        kind: ChallengeKind,
        name: &str,
        token: &str,
        key_authorization: &KeyAuthorization,
        provider: &CryptoProvider,
    ) -> Result<Provision, String> {
        let key = match kind {
            ChallengeKind::Http01 => {
                self.insert_file(name, token, key_authorization.as_str().to_owned());
                token
            }
            ChallengeKind::TlsAlpn01 => {
                let digest = key_authorization.digest();
                let certificate = certificate(name, digest.as_ref(), provider)?;
                self.by_name.write().insert(name.to_owned(), certificate);
                name
            }
        };
        Ok(Provision {
            challenges: Arc::clone(self),
            kind,
            key: key.to_owned(),
        })
    }
}

/// A challenge that is responded to while this exists.
pub(crate) struct Provision {
    challenges: Arc<Challenges>,
    kind: ChallengeKind,
    key: String,
}

impl Drop for Provision {
    fn drop(&mut self) {
        match self.kind {
            ChallengeKind::Http01 => drop(self.challenges.by_token.write().remove(&self.key)),
            ChallengeKind::TlsAlpn01 => drop(self.challenges.by_name.write().remove(&self.key)),
        }
    }
}

/// Makes the certificate of RFC 8737, 3: self-signed, for this name alone, with the digest of the
/// key authorization in a critical extension.
fn certificate(
    name: &str,
    digest: &[u8],
    provider: &CryptoProvider,
) -> Result<Arc<CertifiedKey>, String> {
    let made = || -> Result<_, rcgen::Error> {
        let mut params = CertificateParams::new(vec![name.to_owned()])?;
        params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
        let key = KeyPair::generate()?;
        Ok((params.self_signed(&key)?, key))
    };
    let (certificate, key) = made().map_err(|error| error.to_string())?;
    let key = PrivatePkcs8KeyDer::from(key.serialize_der());
    let key = provider.key_provider.load_private_key(key.into());
    let key = key.map_err(|error| error.to_string())?;
    // `from_der` would refuse the critical extension, which no client but the authority knows.
    let chain = vec![certificate.der().clone()];
    Ok(Arc::new(CertifiedKey::new(chain, key)))
}
