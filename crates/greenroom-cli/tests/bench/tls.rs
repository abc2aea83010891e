//! TLS in front of a server that speaks none.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tempfile::TempDir;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// A TLS server on a free port, with a certificate for `localhost` that it signed itself, that
/// passes on the bytes.
pub(crate) struct TlsFront {
    pub(crate) port: u16,
    directory: TempDir,
    _runtime: Runtime,
}

impl TlsFront {
    /// Starts one before a server; `protocols` are offered by ALPN.
    pub(crate) fn of(server: &str, protocols: &[&str]) -> Self {
        let server: SocketAddr = server.parse().expect("an address");
        let pair = rcgen::generate_simple_self_signed(["localhost".to_owned()])
            .expect("a name for a certificate");
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.pem"), pair.cert.pem()).expect("it is writable");
        let key = PrivatePkcs8KeyDer::from(pair.signing_key.serialize_der());
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let key = PrivateKeyDer::Pkcs8(key);
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![pair.cert.der().clone()], key)
            })
            .expect("a certificate and its key");
        config.alpn_protocols = protocols
            .iter()
            .map(|name| name.as_bytes().into())
            .collect();
        let runtime = Runtime::new().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0"));
        let listener = listener.expect("a port is free");
        let port = listener.local_addr().expect("it is bound").port();
        runtime.spawn(accept(
            listener,
            TlsAcceptor::from(Arc::new(config)),
            server,
        ));
        Self {
            port,
            directory,
            _runtime: runtime,
        }
    }

    /// Returns the path of the certificate, a PEM file.
    pub(crate) fn certificate(&self) -> PathBuf {
        self.directory.path().join("ca.pem")
    }
}

async fn accept(listener: TcpListener, tls: TlsAcceptor, server: SocketAddr) {
    while let Ok((stream, _)) = listener.accept().await {
        let tls = tls.clone();
        tokio::spawn(async move {
            let mut outer = tls.accept(stream).await?;
            let mut inner = TcpStream::connect(server).await?;
            copy_bidirectional(&mut outer, &mut inner).await
        });
    }
}
