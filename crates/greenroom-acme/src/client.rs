//! HTTP to the authority, within limits.

use std::error::Error as StdError;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::header::{RETRY_AFTER, USER_AGENT};
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, Problem};
use rustls::crypto::CryptoProvider;
use rustls::{ClientConfig, RootCertStore};

/// The longest response of an authority that is read, in bytes: 1 MiB.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;

/// The longest wait that an authority can ask for by `Retry-After`: one attempt a day does no
/// harm, and a mistake of the authority does not end the renewals.
const RETRY_AFTER_MAX: Duration = Duration::from_hours(24);

/// RFC 8555, 6.1 asks for a name by which the authority's operators know a client.
const AGENT: &str = concat!("greenroom-acme/", env!("CARGO_PKG_VERSION"));

/// The type of a problem that the protocol's library must see, to sign the request again (RFC
/// 8555, 6.5).
pub(crate) const BAD_NONCE: &str = "urn:ietf:params:acme:error:badNonce";

/// The end of a request to the authority that led to nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CaError {
    #[error("the authority cannot be reached: {0}")]
    Unreachable(String),
    #[error("the authority did not respond within {0:?}")]
    Timeout(Duration),
    #[error("a response of the authority is longer than {BODY_BYTES_MAX} bytes")]
    TooLong,
    #[error(
        "the authority responded {status}{}",
        problem.as_deref().map(describe).unwrap_or_default()
    )]
    Refused {
        status: StatusCode,
        problem: Option<Box<Problem>>,
        retry_after: Option<Duration>,
    },
}

impl From<CaError> for Error {
    fn from(error: CaError) -> Self {
        Self::Other(Box::new(error))
    }
}

/// Returns the details of a problem, to stand behind what it is about.
pub(crate) fn describe(problem: &Problem) -> String {
    let mut text = detail(problem.detail.as_deref(), problem.r#type.as_deref());
    for part in &problem.subproblems {
        text.push_str(&detail(part.detail.as_deref(), part.r#type.as_deref()));
    }
    text
}

fn detail(detail: Option<&str>, kind: Option<&str>) -> String {
    let kind = kind.map(|kind| kind.rsplit(':').next().unwrap_or(kind));
    match (detail, kind) {
        (Some(detail), Some(kind)) => format!(": {detail} ({kind})"),
        (Some(text), None) | (None, Some(text)) => format!(": {text}"),
        (None, None) => String::new(),
    }
}

/// A client of the authority: each request has an end in time, each response one in length.
#[derive(Clone)]
pub(crate) struct CaClient {
    http: Client<HttpsConnector<HttpConnector>, BodyWrapper<Bytes>>,
    request_timeout: Duration,
}

impl CaClient {
    pub(crate) fn new(
        roots: RootCertStore,
        provider: Arc<CryptoProvider>,
        request_timeout: Duration,
    ) -> Result<Self, rustls::Error> {
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .build();
        // Requests come in a row, months apart: one connection, not kept for long.
        let http = Client::builder(TokioExecutor::new())
            .pool_max_idle_per_host(1)
            .build(connector);
        Ok(Self {
            http,
            request_timeout,
        })
    }
}

impl HttpClient for CaClient {
    fn request(
        &self,
        mut request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let agent = HeaderValue::from_static(AGENT);
        request.headers_mut().insert(USER_AGENT, agent);
        let response = self.http.request(request);
        let limit = self.request_timeout;
        Box::pin(async move {
            let response = tokio::time::timeout(limit, exchange(response)).await;
            Ok(response.map_err(|_| CaError::Timeout(limit))??)
        })
    }
}

async fn exchange(response: ResponseFuture) -> Result<BytesResponse, CaError> {
    let response = response
        .await
        .map_err(|error| CaError::Unreachable(chain(&error)))?;
    let (mut parts, body) = response.into_parts();
    let wait = retry_after(&parts.headers);
    if let Some(wait) = wait {
        // The protocol's library adds it to the time, and would overflow.
        let seconds = HeaderValue::from(wait.as_secs());
        parts.headers.insert(RETRY_AFTER, seconds);
    }
    let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
    let body = body.map_err(|error| broken(&*error))?.to_bytes();
    if parts.status.is_client_error() || parts.status.is_server_error() {
        return refused(parts, body, wait);
    }
    Ok(BytesResponse::from(Response::from_parts(
        parts,
        Full::new(body),
    )))
}

fn broken(error: &(dyn StdError + 'static)) -> CaError {
    if error.is::<LengthLimitError>() {
        CaError::TooLong
    } else {
        CaError::Unreachable(chain(error))
    }
}

/// Makes an error of a rejection, which keeps what the protocol's library would lose: the time to
/// wait, and a status whose body is no problem document. Of a nonce that is not taken the library
/// must hear.
fn refused(
    parts: Parts,
    body: Bytes,
    retry_after: Option<Duration>,
) -> Result<BytesResponse, CaError> {
    let problem = serde_json::from_slice::<Problem>(&body).ok();
    let kind = problem
        .as_ref()
        .and_then(|problem| problem.r#type.as_deref());
    if kind == Some(BAD_NONCE) {
        return Ok(BytesResponse::from(Response::from_parts(
            parts,
            Full::new(body),
        )));
    }
    Err(CaError::Refused {
        status: parts.status,
        problem: problem.map(Box::new),
        retry_after,
    })
}

/// Reads the header field of RFC 9110, 10.2.3: seconds or a date.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    let wait = if let Ok(seconds) = value.parse() {
        Duration::from_secs(seconds)
    } else {
        let date = httpdate::parse_http_date(value).ok()?;
        let wait = date.duration_since(SystemTime::now());
        wait.unwrap_or(Duration::ZERO)
    };
    Some(wait.min(RETRY_AFTER_MAX))
}

/// Returns the error and its causes: the outermost alone says "client error (Connect)".
fn chain(error: &dyn StdError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(retry_after: &str) -> HeaderMap {
        let value = HeaderValue::from_str(retry_after).expect("a value");
        HeaderMap::from_iter([(RETRY_AFTER, value)])
    }

    #[test]
    fn rfc9110_10_2_3_retry_after_is_seconds_or_a_date() {
        let seconds = |value| retry_after(&headers(value)).map(|wait| wait.as_secs());
        assert_eq!(seconds("120"), Some(120));
        assert_eq!(seconds(" 0 "), Some(0));
        assert_eq!(seconds("Fri, 31 Dec 1999 23:59:59 GMT"), Some(0));
        let later = SystemTime::now() + Duration::from_hours(2);
        let wait = retry_after(&headers(&httpdate::fmt_http_date(later))).expect("a date");
        assert!((3600..=7200).contains(&wait.as_secs()), "{wait:?}");
        assert_eq!(seconds("18446744073709551615"), Some(86_400));
        assert_eq!(seconds("Fri, 31 Dec 9999 23:59:59 GMT"), Some(86_400));
        for malformed in ["", "soon", "-1", "1.5"] {
            assert_eq!(seconds(malformed), None, "{malformed}");
        }
    }
}
