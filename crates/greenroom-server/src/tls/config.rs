use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::RwLock;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{
    NoServerSessionStorage, ProducesTickets, ResolvesServerCert, ServerConfig,
    ServerSessionMemoryCache, WebPkiClientVerifier,
};
use rustls::{CipherSuite, SupportedCipherSuite};

use super::certificates::{CertificateFiles, Certificates};
use super::pem::roots;
use super::server_name::Noting;
use super::{ACME_PROTOCOL, CertificateStatus, TlsError};

/// The protocols that clients may speak, the preferred first (RFC 7301).
const PROTOCOLS: [&[u8]; 2] = [b"h2", b"http/1.1"];
/// Tickets for resumption that a client gets with a handshake. One resumption takes one ticket and
/// brings the next.
const TICKETS: usize = 1;
/// Most tickets that a client gets if it asks for some (RFC 9149), as browsers do.
const TICKETS_MAX: usize = 4;
/// Sessions that are kept for resumption where the provider makes no tickets.
const SESSIONS_MAX: usize = 16_384;

/// The TLS of a server: its certificates, and what clients may do.
///
/// TLS 1.2 and 1.3 are spoken, with the cipher suites of the provider, AES-128 first; HTTP/2 and
/// HTTP/1.1 are agreed upon by ALPN. Sessions are resumed by tickets, whose keys change every six
/// hours. Neither early data nor renegotiation is allowed.
///
/// ```no_run
/// use greenroom_server::{Server, Tls};
///
/// let tls = Tls::builder()
///     .certificate("example.org.pem", "example.org.key")
///     .certificate("example.net.pem", "example.net.key")
///     .build()?;
/// let server = Server::builder().listen("[::]:443").tls(tls.clone()).bind()?;
/// // Later, when the files have changed:
/// tls.reload()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Tls(Arc<Shared>);

struct Shared {
    setup: TlsBuilder,
    provider: Arc<CryptoProvider>,
    config: RwLock<Read>,
}

/// The content of the files as they were read last.
struct Read {
    config: Arc<ServerConfig>,
    certificates: Arc<Certificates>,
}

/// Settings of a [`Tls`].
#[derive(Clone, Default)]
#[must_use = "settings do nothing before they are built"]
pub struct TlsBuilder {
    files: Vec<CertificateFiles>,
    in_memory: Vec<(Vec<CertificateDer<'static>>, Arc<PrivateKeyDer<'static>>)>,
    resolver: Option<Arc<dyn ResolvesServerCert>>,
    client_roots: Option<(PathBuf, ClientCertificates)>,
    provider: Option<Arc<CryptoProvider>>,
    websockets_over_http2: bool,
}

/// The clients that are served where certificates are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientCertificates {
    /// A client without one is served too, and its requests tell that it has none.
    Optional,
    /// A client without one is not served.
    Required,
}

impl TlsBuilder {
    /// Adds a certificate by the files, in PEM, of its chain (its own first, then those of the CAs
    /// between it and the root) and of its private key, which must not be encrypted. Both may be
    /// the same file. Clients get the certificate that is for the name that they ask for, exactly
    /// or by a wildcard; else the first that was added.
    pub fn certificate(mut self, chain: impl Into<PathBuf>, key: impl Into<PathBuf>) -> Self {
        let (chain, key) = (chain.into(), key.into());
        self.files.push(CertificateFiles { chain, key });
        self
    }

    /// Adds a certificate that is in memory, in DER.
    pub fn certificate_der(
        mut self,
        chain: Vec<CertificateDer<'static>>,
        key: PrivateKeyDer<'static>,
    ) -> Self {
        self.in_memory.push((chain, Arc::new(key)));
        self
    }

    /// Has `resolver` asked for the names that no certificate is for, and for all clients that
    /// respond to a challenge of a CA (RFC 8737).
    pub fn resolver(mut self, resolver: Arc<dyn ResolvesServerCert>) -> Self {
        self.resolver = Some(resolver);
        self
    }

    /// Asks clients for a certificate, which must go back to one of the roots in the file `roots`,
    /// in PEM. Whoever shows another is not served. Default: nobody is asked.
    pub fn client_certificates(
        mut self,
        roots: impl Into<PathBuf>,
        required: ClientCertificates,
    ) -> Self {
        self.client_roots = Some((roots.into(), required));
        self
    }

