use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytesize::ByteSize;
use http::StatusCode;
use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};

use crate::{Failure, Problem};

/// The longest text of an error response, in bytes, that becomes the detail of a problem.
const DETAIL_BYTES_MAX: usize = 4_096;

/// Middleware that turns the plain-text error responses of extractors, layers and the router into
/// problems (RFC 9457).
pub(super) async fn explain(request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let status = response.status();
    if (status.is_client_error() || status.is_server_error()) && is_text(&response) {
        return explained(response).await;
    }
    response
}

fn is_text(response: &Response) -> bool {
    let media_type = response.headers().get(CONTENT_TYPE);
    media_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"))
}

async fn explained(response: Response) -> Response {
    let (parts, body) = response.into_parts();
    let text = to_bytes(body, DETAIL_BYTES_MAX).await.unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let detail = match text.trim() {
        // The text of axum's 405 is empty.
        "" => "this is not possible at this address",
        text => text,
    };
    let mut response = Problem::new(parts.status, detail).into_response();
    for name in [ALLOW, RETRY_AFTER] {
        if let Some(value) = parts.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

/// Middleware that adds the limit to the 413 for a body that is too long.
pub(super) async fn explain_limit(
    State(bytes_max): State<ByteSize>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE && is_text(&response) {
        let text = format!("a body has at most {bytes_max} here");
        response = (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    }
    response
}

/// Rejects addresses that the API does not have.
pub(super) async fn unknown() -> Failure {
    Failure::NotFound("address in this API; GET /api lists them")
}
