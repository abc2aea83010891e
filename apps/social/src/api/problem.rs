use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use bytesize::ByteSize;
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::Failure;

/// Middleware that adds the limit to the 413 for a body that is too long.
pub(super) async fn explain_limit(
    State(bytes_max): State<ByteSize>,
    request: Request,
    next: Next,
) -> Response {
    let mut response = next.run(request).await;
    let media_type = response.headers().get(CONTENT_TYPE);
    let is_text = media_type.is_none_or(|value| value.as_bytes().starts_with(b"text/plain"));
    if response.status() == StatusCode::PAYLOAD_TOO_LARGE && is_text {
        let text = format!("a body has at most {bytes_max} here");
        response = (StatusCode::PAYLOAD_TOO_LARGE, text).into_response();
    }
    response
}

/// Rejects addresses that the API does not have.
pub(super) async fn unknown() -> Failure {
    Failure::NotFound("address in this API; GET /api lists them")
}
