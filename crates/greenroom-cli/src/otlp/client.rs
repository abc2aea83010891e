//! HTTP to the collector, within limits.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};

use crate::args::OtlpTlsArgs;

/// The time that a batch has, from its connection to the end of the response: OpenTelemetry's
/// default.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest response of a collector that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 * 1_024;

/// A client of the collector. Clones share its connection.
#[derive(Clone, Debug)]
pub(super) struct CollectorClient {
    client: Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    /// The error of the last exchange. The exporter hides what a client tells it.
    error: Arc<Mutex<Option<String>>>,
}

impl CollectorClient {
    /// Creates a client; certificates are those of the files, if the arguments name some.
    pub(super) fn new(endpoint: &Uri, args: &OtlpTlsArgs) -> anyhow::Result<Self> {
        let is_tls = endpoint.scheme_str() == Some("https");
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls(is_tls, args)?)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(Self {
            client,
            error: Arc::default(),
        })
    }

    /// Takes the error of the last exchange, if that had one.
    pub(super) fn take_error(&self) -> Option<String> {
        self.error.lock().take()
    }

    async fn exchange(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        let exchange = async {
            let response = self.client.request(request.map(Full::new)).await;
            let response = response.map_err(|error| chain(&error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await;
            let body = body.map_err(|error| chain(&*error))?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        match tokio::time::timeout(EXPORT_TIMEOUT, exchange).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err(format!("no response within {EXPORT_TIMEOUT:?}")),
        }
    }
}

fn tls(is_tls: bool, args: &OtlpTlsArgs) -> anyhow::Result<ClientConfig> {
    let roots = match (is_tls, args.ca_file()) {
        (false, _) => RootCertStore::empty(),
        (true, None) => system_roots()?,
        (true, Some(file)) => {
            roots(file).with_context(|| format!("--otlp-ca-file {}", file.display()))?
        }
    };
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots);
    match args.client().filter(|_| is_tls) {
        None => Ok(config.with_no_client_auth()),
        Some((chain, key)) => {
            let file = chain.display();
            let chain = certificates(chain);
            let chain = chain.with_context(|| format!("--otlp-client-certificate {file}"))?;
            let read = PrivateKeyDer::from_pem_file(key);
            let config = read
                .map_err(anyhow::Error::from)
                .and_then(|read| Ok(config.with_client_auth_cert(chain, read)?));
            config.with_context(|| format!("--otlp-client-key {}", key.display()))
        }
    }
}

/// Returns the certificates of authorities in a file.
fn roots(file: &Path) -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(file)? {
        roots.add(certificate)?;
    }
    Ok(roots)
}

fn certificates(file: &Path) -> anyhow::Result<Vec<CertificateDer<'static>>> {
    let read = CertificateDer::pem_file_iter(file)?;
    let certificates = read.collect::<Result<Vec<_>, _>>()?;
    ensure!(!certificates.is_empty(), "it has no certificate (PEM)");
    Ok(certificates)
}

/// Returns the certificates of authorities that this system trusts.
fn system_roots() -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(loaded.certs);
    let error = loaded.errors.into_iter().next();
    match (roots.is_empty(), error) {
        (false, _) => Ok(roots),
        (true, Some(error)) => Err(error).context("the system's certificates cannot be read"),
        (true, None) => bail!("the system has no certificates of authorities"),
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchanged = self.exchange(request).await;
        *self.error.lock() = exchanged.as_ref().err().cloned();
        Ok(exchanged?)
    }
}

/// Returns the error and its causes: the outermost alone says "client error (Connect)".
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