    /// Sets the provider of the cryptography. Default: AWS-LC or ring, by the crate's features
    /// `aws-lc-rs` and `ring`, in this order.
    pub fn provider(mut self, provider: Arc<CryptoProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Lets clients open web sockets on connections of HTTP/2 (RFC 8441). Browsers then send
    /// `CONNECT` where they send `GET` else: in axum such a route is `any(handler)`, and axum needs
    /// its feature `http2`. Default: no, and browsers open a connection of HTTP/1.1 for each.
    pub fn websockets_over_http2(mut self, are_taken: bool) -> Self {
        self.websockets_over_http2 = are_taken;
        self
    }

    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If there is no certificate, if a file cannot be read or is not what it should be, which is
    /// told with its line, and if there is no provider.
    pub fn build(self) -> Result<Tls, TlsError> {
        let provider = self.provider.clone().or_else(default_provider);
        let provider = preferring_aes_128(&provider.ok_or(TlsError::NoProvider)?);
        let config = self.config(&provider, ticketer()?)?;
        Ok(Tls(Arc::new(Shared {
            setup: self,
            provider,
            config: RwLock::new(config),
        })))
    }

    fn config(
        &self,
        provider: &Arc<CryptoProvider>,
        ticketer: Option<Arc<dyn ProducesTickets>>,
    ) -> Result<Read, TlsError> {
        let mut certificates = Certificates::new(self.resolver.clone());
        for files in &self.files {
            certificates.read(files, provider)?;
        }
        for (chain, key) in &self.in_memory {
            certificates.take(chain.clone(), key.clone_key(), provider)?;
        }
        if certificates.is_empty() {
            return Err(TlsError::NoCertificate);
        }
        let certificates = Arc::new(certificates);
        let noting = Noting(Arc::<Certificates>::clone(&certificates));
        let verifier = self.client_verifier(provider)?;
        let mut config = ServerConfig::builder_with_provider(Arc::clone(provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(verifier)
            .with_cert_resolver(Arc::new(noting));
        config.alpn_protocols = PROTOCOLS.map(<[u8]>::to_vec).into();
        if self.resolver.is_some() {
            config.alpn_protocols.push(ACME_PROTOCOL.to_vec());
        }
        config.ignore_client_order = true;
        config.send_tls13_tickets = TICKETS;
        config.max_tls13_tickets = TICKETS_MAX;
        match ticketer {
            Some(ticketer) => {
                config.ticketer = ticketer;
                config.session_storage = Arc::new(NoServerSessionStorage {});
            }
            None => config.session_storage = ServerSessionMemoryCache::new(SESSIONS_MAX),
        }
        let config = Arc::new(config);
        Ok(Read {
            config,
            certificates,
        })
    }

    fn client_verifier(
        &self,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
        let Some((file, required)) = &self.client_roots else {
            return Ok(WebPkiClientVerifier::no_client_auth());
        };
        let roots = Arc::new(roots(file)?);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(provider));
        let verifier = match required {
            ClientCertificates::Required => verifier,
            ClientCertificates::Optional => verifier.allow_unauthenticated(),
        };
        Ok(verifier.build()?)
    }
}

impl Tls {
    pub(crate) fn takes_websockets_over_http2(&self) -> bool {
        self.0.setup.websockets_over_http2
    }

    /// Returns a builder without certificates.
    pub fn builder() -> TlsBuilder {
        TlsBuilder::default()
    }

    /// Reads the files again. New connections get what they hold now; those that are there go on.
    /// If clients are asked for certificates, no session is resumed that began before.
    ///
    /// # Errors
    ///
    /// As [`TlsBuilder::build`]. New connections get what they got before then.
    pub fn reload(&self) -> Result<(), TlsError> {
        let shared = &self.0;
        let before = self.config();
        let ticketer = if shared.setup.client_roots.is_some() || !before.ticketer.enabled() {
            ticketer()?
        } else {
            Some(Arc::clone(&before.ticketer))
        };
        let config = shared.setup.config(&shared.provider, ticketer)?;
        *shared.config.write() = config;
        Ok(())
    }

    /// Returns `true` if one of the certificates, but for those of the
    /// [resolver](TlsBuilder::resolver), is for this name, exactly or by a wildcard.
    #[must_use]
    pub fn has_certificate_for(&self, name: &str) -> bool {
        self.0.config.read().certificates.of_name(name).is_some()
    }

    /// Returns the certificates as they were read last, in the order in which they were added, but
    /// for those of the [resolver](TlsBuilder::resolver).
    #[must_use]
    pub fn certificates(&self) -> Vec<CertificateStatus> {
        self.0.config.read().certificates.shown().to_vec()
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.0.config.read().config)
    }
}

/// With AES-128 first: its hash is SHA-256, which makes a handshake cheaper than SHA-384, and it is
/// as far out of reach as AES-256.
fn preferring_aes_128(provider: &Arc<CryptoProvider>) -> Arc<CryptoProvider> {
    let mut ordered = CryptoProvider::clone(provider);
    let is_aes_128 = |suite: &SupportedCipherSuite| {
        matches!(
            suite.suite(),
            CipherSuite::TLS13_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256
                | CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        )
    };
    ordered
        .cipher_suites
        .sort_by_key(|suite| !is_aes_128(suite));
    Arc::new(ordered)
}

#[cfg_attr(
    any(feature = "aws-lc-rs", feature = "ring"),
    expect(
        clippy::unnecessary_wraps,
        reason = "without these features there is none"
    )
)]
pub(super) fn default_provider() -> Option<Arc<CryptoProvider>> {
    #[cfg(feature = "aws-lc-rs")]
    return Some(Arc::new(rustls::crypto::aws_lc_rs::default_provider()));
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return Some(Arc::new(rustls::crypto::ring::default_provider()));
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    return None;
}

/// Returns what makes tickets and changes its keys every six hours (RFC 5077, 4), if a feature
/// brings it.
#[cfg_attr(
    not(any(feature = "aws-lc-rs", feature = "ring")),
    expect(clippy::unnecessary_wraps, reason = "these features may fail")
)]
fn ticketer() -> Result<Option<Arc<dyn ProducesTickets>>, rustls::Error> {
    #[cfg(feature = "aws-lc-rs")]
    return rustls::crypto::aws_lc_rs::Ticketer::new().map(Some);
    #[cfg(all(feature = "ring", not(feature = "aws-lc-rs")))]
    return rustls::crypto::ring::Ticketer::new().map(Some);
    #[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
    return Ok(None);
}

impl fmt::Debug for Tls {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_tuple("Tls").field(&self.0.setup).finish()
    }
}

impl fmt::Debug for TlsBuilder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys in memory stay untold.
        out.debug_struct("TlsBuilder")
            .field("files", &self.files)
            .field("client_roots", &self.client_roots)
            .finish_non_exhaustive()
    }
}
