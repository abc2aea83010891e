//! The way from a client to a server: as it is, or over TLS. The suite itself is run over TLS by a
//! test of its own (`tls/suite.rs`), for what a client sees of HTTP is the same.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use greenroom_server::{ServerBuilder, Tls, TlsBuilder};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::UnixStream;
use tokio_rustls::TlsConnector;

use crate::client::Stream;

/// The name of the server.
pub(crate) const NAME: &str = "server.test";

/// A CA, which clients trust, and the certificate that it gave the server.
pub(crate) struct Certificates {
    pub(crate) root: CertificateDer<'static>,
    /// The same in PEM.
    pub(crate) root_pem: String,
    pub(crate) issuer: rcgen::Issuer<'static, rcgen::KeyPair>,
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
}

pub(crate) static CERTIFICATES: LazyLock<Certificates> = LazyLock::new(|| {
    let key = rcgen::KeyPair::generate().unwrap();
    let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = params.self_signed(&key).unwrap();
    let (root, root_pem) = (root.der().clone(), root.pem());
    let issuer = rcgen::Issuer::new(params, key);
    let key = rcgen::KeyPair::generate().unwrap();
    let params = rcgen::CertificateParams::new(vec![NAME.to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &issuer).unwrap();
    Certificates {
        root,
        root_pem,
        issuer,
        chain: vec![certificate.der().clone()],
        key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
    }
});

/// The TLS of a server with the certificate above.
pub(crate) fn tls() -> TlsBuilder {
    Tls::builder().certificate_der(CERTIFICATES.chain.clone(), CERTIFICATES.key.clone_key())
}

/// Set where the suite runs over TLS.
pub(crate) const OVER_TLS: &str = "GREENROOM_TEST_OVER_TLS";

fn is_over_tls() -> bool {
    std::env::var_os(OVER_TLS).is_some()
}

pub(crate) fn server(builder: ServerBuilder) -> ServerBuilder {
    if is_over_tls() {
        return builder.tls(tls().build().unwrap());
    }
    builder
}

/// The settings of a client that trusts the CA.
pub(crate) fn client_config() -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(CERTIFICATES.root.clone()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth()
}

static CONFIG: LazyLock<Arc<ClientConfig>> = LazyLock::new(|| Arc::new(client_config()));

pub(crate) async fn client(stream: impl Stream + 'static) -> Box<dyn Stream> {
    if !is_over_tls() {
        return Box::new(stream);
    }
    let connector = TlsConnector::from(Arc::clone(&CONFIG));
    let name = ServerName::try_from(NAME).unwrap();
    Box::new(connector.connect(name, stream).await.unwrap())
}

pub(crate) async fn connect(path: &Path) -> Box<dyn Stream> {
    client(UnixStream::connect(path).await.unwrap()).await
}
