//! The responses that a proxy makes itself.

use std::fmt::Display;

use greenroom_server::RejectionDetail;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};

use crate::response_body::ResponseBody;
use crate::upstream::Failure;

/// The seconds after which a client may try again if there is no room for its request.
const RETRY_AFTER_SECONDS: u64 = 1;

/// Returns a response of one line, which the server's own rejections may replace.
pub(crate) fn plain(status: StatusCode, text: impl Display) -> Response<ResponseBody> {
    let detail = RejectionDetail(text.to_string().into());
    detail.response(status).map(ResponseBody::whole)
}

/// Returns the response to a request that failed at an upstream.
pub(crate) fn failed(failure: Failure) -> Response<ResponseBody> {
    match failure {
        Failure::ConnectTimeout | Failure::ResponseHeadTimeout => {
            plain(StatusCode::GATEWAY_TIMEOUT, "the upstream took too long")
        }
        Failure::Local => busy(),
        Failure::Connect => plain(StatusCode::BAD_GATEWAY, "the upstream could not be reached"),
        Failure::ResponseHead | Failure::ResponseBody | Failure::Status => plain(
            StatusCode::BAD_GATEWAY,
            "the upstream gave no valid response",
        ),
    }
}

/// Returns the response if there is no room: all upstreams have as many requests as they may, or
/// this machine cannot make another connection.
pub(crate) fn busy() -> Response<ResponseBody> {
    let mut response = plain(StatusCode::SERVICE_UNAVAILABLE, "overloaded");
    let seconds = HeaderValue::from(RETRY_AFTER_SECONDS);
    response.headers_mut().insert(RETRY_AFTER, seconds);
    response
}

/// Returns the response to a body of the client's that could not be read.
pub(crate) fn not_received(status: StatusCode) -> Response<ResponseBody> {
    plain(status, "the body of this request could not be read")
}
