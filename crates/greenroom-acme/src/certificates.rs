//! The certificates that are served, by name.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt::{self, Debug, Formatter};
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::certificate::Certificate;
use crate::challenges::Challenges;

/// The protocol that an authority offers to validate a name by TLS-ALPN-01 ([RFC
/// 8737](https://www.rfc-editor.org/rfc/rfc8737), 4).
///
/// It must stand in `ServerConfig::alpn_protocols` for that challenge, as the last. A connection
/// on which it was negotiated is to be closed after its handshake; nothing is sent on it.
pub const ACME_TLS_ALPN: &[u8] = b"acme-tls/1";

/// The certificates that are served: a resolver of rustls.
///
/// A client gets the certificate for the name that it asks for (SNI). One that asks for no name,
/// or for one that has no certificate yet, gets none, and its handshake fails: as Caddy does it,
/// and so that nobody learns to click warnings away. A client that offers nothing but
/// [`ACME_TLS_ALPN`] is the authority, and gets the certificate of the challenge.
///
/// A renewal takes effect with the next handshake; connections that are open keep theirs.
pub struct Certificates {
    by_name: RwLock<HashMap<String, Arc<CertifiedKey>>>,
    challenges: Arc<Challenges>,
}

impl Certificates {
    pub(crate) fn new(challenges: Arc<Challenges>) -> Self {
        Self {
            by_name: RwLock::default(),
            challenges,
        }
    }

    /// Serves the certificate for those of `names` that it is for.
    pub(crate) fn install(&self, names: &[String], certificate: &Certificate) {
        let mut by_name = self.by_name.write();
        for name in names {
            if certificate.names.contains(name) {
                by_name.insert(name.clone(), Arc::clone(&certificate.key));
            }
        }
    }

    /// Serves no certificate any more for names that are not among these.
    pub(crate) fn retain(&self, names: &HashSet<&str>) {
        let mut by_name = self.by_name.write();
        by_name.retain(|name, _| names.contains(&**name));
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, client_hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let name = lower_case(client_hello.server_name()?);
        if is_authority(&client_hello) {
            return self.challenges.certificate(&name);
        }
        self.by_name.read().get(&*name).cloned()
    }
}

impl Debug for Certificates {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        let by_name = self.by_name.read();
        let names: Vec<_> = by_name.keys().collect();
        formatter
            .debug_struct("Certificates")
            .field("names", &names)
            .finish_non_exhaustive()
    }
}

/// The authority offers this protocol alone (RFC 8737, 3); a client that offers others too is
/// served as any other.
fn is_authority(client_hello: &ClientHello<'_>) -> bool {
    client_hello
        .alpn()
        .is_some_and(|offered| offered.eq([ACME_TLS_ALPN]))
}

fn lower_case(name: &str) -> Cow<'_, str> {
    if name.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    }
}
