//! HTTP to the collector, within limits.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use async_trait::async_trait;
use bytes::Bytes;
use greenroom::client_tls;
use greenroom::rustls::crypto::aws_lc_rs::default_provider;
use greenroom::rustls::{ClientConfig, RootCertStore};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use opentelemetry_http::{HttpClient, HttpError};
use parking_lot::Mutex;

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
        let tls = match endpoint.scheme_str() {
            Some("https") => tls(args)?,
            _ => without_roots()?,
        };
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
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

fn tls(args: &OtlpTlsArgs) -> anyhow::Result<ClientConfig> {
    client_tls(args.ca_file(), args.client()).map_err(|error| {
        let flag = error.file().and_then(|file| args.flag_of(file));
        let error = anyhow::Error::from(error);
        match flag {
            Some(flag) => error.context(flag),
            None => error,
        }
    })
}

/// Returns the settings of a client that makes no connection with TLS, and needs no authorities.
fn without_roots() -> anyhow::Result<ClientConfig> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .context("TLS cannot be set up")?;
    let config = config.with_root_certificates(RootCertStore::empty());
    Ok(config.with_no_client_auth())
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
