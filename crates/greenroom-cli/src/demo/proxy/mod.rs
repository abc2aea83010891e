//! `/proxy`: relays the one configured upstream, streaming its response.

mod client;
mod error;
mod headers;
mod upstream;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderMap, Method};
use hyper::body::Incoming;
use tokio::time::timeout;
use tower_http::timeout::TimeoutBody;

use super::Demo;
pub(super) use error::RelayError;
pub use upstream::{Upstream, UpstreamError};

/// Relays the configured target, ignoring path, query and body of the client's request.
pub(super) async fn relay(
    State(demo): State<Demo>,
    request: Request,
) -> Result<Response, RelayError> {
    let upstream = demo.upstream.ok_or(RelayError::NoUpstream)?;
    let (parts, _) = request.into_parts();
    let response = fetch(&upstream, parts.method, parts.headers).await?;
    let (mut parts, body) = response.into_parts();
    headers::make_downstream(&mut parts.headers);
    let body = Body::new(TimeoutBody::new(upstream.timeout(), body));
    Ok(Response::from_parts(parts, body))
}

async fn fetch(
    upstream: &Upstream,
    method: Method,
    mut headers: HeaderMap,
) -> Result<http::Response<Incoming>, RelayError> {
    headers::make_upstream(&mut headers);
    let mut request = http::Request::new(client::NoBody::new());
    *request.method_mut() = method;
    *request.uri_mut() = upstream.uri();
    *request.headers_mut() = headers;
    let head = timeout(upstream.timeout(), client::send(request));
    let head = head.await.map_err(|_| RelayError::HeadTimeout)?;
    head.map_err(RelayError::from)
}
