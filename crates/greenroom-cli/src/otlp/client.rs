//! HTTP to the collector, within limits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use rustls::crypto::ring::default_provider;
use rustls::{ClientConfig, RootCertStore};

/// The time that a batch has, from its connection to the end of the response: OpenTelemetry's
/// default.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest response of a collector that is read, in bytes.
const RESPONSE_BYTES_MAX: usize = 64 * 1_024;

/// A client of the collector.
#[derive(Debug)]
pub(super) struct CollectorClient(Client<HttpsConnector<HttpConnector>, Full<Bytes>>);

impl CollectorClient {
    pub(super) fn new(endpoint: &Uri) -> anyhow::Result<Self> {
        let is_tls = endpoint.scheme_str() == Some("https");
        let roots = if is_tls {
            roots()?
        } else {
            RootCertStore::empty()
        };
        let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .build();
        let client = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(Self(client))
    }
}

/// Returns the certificates that this system trusts.
fn roots() -> anyhow::Result<RootCertStore> {
    let mut roots = RootCertStore::empty();
    let loaded = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(loaded.certs);
    let error = loaded.errors.into_iter().next();
    match (roots.is_empty(), error) {
        (false, _) => Ok(roots),
        (true, Some(error)) => Err(error).context("the system's certificates cannot be read"),
        (true, None) => anyhow::bail!("the system has no certificates of authorities"),
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let exchange = async {
            let response = self.0.request(request.map(Full::new)).await;
            let response = response.map_err(|error| chain(&error))?;
            let (parts, body) = response.into_parts();
            let body = Limited::new(body, RESPONSE_BYTES_MAX).collect().await?;
            Ok(Response::from_parts(parts, body.to_bytes()))
        };
        match tokio::time::timeout(EXPORT_TIMEOUT, exchange).await {
            Ok(exchanged) => exchanged,
            Err(_) => Err(format!("no response within {EXPORT_TIMEOUT:?}").into()),
        }
    }
}

/// Returns the error and its causes: the outermost alone says "client error (Connect)".
fn chain(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
